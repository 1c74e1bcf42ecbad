"""What a server of webhooks tells a metrics system: a protocol of hooks. The Prometheus side is ``deltaloop.metrics``.

    controller_runtime_webhook_latency_seconds{webhook}           ``answered``
    controller_runtime_webhook_requests_total{webhook,code}       ``answered``
    controller_runtime_webhook_requests_in_flight{webhook}        ``in_flight``
    deltaloop_webhook_reviews_total{webhook,outcome}              ``answered``
    deltaloop_webhook_certificate_expiry_timestamp_seconds        ``certificate_valid_until``

``webhook`` is the path that was asked, as upstream has it; what is asked for that is not there is not counted.

Source: controller-runtime pkg/webhook/internal/metrics/metrics.go.
"""

from __future__ import annotations

from typing import Protocol

from deltaloop.webhooks.answer import Outcome


class WebhookMetrics(Protocol):
    """Hooks; they are called on the loop and must not block."""

    def in_flight(self, path: str, number: int) -> None:
        """So many reviews are being answered at a path."""
        ...

    def certificate_valid_until(self, seconds: float) -> None:
        """The certificate that is served from now on is valid until then, in seconds since 1970."""
        ...

    def answered(self, path: str, code: int, outcome: Outcome, seconds: float) -> None:
        """A review was answered, by an HTTP status; ``seconds`` since its request arrived."""
        ...
