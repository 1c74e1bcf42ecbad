"""Metrics of work queues, with upstream's names, texts, label and buckets.

Source: component-base metrics/prometheus/workqueue/metrics.go; client-go util/workqueue/metrics.go.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, final

from deltaloop._internal.root_error import InvalidArgumentError
from deltaloop.metrics.collector import Histogram, RegisteredCollector, Sample, families_of

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

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
        self.oldest: float = 0.0
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

    def oldest_item_age(self, seconds: float) -> None:
        with self._lock:
            self.oldest = seconds

    def retried(self) -> None:
        with self._lock:
            self.retries += 1


@final
class WorkQueueMetrics(RegisteredCollector):
    """Prometheus collector that provides hooks for named queues.

    Use it as ``WorkQueue(name="pods", metrics=metrics.queue("pods"))``. It is thread-safe.
    """

    _what = "Prometheus metrics of work queues"
    _families = families_of(
        """
        gauge workqueue_depth name
            Current depth of workqueue
        counter workqueue_adds name
            Total number of adds handled by workqueue
        histogram workqueue_queue_duration_seconds name
            How long in seconds an item stays in workqueue before being requested.
        histogram workqueue_work_duration_seconds name
            How long in seconds processing an item from workqueue takes.
        gauge workqueue_unfinished_work_seconds name
            How many seconds of work was done by runs that have not ended yet. A large value points to stuck
            work.
        gauge workqueue_longest_running_processor_seconds name
            How many seconds the longest present run has lasted.
        counter workqueue_retries name
            Total number of retries handled by workqueue
        gauge deltaloop_workqueue_oldest_item_age_seconds name
            How many seconds the oldest item has waited for a worker.
        """
    )

    def __init__(self, *, registry: CollectorRegistry | None = None) -> None:
        """Register the collector; by default in prometheus-client's registry, with one collector of this class.

        Raises MissingExtraError without prometheus-client, and ValueError for registered metric names.
        """
        self._queues: dict[str, _QueueSeries] = {}
        super().__init__(registry=registry)

    def queue(self, name: str) -> _QueueSeries:
        """Return the hooks for a queue name.

        As in upstream, queues with the same name share their metrics.

        Raises:
            InvalidArgumentError: If the name is empty.
        """
        if not name:
            raise InvalidArgumentError("must be set for a work queue with metrics.", argument="name")
        with self._lock:
            return self._queues.setdefault(name, _QueueSeries(self._lock))

    def remove(self, name: str) -> None:
        """Remove the metrics of a queue.

        Unknown names are ignored.
        """
        with self._lock:
            self._queues.pop(name, None)

    def _samples(self) -> Iterator[Sample]:
        for name, series in self._queues.items():
            values: tuple[float | Histogram, ...] = (
                *(series.depth, series.adds, series.queued, series.worked),
                *(series.unfinished, series.longest, series.retries, series.oldest),
            )
            for family, value in zip(self._families, values, strict=True):
                yield family.name, (name,), value
