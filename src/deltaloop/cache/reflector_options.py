"""Options of a reflector."""

from __future__ import annotations

import msgspec

from deltaloop._internal.option_types import Options, check_types
from deltaloop._internal.pacing import Backoff
from deltaloop._internal.pacing.checks import require_not_negative, require_positive


class ReflectorOptions(Options, frozen=True, kw_only=True):
    """Options of a reflector.

    The defaults are those of client-go.

    Attributes:
        page_size: Number of objects per page of a list. 0 means the default rules.
        min_watch_timeout: Shortest duration of a watch in seconds. The server ends it after a random time up to twice
            as long. The minimum is 300, as in client-go.
        max_internal_error_retry: Seconds for which an InternalError in a stream leads to a new watch instead of a list.
            0 disables this.
        backoff: Initial delay, maximum and jitter of delays after failures.
        watch_list: Whether to stream the initial state at the beginning of a watch (WatchList), if the server supports
            it. Otherwise lists use pages.
        watch_list_timeout: Seconds after which a streamed list without progress is abandoned. Changes and other
            bookmarks are not progress.
        watch_list_retry_after: Seconds without streamed lists after a streamed list was abandoned or rejected.
        detect_restore: Whether to request the server's version (a list of one object) before a new watch, to detect a
            server that was restored from a backup.
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
