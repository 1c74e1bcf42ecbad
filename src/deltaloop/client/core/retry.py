"""Whether a failed request is sent again by the client itself, and when.

| answer                                             | again?                                                       |
| -------------------------------------------------- | ------------------------------------------------------------ |
| 429 or 5xx with ``Retry-After`` in whole seconds   | after that time: the server refused it and says when to come |
| the same, of more than a minute                    | no: whether to wait so long is for whoever called to say     |
| the connection was cut before the request was sent | after 1 s, whatever the method: nothing can have happened    |
| the connection broke, and the request was a GET    | after 1 s: reading twice does no harm                        |
| the connection broke, and it was a write           | no: it may have been carried out                             |
| "resource version too large" (504)                 | no: the reflector knows a better answer than waiting         |
| connection refused, name unknown, bad certificate  | no: it will be the same in a second, and whoever called has  |
|                                                    | a backoff                                                    |
| time limit                                         | no                                                           |
| an answer that is too large                        | no                                                           |
| everything else                                    | no                                                           |

At most 10 times, and only if the wait ends before the call's own time limit: an error now is worth more than a timeout
later.

Source: client-go rest/with_retry.go (``IsNextRetry``, ``checkWait``), rest/request.go (``maxRetries``). client-go also
retries "resource version too large", and waits beyond what is left of the caller's time, for a day if it is asked to;
it does not repeat a write that was not sent.
"""

from __future__ import annotations

from typing import final

from deltaloop._internal.pacing import LONGEST_ASKED
from deltaloop.api.errors import DeltaloopError
from deltaloop.api.status import ApiError, is_too_large_resource_version
from deltaloop.client.errors import RequestTimeoutError, ResponseTooLargeError, TransportError

MAX_RETRIES = 10
BROKEN_CONNECTION_WAIT = 1.0


@final
class RetryDecision:
    """Counts the tries of one call and decides about the next."""

    __slots__ = ("_deadline_at", "_method", "_retries_left")

    def __init__(self, method: str, *, deadline_at: float | None) -> None:
        """Begin a call that must be over at ``deadline_at``; None means whenever."""
        self._method = method
        self._deadline_at = deadline_at
        self._retries_left = MAX_RETRIES

    def failed(self, error: DeltaloopError, *, now: float) -> float | None:
        """Return how many seconds to wait before the next try, or None if the error stands."""
        wait = self._wait(error)
        if wait is None or self._retries_left <= 0:
            return None
        if self._deadline_at is not None and now + wait >= self._deadline_at:
            return None
        self._retries_left -= 1
        return wait

    def _wait(self, error: DeltaloopError) -> float | None:
        if isinstance(error, ApiError):
            code = error.status.code
            may_come_again = code == 429 or 500 <= code < 600
            asked = error.retry_after
            if asked is None or asked > LONGEST_ASKED or not may_come_again:
                return None
            return None if is_too_large_resource_version(error) else asked
        if isinstance(error, TransportError) and not isinstance(error, RequestTimeoutError | ResponseTooLargeError):
            harmless = self._method == "GET" if error.sent else error.cut
            return BROKEN_CONNECTION_WAIT if harmless else None
        return None
