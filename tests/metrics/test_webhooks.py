"""The metrics of webhooks have upstream's names."""

from __future__ import annotations

import pytest

prometheus_client = pytest.importorskip("prometheus_client")

from deltaloop.metrics.webhooks import ReviewMetrics  # noqa: E402 - after the extra is known to be there


def test_reviews_are_counted_and_measured() -> None:
    registry = prometheus_client.CollectorRegistry()
    metrics = ReviewMetrics(registry=registry)
    metrics.in_flight("/validate/a", 2)
    metrics.answered("/validate/a", 200, "denied", 0.02)
    metrics.answered("/validate/a", 500, "failed", 20.0)

    expiry = "deltaloop_webhook_certificate_expiry_timestamp_seconds"
    assert registry.get_sample_value(expiry) is None
    metrics.certificate_valid_until(1_800_000_000.0)
    assert registry.get_sample_value(expiry) == 1_800_000_000.0

    def value(name: str, **labels: str) -> float | None:
        found: float | None = registry.get_sample_value(name, {"webhook": "/validate/a", **labels})
        return found

    assert value("controller_runtime_webhook_requests_in_flight") == 2
    assert value("controller_runtime_webhook_requests_total", code="200") == 1
    assert value("controller_runtime_webhook_latency_seconds_count") == 2
    assert value("controller_runtime_webhook_latency_seconds_bucket", le="0.025") == 1
    assert value("deltaloop_webhook_reviews_total", outcome="failed") == 1
