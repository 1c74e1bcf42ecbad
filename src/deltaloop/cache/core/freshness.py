"""How far a cache has come, and whether that is far enough.

Versions are compared as numbers where both follow KEP-5504. Where one does not, only the very version that is waited
for counts as reached: an older and a newer one cannot be told apart.
"""

from __future__ import annotations

import msgspec

from deltaloop.api.resource_version import version_number


def is_reached(wanted: str, *, reached: str) -> bool:
    """Tell whether a cache at version ``reached`` holds the effects of ``wanted``."""
    return wanted == reached or 0 < version_number(wanted) < version_number(reached)


class Freshness(msgspec.Struct, frozen=True, kw_only=True):
    """How current a cache is; instants are on the event loop's clock, None before the first time.

    Attributes:
        resource_version: The version that the cache has come to.
        seen_resource_version: The last version that the server has sent; newer while deltas wait.
        waiting: How much waits between the two, in keys or deltas.
        last_event_at: When the last event came.
        last_bookmark_at: When the last bookmark came.
        last_byte_at: When the server last sent anything, be it part of an object.
        pending_bytes: How much has come of an event that is not complete: not 0 and old, a stream has stalled in the
            middle of an object.
        last_confirmed_at: When the server last gave any sign that the state is current: a list, an event, a bookmark,
            or the clean end of a watch.
        relists: Full lists after the first one.
        restarts: Watches after the first one.
        stalled_by: Handlers whose full buffers hold up everything at this moment.
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
