"""Decide whether a cache has reached a version, as a number (KEP-5504), otherwise only by equality."""

from __future__ import annotations

import msgspec

from deltaloop.api.resource_version import version_number


def is_reached(wanted: str, *, reached: str) -> bool:
    """Return whether a cache at version ``reached`` includes version ``wanted``."""
    return wanted == reached or 0 < version_number(wanted) < version_number(reached)


class Freshness(msgspec.Struct, frozen=True, kw_only=True):
    """How current a cache is.

    Times are on the event loop's clock, and None before the first occurrence.

    Attributes:
        resource_version: Version of the cache.
        seen_resource_version: Last version received from the server. It is newer while deltas are queued.
        waiting: Number of queued keys (``DeltaFIFO``) or entries (``RealFIFO``).
        last_event_at: Time of the last event.
        last_bookmark_at: Time of the last bookmark.
        last_byte_at: Time of the last received data, including parts of an object.
        pending_bytes: Received bytes of an incomplete event. If the value stays above 0, the stream has stalled within
            an object.
        last_confirmed_at: Time at which the server last confirmed the state with a list, an event, a bookmark or the
            clean end of a watch.
        relists: Number of full lists after the first list.
        restarts: Number of watches after the first watch.
        stalled_by: Names of handlers whose full buffers currently stop the informer.
    """

    resource_version: str
    seen_resource_version: str
    waiting: int
    last_event_at: float | None
    last_bookmark_at: float | None
    last_byte_at: float | None
    pending_bytes: int
    last_confirmed_at: float | None
    relists: int
    restarts: int
    stalled_by: tuple[str, ...]
