"""Decide when a silent watch stream is closed.

If the peer disappears without closing the connection, reads wait forever and caches become stale. Two limits end such
streams:

- Deadline: the server was requested to end the stream after ``timeout_seconds``. 15 s later, the client closes it.
- Idle limit: servers with bookmarks send one about every minute. After the first bookmark, 90 s without a byte end the
  stream.

Source: KEP-956 (bookmarks); apiserver storage/cacher ``bookmarkFrequency`` (1 min). client-go has neither limit and
relies on HTTP/2 pings.
"""

from __future__ import annotations

from typing import final

from deltaloop._internal.option_types import Options, check_types
from deltaloop._internal.pacing.checks import require_positive


class WatchLimitOptions(Options, frozen=True, kw_only=True):
    """Limits of a watch stream, in seconds.

    Attributes:
        deadline_slack: Additional time for the server to end the stream.
        idle_timeout: Maximum silence after the first bookmark.
    """

    deadline_slack: float = 15.0
    idle_timeout: float = 90.0

    def __post_init__(self) -> None:
        check_types(self)
        require_positive("WatchLimitOptions", deadline_slack=self.deadline_slack, idle_timeout=self.idle_timeout)


@final
class WatchLimits:
    """Limits of one stream. All times are seconds on the caller's clock."""

    __slots__ = ("_deadline_at", "_last_byte_at", "_options", "_shows_bookmarks", "_timeout_seconds")

    def __init__(self, options: WatchLimitOptions, *, now: float, timeout_seconds: int | None) -> None:
        """Start the limits of a stream. Without ``timeout_seconds``, no deadline applies."""
        self._options = options
        self._timeout_seconds = timeout_seconds
        self._deadline_at = None if timeout_seconds is None else now + timeout_seconds + options.deadline_slack
        self._last_byte_at = now
        self._shows_bookmarks = False

    @property
    def last_byte_at(self) -> float:
        """Time of the last byte, or of the request if no byte has arrived."""
        return self._last_byte_at

    def saw_bytes(self, now: float) -> None:
        """Record received bytes, including parts of a line."""
        self._last_byte_at = now

    def saw_bookmark(self) -> bool:
        """Record a bookmark. Return whether it is the first one, which enables the idle limit."""
        is_first, self._shows_bookmarks = not self._shows_bookmarks, True
        return is_first

    def give_up_at(self) -> float | None:
        """Return the time at which to close the stream if no data arrives, or None."""
        idle_at = self._last_byte_at + self._options.idle_timeout if self._shows_bookmarks else None
        if idle_at is None or self._deadline_at is None:
            return self._deadline_at if idle_at is None else idle_at
        return min(idle_at, self._deadline_at)

    def reason(self, now: float) -> str:
        if self._deadline_at is not None and now >= self._deadline_at:
            return (
                f"the server did not end the watch within {self._options.deadline_slack:g} s "
                f"after the requested {self._timeout_seconds} s"
            )
        return f"the server sent no event or bookmark for {self._options.idle_timeout:g} s"
