"""What a scrape shows about work queues."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest
from prometheus_client import CollectorRegistry

from deltaloop.metrics import WorkQueueMetrics
from deltaloop.workqueue import DelayingQueue, QueueMetrics
from tests.having import having
from tests.metrics.scraping import kinds, samples

BOUNDS = ["1e-08", "1e-07", "1e-06", "1e-05", "0.0001", "0.001", "0.01", "0.1", "1.0", "10.0", "+Inf"]


def test_metrics_have_names_types_and_label_of_client_go() -> None:
    registry = CollectorRegistry()
    WorkQueueMetrics(registry=registry).queue("pods")
    assert kinds(registry) == {
        "workqueue_depth": "gauge",
        "workqueue_adds_total": "counter",
        "workqueue_queue_duration_seconds": "histogram",
        "workqueue_work_duration_seconds": "histogram",
        "workqueue_unfinished_work_seconds": "gauge",
        "workqueue_longest_running_processor_seconds": "gauge",
        "workqueue_retries_total": "counter",
        "deltaloop_workqueue_oldest_item_age_seconds": "gauge",
    }
    plain = {name for name in samples(registry) if "duration" not in name}
    assert plain == {
        'workqueue_depth{name="pods"}',
        'workqueue_adds_total{name="pods"}',
        'workqueue_unfinished_work_seconds{name="pods"}',
        'workqueue_longest_running_processor_seconds{name="pods"}',
        'workqueue_retries_total{name="pods"}',
        'deltaloop_workqueue_oldest_item_age_seconds{name="pods"}',
    }


@pytest.mark.parametrize("what", ["queue", "work"])
def test_buckets_equal_buckets_of_client_go(what: str) -> None:
    registry = CollectorRegistry()
    WorkQueueMetrics(registry=registry).queue("pods")
    name = f"workqueue_{what}_duration_seconds"
    found = [sample for sample in samples(registry) if sample.startswith(name)]
    buckets = [f'{name}_bucket{{le="{bound}",name="pods"}}' for bound in BOUNDS]
    assert found == [*buckets, f'{name}_count{{name="pods"}}', f'{name}_sum{{name="pods"}}']


async def test_queue_metrics_are_exact() -> None:
    registry = CollectorRegistry()
    metrics = WorkQueueMetrics(registry=registry)
    queue = DelayingQueue[str](name="pods", metrics=metrics.queue("pods"))
    queue.add("a")
    queue.add("b")
    queue.add("b")
    queue.add_after("c", 3600.0)
    await asyncio.sleep(0.5)
    await queue.get()
    await asyncio.sleep(2.0)
    shown = samples(registry)
    assert shown['workqueue_depth{name="pods"}'] == 1
    assert shown['workqueue_adds_total{name="pods"}'] == 2
    assert shown['workqueue_retries_total{name="pods"}'] == 1
    assert shown['workqueue_unfinished_work_seconds{name="pods"}'] == 2.0
    assert shown['workqueue_longest_running_processor_seconds{name="pods"}'] == 2.0
    assert shown['deltaloop_workqueue_oldest_item_age_seconds{name="pods"}'] == 2.5
    assert shown['workqueue_queue_duration_seconds_sum{name="pods"}'] == 0.5
    assert shown['workqueue_queue_duration_seconds_bucket{le="0.1",name="pods"}'] == 0
    assert shown['workqueue_queue_duration_seconds_bucket{le="1.0",name="pods"}'] == 1
    assert shown['workqueue_queue_duration_seconds_bucket{le="+Inf",name="pods"}'] == 1
    queue.done("a")
    await asyncio.sleep(1.0)
    shown = samples(registry)
    assert shown['workqueue_work_duration_seconds_sum{name="pods"}'] == 2.0
    assert shown['workqueue_work_duration_seconds_count{name="pods"}'] == 1
    assert shown['workqueue_unfinished_work_seconds{name="pods"}'] == 0.0
    queue.shut_down()


@pytest.mark.parametrize(("seconds", "bound"), [(0.0, 0), (1e-8, 0), (1.1e-8, 1), (0.1, 7), (10.0, 9), (11.0, 10)])
def test_bucket_includes_upper_bound(seconds: float, bound: int) -> None:
    registry = CollectorRegistry()
    WorkQueueMetrics(registry=registry).queue("pods").work_duration(seconds)
    shown = samples(registry)
    counts = [shown[f'workqueue_work_duration_seconds_bucket{{le="{le}",name="pods"}}'] for le in BOUNDS]
    assert counts == [0.0] * bound + [1.0] * (len(BOUNDS) - bound)


def test_queues_with_equal_names_share_metrics() -> None:
    registry = CollectorRegistry()
    metrics = WorkQueueMetrics(registry=registry)
    hooks: QueueMetrics = metrics.queue("a")
    hooks.added()
    metrics.queue("a").added()
    metrics.queue("b").added()
    shown = samples(registry)
    assert (shown['workqueue_adds_total{name="a"}'], shown['workqueue_adds_total{name="b"}']) == (2, 1)
    metrics.remove("a")
    metrics.remove("never seen")
    assert not [name for name in samples(registry) if 'name="a"' in name]
    with pytest.raises(ValueError, check=having(argument="name")):
        metrics.queue("")


def test_registry_accepts_one_adapter_until_close() -> None:
    registry = CollectorRegistry()
    first = WorkQueueMetrics(registry=registry)
    with pytest.raises(ValueError, match="workqueue_depth"):
        WorkQueueMetrics(registry=registry)
    first.close()
    WorkQueueMetrics(registry=registry)


@pytest.mark.parametrize("name", ["LeaderMetrics", "RestClientMetrics", "WorkQueueMetrics"])
def test_missing_extra_error_contains_name_of_extra(name: str) -> None:
    script = f"""
import sys
sys.modules["prometheus_client"] = None
import deltaloop.metrics
from deltaloop.api.errors import MissingExtraError
try:
    deltaloop.metrics.{name}()
except MissingExtraError as error:
    print(error.extra)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout.strip() == "metrics"
