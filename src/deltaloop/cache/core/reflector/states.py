"""Phases of the reflector, and the allowed feeds in each of them."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class ReflectorPhase(StrEnum):
    LISTING = "listing"
    RECEIVING = "receiving a streamed list"
    PROBING = "probing"
    CONNECTING = "connecting"
    STREAMING = "streaming"
    WAITING = "waiting"


FEEDS: Final[dict[str, frozenset[ReflectorPhase]]] = {
    "listed": frozenset({ReflectorPhase.LISTING}),
    "list_failed": frozenset({ReflectorPhase.LISTING}),
    "watch_list_opened": frozenset({ReflectorPhase.LISTING}),
    "initial_event": frozenset({ReflectorPhase.RECEIVING}),
    "initial_events": frozenset({ReflectorPhase.RECEIVING}),
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
