"""A work queue whose items may be added later, on one timer.

However many items wait, the event loop has at most one timer of this queue: for the first that is due.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Hashable
from typing import Any, Generic, TypeVar, final

import msgspec

from deltaloop.workqueue.core.delay_heap import WaitingItem
from deltaloop.workqueue.core.delaying import DelayingCore
from deltaloop.workqueue.core.facts import AddOutcome
from deltaloop.workqueue.core.queue import QueueCore
from deltaloop.workqueue.metrics import QueueMetrics
from deltaloop.workqueue.options import QueueOptions, guarded_merge, new_order
from deltaloop.workqueue.queue import WorkQueue

K = TypeVar("K", bound=Hashable)


@final
class DelayedItem(msgspec.Struct, Generic[K], frozen=True, kw_only=True):
    """An item that waits for its time.

    Attributes:
        item: The item that will be added.
        delay: Seconds until it is added; zero if it is due.
        triggers: The triggers of the run to come.
        rate_limited: Whether a limiter gave the time, as it does for each retry after a failure.
    """

    item: K
    delay: float
    triggers: tuple[object, ...]
    rate_limited: bool = False


class DelayingQueue(WorkQueue[K]):
    """A work queue with ``add_after``."""

    _delaying: DelayingCore[K]

    def __init__(
        self, *, name: str = "", metrics: QueueMetrics | None = None, options: QueueOptions | None = None
    ) -> None:
        """Make an empty queue; the arguments are those of ``WorkQueue``."""
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = math.inf  # when it goes off, on the queue's clock
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
        """Add ``item`` when ``delay`` has passed.

        Any thread; returns at once. If the item waits for its time already, the earlier time wins and the triggers are
        merged. A plain ``add`` meanwhile does not cancel the delay: the item comes again when it ends, unless it is
        still in line then. A shutdown drops what waits for its time, and makes the call do nothing.

        Args:
            item: What to work on; equal items are one.
            delay: Seconds on the event loop's clock. Zero or less means now.
            trigger: Why the item is to run; handed to the worker as ``work.triggers``.
            priority: For queues with priorities; higher is more urgent, as in ``add``.

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
        """Whether the timer is set early enough after an add with a delay; under the lock that the add had."""
        due_at = self._delaying.next_due_at()
        return (
            self._metrics is None
            and due_at is not None
            and due_at >= self._timer_at
            and (outcome is AddOutcome.DELAYED or outcome is AddOutcome.MERGED)
        )

    def delayed(self) -> tuple[DelayedItem[K], ...]:
        """Return what waits for its time, the first due first.

        Any thread.
        """
        with self._lock:
            now = self._now()
            return tuple(_shown(delay, now) for delay in self._delaying.delayed())

    def cancel_delayed(self, item: K) -> DelayedItem[K] | None:
        """Let ``item`` not be added when its time comes; an item that is in line or processed stays there.

        Any thread.

        Returns:
            What it waited for, or None if it did not wait for its time.
        """
        with self._lock:
            delay = self._delaying.cancel_delayed(item)
            shown = None if delay is None else _shown(delay, self._now())
        self._changed()
        return shown

    def _bound(self) -> None:
        self._timer, self._timer_at = None, math.inf
        self._serve()

    def _serve(self) -> None:
        super()._serve()
        self._arm()

    def _arm(self) -> None:
        """Have the one timer go off no later than the first item is due. On the loop."""
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
                return  # it may go off too early when an item was cancelled, finds nothing due and is set again
            self._timer.cancel()
        self._timer_at = due_at
        self._timer = self._loop.call_at(due_at - self._clock_ahead, self._on_timer)

    def _on_timer(self) -> None:
        self._timer, self._timer_at = None, math.inf
        try:
            with self._lock:
                self._delaying.promote(self._now())
        finally:  # also when a limiter's `refund` fails: what waits counts on this timer
            self._changed()


def _shown(delay: WaitingItem[K], now: float) -> DelayedItem[K]:
    left = max(0.0, delay.due_at - now)
    return DelayedItem(item=delay.item, delay=left, triggers=delay.triggers.kept, rate_limited=delay.paid)
