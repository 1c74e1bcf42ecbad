"""State machine of the work queue: each item is queued once, and never processed by two workers at once.

* ``line``: items that a worker can take, first in first out or in another order (deltaloop.workqueue.core.orders).
* ``dirty``: items that need a run. A dirty item that is not in the line is being processed. It is *postponed*: it joins
  the line after the current run.
* ``processing``: items that workers have.

Invariants: the line has no duplicates; line and processing are disjoint; line == dirty minus processing.

Triggers for a queued item are merged for its next run, and triggers during a run belong to the run after it. A run that
must be repeated passes its triggers, in front of newer triggers, and its priority to the next run.

Differences from client-go (docs/reference/differences.md): ``ended`` and ``drained`` include postponed items
(kubernetes pull request 141079).

Source: client-go util/workqueue/queue.go and metrics.go.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Hashable, Sized
from typing import ClassVar, Final, Generic, TypeVar, final

import msgspec

from deltaloop._internal.root_error import InvalidArgumentError
from deltaloop.workqueue.core.facts import (
    FINISHED,
    SUCCEEDED,
    Added,
    AddOutcome,
    Done,
    Ending,
    Fact,
    Failed,
    Finished,
    Interrupted,
    Started,
)
from deltaloop.workqueue.core.queue_order import FirstInFirstOut, QueueOrder
from deltaloop.workqueue.core.triggers import DEFAULT_MAX_TRIGGERS, MergeTriggers, TriggerLog

K = TypeVar("K", bound=Hashable)


@final
class Run(msgspec.Struct, Generic[K], eq=False, gc=False):
    """One run of an item, from ``get`` to ``done``.

    Attributes:
        handed_on: Whether the failure was counted and the triggers were passed to a later run.
        again: Whether the item was queued again at the end of the run, because it was added meanwhile.
    """

    item: K
    triggers: TriggerLog
    started_at: float
    failures: int
    handed_on: bool = False
    over: bool = False
    again: bool = False


@final
class QueueStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """Statistics of a queue.

    Attributes:
        queued: Number of items that wait for a worker.
        processing: Number of items that workers are processing.
        postponed: Number of processed items that will be queued again afterwards.
        delayed: Number of delayed items.
        failing: Number of items whose last run failed.
        adds: Number of adds that caused an additional run.
        merged: Number of adds that only changed the triggers of a queued item.
        ignored: Number of adds after the shutdown, including delayed items that it dropped.
        retries: Number of adds with a delay (``workqueue_retries_total``).
        taken: Number of started runs.
        done: Number of ended runs, successful or not.
        unfinished_work_seconds: Total duration of the current runs.
        longest_running_seconds: Duration of the longest current run.
        next_due_in: Seconds until the next delayed item is due, or None.
        shutting_down: Whether adds are ignored.
        parked: Number of dead letters.
        parked_total: Number of items parked so far.
        parked_dropped: Number of dead letters dropped because of the limit.
    """

    queued: int
    processing: int
    postponed: int
    delayed: int
    failing: int
    adds: int
    merged: int
    ignored: int
    retries: int
    taken: int
    done: int
    unfinished_work_seconds: float
    longest_running_seconds: float
    next_due_in: float | None
    shutting_down: bool
    parked: int = 0
    parked_total: int = 0
    parked_dropped: int = 0


class QueueCore(Generic[K]):
    can_delay: ClassVar[bool] = False

    def __init__(
        self,
        *,
        max_triggers: int = DEFAULT_MAX_TRIGGERS,
        observed: bool = False,
        order: QueueOrder[K] | None = None,
        merge_triggers: MergeTriggers | None = None,
    ) -> None:
        self._max_triggers = max_triggers
        self._observed = observed
        self._merge_triggers = merge_triggers
        self._line: Final[deque[K]] = deque()
        self._order: QueueOrder[K] | None = None if isinstance(order, FirstInFirstOut) else order
        self.line: Final[Sized] = self._line if self._order is None else self._order
        self.dated: Final = observed or self._order is not None
        self._dirty: dict[K, TriggerLog] = {}
        self._processing: dict[K, Run[K]] = {}
        self._failures: dict[K, int] = {}
        self._to_forget: set[K] = set()  # items to forget in the limiter after a success
        self._parked: Container[K] = ()
        self._facts: list[Fact] = []
        self._shutting_down = False
        self._draining = False
        self.ends_are_told: bool = observed
        self._merged: int = 0
        self._ignored: int = 0
        self._retries: int = 0
        self._taken = 0
        self._withdrawn = 0

    # Add items

    def add(self, item: K, now: float, trigger: object | None = None, priority: int = 0) -> AddOutcome:
        if self._shutting_down:
            self._ignored += 1
            return "ignored"
        dirty = self._dirty
        if item in dirty:
            dirty[item].add(trigger, priority)
            self._merged += 1
            if self._order is not None:
                self._touch(item, now, priority)
            return "merged"
        if trigger is None:
            log = TriggerLog(self._max_triggers, priority, self._merge_triggers, now)
        elif self._max_triggers:
            log = TriggerLog(self._max_triggers, priority, self._merge_triggers, now, 0, (trigger,))
        else:
            log = TriggerLog(0, priority, self._merge_triggers, now, 1)
        if self.dated or item in self._processing or item in self._failures or item in self._parked:
            return self._join(item, now, log)
        dirty[item] = log
        self._line.append(item)
        return "queued"

    def _log(self, trigger: object | None = None, *, priority: int | None = None) -> TriggerLog:
        if trigger is None:
            return TriggerLog(self._max_triggers, priority, self._merge_triggers)
        kept, dropped = ((trigger,), 0) if self._max_triggers else ((), 1)
        return TriggerLog(self._max_triggers, priority, self._merge_triggers, 0.0, dropped, kept)

    def _merge(self, item: K, now: float, waiting: TriggerLog, log: TriggerLog) -> None:
        """Merge the triggers of an add into those of a dirty item."""
        waiting.extend(log)
        self._merged += 1
        self._touch(item, now, log.priority)

    def _touch(self, item: K, now: float, priority: int) -> None:
        if self._order is not None and item not in self._processing:
            self._order.touch(item, now, priority=priority)

    def _join(self, item: K, now: float, log: TriggerLog) -> AddOutcome:
        """Make an item dirty. ``log`` belongs to the item from now on."""
        log.since = now
        self._dirty[item] = log
        if self._observed:
            self._tell(Added())
        if item in self._processing:
            return "postponed"
        self._push(item, now, log)
        return "queued"

    def _push(self, item: K, now: float, log: TriggerLog) -> None:
        if self._order is None:
            self._line.append(item)
        else:
            self._order.push(item, now, priority=log.priority)

    # Process items

    def get(self, now: float) -> Run[K] | None:
        if self._order is None:
            if not self._line:
                return None
            item = self._line.popleft()
        elif len(self._order):
            item = self._order.pop()
        else:
            return None
        log, failures = self._dirty.pop(item), self._failures
        run = self._processing[item] = Run(item, log, now, failures[item] if item in failures else 0)  # noqa: SIM401 - without a call
        self._taken += 1
        if self._observed:
            self._tell(Started(max(0.0, now - log.since)))
        return run

    def done(self, item: K, now: float) -> bool:
        """End the run of an item, and return whether it was queued again, or raise ValueError without a run."""
        run = self._processing.pop(item, None)
        if run is None:
            raise InvalidArgumentError(
                f"must be in process, got {item!r}. Call done once for each get.", argument="item of done()"
            )
        run.over = True
        if self._observed:
            self._tell(Done(max(0.0, now - run.started_at)))
        return item in self._dirty and self._push_again(run, now)

    def _push_again(self, run: Run[K], now: float) -> bool:
        waiting = self._dirty[run.item]
        if len(waiting.kept) > self._max_triggers:
            waiting = self._dirty[run.item] = waiting.shorten(self._max_triggers)
        waiting.bound = self._max_triggers
        self._push(run.item, now, waiting)
        run.again = True
        return True

    def done_at_once(self, item: K) -> bool:
        """End the run of an item if that has no further effect, which is usual.

        Otherwise return False and change nothing.
        """
        if self.ends_are_told or (self._dirty and item in self._dirty):
            return False
        try:
            run = self._processing.pop(item)
        except KeyError:
            return False
        run.over = True
        return True

    def finish(self, run: Run[K], now: float, ending: Ending) -> Finished:
        """End a run in any case, and schedule another run if necessary."""
        item, processing = run.item, self._processing
        if item not in processing or processing[item] is not run:
            return Finished(fate="over", error=ending.error if isinstance(ending, Failed) else None)
        if ending is SUCCEEDED and item not in self._to_forget and not self._observed:
            del processing[item]
            run.over = True
            if item in self._dirty:
                self._push_again(run, now)
            return FINISHED
        try:
            return self._settle(run, now, ending)
        finally:
            self.done(item, now)

    def _settle(self, run: Run[K], now: float, ending: Ending) -> Finished:
        if isinstance(ending, Interrupted):
            return self._put_back(run, now)
        if isinstance(ending, Failed):
            return Finished(fate="unhandled", error=ending.error)
        self.forget(run.item)
        return FINISHED

    def _put_back(self, run: Run[K], now: float) -> Finished:
        if run.handed_on:  # the worker requested another run before the interruption, and it has the triggers
            return Finished(fate="put back")
        outcome = self._hand_on(run, now)
        return Finished(fate="given up" if outcome == "ignored" else "put back")

    def _hand_on(self, run: Run[K], now: float) -> AddOutcome:
        """Make the item of a run dirty, with the run's triggers in front of newer triggers."""
        run.handed_on = True
        waiting = self._dirty.get(run.item)
        log = run.triggers.copy()
        if waiting is not None:
            self._put_in_front(run.item, log, waiting)
            return "merged"
        if self._shutting_down:
            self._ignored += 1
            return "ignored"
        return self._join(run.item, now, log)

    def _put_in_front(self, item: K, log: TriggerLog, waiting: TriggerLog) -> None:
        """Insert the triggers of ``log`` in front of those of a dirty item. ``since`` does not change."""
        log.extend(waiting)
        log.since = waiting.since
        self._dirty[item] = log

    def forget(self, item: K) -> None:
        self._failures.pop(item, None)

    # Shut down

    def shut_down(self, *, drain: bool = False) -> None:
        """Ignore adds from now on. ``drain`` is whether a caller waits for all work to end. The last call counts."""
        self.ends_are_told = True
        self._shutting_down = True
        self._draining = drain

    @property
    def shutting_down(self) -> bool:
        return self._shutting_down

    @property
    def ended(self) -> bool:
        """Whether the queue is shut down and the line will stay empty."""
        return self._shutting_down and not self._dirty

    @property
    def drain_over(self) -> bool:
        """Whether a drain is over, because all work is done or because of a plain shutdown."""
        return not self._draining or not (self._dirty or self._processing)

    # Inspect

    def __len__(self) -> int:
        return len(self.line)

    @property
    def processing(self) -> int:
        return len(self._processing)

    def runs(self) -> list[Run[K]]:
        return list(self._processing.values())

    def unfinished(self, now: float) -> tuple[float, float]:
        """Return the total and the longest duration of the current runs in seconds."""
        ages = [max(0.0, now - run.started_at) for run in self._processing.values()]
        return sum(ages, 0.0), max(ages, default=0.0)

    def oldest_age(self, now: float) -> float:
        """Return how long the first item of an observed queue has waited for a worker, in seconds."""
        # Items become dirty in the order of their times. A postponed item waits for its own run.
        waiting = (log for item, log in self._dirty.items() if item not in self._processing)
        log = next(waiting, None)
        return 0.0 if log is None else max(0.0, now - log.since)

    def is_idle(self) -> bool:
        return not self._dirty and not self._processing

    def statistics(self, now: float) -> QueueStatistics:
        unfinished, longest = self.unfinished(now)
        return QueueStatistics(
            queued=len(self),
            processing=len(self._processing),
            postponed=len(self._dirty) - len(self),
            delayed=0,
            failing=len(self._failures),
            adds=self._taken + len(self._dirty) + self._withdrawn,
            merged=self._merged,
            ignored=self._ignored,
            retries=self._retries,
            taken=self._taken,
            done=self._taken - len(self._processing),
            unfinished_work_seconds=unfinished,
            longest_running_seconds=longest,
            next_due_in=None,
            shutting_down=self._shutting_down,
        )

    def take_facts(self) -> list[Fact]:
        facts, self._facts = self._facts, []
        return facts

    def _tell(self, fact: Fact) -> None:
        self._facts.append(fact)
