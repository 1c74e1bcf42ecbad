"""Metrics of controllers, with controller-runtime's names, texts, labels and buckets, and the page of all metrics.

Upstream's counter of panics is missing, because exceptions of Python functions count as errors.

Source: controller-runtime pkg/internal/controller/metrics/metrics.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final, final

from deltaloop.metrics.cache import InformerMetrics
from deltaloop.metrics.client import RestClientMetrics
from deltaloop.metrics.collector import RegisteredCollector
from deltaloop.metrics.histogram import Histogram
from deltaloop.metrics.leaderelection import LeaderMetrics
from deltaloop.metrics.webhooks import ReviewMetrics
from deltaloop.metrics.workqueue import WorkQueueMetrics
from deltaloop.workqueue.metrics import QueueMetrics

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from prometheus_client.core import Metric

BUCKETS: Final[tuple[float, ...]] = (
    *(0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0),
    *(1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0, 25.0, 30.0),
    *(40.0, 50.0, 60.0),
)
"""Upper bounds in seconds."""

_RESULTS: Final = ("error", "requeue_after", "requeue", "success")

_CAUSES: Final = ("self", "fight")

_COUNTERS: Final = {
    "controller_runtime_reconcile_errors_total": "Total number of reconciliation errors per controller",
    "controller_runtime_terminal_reconcile_errors_total": (
        "Total number of terminal reconciliation errors per controller"
    ),
    "controller_runtime_reconcile_timeouts_total": "Total number of reconciliation timeouts per controller",
    "deltaloop_cleanups_total": "Total number of reconciles that were clean-ups of objects that are being deleted",
}

_GAUGES: Final = {
    "controller_runtime_active_workers": "Number of currently used workers per controller",
    "controller_runtime_max_concurrent_reconciles": "Maximum number of concurrent reconciles per controller",
    "deltaloop_reconciles_lingering": "Number of reconciles that were told to stop and have not ended",
}


@final
class ReconcileMetrics(RegisteredCollector):
    """Prometheus collector that implements ``deltaloop.runtime.ControllerMetrics``.

    One collector serves all controllers of a program. It is thread-safe.
    """

    def __init__(self, *, queues: WorkQueueMetrics | None = None, registry: CollectorRegistry | None = None) -> None:
        """Register the collector.

        ``queues`` is the collector for the work queues; None disables their metrics. For ``registry`` and errors see
        ``InformerMetrics``.
        """
        self._queues = queues
        self._results: dict[tuple[str, str], int] = {}
        self._counts: dict[tuple[str, str], int] = {}
        self._triggers: dict[tuple[str, str, str], int] = {}
        self._times: dict[str, Histogram] = {}
        self._active: dict[str, int] = {}
        self._most: dict[str, int] = {}
        self._lingering: dict[str, int] = {}
        self._hot_loops: dict[tuple[str, str], int] = {}
        self._slowed_down: dict[str, int] = {}
        super().__init__("Prometheus metrics of controllers", registry)

    def queue(self, controller: str) -> QueueMetrics | None:
        """Return the hooks of a controller's work queue."""
        return None if self._queues is None else self._queues.queue(controller)

    def reconciled(self, controller: str, result: str, counters: tuple[str, ...], seconds: float) -> None:
        """Record a reconcile.

        ``seconds`` is its duration.
        """
        with self._lock:
            self._results[controller, result] = self._results.get((controller, result), 0) + 1
            for name in counters:
                self._counts[name, controller] = self._counts.get((name, controller), 0) + 1
            self._times.setdefault(controller, Histogram(BUCKETS)).observe(seconds)

    def active_workers(self, controller: str, number: int) -> None:
        """Set the number of running reconciles."""
        with self._lock:
            self._active[controller] = number

    def max_concurrent_reconciles(self, controller: str, number: int) -> None:
        """Set the number of workers, and initialize the controller's counters with zero, as upstream does."""
        with self._lock:
            self._most[controller] = number
            self._active.setdefault(controller, 0)
            self._lingering.setdefault(controller, 0)
            self._slowed_down.setdefault(controller, 0)
            for cause in _CAUSES:
                self._hot_loops.setdefault((controller, cause), 0)
            for result in _RESULTS:
                self._results.setdefault((controller, result), 0)
            for name in _COUNTERS:
                self._counts.setdefault((name, controller), 0)

    def triggered(self, controller: str, source: str, verb: str) -> None:
        """Count a trigger."""
        with self._lock:
            self._triggers[controller, source, verb] = self._triggers.get((controller, source, verb), 0) + 1

    def lingering(self, controller: str, number: int) -> None:
        """Set the number of reconciles that were stopped but have not ended."""
        with self._lock:
            self._lingering[controller] = number

    def hot_loop(self, controller: str, cause: str) -> None:
        """Count a hot key."""
        with self._lock:
            self._hot_loops[controller, cause] = self._hot_loops.get((controller, cause), 0) + 1

    def slowed_down(self, controller: str) -> None:
        """Count a reconcile that was delayed because its key was hot."""
        with self._lock:
            self._slowed_down[controller] = self._slowed_down.get(controller, 0) + 1

    def _families(self, *, empty: bool) -> Iterator[Metric]:
        from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily

        total = CounterMetricFamily(
            "controller_runtime_reconcile",
            "Total number of reconciliations per controller",
            labels=["controller", "result"],
        )
        times = HistogramMetricFamily(
            "controller_runtime_reconcile_time_seconds",
            "Length of time per reconciliation per controller",
            labels=["controller"],
        )
        triggers = CounterMetricFamily(
            "deltaloop_reconcile_triggers",
            "Total number of reasons to reconcile, by where they came from and what happened",
            labels=["controller", "source", "verb"],
        )
        hot_loops = CounterMetricFamily(
            "deltaloop_hot_loops",
            "Total number of keys that kept re-triggering themselves, or that two writers fought over",
            labels=["controller", "cause"],
        )
        slowed_down = CounterMetricFamily(
            "deltaloop_reconciles_slowed_down",
            "Total number of reconciles that were put off because their key kept itself busy",
            labels=["controller"],
        )
        counters = {
            name: CounterMetricFamily(name.removesuffix("_total"), text, labels=["controller"])
            for name, text in _COUNTERS.items()
        }
        if not empty:
            for labels, number in sorted(self._results.items()):
                total.add_metric(labels, number)
            for (name, controller), number in sorted(self._counts.items()):
                if name in counters:
                    counters[name].add_metric([controller], number)
            for names, number in sorted(self._triggers.items()):
                triggers.add_metric(names, number)
            for cause, number in sorted(self._hot_loops.items()):
                hot_loops.add_metric(cause, number)
            for controller, number in sorted(self._slowed_down.items()):
                slowed_down.add_metric([controller], number)
            for controller, histogram in sorted(self._times.items()):
                times.add_metric([controller], histogram.buckets(), histogram.total)
        yield from (total, *counters.values(), times, *self._gauges(empty=empty), triggers)
        yield from (hot_loops, slowed_down)

    def _gauges(self, *, empty: bool) -> Iterator[Metric]:
        from prometheus_client.core import GaugeMetricFamily

        levels = (self._active, self._most, self._lingering)
        for (name, text), numbers in zip(_GAUGES.items(), levels, strict=True):
            gauge = GaugeMetricFamily(name, text, labels=["controller"])
            for controller, number in [] if empty else sorted(numbers.items()):
                gauge.add_metric([controller], number)
            yield gauge


@final
class ProgramMetrics:
    """All metrics of one program, including those of its author.

    Attributes:
        controllers: Collector for ``Manager(metrics=...)``.
        caches: Collector for ``InformerOptions(metrics=...)``.
        requests: Collector for ``ClientOptions(metrics=...)``.
        elections: Collector for ``LeaderElector(metrics=...)``.
        reviews: Collector for ``Manager(webhook_metrics=...)``.
    """

    def __init__(self, *, registries: Iterable[CollectorRegistry] | None = None) -> None:
        """Create a registry for deltaloop's metrics.

        Args:
            registries: Registries with the author's metrics, which are added to the page. None means
                prometheus-client's default registry, and an empty list means no registry.

        Raises:
            MissingExtraError: If prometheus-client is not installed.
            InvalidArgumentError: If two metrics have the same name.
        """
        from deltaloop.api.errors import MissingExtraError

        try:
            from prometheus_client import REGISTRY, CollectorRegistry
            from prometheus_client.process_collector import ProcessCollector
        except ImportError as error:
            raise MissingExtraError("the metrics of a program", "metrics") from error
        from deltaloop.metrics.page import MetricsPage

        registry = CollectorRegistry(auto_describe=True)
        ProcessCollector(registry=registry)
        self.controllers: ReconcileMetrics = ReconcileMetrics(
            queues=WorkQueueMetrics(registry=registry), registry=registry
        )
        self.caches: InformerMetrics = InformerMetrics(registry=registry)
        self.requests: RestClientMetrics = RestClientMetrics(registry=registry)
        self.elections: LeaderMetrics = LeaderMetrics(registry=registry)
        self.reviews: ReviewMetrics = ReviewMetrics(registry=registry)

        self._page = MetricsPage(registry, (REGISTRY,) if registries is None else tuple(registries))

    def render(self) -> tuple[bytes, str]:
        """Return the page of ``/metrics`` in the Prometheus text format, and its content type.

        The author's collectors run in the caller's thread. Collectors that raise, or whose names collide, are omitted
        and logged.
        """
        from prometheus_client import CONTENT_TYPE_LATEST

        return self._page.render(), CONTENT_TYPE_LATEST
