"""Metrics of webhooks, with upstream's names, texts and labels for the ``controller_runtime`` metrics.

Source: controller-runtime pkg/webhook/internal/metrics/metrics.go.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from deltaloop.metrics.collector import RegisteredCollector, families_of

if TYPE_CHECKING:
    from deltaloop.webhooks.answer import Outcome

BUCKETS: Final[tuple[float, ...]] = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds in seconds, as in Go's client by default."""


@final
class ReviewMetrics(RegisteredCollector):
    """Prometheus collector that implements ``deltaloop.webhooks.WebhookMetrics``.

    It is thread-safe.
    """

    _what = "Prometheus metrics of webhooks"
    _families = families_of(
        """
        histogram controller_runtime_webhook_latency_seconds webhook
            Histogram of the latency of processing admission requests
        counter controller_runtime_webhook_requests webhook,code
            Total number of admission requests by HTTP status code.
        gauge controller_runtime_webhook_requests_in_flight webhook
            Current number of admission requests being served.
        counter deltaloop_webhook_reviews webhook,outcome
            Total number of reviews, by what came of them
        gauge deltaloop_webhook_certificate_expiry_timestamp_seconds
            Until when the certificate that is served to API servers is valid, in seconds since 1970
        """,
        {"controller_runtime_webhook_latency_seconds": BUCKETS},
    )

    def in_flight(self, path: str, number: int) -> None:
        self._set("controller_runtime_webhook_requests_in_flight", number, path)

    def certificate_valid_until(self, seconds: float) -> None:
        """Set the expiry of the serving certificate, in seconds since 1970."""
        self._set("deltaloop_webhook_certificate_expiry_timestamp_seconds", seconds)

    def answered(self, path: str, code: int, outcome: Outcome, seconds: float) -> None:
        self._add("controller_runtime_webhook_requests", path, str(code))
        self._add("deltaloop_webhook_reviews", path, outcome)
        self._observe("controller_runtime_webhook_latency_seconds", seconds, path)
