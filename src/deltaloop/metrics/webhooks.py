"""Metrics of webhooks, with upstream's names, texts and labels for the ``controller_runtime`` metrics.

Source: controller-runtime pkg/webhook/internal/metrics/metrics.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, final

from deltaloop.metrics.collector import RegisteredCollector
from deltaloop.metrics.histogram import Histogram

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from prometheus_client.core import Metric

    from deltaloop.webhooks.answer import Outcome

BUCKETS: Final[tuple[float, ...]] = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds in seconds, as in Go's client by default."""


@final
class ReviewMetrics(RegisteredCollector):
    """Prometheus collector that implements ``deltaloop.webhooks.WebhookMetrics``.

    It is thread-safe.
    """

    def __init__(self, *, registry: CollectorRegistry | None = None) -> None:
        """Register the collector; by default in prometheus-client's registry, with one collector of this class.

        Raises MissingExtraError without prometheus-client, and ValueError for registered metric names.
        """
        self._requests: dict[tuple[str, str], int] = {}
        self._outcomes: dict[tuple[str, str], int] = {}
        self._times: dict[str, Histogram] = {}
        self._in_flight: dict[str, int] = {}
        self._valid_until: float | None = None
        super().__init__("Prometheus metrics of webhooks", registry)

    def in_flight(self, path: str, number: int) -> None:
        with self._lock:
            self._in_flight[path] = number

    def certificate_valid_until(self, seconds: float) -> None:
        """Set the expiry of the serving certificate, in seconds since 1970."""
        with self._lock:
            self._valid_until = seconds

    def answered(self, path: str, code: int, outcome: Outcome, seconds: float) -> None:
        with self._lock:
            self._requests[path, str(code)] = self._requests.get((path, str(code)), 0) + 1
            self._outcomes[path, outcome] = self._outcomes.get((path, outcome), 0) + 1
            self._times.setdefault(path, Histogram(BUCKETS)).observe(seconds)

    def _families(self, *, empty: bool) -> Iterator[Metric]:
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

        times = HistogramMetricFamily(
            "controller_runtime_webhook_latency_seconds",
            "Histogram of the latency of processing admission requests",
            labels=["webhook"],
        )
        requests = CounterMetricFamily(
            "controller_runtime_webhook_requests",
            "Total number of admission requests by HTTP status code.",
            labels=["webhook", "code"],
        )
        in_flight = GaugeMetricFamily(
            "controller_runtime_webhook_requests_in_flight",
            "Current number of admission requests being served.",
            labels=["webhook"],
        )
        outcomes = CounterMetricFamily(
            "deltaloop_webhook_reviews",
            "Total number of reviews, by what came of them",
            labels=["webhook", "outcome"],
        )
        expiry = GaugeMetricFamily(
            "deltaloop_webhook_certificate_expiry_timestamp_seconds",
            "Until when the certificate that is served to API servers is valid, in seconds since 1970",
        )
        if not empty:
            if self._valid_until is not None:
                expiry.add_metric([], self._valid_until)
            for path, histogram in sorted(self._times.items()):
                times.add_metric([path], histogram.buckets(), histogram.total)
            for labels, number in sorted(self._requests.items()):
                requests.add_metric(labels, number)
            for path, number in sorted(self._in_flight.items()):
                in_flight.add_metric([path], number)
            for labels, number in sorted(self._outcomes.items()):
                outcomes.add_metric(labels, number)
        yield from (times, requests, in_flight, outcomes, expiry)
