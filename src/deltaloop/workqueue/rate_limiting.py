"""A work queue whose retries a rate limiter spaces out."""

from __future__ import annotations

import logging
import random
from collections.abc import Hashable
from typing import Any, Generic, TypeVar, final

import msgspec

from deltaloop.workqueue.core import dead_letters as core
from deltaloop.workqueue.core.facts import AddOutcome
from deltaloop.workqueue.core.limiters import RateLimiter, WithJitterRateLimiter, default_controller_rate_limiter
from deltaloop.workqueue.core.queue import QueueCore
from deltaloop.workqueue.core.rate_limiting import RateLimitingCore
from deltaloop.workqueue.core.triggers import IsEcho
from deltaloop.workqueue.delaying import DelayingQueue
from deltaloop.workqueue.metrics import QueueMetrics
from deltaloop.workqueue.options import QueueOptions, guarded_merge, new_order

K = TypeVar("K", bound=Hashable)

logger: logging.Logger = logging.getLogger("deltaloop.workqueue")


@final
class DeadLetter(msgspec.Struct, Generic[K], frozen=True, kw_only=True):
    """An item that failed for good and is parked.

    Attributes:
        item: The item whose run failed for good.
        error: Why, the last time; None if a plain call named none.
        attempts: How many runs failed in a row.
        triggers: The triggers of its last run.
        triggers_dropped: How many more triggers there were than are kept.
        parked_for: Seconds since the last run failed.
    """

    item: K
    error: BaseException | None
    attempts: int
    triggers: tuple[object, ...]
    triggers_dropped: int
    parked_for: float


@final
class RateLimitingQueue(DelayingQueue[K]):
    """A work queue for controllers: ``async with work`` retries what failed, and forgets what went well.

    With plain calls the worker does that itself: ``get``, then ``forget`` after a success or ``add_rate_limited`` after
    a failure, then ``done``, in this order.

    What fails for good is parked instead: after a ``TerminalError``, or after ``QueueOptions.max_requeues`` retries. It
    is logged, counted and listed as a dead letter until the item is added again, revived or discarded.
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
        """Make an empty queue.

        Args:
            name: For logs, metrics and ``repr``.
            rate_limiter: Says how long an item waits; it is called under the queue's lock, so it must be quick and
                belong to this queue alone. None for ``default_controller_rate_limiter`` on the queue's own clock.
            metrics: Hooks of this queue; None for none.
            options: Order, bounds and periods; None for the defaults.
            is_echo: Function called with an item that failed and a trigger, under the queue's lock. True if a failed
                run of the item caused the trigger: it then waits for the retry. None means no trigger does.
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
        """Add ``item`` when the rate limiter says so.

        Any thread; returns at once. An item that waits for a run already, or waits for an earlier time, is not added
        twice: the triggers are merged and the limiter gets its token back. After a shutdown the call does nothing.

        A worker that asks for a retry of the item it works on names the error, or no trigger: then the run counts as
        failed, and its triggers are kept for the next one; or the item is parked, if that was its last try.

        Args:
            item: The item to add, usually the key of an object.
            error: Why the last run failed.
            trigger: Why the item is to run, for adds that are no retry.
            priority: As for ``add``; None for that of the run that is retried, otherwise 0.

        Raises:
            ValueError: If the limiter's answer is no finite number; what the limiter raises is raised, too.

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
        if outcome is AddOutcome.PARKED:
            self._log(logging.ERROR, "work failed for good and is parked", {"key": item, "queue": self._name}, error)

    def forget(self, item: K) -> None:
        """Count the failures of ``item`` from zero again.

        It does not replace ``done``. Any thread.
        """
        with self._lock:
            self._limiting.forget(item)

    def num_requeues(self, item: K) -> int:
        """Return how often the rate limiter was asked for ``item`` since it was forgotten.

        Any thread.
        """
        with self._lock:
            return self._limiting.num_requeues(item)

    def dead_letters(self) -> tuple[DeadLetter[K], ...]:
        """Return what failed for good and is parked, the oldest first.

        Any thread.
        """
        with self._lock:
            now = self._now()
            return tuple(_shown(letter, now) for letter in self._limiting.dead_letters())

    def retry_dead_letter(self, item: K, *, trigger: object | None = None) -> bool:
        """Add a parked item again at once, with the triggers that it had and all its retries.

        Any thread.

        Returns:
            Whether it was parked, and the queue takes items.
        """
        with self._lock:
            revived = self._limiting.retry_dead_letter(item, self._now(), trigger=trigger)
        self._changed()
        return revived

    def discard_dead_letter(self, item: K) -> DeadLetter[K] | None:
        """Drop a dead letter; return it, or None if there was none.

        Any thread. An add brings the item again.
        """
        with self._lock:
            letter = self._limiting.discard_dead_letter(item)
            return None if letter is None else _shown(letter, self._now())


def _shown(letter: core.ParkedItem[K], now: float) -> DeadLetter[K]:
    return DeadLetter(
        item=letter.item,
        error=letter.error,
        attempts=letter.attempts,
        triggers=letter.triggers.kept,
        triggers_dropped=letter.triggers.dropped,
        parked_for=max(0.0, now - letter.parked_at),
    )
