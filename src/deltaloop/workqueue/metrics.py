"""Metrics hooks of work queues, with the names and meanings of client-go's ``workqueue_*`` metrics.

Source: client-go util/workqueue/metrics.go.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Protocol, final, runtime_checkable

from deltaloop._internal.tracebacks import GuardedCalls
from deltaloop.workqueue.core.facts import Added, Done, Fact, Started

logger: logging.Logger = logging.getLogger("deltaloop.workqueue")


class QueueMetrics(Protocol):
    """Hooks of one queue.

    They are called without a lock, from the thread that caused them, and must not block. Exceptions are logged. An
    optional hook, ``oldest_item_age(seconds)``, gets the age of the oldest waiting item.
    """

    def depth_changed(self, by: int) -> None:
        """Change the number of items that need a run (``workqueue_depth``) by one up or down."""
        ...

    def added(self) -> None:
        """Count an add that causes an additional run (``workqueue_adds_total``)."""
        ...

    def queue_latency(self, seconds: float) -> None:
        """Record the seconds that an item waited since its first add (``workqueue_queue_duration_seconds``)."""
        ...

    def work_duration(self, seconds: float) -> None:
        """Record the duration of a run in seconds (``workqueue_work_duration_seconds``)."""
        ...

    def unfinished_work(self, seconds: float) -> None:
        """Set the total duration of the current runs in seconds (``workqueue_unfinished_work_seconds``)."""
        ...

    def longest_running(self, seconds: float) -> None:
        """Set the longest current run in seconds (``workqueue_longest_running_processor_seconds``)."""
        ...

    def retried(self) -> None:
        """Count a delayed add (``workqueue_retries_total``)."""
        ...


@runtime_checkable
class _AgeHook(Protocol):
    def oldest_item_age(self, seconds: float) -> None: ...


@final
class GuardedQueueMetrics:
    """Wrapper of hooks that logs their exceptions, so that the queue never loses an item."""

    def __init__(self, hooks: QueueMetrics, *, queue: str) -> None:
        self._call = GuardedCalls(logger, "metrics hook of a work queue failed", queue=queue)
        self._hooks = hooks
        self._age = hooks.oldest_item_age if isinstance(hooks, _AgeHook) else None

    def tell(self, facts: Iterable[Fact]) -> None:
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

    def present(self, unfinished: float, longest: float, oldest: float) -> None:
        self._call(self._hooks.unfinished_work, unfinished)
        self._call(self._hooks.longest_running, longest)
        if self._age is not None:
            self._call(self._age, oldest)
