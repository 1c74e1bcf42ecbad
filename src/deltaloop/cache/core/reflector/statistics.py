"""What a reflector has done and seen: the numbers as they go, and as they are shown.

``last_byte_at`` comes from the source of the stream where it knows about bytes (``ByteStream``); where it does not, it
follows from what comes.
"""

from __future__ import annotations

import msgspec

from deltaloop.api.status import ApiError
from deltaloop.cache.core.reflector.states import ReflectorPhase


class ReflectorStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """What a reflector has done and seen; instants are on the event loop's clock.

    Attributes:
        phase: Whether it lists, watches, waits and so on at this moment.
        list_requests: List requests; one for each page.
        lists: Lists that came through, in pages or streamed; all but the first are relists.
        streamed_lists: Those of them that were streamed as the beginning of a watch (WatchList).
        watch_requests: Watch requests, accepted or not.
        streams: Watches that the server accepted; all but the first are restarts.
        probes: Lists of one object, that ask only for the server's resource version.
        events: Watch events passed on to the store; bookmarks are not among them.
        bookmarks: Bookmarks received since the start.
        skipped: Objects without a name, in lists and events.
        errors: Failed lists, watches and probes, and what the store refused.
        resource_version: The last ``resourceVersion`` received, in a list, event or bookmark.
        last_confirmed_at: When the server last gave a sign of this state being current: a list, an event, a bookmark,
            the clean end of a watch; None before the first.
        last_event_at: When the last event came, or None.
        last_bookmark_at: When the last bookmark came, or None.
        last_byte_at: When the server last sent anything, be it part of an object, a refusal or an answer's headers. A
            page of a list counts when it is complete; so does an event, where the source does not know about bytes
            (``ByteStream``).
        pending_bytes: How much has come of an event that is not complete.
        last_error: The newest error since the last success, or None.
        failing_since: When the first error since the last success came, or None.
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
    """The numbers; their names are those of ``ReflectorStatistics``."""

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
        """The server sent something; an instant that is older than the last one changes nothing."""
        if self.last_byte_at is None or at > self.last_byte_at:
            self.last_byte_at = at

    def succeeded(self, now: float) -> None:
        """The server gave a sign that the state is current."""
        self.last_confirmed_at = now
        self.last_error = None
        self.failing_since = None

    def failed(self, error: BaseException, now: float) -> None:
        """Something failed."""
        self.errors += 1
        self.last_error = error
        if self.failing_since is None:
            self.failing_since = now
        if isinstance(error, ApiError):
            self.saw_bytes(now)  # it takes a server to refuse

    def statistics(
        self, phase: ReflectorPhase, resource_version: str, *, last_byte_at: float | None, pending_bytes: int
    ) -> ReflectorStatistics:
        """Return what was done and seen so far, together with what is known about the open stream."""
        signs = (last_byte_at, self.last_byte_at, self.last_event_at, self.last_bookmark_at)
        return ReflectorStatistics(
            phase=phase,
            list_requests=self.list_requests,
            lists=self.lists,
            streamed_lists=self.streamed_lists,
            watch_requests=self.watch_requests,
            streams=self.streams,
            probes=self.probes,
            events=self.events,
            bookmarks=self.bookmarks,
            skipped=self.skipped,
            errors=self.errors,
            resource_version=resource_version,
            last_confirmed_at=self.last_confirmed_at,
            last_event_at=self.last_event_at,
            last_bookmark_at=self.last_bookmark_at,
            last_byte_at=max((at for at in signs if at is not None), default=None),
            pending_bytes=pending_bytes,
            last_error=self.last_error,
            failing_since=self.failing_since,
        )
