"""The metrics of controllers."""

from __future__ import annotations

from prometheus_client import CollectorRegistry

from deltaloop.metrics import ReconcileMetrics


def test_reconcile_metrics_have_names_of_controller_runtime() -> None:
    registry = CollectorRegistry()
    metrics = ReconcileMetrics(registry=registry)
    assert metrics.queue("maps") is None
    metrics.max_concurrent_reconciles("maps", 4)
    metrics.active_workers("maps", 2)
    metrics.lingering("maps", 1)
    metrics.triggered("maps", "owner", "update")
    metrics.triggered("maps", "owner", "update")
    metrics.reconciled("maps", "success", (), 0.02)
    metrics.reconciled("maps", "error", ("controller_runtime_reconcile_errors_total", "of_somebody_else"), 70.0)

    def value(name: str, **labels: str) -> float | None:
        return registry.get_sample_value(name, {"controller": "maps", **labels})

    assert value("controller_runtime_reconcile_total", result="success") == 1.0
    assert value("controller_runtime_reconcile_total", result="error") == 1.0
    assert value("controller_runtime_reconcile_total", result="requeue") == 0.0
    assert value("controller_runtime_reconcile_errors_total") == 1.0
    assert value("controller_runtime_terminal_reconcile_errors_total") == 0.0
    assert value("controller_runtime_reconcile_timeouts_total") == 0.0
    assert value("controller_runtime_reconcile_time_seconds_count") == 2.0
    assert value("controller_runtime_reconcile_time_seconds_bucket", le="0.025") == 1.0
    assert value("controller_runtime_reconcile_time_seconds_bucket", le="60.0") == 1.0
    assert value("controller_runtime_active_workers") == 2.0
    assert value("controller_runtime_max_concurrent_reconciles") == 4.0
    assert value("deltaloop_reconciles_lingering") == 1.0
    assert value("deltaloop_reconcile_triggers_total", source="owner", verb="update") == 2.0
    metrics.close()
