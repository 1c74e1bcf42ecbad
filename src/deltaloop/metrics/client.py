"""Metrics of requests, with the names, texts, labels and buckets of upstream's clients.

Labels never contain names of objects or paths, and invalid HTTP codes become ``<invalid>``.

Source: component-base metrics/prometheus/restclient/metrics.go; controller-runtime pkg/metrics/client_go_adapter.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, final

from deltaloop.metrics.collector import RegisteredCollector
from deltaloop.metrics.histogram import Histogram

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from prometheus_client.core import Metric

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

    def __init__(self, *, registry: CollectorRegistry | None = None) -> None:
        """Register the collector; by default in prometheus-client's registry, with one collector of this class.

        Raises MissingExtraError without prometheus-client, and ValueError for registered metric names.
        """
        self._requests: dict[tuple[str, str, str], int] = {}
        self._retries: dict[tuple[str, str, str], int] = {}
        self._durations: dict[tuple[str, str], Histogram] = {}
        self._waits: dict[tuple[str, str], Histogram] = {}
        super().__init__("Prometheus metrics of clients", registry)

    def request_done(self, *, code: str, method: str, host: str) -> None:
        """Count a response by its HTTP status, or ``<error>`` without a response."""
        self._count(self._requests, (_known(code), method, host))

    def request_duration(self, seconds: float, *, verb: str, host: str) -> None:
        """Record the duration of one attempt."""
        self._observe(self._durations, (verb, host), seconds)

    def rate_limiter_duration(self, seconds: float, *, verb: str, host: str) -> None:
        """Record the delay of an attempt by the client's rate limit."""
        self._observe(self._waits, (verb, host), seconds)

    def request_retried(self, *, code: str, verb: str, host: str) -> None:
        """Count a retry by the result of the previous attempt."""
        self._count(self._retries, (_known(code), verb, host))

    def _count(self, numbers: dict[tuple[str, str, str], int], labels: tuple[str, str, str]) -> None:
        with self._lock:
            numbers[labels] = numbers.get(labels, 0) + 1

    def _observe(self, numbers: dict[tuple[str, str], Histogram], labels: tuple[str, str], seconds: float) -> None:
        with self._lock:
            numbers.setdefault(labels, Histogram(BUCKETS)).observe(seconds)

    def _families(self, *, empty: bool) -> Iterator[Metric]:
        from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily

        requests = CounterMetricFamily(
            "rest_client_requests",
            "Number of HTTP requests, partitioned by status code, method, and host.",
            labels=["code", "method", "host"],
        )
        durations = HistogramMetricFamily(
            "rest_client_request_duration_seconds",
            "Request latency in seconds. Broken down by verb, and host.",
            labels=["verb", "host"],
        )
        waits = HistogramMetricFamily(
            "rest_client_rate_limiter_duration_seconds",
            "Client side rate limiter latency in seconds. Broken down by verb, and host.",
            labels=["verb", "host"],
        )
        retries = CounterMetricFamily(
            "rest_client_request_retries",
            "Number of request retries, partitioned by status code, verb, and host.",
            labels=["code", "verb", "host"],
        )
        if not empty:
            for counter, counts in ((requests, self._requests), (retries, self._retries)):
                for labels, number in sorted(counts.items()):
                    counter.add_metric(labels, number)
            for histogram, observed in ((durations, self._durations), (waits, self._waits)):
                for names in sorted(observed):
                    histogram.add_metric(names, observed[names].buckets(), observed[names].total)
        yield from (requests, durations, waits, retries)


def _known(code: str) -> str:
    # The code can come from a Status that any proxy may have written.
    if code == _NO_ANSWER or (len(code) == 3 and code.isascii() and code.isdigit() and "100" <= code < "600"):
        return code
    return _INVALID
