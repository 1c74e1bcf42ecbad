"""Work queue with rate-limited retries."""

from __future__ import annotations

import logging
import random
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any, TypeVar, final

from deltaloop.workqueue.core.limiters import RateLimiter, WithJitterRateLimiter, default_controller_rate_limiter
from deltaloop.workqueue.core.queue import QueueCore
from deltaloop.workqueue.core.rate_limiting import RateLimitingCore
from deltaloop.workqueue.core.triggers import IsEcho
from deltaloop.workqueue.delaying import DelayingQueue
from deltaloop.workqueue.options import QueueOptions, guarded_merge, new_order

if TYPE_CHECKING:
    from deltaloop.workqueue.metrics import QueueMetrics
    from deltaloop.workqueue.shown_items import DeadLetter

K = TypeVar("K", bound=Hashable)

logger: logging.Logger = logging.getLogger("deltaloop.workqueue")


@final
class RateLimitingQueue(DelayingQueue[K]):
    """Work queue for controllers: ``async with work`` retries failed items, and forgets successful items.

    With plain calls, the worker must do this: call ``get``, then ``forget`` after a success or ``add_rate_limited``
    after a failure, then ``done``.

    After a ``TerminalError``, or after ``QueueOptions.max_requeues`` retries, the item is logged and parked as a dead
    letter, until it is added again, retried or discarded.
    """

    _limiting: RateLimitingCore[K]

    def __init__(
        self,
        *,
        name: str = "",
        rate_limiter: RateLimiter[K] | None = None,
        metrics: QueueMetrics | None = None,
        options: QueueOptions | None = None,
        is_echo: IsEcho | None = None,
    ) -> None:
        """Create an empty queue.

        Args:
            name: Name for logs, metrics and ``repr``.
            rate_limiter: Rate limiter of this queue only. It runs under the queue's lock, so it must be fast. None
                means ``default_controller_rate_limiter`` with the queue's clock.
            metrics: Metrics hooks of this queue, or None.
            options: Order, limits and periods, or None for the defaults.
            is_echo: Function called with a failed item and a trigger, under the queue's lock. It returns whether a
                failed run of the item caused the trigger, which then waits for the retry. None disables this.
        """
        self._is_echo = is_echo
        self._rate_limiter = rate_limiter
        super().__init__(name=name, metrics=metrics, options=options)

    def _tear(self, torn: Any) -> None:
        super()._tear(torn)
        self._limiting = torn

    def _new_core(self) -> QueueCore[K]:
        options = self._options
        limiter: RateLimiter[K] = self._rate_limiter or default_controller_rate_limiter(clock=self._now)
        if options.jitter:
            limiter = WithJitterRateLimiter(limiter, factor=options.jitter, random=random.random)
        self._limiting = RateLimitingCore(
            limiter=limiter,
            max_triggers=options.max_triggers,
            observed=self._metrics is not None,
            order=new_order(options, queue=self._name),
            merge_triggers=guarded_merge(options, queue=self._name),
            max_requeues=options.max_requeues,
            max_dead_letters=options.max_dead_letters,
            is_echo=self._is_echo,
        )
        self._delaying = self._limiting
        return self._limiting

    def add_rate_limited(
        self,
        item: K,
        *,
        error: BaseException | None = None,
        trigger: object | None = None,
        priority: int | None = None,
    ) -> None:
        """Add an item after the rate limiter's delay.

        Thread-safe; returns immediately. If the item is already queued, or delayed to an earlier time, the triggers are
        merged and the limiter gets its token back. After a shutdown the call has no effect.

        To retry the item that it processes, a worker passes the error or omits the trigger. The run then counts as
        failed, and its triggers are kept for the next run. After the last attempt, the item is parked instead.

        Args:
            item: Item to add, usually the key of an object.
            error: Error of the last run, or None.
            trigger: Cause of the run, for adds that are not retries.
            priority: Priority as in ``add``. None means that of the retried run, otherwise 0.

        Raises:
            ValueError: If the limiter's delay is not finite. Exceptions of the limiter also propagate.

        Source: client-go util/workqueue/rate_limiting_queue.go ``AddRateLimited``.
        """
        covered = False
        try:
            with self._lock:
                outcome = self._limiting.add_rate_limited(
                    item, self._now(), error=error, trigger=trigger, priority=priority
                )
                covered = self._covers(outcome)
        finally:
            if not covered:
                self._changed()
        if outcome == "parked":
            self._log(logging.ERROR, "work failed for good and is parked", {"key": item, "queue": self._name}, error)

    def forget(self, item: K) -> None:
        """Reset the number of failures of an item.

        This does not replace ``done``. Thread-safe.
        """
        with self._lock:
            self._limiting.forget(item)

    def num_requeues(self, item: K) -> int:
        """Return the number of rate limiter calls for an item since ``forget``.

        Thread-safe.
        """
        with self._lock:
            return self._limiting.num_requeues(item)

    def dead_letters(self) -> tuple[DeadLetter[K], ...]:
        """Return the dead letters, oldest first.

        Thread-safe.
        """
        from deltaloop.workqueue.shown_items import show_letter  # for snapshots

        with self._lock:
            now = self._now()
            return tuple(show_letter(letter, now) for letter in self._limiting.dead_letters())

    def retry_dead_letter(self, item: K, *, trigger: object | None = None) -> bool:
        """Add a parked item again immediately, with its triggers and all retries.

        Thread-safe.

        Returns:
            Whether the item was parked and the queue accepts items.
        """
        with self._lock:
            revived = self._limiting.retry_dead_letter(item, self._now(), trigger=trigger)
        self._changed()
        return revived

    def discard_dead_letter(self, item: K) -> DeadLetter[K] | None:
        """Discard a dead letter and return it, or return None if it does not exist.

        Thread-safe. You can add the item again later.
        """
        from deltaloop.workqueue.shown_items import show_letter

        with self._lock:
            letter = self._limiting.discard_dead_letter(item)
            return None if letter is None else show_letter(letter, self._now())
