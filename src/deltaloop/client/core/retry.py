"""Decide whether and when the client repeats a failed request.

| response or failure                                | repeat?                                                      |
| -------------------------------------------------- | ------------------------------------------------------------ |
| 429 or 5xx with ``Retry-After`` in whole seconds   | after this time, because the server rejected the request     |
| the same with more than one minute                 | no, because the caller must decide about such a wait         |
| the connection was cut before the request was sent | after 1 s for all methods, because no change was possible    |
| the connection broke during a GET                  | after 1 s, because reads can be repeated                     |
| the connection broke during a write                | no, because the server may have executed the request         |
| "resource version too large" (504)                 | no, because the reflector handles this error better          |
| connection refused, unknown host, bad certificate  | no, because these failures persist, and callers back off     |
| timeout, too large, any other failure              | no                                                           |

A request is repeated at most 10 times, and only if the wait ends before the timeout of the call.

Source: client-go rest/with_retry.go (``IsNextRetry``, ``checkWait``), rest/request.go (``maxRetries``). Unlike this
module, client-go repeats "resource version too large", waits beyond the caller's timeout (up to a day on request of the
server), and does not repeat writes that were not sent.
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
    __slots__ = ("_deadline_at", "_method", "_retries_left")

    def __init__(self, method: str, *, deadline_at: float | None) -> None:
        """Start a call with a deadline on the caller's clock. None means no deadline."""
        self._method = method
        self._deadline_at = deadline_at
        self._retries_left = MAX_RETRIES

    def failed(self, error: DeltaloopError, *, now: float) -> float | None:
        """Return the delay in seconds before the next attempt, or None to raise the error."""
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
