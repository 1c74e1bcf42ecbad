"""What controllers tell a metrics system: a protocol of hooks. The Prometheus side is ``deltaloop.metrics``.

    controller_runtime_reconcile_total{controller,result}                  ``reconciled``
    controller_runtime_reconcile_time_seconds{controller}                  ``reconciled``
    controller_runtime_reconcile_errors_total{controller}                  ``reconciled``, by its counters
    controller_runtime_terminal_reconcile_errors_total{controller}         same
    controller_runtime_reconcile_timeouts_total{controller}                same
    controller_runtime_active_workers{controller}                          ``active_workers``
    controller_runtime_max_concurrent_reconciles{controller}               ``max_concurrent_reconciles``
    deltaloop_cleanups_total{controller}                                   same
    deltaloop_reconcile_triggers_total{controller,source,verb}             ``triggered``
    deltaloop_reconciles_lingering{controller}                             ``lingering``
    deltaloop_hot_loops_total{controller,cause}                            ``hot_loop``
    deltaloop_reconciles_slowed_down_total{controller}                     ``slowed_down``

Source: controller-runtime pkg/internal/controller/metrics/metrics.go.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Final, Protocol, TypeVarTuple, final

from deltaloop._internal.tracebacks import ErrorSummaries
from deltaloop.workqueue.metrics import QueueMetrics

Ts = TypeVarTuple("Ts")

CLEANUPS: Final = "deltaloop_cleanups_total"
"""Counts the reconciles that were clean-ups of objects that are being deleted."""

_logger: Final = logging.getLogger("deltaloop.runtime")


class ControllerMetrics(Protocol):
    """Hooks; they are called on the loop and must not block.

    What they raise is logged and changes nothing.
    """

    def queue(self, controller: str) -> QueueMetrics | None:
        """Return the hooks of a controller's work queue; None for none."""
        ...

    def reconciled(self, controller: str, result: str, counters: tuple[str, ...], seconds: float) -> None:
        """A reconcile has ended; ``counters`` are the names of the counters that grow beside the one of results."""
        ...

    def active_workers(self, controller: str, number: int) -> None:
        """So many reconciles run."""
        ...

    def max_concurrent_reconciles(self, controller: str, number: int) -> None:
        """So many may run."""
        ...

    def triggered(self, controller: str, source: str, verb: str) -> None:
        """A key was queued, or was queued already and got one more reason."""
        ...

    def lingering(self, controller: str, number: int) -> None:
        """So many reconciles were told to stop and have not ended."""
        ...

    def hot_loop(self, controller: str, cause: str) -> None:
        """A key keeps itself busy (``self``), or fights with another writer (``fight``)."""
        ...

    def slowed_down(self, controller: str) -> None:
        """A reconcile of such a key was put off."""
        ...


@final
class GuardedControllerMetrics:
    """Calls the hooks for one controller; what they raise ends here. Without hooks it does nothing."""

    __slots__ = ("_controller", "_errors", "_hooks", "is_on")

    def __init__(self, hooks: ControllerMetrics | None, controller: str) -> None:
        """Call ``hooks`` for ``controller``."""
        self._errors = ErrorSummaries()
        self._hooks = hooks
        self.is_on: bool = hooks is not None
        self._controller = controller

    def reconciled(self, result: str, counters: tuple[str, ...], seconds: float) -> None:
        """Tell of a reconcile."""
        if self._hooks is not None:
            self._call(self._hooks.reconciled, self._controller, result, counters, seconds)

    def active_workers(self, number: int) -> None:
        """Tell how many run."""
        if self._hooks is not None:
            self._call(self._hooks.active_workers, self._controller, number)

    def max_concurrent_reconciles(self, number: int) -> None:
        """Tell how many may run."""
        if self._hooks is not None:
            self._call(self._hooks.max_concurrent_reconciles, self._controller, number)

    def triggered(self, source: str, verb: str) -> None:
        """Tell of a reason to run."""
        if self._hooks is not None:
            self._call(self._hooks.triggered, self._controller, source, verb)

    def lingering(self, number: int) -> None:
        """Tell how many do not stop."""
        if self._hooks is not None:
            self._call(self._hooks.lingering, self._controller, number)

    def hot_loop(self, cause: str) -> None:
        """Tell of a key that keeps itself busy."""
        if self._hooks is not None:
            self._call(self._hooks.hot_loop, self._controller, cause)

    def slowed_down(self) -> None:
        """Tell of a reconcile that was put off."""
        if self._hooks is not None:
            self._call(self._hooks.slowed_down, self._controller)

    def _call(self, hook: Callable[[*Ts], None], *arguments: *Ts) -> None:
        try:
            hook(*arguments)
        except Exception as error:  # noqa: BLE001 - metrics that fail must not fail what they measure
            message, extra = "a metrics hook of a controller failed", {"controller": self._controller}
            self._errors.log(_logger, logging.ERROR, message, error, now=time.monotonic(), extra=extra)
