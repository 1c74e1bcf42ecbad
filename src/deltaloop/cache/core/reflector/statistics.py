"""Statistics of a reflector."""

from __future__ import annotations

import msgspec

from deltaloop.api.status import ApiError
from deltaloop.cache.core.reflector.states import ReflectorPhase


class ReflectorStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """Statistics of a reflector.

    Times are on the event loop's clock, and None before the first occurrence.

    Attributes:
        phase: Current phase.
        list_requests: Number of list requests, one for each page.
        lists: Number of complete lists, in pages or streamed. All but the first are relists.
        streamed_lists: Number of lists that were streamed as the beginning of a watch (WatchList).
        watch_requests: Number of watch requests, accepted or not.
        streams: Number of accepted watches. All but the first are restarts.
        probes: Number of lists of one object that request only the server's version.
        events: Number of watch events passed to the store, without bookmarks.
        bookmarks: Number of received bookmarks.
        skipped: Number of objects in lists and events that were skipped because they are unreadable or have no name.
        errors: Number of failed lists, watches, probes and writes to the store.
        resource_version: Last ``resourceVersion`` received in a list, event or bookmark.
        last_confirmed_at: Time at which the server last confirmed the state with a list, an event, a bookmark or the
            clean end of a watch.
        last_event_at: Time of the last event.
        last_bookmark_at: Time of the last bookmark.
        last_byte_at: Time of the last data from the server, including error responses, headers and parts of an object.
            Pages of lists count when they are complete. Events also do, if the source is not a ``ByteStream``.
        pending_bytes: Received bytes of an incomplete event.
        last_error: Newest error since the last success, or None.
        failing_since: Time of the first error since the last success, or None.
    """

    phase: ReflectorPhase
    list_requests: int
    lists: int
    streamed_lists: int
    watch_requests: int
    streams: int
    probes: int
    events: int
    bookmarks: int
    skipped: int
    errors: int
    resource_version: str
    last_confirmed_at: float | None
    last_event_at: float | None
    last_bookmark_at: float | None
    last_byte_at: float | None
    pending_bytes: int
    last_error: BaseException | None
    failing_since: float | None


class ReflectorCounts(msgspec.Struct):
    """Mutable counters with the names of ``ReflectorStatistics``."""

    list_requests: int = 0
    lists: int = 0
    streamed_lists: int = 0
    watch_requests: int = 0
    streams: int = 0
    probes: int = 0
    events: int = 0
    bookmarks: int = 0
    skipped: int = 0
    errors: int = 0
    last_confirmed_at: float | None = None
    last_event_at: float | None = None
    last_bookmark_at: float | None = None
    last_byte_at: float | None = None
    last_error: BaseException | None = None
    failing_since: float | None = None

    def saw_bytes(self, at: float) -> None:
        """Record received data, unless the time is older than the last one."""
        if self.last_byte_at is None or at > self.last_byte_at:
            self.last_byte_at = at

    def succeeded(self, now: float) -> None:
        self.last_confirmed_at = now
        self.last_error = None
        self.failing_since = None

    def failed(self, error: BaseException, now: float) -> None:
        self.errors += 1
        self.last_error = error
        if self.failing_since is None:
            self.failing_since = now
        if isinstance(error, ApiError):
            self.saw_bytes(now)  # only a server can send this error

    def statistics(
        self, phase: ReflectorPhase, resource_version: str, *, last_byte_at: float | None, pending_bytes: int
    ) -> ReflectorStatistics:
        """Return the statistics, combined with the data of the open stream."""
        signs = (last_byte_at, self.last_byte_at, self.last_event_at, self.last_bookmark_at)
        counts = msgspec.structs.asdict(self)
        counts["last_byte_at"] = max([at for at in signs if at is not None], default=None)
        return ReflectorStatistics(
            **counts, phase=phase, resource_version=resource_version, pending_bytes=pending_bytes
        )
