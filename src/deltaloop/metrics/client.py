"""Metrics of requests, with the names, texts, labels and buckets of upstream's clients.

Labels never contain names of objects or paths, and invalid HTTP codes become ``<invalid>``.

Source: component-base metrics/prometheus/restclient/metrics.go; controller-runtime pkg/metrics/client_go_adapter.go.
"""

from __future__ import annotations

from typing import Final, final

from deltaloop.metrics.collector import RegisteredCollector, families_of

BUCKETS: Final[tuple[float, ...]] = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
"""Upper bounds in seconds for both histograms."""

_NO_ANSWER: Final = "<error>"
_INVALID: Final = "<invalid>"


@final
class RestClientMetrics(RegisteredCollector):
    """Prometheus collector that implements ``deltaloop.client.ClientMetrics``.

    Use it as ``ClientOptions(metrics=RestClientMetrics())``, with one collector for all clients of a program. The label
    ``host`` identifies the server. It is thread-safe.
    """

    _what = "Prometheus metrics of clients"
    _families = families_of(
        """
        counter rest_client_requests code,method,host
            Number of HTTP requests, partitioned by status code, method, and host.
        histogram rest_client_request_duration_seconds verb,host
            Request latency in seconds. Broken down by verb, and host.
        histogram rest_client_rate_limiter_duration_seconds verb,host
            Client side rate limiter latency in seconds. Broken down by verb, and host.
        counter rest_client_request_retries code,verb,host
            Number of request retries, partitioned by status code, verb, and host.
        """,
        {"rest_client_request_duration_seconds": BUCKETS, "rest_client_rate_limiter_duration_seconds": BUCKETS},
    )

    def request_done(self, *, code: str, method: str, host: str) -> None:
        """Count a response by its HTTP status, or ``<error>`` without a response."""
        self._add("rest_client_requests", _known(code), method, host)

    def request_duration(self, seconds: float, *, verb: str, host: str) -> None:
        """Record the duration of one attempt."""
        self._observe("rest_client_request_duration_seconds", seconds, verb, host)

    def rate_limiter_duration(self, seconds: float, *, verb: str, host: str) -> None:
        """Record the delay of an attempt by the client's rate limit."""
        self._observe("rest_client_rate_limiter_duration_seconds", seconds, verb, host)

    def request_retried(self, *, code: str, verb: str, host: str) -> None:
        """Count a retry by the result of the previous attempt."""
        self._add("rest_client_request_retries", _known(code), verb, host)


def _known(code: str) -> str:
    # The code can come from a Status that any proxy may have written.
    if code == _NO_ANSWER or (len(code) == 3 and code.isascii() and code.isdigit() and "100" <= code < "600"):
        return code
    return _INVALID
