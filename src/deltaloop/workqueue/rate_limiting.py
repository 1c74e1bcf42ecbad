"""A work queue whose retries a rate limiter spaces out. Core: deltaloop.workqueue.core.rate_limiting."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TypeVar, final

from deltaloop.workqueue.core.limiters import RateLimiter, default_controller_rate_limiter
from deltaloop.workqueue.core.queue import QueueCore
from deltaloop.workqueue.core.rate_limiting import RateLimitingCore
from deltaloop.workqueue.delaying import DelayingQueue
from deltaloop.workqueue.metrics import QueueMetrics
from deltaloop.workqueue.queue import QueueOptions

K = TypeVar("K", bound=Hashable)


@final
class RateLimitingQueue(DelayingQueue[K]):
    """A work queue for controllers: ``async with work`` retries what failed, and forgets what went well.

    With plain calls the worker does that itself: ``get``, then ``forget`` after a success or ``add_rate_limited`` after
    a failure, then ``done``, in this order.
    """

    _limiting: RateLimitingCore[K]

    def __init__(
        self,
        *,
        name: str = "",
        rate_limiter: RateLimiter[K] | None = None,
        metrics: QueueMetrics | None = None,
        options: QueueOptions | None = None,
    ) -> None:
        """Make an empty queue.

        Args:
            name: For logs, metrics and ``repr``.
            rate_limiter: Says how long an item waits; it is called under the queue's lock, so it must be quick and
                belong to this queue alone. None for ``default_controller_rate_limiter`` on the queue's own clock.
            metrics: Hooks of this queue; None for none.
            options: Its numbers; None for the defaults.
        """
        self._rate_limiter = rate_limiter
        super().__init__(name=name, metrics=metrics, options=options)

    def _new_core(self) -> QueueCore[K]:
        self._limiting = RateLimitingCore(
            limiter=self._rate_limiter or default_controller_rate_limiter(clock=self._now),
            max_triggers=self._options.max_triggers,
            observed=self._metrics is not None,
        )
        self._delaying = self._limiting
        return self._limiting

    def add_rate_limited(self, item: K, *, error: BaseException | None = None, trigger: object | None = None) -> None:
        """Add ``item`` when the rate limiter says so. Any thread; returns at once.

        An item that waits for a run already, or waits for an earlier time, is not added twice: the triggers are merged
        and the limiter gets its token back. After a shutdown the call does nothing.

        A worker that asks for a retry of the item it works on names the error, or no trigger: then the run counts as
        failed, and its triggers are kept for the next one.

        Args:
            item: What to work on.
            error: Why the last run failed.
            trigger: Why the item is to run, for adds that are no retry.

        Raises:
            ValueError: If the limiter's answer is no finite number; what the limiter raises is raised, too.

        Source: client-go util/workqueue/rate_limiting_queue.go ``AddRateLimited``.
        """
        with self._lock:
            self._limiting.add_rate_limited(item, self._now(), error=error, trigger=trigger)
        self._changed()

    def forget(self, item: K) -> None:
        """Count the failures of ``item`` from zero again. It does not replace ``done``. Any thread."""
        with self._lock:
            self._limiting.forget(item)

    def num_requeues(self, item: K) -> int:
        """Return how often the rate limiter was asked for ``item`` since it was forgotten. Any thread."""
        with self._lock:
            return self._limiting.num_requeues(item)
