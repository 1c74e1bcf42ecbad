"""Hooks for metrics of requests; the names behind them are controller-runtime's.

    rest_client_requests_total{code,method,host}                          ``request_done``
    rest_client_request_duration_seconds{verb,host}                       ``request_duration``
    rest_client_rate_limiter_duration_seconds{verb,host}                  ``rate_limiter_duration``
    rest_client_request_retries_total{code,verb,host}                     ``request_retried``

No label has anything of an object in it, so their number stays small. Hooks are called on the
loop and must not block; one that raises is logged and changes nothing for the request.

Source: client-go tools/metrics/metrics.go; controller-runtime pkg/metrics/client_go_adapter.go; component-base
metrics/prometheus/restclient.
"""

from __future__ import annotations

from typing import Final, Protocol, final


class ClientMetrics(Protocol):
    """Where a client counts its requests.

    ``host`` is the server's ``host:port``.
    """

    def request_done(self, *, code: str, method: str, host: str) -> None:
        """Count an answer by its HTTP status, or ``<error>`` for none; each try counts, and each stream once opened."""
        ...

    def request_duration(self, seconds: float, *, verb: str, host: str) -> None:
        """Measure one try: until the whole answer, of a watch or log until its headers.

        ``verb`` is the HTTP method.
        """
        ...

    def rate_limiter_duration(self, seconds: float, *, verb: str, host: str) -> None:
        """Measure how long a try waited for the client's own limit (``ClientOptions.qps``)."""
        ...

    def request_retried(self, *, code: str, verb: str, host: str) -> None:
        """Count a try that is repeated; ``code`` is what the try before it ended with."""
        ...


@final
class NoMetrics:
    """Counts nothing."""

    def request_done(self, *, code: str, method: str, host: str) -> None:
        """Do nothing."""

    def request_duration(self, seconds: float, *, verb: str, host: str) -> None:
        """Do nothing."""

    def rate_limiter_duration(self, seconds: float, *, verb: str, host: str) -> None:
        """Do nothing."""

    def request_retried(self, *, code: str, verb: str, host: str) -> None:
        """Do nothing."""


NO_METRICS: Final = NoMetrics()
