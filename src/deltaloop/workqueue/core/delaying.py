"""Delayed additions of items to a queue. The earlier time wins.

A plain add does not cancel a delay, and a delay does not hold back a plain add. When a delay ends, the item is added
with the delay's triggers.

Source: client-go util/workqueue/delaying_queue.go.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import ClassVar, Final, TypeVar

import msgspec

from deltaloop._internal.root_error import InvalidArgumentError
from deltaloop.workqueue.core.delay_heap import DelayHeap, WaitingItem
from deltaloop.workqueue.core.facts import AddOutcome, Again, Ending, Finished, Interrupted, Retried, RunOutcome
from deltaloop.workqueue.core.queue import QueueCore, QueueStatistics, Run
from deltaloop.workqueue.core.queue_order import QueueOrder
from deltaloop.workqueue.core.triggers import DEFAULT_MAX_TRIGGERS, MergeTriggers, TriggerLog

K = TypeVar("K", bound=Hashable)

TIMER_SLACK: Final = 0.001
"""Tolerance in seconds, because event loops can wake up to a millisecond early."""


def check_delay(delay: float) -> float:
    """Return a delay, or raise ValueError if it is NaN or infinite."""
    if not math.isfinite(delay):
        raise InvalidArgumentError(f"must be a finite number of seconds, got {delay!r}.", argument="delay")
    return delay


class DelayingCore(QueueCore[K]):
    can_delay: ClassVar[bool] = True

    def __init__(
        self,
        *,
        max_triggers: int = DEFAULT_MAX_TRIGGERS,
        observed: bool = False,
        order: QueueOrder[K] | None = None,
        merge_triggers: MergeTriggers | None = None,
    ) -> None:
        super().__init__(max_triggers=max_triggers, observed=observed, order=order, merge_triggers=merge_triggers)
        self._delays: DelayHeap[K] = DelayHeap()

    def add_after(
        self, item: K, now: float, delay: float, *, trigger: object | None = None, priority: int = 0
    ) -> AddOutcome:
        """Add an item after ``delay`` seconds, immediately if not positive; raises ValueError if it is not finite."""
        if not -math.inf < delay < math.inf:
            check_delay(delay)
        return self._add_after(item, now, delay, self._log(trigger, priority=priority))

    def _add_after(self, item: K, now: float, delay: float, log: TriggerLog, *, paid: bool = False) -> AddOutcome:
        if self._shutting_down:
            self._ignored += 1
            return "ignored"
        self._retries += 1
        if self._observed:
            self._tell(Retried())
        if delay <= 0:
            return self._arrive(WaitingItem(item, now, log, paid), now)
        due_at = now + delay
        delays = self._delays.waiting
        present = delays[item] if item in delays else None  # noqa: SIM401 - without a call
        if present is None:
            self._delays.put(WaitingItem(item, due_at, log, paid))
            return "delayed"
        present.triggers.extend(log)
        unneeded = paid
        if due_at < present.due_at:
            unneeded = present.paid
            self._delays.put(WaitingItem(item, due_at, present.triggers, paid))
        if unneeded:
            self._refund(item)
        return "merged"

    def promote(self, now: float) -> int:
        """Add all due items, and return their number."""
        due = self._delays.pop_due(now + TIMER_SLACK)
        for delay in due:
            self._arrive(delay, now)
        return len(due)

    def _arrive(self, delay: WaitingItem[K], now: float) -> AddOutcome:
        waiting = self._dirty.get(delay.item)
        if waiting is None:
            return self._join(delay.item, now, delay.triggers)
        self._merge(delay.item, now, waiting, delay.triggers)
        if delay.paid:
            self._refund(delay.item)
        return "merged"

    def _refund(self, item: K) -> None:
        """Handle an unused delay of a rate limiter. Subclasses override this."""

    def next_due_at(self) -> float | None:
        heap = self._delays.heap
        return heap[0][0] if heap else None

    def delayed(self) -> list[WaitingItem[K]]:
        """Return the delayed items in order of their due times."""
        return self._delays.in_order()

    def cancel_delayed(self, item: K) -> WaitingItem[K] | None:
        delay = self._delays.remove(item)
        if delay is not None and delay.paid:
            self._refund(item)
        return delay

    def shut_down(self, *, drain: bool = False) -> None:
        """Ignore adds from now on, and drop delayed items."""
        super().shut_down(drain=drain)
        self._ignored += self._delays.clear()

    def _settle(self, run: Run[K], now: float, ending: Ending) -> Finished:
        if isinstance(ending, Interrupted) and ending.delay > 0 and not run.handed_on:
            run.handed_on = True
            outcome = self._add_after(run.item, now, ending.delay, run.triggers.copy())
            fate: RunOutcome = "given up" if outcome == "ignored" else "put back"
            return Finished(fate=fate, delay=ending.delay)
        if not isinstance(ending, Again):
            return super()._settle(run, now, ending)
        self.forget(run.item)
        log = self._log(priority=run.triggers.priority)
        if ending.keep_triggers and not run.handed_on:
            log.extend(run.triggers)
        log.add(ending.trigger)
        outcome = self._add_after(run.item, now, ending.delay, log)
        fate = "given up" if outcome == "ignored" else "repeated"
        return Finished(fate=fate, delay=max(0.0, ending.delay))

    def statistics(self, now: float) -> QueueStatistics:
        due_at = self.next_due_at()
        return msgspec.structs.replace(
            super().statistics(now),
            delayed=len(self._delays),
            next_due_in=None if due_at is None else max(0.0, due_at - now),
        )
