"""Metrics that an operator's author makes with prometheus-client, on the page of the program."""

from __future__ import annotations

import logging
from collections import Counter as Tally
from collections.abc import Iterator

import pytest
from prometheus_client import REGISTRY, CollectorRegistry, Counter, Gauge, Histogram, Info, Summary
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.parser import text_string_to_metric_families

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.metrics import ProgramMetrics
from deltaloop.metrics.page import Collision, names_of_family, take_names

LEFT_OUT = "omitting a metric from the page"


class Late:
    """A collector that registers without names."""

    def collect(self) -> Iterator[GaugeMetricFamily]:
        yield GaugeMetricFamily("late_fine", "Fine", value=1)
        yield GaugeMetricFamily("controller_runtime_active_workers", "Stolen", value=99)
        yield GaugeMetricFamily("late_fine", "Twice", value=2)
        yield GaugeMetricFamily("late_last", "Fine", value=3)


def page_of(metrics: ProgramMetrics) -> str:
    """Return the page, which must be one that a scraper takes."""
    page = metrics.render()[0].decode()
    for word in ("HELP", "TYPE"):
        names = Tally(line.split()[2] for line in page.splitlines() if line.startswith(f"# {word} "))
        assert [name for name, number in names.items() if number > 1] == []
    assert list(text_string_to_metric_families(page))
    return page


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("counter", ("x", "x_total", "x_created")),
        ("gauge", ("x",)),
        ("histogram", ("x", "x_bucket", "x_sum", "x_count", "x_created")),
        ("summary", ("x", "x_sum", "x_count", "x_created")),
        ("info", ("x", "x_info")),
        ("unknown", ("x",)),
    ],
)
def test_metric_family_reserves_names_like_prometheus_client(kind: str, names: tuple[str, ...]) -> None:
    assert names_of_family("x", kind) == names


def test_names_are_reserved_together_or_not_at_all() -> None:
    taken: dict[str, str] = {}
    assert take_names(taken, "first", ["a", "a_total"]) is None
    assert take_names(taken, "second", ["b", "a_total"]) == Collision("a_total", "first")
    assert take_names(taken, "third", ["b"]) is None
    assert take_names(taken, "fourth", ["a.total"]) == Collision("a_total", "first")
    assert taken == {"a": "first", "a_total": "first", "b": "third"}


def test_page_contains_all_metric_types() -> None:
    mine, other = CollectorRegistry(), CollectorRegistry(target_info={"version": "1"})
    Counter("my_backups", "Backups", ["result"], registry=mine).labels("success").inc()
    Gauge("my_size", "Size", registry=mine).set(7)
    Histogram("my_times", "Times", registry=other).observe(0.2)
    Summary("my_sums", "Sums", registry=other).observe(3)
    Info("my_build", "Build", registry=other).info({"commit": "abc"})
    page = page_of(ProgramMetrics(registries=[mine, other, mine]))
    for line in (
        'my_backups_total{result="success"} 1.0',
        "my_size 7.0",
        'my_times_bucket{le="0.25"} 1.0',
        "my_sums_sum 3.0",
        'my_build_info{commit="abc"} 1.0',
        'target_info{version="1"} 1.0',
        "# TYPE controller_runtime_reconcile_total counter",
    ):
        assert line in page.splitlines()


def test_default_registry_is_served_by_default(caplog: pytest.LogCaptureFixture) -> None:
    own = Counter("my_default", "In the default registry")
    try:
        page = page_of(ProgramMetrics())
        assert "my_default_total 0.0" in page
        assert page.count("\nprocess_cpu_seconds_total ") == 1
        assert page.count("\npython_info{") == 1
        assert "my_default" not in page_of(ProgramMetrics(registries=[]))
    finally:
        REGISTRY.unregister(own)
    assert caplog.records == []


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("controller_runtime_reconcile", "deltaloop's ReconcileMetrics"),
        ("workqueue_depth", "deltaloop's WorkQueueMetrics"),
        ("process_cpu_seconds", "deltaloop's ProcessCollector"),
        ("my_jobs", "Gauge 'my_jobs_total'"),
    ],
)
def test_duplicate_metric_name_is_rejected_at_start(name: str, says: str) -> None:
    first, second = CollectorRegistry(), CollectorRegistry()
    Gauge("my_jobs_total", "Jobs", registry=first)
    Counter(name, "Taken", registry=second)
    with pytest.raises(InvalidArgumentError) as raised:
        ProgramMetrics(registries=[first, second])
    assert f"Counter '{name}' of the program and in {says}." in str(raised.value)


def test_later_duplicate_metric_name_is_omitted_and_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    mine = CollectorRegistry()
    metrics = ProgramMetrics(registries=[mine])
    metrics.controllers.active_workers("maps", 2)
    mine.register(Late())
    caplog.set_level(logging.WARNING)
    page = page_of(metrics)
    assert 'controller_runtime_active_workers{controller="maps"} 2.0' in page
    assert "Stolen" not in page
    assert "99" not in [line.rpartition(" ")[2] for line in page.splitlines()]
    assert "late_fine 1.0" in page
    assert "late_last 3.0" in page
    page_of(metrics)
    assert [record.message for record in caplog.records] == [LEFT_OUT]
    assert vars(caplog.records[0])["metric"] == "Late"


@pytest.mark.parametrize("broken", [lambda: 1 / 0, lambda: "no number"])
def test_failing_metric_is_omitted_and_logged(broken: object, caplog: pytest.LogCaptureFixture) -> None:
    mine = CollectorRegistry()
    Gauge("my_first", "Fine", registry=mine).set(1)
    Gauge("my_broken", "Raises", registry=mine).set_function(broken)  # type: ignore[arg-type]
    Gauge("my_last", "Fine", registry=mine).set(3)
    metrics = ProgramMetrics(registries=[mine])
    caplog.set_level(logging.WARNING)
    for _ in range(3):
        page = page_of(metrics)
        assert "my_first 1.0" in page
        assert "my_last 3.0" in page
        assert "my_broken" not in page
    assert [record.message for record in caplog.records] == [LEFT_OUT]
    assert vars(caplog.records[0])["metric"] == "Gauge 'my_broken'"
