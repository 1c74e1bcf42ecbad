"""Metrics of work queues, with upstream's names, texts, label and buckets.

The label ``name`` contains the name of the queue.

Source: component-base metrics/prometheus/workqueue/metrics.go; client-go util/workqueue/metrics.go.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, final

from deltaloop.metrics.collector import RegisteredCollector
from deltaloop.metrics.histogram import Histogram

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from prometheus_client.core import Metric

BUCKETS: Final[tuple[float, ...]] = tuple(float(f"1e{exponent}") for exponent in range(-8, 2))
"""Upper bounds in seconds: ten powers of ten from 10 ns to 10 s."""


@final
class _QueueSeries:
    """Thread-safe hooks and numbers of one named queue."""

    def __init__(self, lock: threading.Lock) -> None:
        self._lock = lock
        self.depth: int = 0
        self.adds: int = 0
        self.retries: int = 0
        self.unfinished: float = 0.0
        self.longest: float = 0.0
        self.queued: Histogram = Histogram(BUCKETS)
        self.worked: Histogram = Histogram(BUCKETS)

    def depth_changed(self, by: int) -> None:
        with self._lock:
            self.depth += by

    def added(self) -> None:
        with self._lock:
            self.adds += 1

    def queue_latency(self, seconds: float) -> None:
        with self._lock:
            self.queued.observe(seconds)

    def work_duration(self, seconds: float) -> None:
        with self._lock:
            self.worked.observe(seconds)

    def unfinished_work(self, seconds: float) -> None:
        with self._lock:
            self.unfinished = seconds

    def longest_running(self, seconds: float) -> None:
        with self._lock:
            self.longest = seconds

    def retried(self) -> None:
        with self._lock:
            self.retries += 1


@final
class WorkQueueMetrics(RegisteredCollector):
    """Prometheus collector that provides hooks for named queues.

    Use it as ``WorkQueue(name="pods", metrics=metrics.queue("pods"))``. It is thread-safe.
    """

    def __init__(self, *, registry: CollectorRegistry | None = None) -> None:
        """Register the collector; by default in prometheus-client's registry, with one collector of this class.

        Raises MissingExtraError without prometheus-client, and ValueError for registered metric names.
        """
        self._queues: dict[str, _QueueSeries] = {}
        super().__init__("Prometheus metrics of work queues", registry)

    def queue(self, name: str) -> _QueueSeries:
        """Return the hooks for a queue name.

        As in upstream, queues with the same name share their metrics.

        Raises:
            ValueError: If the name is empty.
        """
        if not name:
            raise ValueError("a work queue without a name has no metrics; name it")
        with self._lock:
            return self._queues.setdefault(name, _QueueSeries(self._lock))

    def remove(self, name: str) -> None:
        """Remove the metrics of a queue.

        Unknown names are ignored.
        """
        with self._lock:
            self._queues.pop(name, None)

    def _families(self, *, empty: bool) -> Iterator[Metric]:
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

        depth = GaugeMetricFamily("workqueue_depth", "Current depth of workqueue", labels=["name"])
        adds = CounterMetricFamily("workqueue_adds", "Total number of adds handled by workqueue", labels=["name"])
        queued = HistogramMetricFamily(
            "workqueue_queue_duration_seconds",
            "How long in seconds an item stays in workqueue before being requested.",
            labels=["name"],
        )
        worked = HistogramMetricFamily(
            "workqueue_work_duration_seconds",
            "How long in seconds processing an item from workqueue takes.",
            labels=["name"],
        )
        unfinished = GaugeMetricFamily(
            "workqueue_unfinished_work_seconds",
            "How many seconds of work was done by runs that have not ended yet. A large value points to stuck work.",
            labels=["name"],
        )
        longest = GaugeMetricFamily(
            "workqueue_longest_running_processor_seconds",
            "How many seconds the longest present run has lasted.",
            labels=["name"],
        )
        retries = CounterMetricFamily(
            "workqueue_retries", "Total number of retries handled by workqueue", labels=["name"]
        )
        for name, numbers in [] if empty else sorted(self._queues.items()):
            depth.add_metric([name], numbers.depth)
            adds.add_metric([name], numbers.adds)
            queued.add_metric([name], numbers.queued.buckets(), numbers.queued.total)
            worked.add_metric([name], numbers.worked.buckets(), numbers.worked.total)
            unfinished.add_metric([name], numbers.unfinished)
            longest.add_metric([name], numbers.longest)
            retries.add_metric([name], numbers.retries)
        yield from (depth, adds, queued, worked, unfinished, longest, retries)
