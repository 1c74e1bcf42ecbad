"""States of the reflector as tables: the allowed feeds and the possible transitions.

``STATES`` is the table in internals/machines/reflector.md. A test compares it with the machine's transitions.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import msgspec


class ReflectorPhase(StrEnum):
    LISTING = "listing"
    RECEIVING = "receiving a streamed list"
    PROBING = "probing"
    CONNECTING = "connecting"
    STREAMING = "streaming"
    WAITING = "waiting"


class State(msgspec.Struct, frozen=True):
    """Description of a phase for readers: its request to the server, and the conditions for leaving it, in order."""

    phase: ReflectorPhase
    asks: str
    leaves: tuple[tuple[str, frozenset[ReflectorPhase]], ...]

    @property
    def next_phases(self) -> frozenset[ReflectorPhase]:
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

FEEDS: Final[dict[str, frozenset[ReflectorPhase]]] = {
    "listed": frozenset({ReflectorPhase.LISTING}),
    "list_failed": frozenset({ReflectorPhase.LISTING}),
    "watch_list_opened": frozenset({ReflectorPhase.LISTING}),
    "initial_event": frozenset({ReflectorPhase.RECEIVING}),
    "other_shard_event": frozenset({ReflectorPhase.RECEIVING}),
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
    "watch_interrupted": frozenset({ReflectorPhase.STREAMING}),
    "store_failed": frozenset({ReflectorPhase.CONNECTING, ReflectorPhase.STREAMING}),
}
"""Allowed phases of each feed. Use ``store_failed`` for a complete list or an event that could not be applied."""
