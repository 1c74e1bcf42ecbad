"""The states of a reflector as tables: what it may be fed in each, and which state can follow which.

``STATES`` is what docs/cache.md shows; ``FEEDS`` is what the machine obeys. A test holds the first against the machine:
every step that it makes is in ``STATES``, and every step there is made.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Phase(StrEnum):
    """Where a reflector is."""

    LISTING = "listing"
    RECEIVING = "receiving a streamed list"
    PROBING = "probing"
    CONNECTING = "connecting"
    STREAMING = "streaming"
    WAITING = "waiting"


@dataclass(frozen=True, slots=True)
class State:
    """One state, as a person reads it.

    Attributes:
        phase: Which one.
        asks: What the server is asked for.
        leaves: What leads out of it, in the order in which it is checked; each with the states that it may lead to.
    """

    phase: Phase
    asks: str
    leaves: tuple[tuple[str, frozenset[Phase]], ...]

    @property
    def next_phases(self) -> frozenset[Phase]:
        """All states that can follow at once."""
        return frozenset(phase for _, phases in self.leaves for phase in phases)


def _to(*phases: Phase) -> frozenset[Phase]:
    return frozenset(phases)


STATES: Final[tuple[State, ...]] = (
    State(
        Phase.LISTING,
        "a streamed list (a watch that begins with the whole state), or a list in pages",
        (
            ("the server accepts a streamed list", _to(Phase.RECEIVING)),
            ("the last page is there", _to(Phase.CONNECTING)),
            ("it fails", _to(Phase.WAITING)),
            ("it fails in a way that another list at once may mend", _to(Phase.LISTING)),
        ),
    ),
    State(
        Phase.RECEIVING,
        "nothing; events are held until the server says that the list is whole",
        (
            ("that bookmark comes", _to(Phase.STREAMING)),
            ("the stream breaks, ends, or brings no more of the list for 30 s", _to(Phase.LISTING)),
            ("the server is busy or not there", _to(Phase.WAITING)),
        ),
    ),
    State(
        Phase.CONNECTING,
        "a watch from the last version, for 5 to 10 minutes",
        (
            ("the server's version was not looked at for long, or the last watch broke", _to(Phase.PROBING)),
            ("the server accepts", _to(Phase.STREAMING)),
            ("it fails, or the store refused the list", _to(Phase.WAITING)),
        ),
    ),
    State(
        Phase.PROBING,
        "one object of the newest list, for its version",
        (
            ("it is not lower than ours, or the server does not say", _to(Phase.CONNECTING)),
            ("it is lower", _to(Phase.LISTING)),
            ("the server is busy or not there", _to(Phase.WAITING)),
        ),
    ),
    State(
        Phase.STREAMING,
        "nothing; events are applied in the order they come",
        (
            ("the server ends it, or the connection is lost", _to(Phase.CONNECTING)),
            ("it ends in another way, or too soon, or the store refused an event", _to(Phase.WAITING)),
        ),
    ),
    State(
        Phase.WAITING,
        "nothing; 0.8 s doubling to 30 s, with jitter, shared by all failures",
        (("the time is over", _to(Phase.LISTING, Phase.CONNECTING)),),
    ),
)
"""All states; WAITING goes on with what the failure was answered by."""

FEEDS: Final[dict[str, frozenset[Phase]]] = {
    "listed": frozenset({Phase.LISTING}),
    "list_failed": frozenset({Phase.LISTING}),
    "watch_list_opened": frozenset({Phase.LISTING}),
    "initial_event": frozenset({Phase.RECEIVING}),
    "watch_list_ended": frozenset({Phase.RECEIVING}),
    "watch_list_failed": frozenset({Phase.LISTING, Phase.RECEIVING}),
    "probed": frozenset({Phase.PROBING}),
    "probe_failed": frozenset({Phase.PROBING}),
    "watch_opened": frozenset({Phase.CONNECTING}),
    "watch_event": frozenset({Phase.STREAMING}),
    "watch_ended": frozenset({Phase.STREAMING}),
    "watch_failed": frozenset({Phase.CONNECTING, Phase.STREAMING}),
    "store_failed": frozenset({Phase.CONNECTING, Phase.STREAMING}),
}
"""Which feed belongs to which phase. ``store_failed`` follows a complete list or an event that could not be applied."""
