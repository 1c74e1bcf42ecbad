"""The Grafana dashboard asks for metrics and labels that there are, controller-runtime's where it has any."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from deltaloop.cache import CacheLevels
from deltaloop.metrics import ProgramMetrics

DASHBOARD: dict[str, Any] = json.loads(
    (Path(__file__).parents[2] / "docs" / "grafana-dashboard.json").read_text(encoding="utf-8")
)
PANELS: list[dict[str, Any]] = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
QUERIES = [(panel["title"], target["expr"]) for panel in PANELS for target in panel["targets"]]
NAME = re.compile(
    r"\b(?:controller_runtime|deltaloop|workqueue|rest_client|leader_election|reflector|informer|process)_\w+"
)

# controller-runtime 86a0d40e: pkg/internal/controller/metrics, pkg/internal/metrics, pkg/metrics; without
# certificates' files, and panics, which a Python program has not.
UPSTREAM = {
    "controller_runtime_reconcile_total": {"controller", "result"},
    "controller_runtime_reconcile_errors_total": {"controller"},
    "controller_runtime_terminal_reconcile_errors_total": {"controller"},
    "controller_runtime_reconcile_timeouts_total": {"controller"},
    "controller_runtime_reconcile_time_seconds_bucket": {"controller", "le"},
    "controller_runtime_max_concurrent_reconciles": {"controller"},
    "controller_runtime_active_workers": {"controller"},
    "workqueue_depth": {"name"},
    "workqueue_adds_total": {"name"},
    "workqueue_queue_duration_seconds_bucket": {"name", "le"},
    "workqueue_work_duration_seconds_bucket": {"name", "le"},
    "workqueue_unfinished_work_seconds": {"name"},
    "workqueue_longest_running_processor_seconds": {"name"},
    "workqueue_retries_total": {"name"},
    "rest_client_requests_total": {"code", "method", "host"},
    "leader_election_master_status": {"name"},
    "controller_runtime_webhook_latency_seconds_bucket": {"webhook", "le"},
    "controller_runtime_webhook_requests_total": {"webhook", "code"},
    "controller_runtime_webhook_requests_in_flight": {"webhook"},
}


def levels() -> CacheLevels:
    return CacheLevels(
        items=2,
        bytes_held=300,
        queued=1,
        pending={"a": 4},
        resource_version="12",
        seen_resource_version="13",
        last_event_age=1.5,
        last_byte_age=0.5,
        last_confirmed_age=1.0,
    )


@pytest.fixture(scope="module")
def metrics() -> dict[str, set[str]]:
    """The labels of each metric of a program to which everything has happened once."""
    program = ProgramMetrics()
    controllers, caches, requests = program.controllers, program.caches, program.requests
    queue = controllers.queue("foos")
    assert queue is not None
    queue.queue_latency(0.1)
    queue.work_duration(0.1)
    controllers.max_concurrent_reconciles("foos", 1)
    controllers.reconciled("foos", "success", (), 0.1)
    controllers.triggered("foos", "informer", "add")
    caches.started("v1/Pod", levels=levels)
    caches.listed("v1/Pod", seconds=0.3, items=20, streamed=True)
    caches.watch_opened("v1/Pod")
    caches.watch_ended("v1/Pod", seconds=0.5, events=0)
    caches.event("v1/Pod", event_type="ADDED", size=100)
    caches.failed("v1/Pod", operation="watch", error="ExpiredError")
    caches.handled("v1/Pod", handler="a", seconds=0.25, waiting=3, failed=True)
    requests.request_done(code="200", method="GET", host="h")
    program.reviews.answered("/validate/a", 200, "allowed", 0.02)
    program.reviews.in_flight("/validate/a", 1)
    program.reviews.certificate_valid_until(1.0)
    program.elections.leader_on("lock")
    program.elections.slow_path_exercised("lock")
    found: dict[str, set[str]] = {}
    for family in text_string_to_metric_families(program.render()[0].decode()):
        for sample in family.samples:
            found.setdefault(sample.name, set()).update(sample.labels)
    return found


def test_dashboard_queries_use_existing_metrics(metrics: dict[str, set[str]]) -> None:
    for title, query in QUERIES:
        asked = NAME.findall(query)
        assert asked, title
        grouped = {label.strip() for labels in re.findall(r"by \(([^)]*)\)", query) for label in labels.split(",")}
        for name in asked:
            assert name in metrics, f"{title}: nobody measures {name}"
            chosen = re.findall(rf"{name}\{{([^}}]*)\}}", query)
            labels = {part.partition("=")[0].strip() for selector in chosen for part in selector.split(", ")}
            # What a scrape adds about the place is not the program's to know.
            assert labels | grouped <= metrics[name] | {"pod", "namespace", "instance"}, title


def test_metrics_have_names_and_labels_of_controller_runtime(metrics: dict[str, set[str]]) -> None:
    assert {name: metrics.get(name) for name in UPSTREAM} == UPSTREAM


def test_dashboard_covers_all_subjects() -> None:
    asked = {name for _, query in QUERIES for name in NAME.findall(query)}
    assert asked >= {
        "controller_runtime_reconcile_total",
        "deltaloop_reconcile_triggers_total",
        "deltaloop_hot_loops_total",
        "deltaloop_reconciles_slowed_down_total",
        "workqueue_depth",
        "workqueue_queue_duration_seconds_bucket",
        "workqueue_longest_running_processor_seconds",
        "leader_election_master_status",
        "deltaloop_informer_last_confirmed_age_seconds",
        "deltaloop_informer_last_event_age_seconds",
        "deltaloop_webhook_reviews_total",
        "deltaloop_webhook_certificate_expiry_timestamp_seconds",
    }


def test_panels_have_unique_names_and_positions() -> None:
    panels = DASHBOARD["panels"]
    assert len({panel["id"] for panel in panels}) == len({panel["title"] for panel in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        assert place["x"] + place["w"] <= 24
        taken |= cells
    assert all(panel["datasource"]["uid"] == "${datasource}" for panel in PANELS)
    assert {variable["name"] for variable in DASHBOARD["templating"]["list"]} == {"datasource", "controller"}
