"""Search for combinations of faults that is guided by new states.

A *state* is an object after a write, or a pair of consecutive writes of a program. If the run of a schedule shows a new
state, the schedule is kept, and later another fault is added at a write after its last fault.

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
    def __init__(
        self, names: Sequence[WriteName], draw: Callable[[], float], kinds: Sequence[Kind] = ALL_KINDS
    ) -> None:
        """Create a search."""
        self._kinds = kinds
        self._names = names
        self._draw = draw
        self._seen: set[object] = set()
        self._kept: list[tuple[Schedule, tuple[WriteName, ...]]] = []

    @property
    def states(self) -> int:
        return len(self._seen)

    def ran(self, schedule: Schedule, run: SimulationRun, *, right: bool = True) -> None:
        """Process the result of a schedule; ``right`` False means that it fails and is not extended."""
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
        if not self._kept or self._draw() >= _FROM_KEPT:
            return combined(self._names, self._draw, self._kinds)
        schedule, later = self._kept[int(self._draw() * len(self._kept))]
        name = later[int(self._draw() * len(later))]
        return (*schedule, drawn_fault(name, combining(self._kinds), self._draw))


def _after(writes: Sequence[ProgramWrite], struck: set[WriteName]) -> tuple[WriteName, ...]:
    last = max((place for place, write in enumerate(writes) if write.name in struck), default=len(writes))
    return names_of(writes[last + 1 :])


def _states_of(run: SimulationRun) -> Iterator[object]:
    """Yield the states of a run: each object after each write, and each pair of consecutive writes of a program."""
    before: dict[str, str] = {}
    for write in run.writes:
        shown = f"{write} {write.code}"
        yield before.get(write.replica, ""), shown
        before[write.replica] = shown
        if write.carried_out and write.stored:
            meant = {name: value for name, value in write.stored.items() if name not in _OWN}
            finalizers = mapping(write.stored.get("metadata")).get("finalizers")
            yield write.resource, write.key, hash(_encode((meant, finalizers)))
