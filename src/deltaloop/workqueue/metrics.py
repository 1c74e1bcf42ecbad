"""What a queue tells a metrics system: a protocol of hooks, and how facts become calls of it.

The names and meanings are those of upstream's ``workqueue_*`` metrics; an adapter for one metrics system implements the
protocol, one object for each named queue.

Source: client-go util/workqueue/metrics.go.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from typing import Protocol, TypeVarTuple, final

from deltaloop._internal.tracebacks import ErrorSummaries
from deltaloop.workqueue.core.facts import Added, Done, Fact, Started

Ts = TypeVarTuple("Ts")

logger: logging.Logger = logging.getLogger("deltaloop.workqueue")


class QueueMetrics(Protocol):
    """Hooks of one queue.

    They are called without a lock, from the thread that caused them, and must not block. A hook that raises is
    logged and changes nothing for the queue.
    """

    def depth_changed(self, by: int) -> None:
        """Change the number of items that need a run (``workqueue_depth``) by one up or down."""
        ...

    def added(self) -> None:
        """Count an add that gave an item a run it did not have before (``workqueue_adds_total``)."""
        ...

    def queue_latency(self, seconds: float) -> None:
        """Observe how long an item waited, from its first add (``workqueue_queue_duration_seconds``)."""
        ...

    def work_duration(self, seconds: float) -> None:
        """Observe how long a run lasted (``workqueue_work_duration_seconds``)."""
        ...

    def unfinished_work(self, seconds: float) -> None:
        """Set how long all present runs have lasted together (``workqueue_unfinished_work_seconds``)."""
        ...

    def longest_running(self, seconds: float) -> None:
        """Set how long the longest present run has lasted (``workqueue_longest_running_processor_seconds``)."""
        ...

    def retried(self) -> None:
        """Count a delayed add that was asked for (``workqueue_retries_total``)."""
        ...


@final
class GuardedQueueMetrics:
    """Calls hooks for facts; what a hook raises ends here, because a queue must not lose an item over it."""

    def __init__(self, hooks: QueueMetrics, *, queue: str) -> None:
        """Take the hooks and the queue's name for the log."""
        self._errors = ErrorSummaries()
        self._hooks = hooks
        self._queue = queue

    def tell(self, facts: Iterable[Fact]) -> None:
        """Call the hooks that belong to the facts."""
        hooks = self._hooks
        for fact in facts:
            if isinstance(fact, Added):
                self._call(hooks.depth_changed, 1)
                self._call(hooks.added)
            elif isinstance(fact, Started):
                self._call(hooks.depth_changed, -1)
                self._call(hooks.queue_latency, fact.latency)
            elif isinstance(fact, Done):
                self._call(hooks.work_duration, fact.duration)
            else:
                self._call(hooks.retried)

    def running(self, unfinished: float, longest: float) -> None:
        """Set the two numbers about present runs."""
        self._call(self._hooks.unfinished_work, unfinished)
        self._call(self._hooks.longest_running, longest)

    def _call(self, hook: Callable[[*Ts], None], *numbers: *Ts) -> None:
        try:
            hook(*numbers)
        except Exception as error:  # noqa: BLE001 - metrics that fail must not fail what they measure
            message, extra = "a metrics hook of a work queue failed", {"queue": self._queue}
            self._errors.log(logger, logging.ERROR, message, error, now=time.monotonic(), extra=extra)
