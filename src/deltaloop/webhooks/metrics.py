"""Metrics hooks of the webhook server. ``deltaloop.metrics`` implements them for Prometheus.

::

    controller_runtime_webhook_latency_seconds{webhook}           ``answered``
    controller_runtime_webhook_requests_total{webhook,code}       ``answered``
    controller_runtime_webhook_requests_in_flight{webhook}        ``in_flight``
    deltaloop_webhook_reviews_total{webhook,outcome}              ``answered``
    deltaloop_webhook_certificate_expiry_timestamp_seconds        ``certificate_valid_until``

The label ``webhook`` is the path of the request, like in controller-runtime. Requests for unknown paths are not
counted.

Source: controller-runtime pkg/webhook/internal/metrics/metrics.go.
"""

from __future__ import annotations

from typing import Protocol

from deltaloop.webhooks.answer import Outcome


class WebhookMetrics(Protocol):
    """Hooks that are called on the event loop and must not block."""

    def in_flight(self, path: str, number: int) -> None:
        """Report the number of reviews that are in progress at a path."""
        ...

    def certificate_valid_until(self, seconds: float) -> None:
        """Report the expiry of a newly served certificate in seconds since 1970."""
        ...

    def answered(self, path: str, code: int, outcome: Outcome, seconds: float) -> None:
        """Report a response: its HTTP status, outcome, and the seconds since the request arrived."""
        ...
