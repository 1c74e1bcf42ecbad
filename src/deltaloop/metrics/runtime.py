"""Metrics of controllers, with controller-runtime's names, texts, labels and buckets, and the page of all metrics.

Upstream's counter of panics is missing, because exceptions of Python functions count as errors.

Source: controller-runtime pkg/internal/controller/metrics/metrics.go.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, final

from deltaloop.metrics.cache import InformerMetrics
from deltaloop.metrics.client import RestClientMetrics
from deltaloop.metrics.collector import RegisteredCollector, families_of
from deltaloop.metrics.leaderelection import LeaderMetrics
from deltaloop.metrics.sharding import ShardMetrics
from deltaloop.metrics.webhooks import ReviewMetrics
from deltaloop.metrics.workqueue import WorkQueueMetrics
from deltaloop.workqueue.metrics import QueueMetrics

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

BUCKETS: Final[tuple[float, ...]] = (
    *(0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0),
    *(1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0, 25.0, 30.0),
    *(40.0, 50.0, 60.0),
)
"""Upper bounds in seconds."""

_RESULTS: Final = ("error", "requeue_after", "requeue", "success")

_CAUSES: Final = ("self", "fight")

_CONTROLLER: Final = ("controller",)


@final
class ReconcileMetrics(RegisteredCollector):
    """Prometheus collector that implements ``deltaloop.runtime.ControllerMetrics``.

    One collector serves all controllers of a program. It is thread-safe.
    """

    _what = "Prometheus metrics of controllers"
    _families = families_of(
        """
        counter controller_runtime_reconcile controller,result
            Total number of reconciliations per controller
        counter controller_runtime_reconcile_errors controller
            Total number of reconciliation errors per controller
        counter controller_runtime_terminal_reconcile_errors controller
            Total number of terminal reconciliation errors per controller
        counter controller_runtime_reconcile_timeouts controller
            Total number of reconciliation timeouts per controller
        counter deltaloop_cleanups controller
            Total number of reconciles that were clean-ups of objects that are being deleted
        histogram controller_runtime_reconcile_time_seconds controller
            Length of time per reconciliation per controller
        gauge controller_runtime_active_workers controller
            Number of currently used workers per controller
        gauge controller_runtime_max_concurrent_reconciles controller
            Maximum number of concurrent reconciles per controller
        gauge deltaloop_reconciles_lingering controller
            Number of reconciles that were told to stop and have not ended
        counter deltaloop_reconcile_triggers controller,source,verb
            Total number of reasons to reconcile, by where they came from and what happened
        counter deltaloop_hot_loops controller,cause
            Total number of keys that kept re-triggering themselves, or that two writers fought over
        counter deltaloop_reconciles_slowed_down controller
            Total number of reconciles that were put off because their key kept itself busy
        """,
        {"controller_runtime_reconcile_time_seconds": BUCKETS},
    )

    def __init__(self, *, queues: WorkQueueMetrics | None = None, registry: CollectorRegistry | None = None) -> None:
        """Register the collector.

        ``queues`` is the collector for the work queues; None disables their metrics. For ``registry`` and errors see
        ``InformerMetrics``.
        """
        self._queues = queues
        super().__init__(registry=registry)

    def queue(self, controller: str) -> QueueMetrics | None:
        """Return the hooks of a controller's work queue."""
        return None if self._queues is None else self._queues.queue(controller)

    def reconciled(self, controller: str, result: str, counters: tuple[str, ...], seconds: float) -> None:
        """Record a reconcile.

        ``seconds`` is its duration.
        """
        self._add("controller_runtime_reconcile", controller, result)
        for name in counters:
            if name.removesuffix("_total") in self._numbers:
                self._add(name.removesuffix("_total"), controller)
        self._observe("controller_runtime_reconcile_time_seconds", seconds, controller)

    def active_workers(self, controller: str, number: int) -> None:
        """Set the number of running reconciles."""
        self._set("controller_runtime_active_workers", number, controller)

    def max_concurrent_reconciles(self, controller: str, number: int) -> None:
        """Set the number of workers, and initialize the controller's counters with zero, as upstream does."""
        for family in self._families:
            if family.labels == _CONTROLLER and family.name in self._numbers:
                self._add(family.name, controller, by=0)
        for cause in _CAUSES:
            self._add("deltaloop_hot_loops", controller, cause, by=0)
        for result in _RESULTS:
            self._add("controller_runtime_reconcile", controller, result, by=0)
        self._set("controller_runtime_max_concurrent_reconciles", number, controller)

    def triggered(self, controller: str, source: str, verb: str) -> None:
        """Count a trigger."""
        self._add("deltaloop_reconcile_triggers", controller, source, verb)

    def lingering(self, controller: str, number: int) -> None:
        """Set the number of reconciles that were stopped but have not ended."""
        self._set("deltaloop_reconciles_lingering", number, controller)

    def hot_loop(self, controller: str, cause: str) -> None:
        """Count a hot key."""
        self._add("deltaloop_hot_loops", controller, cause)

    def slowed_down(self, controller: str) -> None:
        """Count a reconcile that was delayed because its key was hot."""
        self._add("deltaloop_reconciles_slowed_down", controller)


@final
class ProgramMetrics:
    """All metrics of one program, including those of its author.

    Attributes:
        controllers: Collector for ``Manager(metrics=...)``.
        caches: Collector for ``InformerOptions(metrics=...)``.
        requests: Collector for ``ClientOptions(metrics=...)``.
        elections: Collector for ``LeaderElector(metrics=...)``.
        reviews: Collector for ``Manager(webhook_metrics=...)``.
        shards: Collector of the ranges. Set its ``state`` to ``lambda: manager.shard_state``.
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
        self.shards: ShardMetrics = ShardMetrics(registry=registry)

        self._page = MetricsPage(registry, (REGISTRY,) if registries is None else tuple(registries))

    def render(self) -> tuple[bytes, str]:
        """Return the page of ``/metrics`` in the Prometheus text format, and its content type.

        The author's collectors run in the caller's thread. Collectors that raise, or whose names collide, are omitted
        and logged.
        """
        from prometheus_client import CONTENT_TYPE_LATEST

        return self._page.render(), CONTENT_TYPE_LATEST
