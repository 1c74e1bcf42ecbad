"""Metrics hooks for controllers; ``deltaloop.metrics`` implements them for Prometheus.

    controller_runtime_reconcile_total{controller,result}                  ``reconciled``
    controller_runtime_reconcile_time_seconds{controller}                  ``reconciled``
    controller_runtime_reconcile_errors_total{controller}                  ``reconciled``, by its counters
    controller_runtime_terminal_reconcile_errors_total{controller}         same
    controller_runtime_reconcile_timeouts_total{controller}                same
    controller_runtime_active_workers{controller}                          ``active_workers``
    controller_runtime_max_concurrent_reconciles{controller}               ``max_concurrent_reconciles``
    deltaloop_cleanups_total{controller}                                   ``reconciled``, by its counters
    deltaloop_reconcile_triggers_total{controller,source,verb}             ``triggered``
    deltaloop_reconciles_lingering{controller}                             ``lingering``
    deltaloop_hot_loops_total{controller,cause}                            ``hot_loop``
    deltaloop_reconciles_slowed_down_total{controller}                     ``slowed_down``

Source: controller-runtime pkg/internal/controller/metrics/metrics.go.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, Protocol, final

from deltaloop._internal.tracebacks import GuardedCalls

if TYPE_CHECKING:
    from deltaloop.workqueue.metrics import QueueMetrics

CLEANUPS: Final = "deltaloop_cleanups_total"
"""Name of the counter of cleanups, which are reconciles of objects that are being deleted."""

_logger: Final = logging.getLogger("deltaloop.runtime")


class ControllerMetrics(Protocol):
    """Hooks for controller metrics.

    They are called on the event loop and must not block. Their exceptions are logged and ignored.
    """

    def queue(self, controller: str) -> QueueMetrics | None:
        """Return the metrics of a controller's work queue; None for no metrics."""
        ...

    def reconciled(self, controller: str, result: str, counters: tuple[str, ...], seconds: float) -> None:
        """Record an ended reconcile and its time in seconds; ``counters`` names additional counters to increment."""
        ...

    def active_workers(self, controller: str, number: int) -> None:
        """Record the number of running reconciles."""
        ...

    def max_concurrent_reconciles(self, controller: str, number: int) -> None:
        """Record the maximum number of concurrent reconciles."""
        ...

    def triggered(self, controller: str, source: str, verb: str) -> None:
        """Record a trigger of a new or already queued key."""
        ...

    def lingering(self, controller: str, number: int) -> None:
        """Record the number of reconciles that were told to stop and still run."""
        ...

    def hot_loop(self, controller: str, cause: str) -> None:
        """Record a hot key that triggers itself (``self``) or competes with another writer (``fight``)."""
        ...

    def slowed_down(self, controller: str) -> None:
        """Record a delayed reconcile of a hot key."""
        ...


@final
class GuardedControllerMetrics:
    """Call the hooks for one controller and log their exceptions. Without hooks, do nothing."""

    __slots__ = ("_call", "_controller", "_hooks", "is_on")

    def __init__(self, hooks: ControllerMetrics | None, controller: str) -> None:
        self._call = GuardedCalls(_logger, "metrics hook of a controller failed", controller=controller)
        self._hooks = hooks
        self.is_on: bool = hooks is not None
        self._controller = controller

    def reconciled(self, result: str, counters: tuple[str, ...], seconds: float) -> None:
        if self._hooks is not None:
            self._call(self._hooks.reconciled, self._controller, result, counters, seconds)

    def active_workers(self, number: int) -> None:
        if self._hooks is not None:
            self._call(self._hooks.active_workers, self._controller, number)

    def max_concurrent_reconciles(self, number: int) -> None:
        if self._hooks is not None:
            self._call(self._hooks.max_concurrent_reconciles, self._controller, number)

    def triggered(self, source: str, verb: str) -> None:
        if self._hooks is not None:
            self._call(self._hooks.triggered, self._controller, source, verb)

    def lingering(self, number: int) -> None:
        if self._hooks is not None:
            self._call(self._hooks.lingering, self._controller, number)

    def hot_loop(self, cause: str) -> None:
        if self._hooks is not None:
            self._call(self._hooks.hot_loop, self._controller, cause)

    def slowed_down(self) -> None:
        if self._hooks is not None:
            self._call(self._hooks.slowed_down, self._controller)
