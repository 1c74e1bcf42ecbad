"""Hooks for request metrics, with the metric names of controller-runtime.

    rest_client_requests_total{code,method,host}                          ``request_done``
    rest_client_request_duration_seconds{verb,host}                       ``request_duration``
    rest_client_rate_limiter_duration_seconds{verb,host}                  ``rate_limiter_duration``
    rest_client_request_retries_total{code,verb,host}                     ``request_retried``

Hooks run on the event loop and must not block. Their exceptions are logged and do not affect the request.

Source: client-go tools/metrics/metrics.go; controller-runtime pkg/metrics/client_go_adapter.go; component-base
metrics/prometheus/restclient.
"""

from __future__ import annotations

from typing import Final, Protocol, final

import msgspec


class ClientMetrics(Protocol):
    """Hooks for request metrics.

    ``host`` is the server's ``host:port``.
    """

    def request_done(self, *, code: str, method: str, host: str) -> None:
        """Count an attempt by its HTTP status, or ``<error>`` without a response.

        Streams count once, on opening.
        """
        ...

    def request_duration(self, seconds: float, *, verb: str, host: str) -> None:
        """Measure one attempt until the complete response, or until the headers for watches and logs.

        ``verb`` is the HTTP method.
        """
        ...

    def rate_limiter_duration(self, seconds: float, *, verb: str, host: str) -> None:
        """Measure the delay of an attempt by the client's rate limit (``ClientOptions.qps``)."""
        ...

    def request_retried(self, *, code: str, verb: str, host: str) -> None:
        """Count a retry.

        ``code`` is the result of the previous attempt.
        """
        ...


@final
class ClientStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """Statistics of a client.

    Attributes:
        throttled: Number of requests within the last minute that the server rejected with 429, at most 100.
        throttled_ago: Time in seconds since the last rejection, or None.
        failed_groups: Names such as ``group/version`` that the last discovery could not read.
    """

    throttled: int
    throttled_ago: float | None
    failed_groups: tuple[str, ...]


@final
class NoMetrics:
    def request_done(self, *, code: str, method: str, host: str) -> None:
        """Ignore the values."""

    def request_duration(self, seconds: float, *, verb: str, host: str) -> None:
        """Ignore the values."""

    def rate_limiter_duration(self, seconds: float, *, verb: str, host: str) -> None:
        """Ignore the values."""

    def request_retried(self, *, code: str, verb: str, host: str) -> None:
        """Ignore the values."""


NO_METRICS: Final = NoMetrics()
