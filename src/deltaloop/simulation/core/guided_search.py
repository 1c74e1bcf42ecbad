"""Which faults are tried together: by chance, and from there where something new has come up.

A run shows *states*: what an object was like after a write, and which write of a program followed which. A schedule
whose run shows one that no run before has shown is kept, and another fault is added to it later, at one of the writes
that came after its last fault. So faults also strike writes that the run without faults never makes: the crash in the
middle of the recovery from a crash.

    names ──▶ next() ──▶ schedule ──▶ a run ──▶ ran(schedule, run) ──▶ new states? ──▶ kept
                ▲                                                                        │
                └────────────────────────────────────────────────────────────────────────┘

Source of the idea: coverage-guided fuzzing (AFL, "coverage as feedback").
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, final

import msgspec

from deltaloop.api.json_values import mapping
from deltaloop.simulation.core.oracles import SimulationRun
from deltaloop.simulation.core.schedules import (
    ALL_KINDS,
    MOST_AT_ONCE,
    Kind,
    Schedule,
    ScheduledFault,
    combined,
    combining,
    drawn_fault,
    names_of,
)
from deltaloop.testing.injected_faults.core.program_writes import ProgramWrite, WriteName

_FROM_KEPT: Final = 0.5
_OWN: Final = ("metadata", "apiVersion", "kind")
_encode: Final = msgspec.msgpack.Encoder(order="sorted").encode


@final
class GuidedSearch:
    """Draws schedules of several faults."""

    def __init__(
        self, names: Sequence[WriteName], draw: Callable[[], float], kinds: Sequence[Kind] = ALL_KINDS
    ) -> None:
        """Know of no run.

        Args:
            names: The writes of the run without faults; two at least, or ``next`` has nothing to draw from.
            draw: Gives numbers in [0, 1).
            kinds: What is tried; a fault that goes together with others is among them.
        """
        self._kinds = kinds
        self._names = names
        self._draw = draw
        self._seen: set[object] = set()
        self._kept: list[tuple[Schedule, tuple[WriteName, ...]]] = []

    @property
    def states(self) -> int:
        """How many states have been seen so far."""
        return len(self._seen)

    def ran(self, schedule: Schedule, run: SimulationRun, *, right: bool = True) -> None:
        """Take what came of a schedule.

        Args:
            schedule: Its faults.
            run: Its run.
            right: Whether nothing is wrong with it: what goes wrong with few faults need not be tried with more.
        """
        found = {*_states_of(run)}
        new = not found <= self._seen
        self._seen |= found
        faults = [fault for fault in schedule if isinstance(fault, ScheduledFault)]
        if not (new and right and faults) or len(faults) >= MOST_AT_ONCE or run.premature:
            return
        later = _after(run.writes, {fault.write for fault in faults})
        if later:
            self._kept.append((schedule, later))

    def next(self) -> Schedule:
        """Draw a schedule."""
        if not self._kept or self._draw() >= _FROM_KEPT:
            return combined(self._names, self._draw, self._kinds)
        schedule, later = self._kept[int(self._draw() * len(self._kept))]
        name = later[int(self._draw() * len(later))]
        return (*schedule, drawn_fault(name, combining(self._kinds), self._draw))


def _after(writes: Sequence[ProgramWrite], struck: set[WriteName]) -> tuple[WriteName, ...]:
    """Return the names of the writes after the last one that was struck."""
    last = max((place for place, write in enumerate(writes) if write.name in struck), default=len(writes))
    return names_of(writes[last + 1 :])


def _states_of(run: SimulationRun) -> Iterator[object]:
    """Give what a run has shown: each object after each write, and each pair of writes of a program in a row."""
    before: dict[str, str] = {}
    for write in run.writes:
        shown = f"{write} {write.code}"
        yield before.get(write.replica, ""), shown
        before[write.replica] = shown
        if write.carried_out and write.stored:
            meant = {name: value for name, value in write.stored.items() if name not in _OWN}
            finalizers = mapping(write.stored.get("metadata")).get("finalizers")
            yield write.resource, write.key, hash(_encode((meant, finalizers)))
