"""When a watch stream has to be given up although nothing says that it is broken.

A connection whose other end is gone without a word (a lost NAT entry, a node that died) never fails by itself: reading
waits for ever, and a cache grows stale in silence. Two limits make such a stream end:

* the *deadline*: the server was asked to end the stream after ``timeout_seconds``; 15 s later it has to be over;
* the *idle limit*: servers that send bookmarks send one about every minute, so once a stream has shown one, 90 s
  without a byte mean that nobody is there.

Source: KEP-956 (bookmarks); apiserver storage/cacher ``bookmarkFrequency`` (1 min). client-go has neither limit and
relies on HTTP/2 pings.
"""

from __future__ import annotations

from typing import final

from deltaloop._internal.option_types import Options, check_types
from deltaloop._internal.pacing.checks import require_positive


class WatchLimitOptions(Options, frozen=True, kw_only=True):
    """The numbers of both limits, in seconds.

    Attributes:
        deadline_slack: How much later than asked the server may end the stream.
        idle_timeout: Longest silence on a stream that has shown a bookmark.
    """

    deadline_slack: float = 15.0
    idle_timeout: float = 90.0

    def __post_init__(self) -> None:
        """Refuse numbers that are no limits."""
        check_types(self)
        require_positive("WatchLimitOptions", deadline_slack=self.deadline_slack, idle_timeout=self.idle_timeout)


@final
class WatchLimits:
    """The limits of one stream; all instants are seconds on one clock of the caller's."""

    __slots__ = ("_deadline_at", "_last_byte_at", "_options", "_shows_bookmarks", "_timeout_seconds")

    def __init__(self, options: WatchLimitOptions, *, now: float, timeout_seconds: int | None) -> None:
        """Begin as the stream is asked for.

        Args:
            options: How long a watch may be silent or overdue.
            now: When the request was sent.
            timeout_seconds: After how long the server was asked to end the stream; None means not at all, and then
                there is no deadline.
        """
        self._options = options
        self._timeout_seconds = timeout_seconds
        self._deadline_at = None if timeout_seconds is None else now + timeout_seconds + options.deadline_slack
        self._last_byte_at = now
        self._shows_bookmarks = False

    @property
    def last_byte_at(self) -> float:
        """When something last came; when the request was sent if nothing did."""
        return self._last_byte_at

    def saw_bytes(self, now: float) -> None:
        """Something came, be it a part of a line."""
        self._last_byte_at = now

    def saw_bookmark(self) -> None:
        """A bookmark came: from now on the server is expected not to be silent."""
        self._shows_bookmarks = True

    def give_up_at(self) -> float | None:
        """Return when the stream is to be given up if nothing comes, or None for never."""
        idle_at = self._last_byte_at + self._options.idle_timeout if self._shows_bookmarks else None
        if idle_at is None or self._deadline_at is None:
            return self._deadline_at if idle_at is None else idle_at
        return min(idle_at, self._deadline_at)

    def reason(self, now: float) -> str:
        """Say why the stream was given up at ``now``."""
        if self._deadline_at is not None and now >= self._deadline_at:
            return (
                f"the server did not end the watch within {self._options.deadline_slack:g} s "
                f"of the {self._timeout_seconds} s that it was asked for"
            )
        return f"nothing came for {self._options.idle_timeout:g} s although the server sends bookmarks"
