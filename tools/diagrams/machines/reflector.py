"""The reflector's phases as a table for readers. A test compares it with the machine's transitions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tools.diagrams.model import Diagram, Step, Table

from deltaloop.cache.core.reflector.states import ReflectorPhase


@dataclass(frozen=True)
class State:
    """Description of a phase for readers: its request to the server, and the conditions for leaving it, in order."""

    phase: ReflectorPhase
    asks: str
    leaves: tuple[tuple[str, frozenset[ReflectorPhase]], ...]

    @property
    def next_phases(self) -> frozenset[ReflectorPhase]:
        """All phases that can follow."""
        return frozenset(phase for _, phases in self.leaves for phase in phases)


def _to(*phases: ReflectorPhase) -> frozenset[ReflectorPhase]:
    return frozenset(phases)


STATES: Final[tuple[State, ...]] = (
    State(
        ReflectorPhase.LISTING,
        "a streamed list (a watch that begins with the whole state), or a list in pages",
        (
            ("the server accepts a streamed list", _to(ReflectorPhase.RECEIVING)),
            ("the last page arrives", _to(ReflectorPhase.CONNECTING)),
            ("it fails", _to(ReflectorPhase.WAITING)),
            ("it fails, and an immediate second list can succeed", _to(ReflectorPhase.LISTING)),
        ),
    ),
    State(
        ReflectorPhase.RECEIVING,
        "none; events are kept until the server reports that the list is complete",
        (
            ("the bookmark at the end of the list arrives", _to(ReflectorPhase.STREAMING)),
            ("the stream breaks, ends, or delivers no objects for 30 s", _to(ReflectorPhase.LISTING)),
            ("the server is busy or unreachable", _to(ReflectorPhase.WAITING)),
        ),
    ),
    State(
        ReflectorPhase.CONNECTING,
        "a watch from the last version, for 5 to 10 minutes",
        (
            ("the last probe is too old, or the last watch broke", _to(ReflectorPhase.PROBING)),
            ("the server accepts", _to(ReflectorPhase.STREAMING)),
            ("it fails, or the store rejected the list", _to(ReflectorPhase.WAITING)),
        ),
    ),
    State(
        ReflectorPhase.PROBING,
        "one object of the newest list, for its version",
        (
            ("the version is not lower, or unknown", _to(ReflectorPhase.CONNECTING)),
            ("the version is lower", _to(ReflectorPhase.LISTING)),
            ("the server is busy or unreachable", _to(ReflectorPhase.WAITING)),
        ),
    ),
    State(
        ReflectorPhase.STREAMING,
        "none; events are applied in order",
        (
            ("the server ends it, the connection is lost, or the shard changes", _to(ReflectorPhase.CONNECTING)),
            ("it fails, it ends too soon, or the store rejected an event", _to(ReflectorPhase.WAITING)),
            ("the server's version went back", _to(ReflectorPhase.LISTING)),
        ),
    ),
    State(
        ReflectorPhase.WAITING,
        "none; 0.8 s doubling to 30 s, with jitter, shared by all failures",
        (("the wait ends", _to(ReflectorPhase.LISTING, ReflectorPhase.CONNECTING)),),
    ),
)


def reflector() -> Diagram:
    """Draw the table."""
    steps = [
        Step(state.phase.value, what, phase.value)
        for state in STATES
        for what, phases in state.leaves
        for phase in sorted(phases, key=[each.phase for each in STATES].index)
    ]
    states = [state.phase.value for state in STATES]
    return Diagram("reflector", "reflector", "A reflector", "cache/core/reflector/states.py", states, steps)


def requests_of_states() -> Table:
    """List the request that the reflector sends in each state."""
    rows: list[tuple[str, ...]] = [(state.phase.value, state.asks) for state in STATES]
    return Table("requests", "reflector", "cache/core/reflector/states.py", ("state", "request"), rows)
