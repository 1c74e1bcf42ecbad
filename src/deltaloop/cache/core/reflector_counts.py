"""What a reflector has done and seen, as it goes: the numbers behind ``ReflectorStatistics``.

``last_byte_at`` is told from outside where somebody knows about bytes, and follows from what comes where nobody does.
"""

from __future__ import annotations

from dataclasses import dataclass

from deltaloop.api.status import ApiError
from deltaloop.cache.core.reflector_facts import ReflectorStatistics
from deltaloop.cache.core.reflector_states import Phase


@dataclass(slots=True)
class ReflectorCounts:
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
        self, phase: Phase, resource_version: str, *, last_byte_at: float | None, pending_bytes: int
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
