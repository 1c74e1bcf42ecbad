"""The states of a reflector as tables: what it may be fed in each, and which state can follow which.

``STATES`` is what docs/cache.md shows; ``FEEDS`` is what the machine obeys. A test holds the first against the machine:
every step that it makes is in ``STATES``, and every step there is made.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import msgspec


class ReflectorPhase(StrEnum):
    """Where a reflector is."""

    LISTING = "listing"
    RECEIVING = "receiving a streamed list"
    PROBING = "probing"
    CONNECTING = "connecting"
    STREAMING = "streaming"
    WAITING = "waiting"


class State(msgspec.Struct, frozen=True):
    """One state, as a person reads it.

    Attributes:
        phase: The phase that the state describes.
        asks: The request that is sent to the server in it.
        leaves: What leads out of it, in the order in which it is checked; each with the states that it may lead to.
    """

    phase: ReflectorPhase
    asks: str
    leaves: tuple[tuple[str, frozenset[ReflectorPhase]], ...]

    @property
    def next_phases(self) -> frozenset[ReflectorPhase]:
        """All states that can follow at once."""
        return frozenset(phase for _, phases in self.leaves for phase in phases)


def _to(*phases: ReflectorPhase) -> frozenset[ReflectorPhase]:
    return frozenset(phases)


STATES: Final[tuple[State, ...]] = (
    State(
        ReflectorPhase.LISTING,
        "a streamed list (a watch that begins with the whole state), or a list in pages",
        (
            ("the server accepts a streamed list", _to(ReflectorPhase.RECEIVING)),
            ("the last page is there", _to(ReflectorPhase.CONNECTING)),
            ("it fails", _to(ReflectorPhase.WAITING)),
            ("it fails in a way that another list at once may mend", _to(ReflectorPhase.LISTING)),
        ),
    ),
    State(
        ReflectorPhase.RECEIVING,
        "nothing; events are held until the server says that the list is whole",
        (
            ("that bookmark comes", _to(ReflectorPhase.STREAMING)),
            ("the stream breaks, ends, or brings no more of the list for 30 s", _to(ReflectorPhase.LISTING)),
            ("the server is busy or not there", _to(ReflectorPhase.WAITING)),
        ),
    ),
    State(
        ReflectorPhase.CONNECTING,
        "a watch from the last version, for 5 to 10 minutes",
        (
            ("the server's version was not looked at for long, or the last watch broke", _to(ReflectorPhase.PROBING)),
            ("the server accepts", _to(ReflectorPhase.STREAMING)),
            ("it fails, or the store refused the list", _to(ReflectorPhase.WAITING)),
        ),
    ),
    State(
        ReflectorPhase.PROBING,
        "one object of the newest list, for its version",
        (
            ("it is not lower than ours, or the server does not say", _to(ReflectorPhase.CONNECTING)),
            ("it is lower", _to(ReflectorPhase.LISTING)),
            ("the server is busy or not there", _to(ReflectorPhase.WAITING)),
        ),
    ),
    State(
        ReflectorPhase.STREAMING,
        "nothing; events are applied in the order they come",
        (
            ("the server ends it, or the connection is lost", _to(ReflectorPhase.CONNECTING)),
            ("it ends in another way, or too soon, or the store refused an event", _to(ReflectorPhase.WAITING)),
            ("the server's version went back", _to(ReflectorPhase.LISTING)),
        ),
    ),
    State(
        ReflectorPhase.WAITING,
        "nothing; 0.8 s doubling to 30 s, with jitter, shared by all failures",
        (("the time is over", _to(ReflectorPhase.LISTING, ReflectorPhase.CONNECTING)),),
    ),
)
"""All states; WAITING goes on with what the failure was answered by."""

FEEDS: Final[dict[str, frozenset[ReflectorPhase]]] = {
    "listed": frozenset({ReflectorPhase.LISTING}),
    "list_failed": frozenset({ReflectorPhase.LISTING}),
    "watch_list_opened": frozenset({ReflectorPhase.LISTING}),
    "initial_event": frozenset({ReflectorPhase.RECEIVING}),
    "watch_list_ended": frozenset({ReflectorPhase.RECEIVING}),
    "watch_list_failed": frozenset({ReflectorPhase.LISTING, ReflectorPhase.RECEIVING}),
    "probed": frozenset({ReflectorPhase.PROBING}),
    "probe_failed": frozenset({ReflectorPhase.PROBING}),
    "looked": frozenset({ReflectorPhase.RECEIVING, ReflectorPhase.STREAMING}),
    "look_failed": frozenset({ReflectorPhase.RECEIVING, ReflectorPhase.STREAMING}),
    "watch_opened": frozenset({ReflectorPhase.CONNECTING}),
    "watch_event": frozenset({ReflectorPhase.STREAMING}),
    "watch_events": frozenset({ReflectorPhase.STREAMING}),
    "watch_ended": frozenset({ReflectorPhase.STREAMING}),
    "watch_failed": frozenset({ReflectorPhase.CONNECTING, ReflectorPhase.STREAMING}),
    "store_failed": frozenset({ReflectorPhase.CONNECTING, ReflectorPhase.STREAMING}),
}
"""Which feed belongs to which phase. ``store_failed`` follows a complete list or an event that could not be applied."""
