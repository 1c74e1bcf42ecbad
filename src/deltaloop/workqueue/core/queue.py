"""Who works on what: in order, each item once, never two workers on one item.

Three collections, as upstream:

* ``line``: items that a worker may take, in the order in which they came unless another order is asked for
  (deltaloop.workqueue.core.orders);
* ``dirty``: items that need a run. Each item in line is dirty; a dirty item that is not in line is being processed
  (it is *postponed*: it joins the line when the present run is done);
* ``processing``: items that a worker has.

Invariants: the line holds no item twice; line and processing share no item; line == dirty minus processing.

Triggers travel with the add that brought them. Those that come while an item waits are merged into what the next run
gets; those that come while it is processed belong to the run after. A run that has to be repeated hands its triggers
on, in front of newer ones, and its priority.

Differences from upstream (docs/reference/differences.md): ``ended`` and ``drained`` count postponed items, too;
upstream tells workers to go home while such an item is still to come, and its drain returns while items are in line
(kubernetes pull request 141079). ``done`` for an item that no worker has is an error;
upstream puts the item in line twice then.

Source: client-go util/workqueue/queue.go and metrics.go.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Hashable
from typing import ClassVar, Final, Generic, TypeVar, final

import msgspec

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
    RunOutcome,
    Started,
)
from deltaloop.workqueue.core.orders import FirstInFirstOut, QueueOrder
from deltaloop.workqueue.core.triggers import DEFAULT_MAX_TRIGGERS, MergeTriggers, TriggerLog

K = TypeVar("K", bound=Hashable)


@final
class Run(msgspec.Struct, Generic[K], eq=False, gc=False):
    """One run of one item, from ``get`` to ``done``.

    Attributes:
        item: The item, usually the key of an object.
        triggers: Why it runs; they do not change while the run lasts.
        started_at: When a worker took it.
        failures: Runs of this item that failed since the last success.
        handed_on: Whether its failure was counted and its triggers went to a later run.
        over: Whether the run has ended.
        again: Whether the item went back in line at its end, because it was added meanwhile.
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
    """A queue at one moment.

    Attributes:
        queued: Items that wait for a worker.
        processing: Items that workers are processing.
        postponed: Items that are processed and will be in line again when that is done.
        delayed: Items added with a delay that has not passed.
        failing: Items whose last run failed.
        adds: Adds that gave an item a run it did not have before.
        merged: Adds that changed no more than the triggers of a waiting item.
        ignored: Adds that came after the shutdown, and delayed items that it dropped.
        retries: How many adds asked for a delay (``workqueue_retries_total``).
        taken: How many runs workers have begun.
        done: How many runs have ended, well or not.
        unfinished_work_seconds: How long the present runs have lasted, all together.
        longest_running_seconds: How long the longest of them has lasted.
        next_due_in: Seconds until the next delayed item is due; None if there is none.
        shutting_down: Whether adds are ignored.
        parked: How many dead letters are kept.
        parked_total: How many items were parked so far.
        parked_dropped: Dead letters that were dropped, because there were too many.
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


# Looked up for each operation, where a member of an enum costs as much as a call.
_QUEUED, _MERGED, _POSTPONED = AddOutcome.QUEUED, AddOutcome.MERGED, AddOutcome.POSTPONED


class QueueCore(Generic[K]):
    """The plain queue. Not safe for use from several threads: the driver has the lock.

    The line is a deque, unless another order is configured.

    Attributes:
        dated: Whether the time of an add or of a success matters; otherwise any time may be passed.
        ends_are_told: Whether the end of a run must be reported: to an observer, or after a shutdown.
    """

    can_delay: ClassVar[bool] = False

    def __init__(
        self,
        *,
        max_triggers: int = DEFAULT_MAX_TRIGGERS,
        observed: bool = False,
        order: QueueOrder[K] | None = None,
        merge_triggers: MergeTriggers | None = None,
    ) -> None:
        """Make an empty queue.

        Args:
            max_triggers: Most triggers kept for one run of one item.
            observed: Whether facts are collected for ``take_facts``.
            order: The line, empty; None for first come, first served.
            merge_triggers: Folds a new trigger into those of a waiting item; None appends it. It must not raise.
        """
        self._max_triggers = max_triggers
        self._observed = observed
        self._merge_triggers = merge_triggers
        self._line: Final[deque[K]] = deque()
        self._order: QueueOrder[K] | None = None if isinstance(order, FirstInFirstOut) else order
        self.dated: Final = observed or self._order is not None
        self._dirty: dict[K, TriggerLog] = {}
        self._processing: dict[K, Run[K]] = {}
        self._failures: dict[K, int] = {}
        self._to_forget: set[K] = set()  # items that a success must let the limiter forget
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

    # -- adding

    def add(self, item: K, now: float, *, trigger: object | None = None, priority: int = 0) -> AddOutcome:
        """Mark ``item`` as needing a run."""
        if self._shutting_down:
            self._ignored += 1
            return AddOutcome.IGNORED
        dirty = self._dirty
        if item in dirty:
            dirty[item].add(trigger, priority=priority)
            self._merged_into(item, now, priority=priority)
            return _MERGED
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
        return _QUEUED

    def _log(self, trigger: object | None = None, *, priority: int | None = None) -> TriggerLog:
        log = TriggerLog(self._max_triggers, priority, self._merge_triggers)
        log.add(trigger)
        return log

    def _merge(self, item: K, now: float, waiting: TriggerLog, log: TriggerLog) -> None:
        """Let an item that is dirty already take over what another add brought."""
        waiting.extend(log)
        self._merged_into(item, now, priority=log.priority)

    def _merged_into(self, item: K, now: float, *, priority: int) -> None:
        self._merged += 1
        if self._order is not None and item not in self._processing:
            self._order.touch(item, now, priority=priority)

    def _join(self, item: K, now: float, log: TriggerLog) -> AddOutcome:
        """Let an item that is not dirty become it; ``log`` is its own from now on."""
        log.since = now
        self._dirty[item] = log
        if self._observed:
            self._tell(Added())
        if item in self._processing:
            return _POSTPONED
        self._push(item, now, log)
        return _QUEUED

    def _push(self, item: K, now: float, log: TriggerLog) -> None:
        if self._order is None:
            self._line.append(item)
        else:
            self._order.push(item, now, priority=log.priority)

    # -- working

    def get(self, now: float) -> Run[K] | None:
        """Give the item whose turn it is to a worker; None if there is none."""
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
        """End the run of ``item``; return whether it went back in line, because it was added meanwhile.

        Raises:
            ValueError: If the item is not being processed: ``done`` was called twice, or without ``get``.
        """
        run = self._processing.pop(item, None)
        if run is None:
            raise ValueError(f"done({item!r}): the item is not being processed; call done once for each get")
        run.over = True
        if self._observed:
            self._tell(Done(max(0.0, now - run.started_at)))
        return item in self._dirty and self._push_again(run, now)

    def _push_again(self, run: Run[K], now: float) -> bool:
        waiting = self._dirty[run.item]
        if waiting.bound > self._max_triggers:
            waiting = self._dirty[run.item] = waiting.shorten(self._max_triggers)
        self._push(run.item, now, waiting)
        run.again = True
        return True

    def done_at_once(self, item: K) -> bool:
        """End the run of ``item`` if nothing follows from that, the usual case; return whether that was so.

        Nothing has changed if not, and ``done`` is to be called: the item runs again, facts are collected, the queue
        is shut down (others may wait for the end), or no worker has the item.
        """
        if self.ends_are_told or item in self._dirty:
            return False
        run = self._processing.pop(item, None)
        if run is None:
            return False
        run.over = True
        return True

    def finish(self, run: Run[K], now: float, ending: Ending) -> Finished:
        """End a run, and see to it that the item runs again if it has to. ``done`` happens in every case."""
        item, processing = run.item, self._processing
        if item not in processing or processing[item] is not run:
            return Finished(fate=RunOutcome.OVER, error=ending.error if isinstance(ending, Failed) else None)
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
            return Finished(fate=RunOutcome.UNHANDLED, error=ending.error)
        self.forget(run.item)
        return FINISHED

    def _put_back(self, run: Run[K], now: float) -> Finished:
        if run.handed_on:  # its worker asked for another run before it was interrupted; the triggers went with that
            return Finished(fate=RunOutcome.PUT_BACK)
        outcome = self._hand_on(run, now)
        return Finished(fate=RunOutcome.GIVEN_UP if outcome is AddOutcome.IGNORED else RunOutcome.PUT_BACK)

    def _hand_on(self, run: Run[K], now: float) -> AddOutcome:
        """Make the item of a run dirty, with the run's triggers in front of newer ones."""
        run.handed_on = True
        waiting = self._dirty.get(run.item)
        log = run.triggers.copy()
        if waiting is not None:
            self._put_in_front(run.item, log, waiting)
            return AddOutcome.MERGED
        if self._shutting_down:
            self._ignored += 1
            return AddOutcome.IGNORED
        return self._join(run.item, now, log)

    def _put_in_front(self, item: K, log: TriggerLog, waiting: TriggerLog) -> None:
        """Let a dirty item have the triggers of ``log`` before those that it has; since when it needs a run stays."""
        log.extend(waiting)
        log.since = waiting.since
        self._dirty[item] = log

    def forget(self, item: K) -> None:
        """Begin the count of failed runs of ``item`` again at zero."""
        self._failures.pop(item, None)

    # -- ending

    def shut_down(self, *, drain: bool = False) -> None:
        """Ignore adds from now on. ``drain`` says whether somebody waits for the work to end; the last call counts."""
        self.ends_are_told = True
        self._shutting_down = True
        self._draining = drain

    @property
    def shutting_down(self) -> bool:
        """Whether adds are ignored."""
        return self._shutting_down

    @property
    def ended(self) -> bool:
        """Whether the queue is shut down and no item will ever be in line again."""
        return self._shutting_down and not self._dirty

    @property
    def drain_over(self) -> bool:
        """Whether a drain need not be waited for: all work is done, or a plain shutdown put an end to it."""
        return not self._draining or not (self._dirty or self._processing)

    # -- looking

    def __len__(self) -> int:
        return len(self._line) if self._order is None else len(self._order)

    @property
    def processing(self) -> int:
        """Items that workers have."""
        return len(self._processing)

    def runs(self) -> list[Run[K]]:
        """Return the present runs, the oldest first."""
        return list(self._processing.values())

    def unfinished(self, now: float) -> tuple[float, float]:
        """Return how long the present runs have lasted: all together, and the longest."""
        ages = [max(0.0, now - run.started_at) for run in self._processing.values()]
        return sum(ages, 0.0), max(ages, default=0.0)

    def statistics(self, now: float) -> QueueStatistics:
        """Return the state as numbers."""
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
        """Return what happened since the last call."""
        facts, self._facts = self._facts, []
        return facts

    def _tell(self, fact: Fact) -> None:
        self._facts.append(fact)
