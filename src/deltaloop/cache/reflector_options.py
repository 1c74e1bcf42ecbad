"""The numbers of a reflector that a program may choose."""

from __future__ import annotations

import msgspec

from deltaloop._internal.option_types import Options, check_types
from deltaloop._internal.pacing import Backoff
from deltaloop._internal.pacing.checks import require_not_negative, require_positive


class ReflectorOptions(Options, frozen=True, kw_only=True):
    """Numbers of a reflector; the defaults are client-go's.

    Attributes:
        page_size: Objects in a page of a list; 0 lets the rules decide.
        min_watch_timeout: The server is asked to end a watch after this many seconds at least, twice as many at most;
            a number below 300 is taken as 300, as upstream.
        max_internal_error_retry: For how many seconds an InternalError in a stream is answered by watching on instead
            of listing; 0 is never.
        backoff: How long is waited after a failure: initial delay, cap and jitter.
        watch_list: Whether the whole state is asked for as the beginning of a watch (WatchList), where the server
            offers that; lists in pages are what remains.
        watch_list_timeout: For how many seconds a streamed list may bring no more of the list before it is given up;
            changes, and bookmarks that do not end it, are no part of it.
        watch_list_retry_after: For how many seconds no list is streamed after one was given up, or refused.
        detect_restore: Whether the server's version is asked for (a list of one object) when a watch is begun anew, to
            find a server whose versions went back.
    """

    page_size: int = 0
    min_watch_timeout: float = 300.0
    max_internal_error_retry: float = 0.0
    backoff: Backoff = msgspec.field(default_factory=Backoff)
    watch_list: bool = True
    watch_list_timeout: float = 30.0
    watch_list_retry_after: float = 1800.0
    detect_restore: bool = True

    def __post_init__(self) -> None:
        """Refuse numbers that make no sense."""
        check_types(self)
        require_not_negative(
            "ReflectorOptions", page_size=self.page_size, max_internal_error_retry=self.max_internal_error_retry
        )
        require_positive(
            "ReflectorOptions",
            min_watch_timeout=self.min_watch_timeout,
            watch_list_timeout=self.watch_list_timeout,
            watch_list_retry_after=self.watch_list_retry_after,
        )
