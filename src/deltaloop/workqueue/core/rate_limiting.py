"""Adds that a rate limiter spaces out, and what happens to an item whose run failed.

``add_rate_limited`` asks the limiter and then adds after that delay, with one difference to ``add_after``: the delay is
a price, not a wish. So an item that waits for a run anyway (it is in line, or it is postponed) needs no second run
later; the triggers are merged, and the token goes back (``RefundableRateLimiter``). A delay by ``add_after`` is a wish
and is kept, as upstream.

Whose call is it? Workers ask for a retry of the run at hand; handlers ask for a new run. A call while the item is
processed is the worker's if it names an error or no trigger: then the run counts as failed (once), and its triggers go
on to the next run. ``forget`` begins the counts again.

Dead letters. A run that failed for good is not retried; its item is parked with the error (dead_letters.py). That is so
for a ``TerminalError``, and for any error after ``max_requeues`` retries in a row. Parking forgets the item's failures.
An item that is parked and then added is a dead letter no more: something has changed, so it gets a run,
which gets the old triggers in front of the new ones, and all its retries. If it was added while the run still lasted,
it is not parked at all, for the same reason. A worker that asked for a retry itself, by a plain call, and then fails
has its retry.

Echoes. A failed run may have written to objects whose changes add its item again. Such a trigger is an *echo*: it
waits for the retry, or stays with the dead letter, because nothing has changed but by the failed run. The queue asks
``is_echo`` when the run ends, since an event may be faster than the response to its write, and later for each add.

Source: client-go util/workqueue/rate_limiting_queue.go.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final, TypeVar, final

import msgspec

from deltaloop.workqueue.core.dead_letters import DEFAULT_MAX_DEAD_LETTERS, DeadLetters, ParkedItem
from deltaloop.workqueue.core.delaying import DelayingCore, check_delay
from deltaloop.workqueue.core.facts import AddOutcome, Ending, Failed, Finished, Retried, RunOutcome
from deltaloop.workqueue.core.limiters import RateLimiter, taker_back
from deltaloop.workqueue.core.orders import QueueOrder
from deltaloop.workqueue.core.queue import QueueStatistics, Run
from deltaloop.workqueue.core.triggers import DEFAULT_MAX_TRIGGERS, IsEcho, MergeTriggers, TriggerLog
from deltaloop.workqueue.errors import is_terminal

K = TypeVar("K", bound=Hashable)

MOST_JUDGED: Final = 4096
"""Most triggers kept of an item that is processed, until it is decided whether they are echoes."""

BROKEN_LIMITER_DELAY: Final = 5.0
"""Seconds until the retry of an item whose rate limiter raised an exception."""


@final
class RateLimitingCore(DelayingCore[K]):
    """A queue whose items may be added when a rate limiter says so."""

    def __init__(
        self,
        *,
        limiter: RateLimiter[K],
        max_triggers: int = DEFAULT_MAX_TRIGGERS,
        observed: bool = False,
        order: QueueOrder[K] | None = None,
        merge_triggers: MergeTriggers | None = None,
        max_requeues: int | None = None,
        max_dead_letters: int = DEFAULT_MAX_DEAD_LETTERS,
        is_echo: IsEcho | None = None,
    ) -> None:
        """Make an empty queue.

        Args:
            limiter: Asked for each rate limited add; its owner is this queue.
            max_triggers: Most triggers kept for one run of one item.
            observed: Whether facts are collected for ``take_facts``.
            order: The line, empty; None for first come, first served.
            merge_triggers: Folds a new trigger into those of a waiting item; None appends it. It must not raise.
            max_requeues: How often in a row a failed run is retried before its item is parked; None for always.
            max_dead_letters: Most dead letters kept; the oldest goes then.
            is_echo: Decides which triggers wait for the retry of an item that failed; None for none.
        """
        super().__init__(max_triggers=max_triggers, observed=observed, order=order, merge_triggers=merge_triggers)
        self._max_requeues = max_requeues
        self._dead: DeadLetters[K] = DeadLetters(max_dead_letters)
        self._parked = self._dead.letters
        self._limiter = limiter
        self._takes_back = taker_back(limiter)
        self._is_echo = is_echo

    def add_rate_limited(
        self,
        item: K,
        now: float,
        *,
        error: BaseException | None = None,
        trigger: object | None = None,
        priority: int | None = None,
    ) -> AddOutcome:
        """Add ``item`` when the limiter says so, or park it, if it failed for good.

        Args:
            item: The item to add, usually the key of an object.
            now: Seconds on the queue's clock.
            error: Why the last run failed.
            trigger: Why the item is to run, for adds that are no retry.
            priority: For queues with priorities; None for the one of the run that is retried, otherwise 0.

        Raises:
            ValueError: If the limiter's answer is no finite number. What the limiter raises is raised, too. The queue
                has not changed then.
        """
        run = self._processing.get(item)
        retried = run if error is not None or trigger is None else None
        if retried is None and priority is None:
            priority = 0
        if self._is_for_good(item, retried, error):
            log = self._log(priority=priority) if retried is None else retried.triggers.copy()
            log.add(trigger)
            outcome = self._park(item, now, log, error=error, attempts=self._failures.get(item, 0) + 1)
            if retried is not None:
                retried.handed_on = True
            return outcome
        if self._shutting_down and (retried is None or item not in self._dirty):
            self._ignored += 1
            return AddOutcome.IGNORED
        log = self._log(priority=priority)
        return self._pay_and_add(item, now, self._ask(item, error), retried=retried, log=log, trigger=trigger)[0]

    def _ask(self, item: K, error: BaseException | None) -> float:
        self._to_forget.add(item)
        return max(0.0, check_delay(self._limiter.when(item, error=error)))

    def _pay_and_add(
        self,
        item: K,
        now: float,
        delay: float,
        *,
        retried: Run[K] | None,
        log: TriggerLog,
        trigger: object | None = None,
        paid: bool = True,
    ) -> tuple[AddOutcome, float]:
        """Add an item whose delay is known; return what that did, and in how many seconds the item runs."""
        if retried is not None and not retried.handed_on:
            retried.handed_on = True
            self._failures[item] = retried.failures + 1
            log.extend(retried.triggers)
        waiting = self._dirty.get(item)
        if waiting is not None and retried is not None and self._are_echoes(item, waiting):
            log.extend(self._withdraw(item))
            waiting = None
        if waiting is None:
            log.add(trigger)
            outcome = self._add_after(item, now, delay, log, paid=paid)
            present = self._delays.get(item)
            return outcome, 0.0 if present is None else max(0.0, present.due_at - now)
        self._merged += 1
        self._retries += 1
        if self._observed:
            self._tell(Retried())
        priority = log.priority
        self._put_in_front(item, log, waiting)
        log.add(trigger)
        if self._order is not None and item not in self._processing:
            self._order.touch(item, now, priority=priority)
        if paid:
            self._refund(item)
        return AddOutcome.MERGED, 0.0

    def _settle(self, run: Run[K], now: float, ending: Ending) -> Finished:
        if not isinstance(ending, Failed):
            return super()._settle(run, now, ending)
        error, item = ending.error, run.item
        if run.handed_on and item in self._dead:
            return Finished(fate=RunOutcome.PARKED, error=error)
        if not run.handed_on and self._is_for_good(item, run, error):
            run.handed_on = True
            outcome = self._park(item, now, run.triggers.copy(), error=error, attempts=run.failures + 1)
            return Finished(fate=RunOutcome.PARKED if outcome is AddOutcome.PARKED else RunOutcome.RETRIED, error=error)
        if self._shutting_down and item not in self._dirty:
            self._ignored += 1
            return Finished(fate=RunOutcome.GIVEN_UP, error=error)
        if run.handed_on:  # its worker asked for the retry itself
            return Finished(fate=RunOutcome.RETRIED, error=error)
        limiter_error: Exception | None = None
        try:
            delay = self._ask(item, error)
        except Exception as broken:  # noqa: BLE001  # a broken limiter must not cost the item; the driver logs it
            delay, limiter_error = BROKEN_LIMITER_DELAY, broken
        _, delay = self._pay_and_add(item, now, delay, retried=run, log=self._log(), paid=limiter_error is None)
        return Finished(fate=RunOutcome.RETRIED, delay=delay, error=error, limiter_error=limiter_error)

    # -- dead letters

    def _is_for_good(self, item: K, run: Run[K] | None, error: BaseException | None) -> bool:
        """Whether a failure is not to be retried; ``run`` is what failed, if it still lasts."""
        if run is None:
            return is_terminal(error) and item not in self._dirty
        if run.handed_on:
            return False
        return is_terminal(error) or (self._max_requeues is not None and run.failures >= self._max_requeues)

    def _park(self, item: K, now: float, log: TriggerLog, *, error: BaseException | None, attempts: int) -> AddOutcome:
        waiting = self._dirty.get(item)
        if waiting is not None and item in self._processing and self._are_echoes(item, waiting):
            log.extend(self._withdraw(item))
            waiting = None
        if waiting is not None:
            self._put_in_front(item, log, waiting)
            outcome = AddOutcome.MERGED
        else:
            self._dead.put(ParkedItem(item, error, attempts, log, now))
            outcome = AddOutcome.PARKED
        self.forget(item)
        return outcome

    def _join(self, item: K, now: float, log: TriggerLog) -> AddOutcome:
        letters = self._dead.letters
        letter = letters[item] if item in letters else None  # noqa: SIM401 - without a call
        if self._is_echo is not None:
            if item in self._processing:
                log.bound = max(log.bound, MOST_JUDGED)  # the end of the run decides about these triggers
            elif (letter is not None or item in self._failures) and self._are_echoes(item, log):
                delay = self._delays.get(item)
                held = letter if letter is not None else delay
                if held is not None:
                    held.triggers.extend(log)
                    self._merged += 1
                    return AddOutcome.MERGED
        if letter is not None:
            self._dead.remove(item)
            older = letter.triggers.copy()
            older.extend(log)
            log = older
        return super()._join(item, now, log)

    # -- echoes

    def _are_echoes(self, item: K, log: TriggerLog) -> bool:
        """Return whether failed runs of an item caused all triggers of a log."""
        is_echo, triggers = self._is_echo, log.kept
        if is_echo is None or log.dropped or not triggers:
            return False
        return all(is_echo(item, trigger) for trigger in triggers)

    def _withdraw(self, item: K) -> TriggerLog:
        """Let an item that is processed not need another run; return the triggers of that run."""
        self._withdrawn += 1
        return self._dirty.pop(item)

    def dead_letters(self) -> list[ParkedItem[K]]:
        """Return what was parked, the oldest first."""
        return self._dead.in_order()

    def retry_dead_letter(self, item: K, now: float, *, trigger: object | None = None) -> bool:
        """Add a dead letter's item at once; return whether it was one. After a shutdown nothing changes."""
        letter = self._dead.get(item)
        if letter is None or self._shutting_down:
            return False
        self.add(item, now, trigger=trigger, priority=letter.triggers.priority)
        return True

    def discard_dead_letter(self, item: K) -> ParkedItem[K] | None:
        """Drop a dead letter, and with it the triggers of its last run."""
        return self._dead.remove(item)

    def statistics(self, now: float) -> QueueStatistics:
        """Return the state as numbers."""
        dead = self._dead
        return msgspec.structs.replace(
            super().statistics(now), parked=len(dead), parked_total=dead.total, parked_dropped=dead.dropped
        )

    # -- counts

    def forget(self, item: K) -> None:
        """Begin the limiter's and the queue's count of failures of ``item`` again at zero."""
        super().forget(item)
        self._to_forget.discard(item)
        self._limiter.forget(item)

    def num_requeues(self, item: K) -> int:
        """Return how often the limiter was asked for ``item`` since it was forgotten."""
        return self._limiter.num_requeues(item)

    def _refund(self, item: K) -> None:
        if self._takes_back is not None:
            self._takes_back.refund(item)
