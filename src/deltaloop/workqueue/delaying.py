"""Work queue with delays, driven by one timer for the first due item."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any, TypeVar

from deltaloop.workqueue.core.delaying import DelayingCore
from deltaloop.workqueue.core.facts import AddOutcome
from deltaloop.workqueue.core.queue import QueueCore
from deltaloop.workqueue.options import QueueOptions, guarded_merge, new_order
from deltaloop.workqueue.queue import WorkQueue

if TYPE_CHECKING:
    from deltaloop.workqueue.metrics import QueueMetrics
    from deltaloop.workqueue.shown_items import DelayedItem

K = TypeVar("K", bound=Hashable)


class DelayingQueue(WorkQueue[K]):
    """Work queue with ``add_after``."""

    _delaying: DelayingCore[K]

    def __init__(
        self, *, name: str = "", metrics: QueueMetrics | None = None, options: QueueOptions | None = None
    ) -> None:
        """Create an empty queue with the arguments of ``WorkQueue``."""
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = math.inf  # due time on the queue's clock
        super().__init__(name=name, metrics=metrics, options=options)

    def _new_core(self) -> QueueCore[K]:
        self._delaying = DelayingCore(
            max_triggers=self._options.max_triggers,
            observed=self._metrics is not None,
            order=new_order(self._options, queue=self._name),
            merge_triggers=guarded_merge(self._options, queue=self._name),
        )
        return self._delaying

    def _tear(self, torn: Any) -> None:
        super()._tear(torn)
        self._delaying = torn

    def add_after(self, item: K, delay: float, *, trigger: object | None = None, priority: int = 0) -> None:
        """Add an item after a delay.

        Thread-safe; returns immediately. If the item is already delayed, the earlier time wins and the triggers are
        merged. A plain ``add`` does not cancel the delay: the item runs again when the delay ends, unless it is still
        queued then. A shutdown drops delayed items, and later calls have no effect.

        Args:
            item: Item to process. Equal items are the same.
            delay: Seconds on the event loop's clock. Zero or less means immediately.
            trigger: Cause of the run, available to the worker in ``work.triggers``.
            priority: Priority as in ``add``; higher is more urgent.

        Raises:
            ValueError: If the delay is NaN or infinite.

        Source: client-go util/workqueue/delaying_queue.go ``AddAfter``.
        """
        covered = False
        try:
            with self._lock:
                now = self._clock() + self._clock_ahead
                outcome = self._delaying.add_after(item, now, delay, trigger=trigger, priority=priority)
                covered = self._covers(outcome)
        finally:
            if not covered:
                self._changed()

    def _covers(self, outcome: AddOutcome) -> bool:
        """Return whether the timer is early enough after a delayed add. Call it under the same lock as the add."""
        due_at = self._delaying.next_due_at()
        return (
            self._metrics is None
            and due_at is not None
            and due_at >= self._timer_at
            and outcome in {"delayed", "merged"}
        )

    def delayed(self) -> tuple[DelayedItem[K], ...]:
        """Return the delayed items in order of their due times.

        Thread-safe.
        """
        from deltaloop.workqueue.shown_items import show_delay  # for snapshots

        with self._lock:
            now = self._now()
            return tuple(show_delay(delay, now) for delay in self._delaying.delayed())

    def cancel_delayed(self, item: K) -> DelayedItem[K] | None:
        """Cancel the delay of an item.

        A queued or running item is not affected.

        Thread-safe.

        Returns:
            Canceled delay, or None if the item was not delayed.
        """
        from deltaloop.workqueue.shown_items import show_delay

        with self._lock:
            delay = self._delaying.cancel_delayed(item)
            shown = None if delay is None else show_delay(delay, self._now())
        self._changed()
        return shown

    def _bound(self) -> None:
        self._timer, self._timer_at = None, math.inf
        self._serve()

    def _serve(self) -> None:
        super()._serve()
        self._arm()

    def _arm(self) -> None:
        """Set the timer no later than the first due item, on the event loop."""
        if self._loop is None:
            return
        with self._lock:
            due_at = self._delaying.next_due_at()
        if due_at is None:
            if self._timer is not None:
                self._timer.cancel()
                self._timer, self._timer_at = None, math.inf
            return
        if self._timer is not None:
            if self._timer_at <= due_at:
                return  # after a cancel the timer may fire too early; it is then set again
            self._timer.cancel()
        self._timer_at = due_at
        self._timer = self._loop.call_at(due_at - self._clock_ahead, self._on_timer)

    def _on_timer(self) -> None:
        self._timer, self._timer_at = None, math.inf
        try:
            with self._lock:
                self._delaying.promote(self._now())
        finally:  # also if a limiter's `refund` raises, because delayed items depend on this timer
            self._changed()
