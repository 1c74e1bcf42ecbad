"""State machine of rate-limited adds and retries.

**Rate-limited adds.** If an item is queued or postponed anyway, ``add_rate_limited`` only merges the triggers and
refunds the token, because its delay is a cost.

**Callers.** Workers request a retry of the current run, and handlers a new run. During a run, a call with an error or
without a trigger comes from the worker: the run counts as failed (once), and its triggers pass to the next run.

**Dead letters.** After a ``TerminalError``, or after ``max_requeues`` consecutive retries, the item is parked with its
error. An item that is added again, or was added during its run, gets a run with the old triggers first and all its
retries.

**Echoes.** A failed run may have written objects whose changes add its item again. Such a trigger is an *echo*: it
waits for the retry or stays with the dead letter. The queue calls ``is_echo`` at the end of the run and for each later
add.

Source: client-go util/workqueue/rate_limiting_queue.go.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final, TypeVar, final

import msgspec

from deltaloop.workqueue.core.dead_letters import DEFAULT_MAX_DEAD_LETTERS, DeadLetters, ParkedItem
from deltaloop.workqueue.core.delaying import DelayingCore, check_delay
from deltaloop.workqueue.core.facts import AddOutcome, Ending, Failed, Finished, Retried
from deltaloop.workqueue.core.limiters import RateLimiter, taker_back
from deltaloop.workqueue.core.queue import QueueStatistics, Run
from deltaloop.workqueue.core.queue_order import QueueOrder
from deltaloop.workqueue.core.triggers import DEFAULT_MAX_TRIGGERS, IsEcho, MergeTriggers, TriggerLog
from deltaloop.workqueue.errors import is_terminal

K = TypeVar("K", bound=Hashable)

MOST_JUDGED: Final = 4096
"""Largest number of triggers that are stored during a run, until they are checked for echoes."""

BROKEN_LIMITER_DELAY: Final = 5.0
"""Delay in seconds before a retry whose rate limiter raised an exception."""


@final
class RateLimitingCore(DelayingCore[K]):
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
        """Add an item after the limiter's delay, or park it if it failed permanently.

        ``error`` is the error of the last run, ``trigger`` the cause of other adds. If the limiter raises, the queue
        does not change.
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
            return "ignored"
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
        """Add an item after a delay, and return the result and the seconds until the item runs."""
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
            present = self._delays.waiting.get(item)
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
        return "merged", 0.0

    def _settle(self, run: Run[K], now: float, ending: Ending) -> Finished:
        if not isinstance(ending, Failed):
            return super()._settle(run, now, ending)
        error, item = ending.error, run.item
        if run.handed_on and item in self._dead:
            return Finished(fate="parked", error=error)
        if not run.handed_on and self._is_for_good(item, run, error):
            run.handed_on = True
            outcome = self._park(item, now, run.triggers.copy(), error=error, attempts=run.failures + 1)
            return Finished(fate="parked" if outcome == "parked" else "retried", error=error)
        if self._shutting_down and item not in self._dirty:
            self._ignored += 1
            return Finished(fate="given up", error=error)
        if run.handed_on:  # the worker requested the retry
            return Finished(fate="retried", error=error)
        limiter_error: Exception | None = None
        try:
            delay = self._ask(item, error)
        except Exception as broken:  # noqa: BLE001  # a broken limiter must not lose the item; the driver logs it
            delay, limiter_error = BROKEN_LIMITER_DELAY, broken
        _, delay = self._pay_and_add(item, now, delay, retried=run, log=self._log(), paid=limiter_error is None)
        return Finished(fate="retried", delay=delay, error=error, limiter_error=limiter_error)

    # Dead letters

    def _is_for_good(self, item: K, run: Run[K] | None, error: BaseException | None) -> bool:
        """Return whether a failure is permanent. ``run`` is the failed run if it has not ended."""
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
            outcome: AddOutcome = "merged"
        else:
            self._dead.put(ParkedItem(item, error, attempts, log, now))
            outcome = "parked"
        self.forget(item)
        return outcome

    def _join(self, item: K, now: float, log: TriggerLog) -> AddOutcome:
        letters = self._dead.letters
        letter = letters[item] if item in letters else None  # noqa: SIM401 - without a call
        if self._is_echo is not None:
            if item in self._processing:
                log.bound = max(log.bound, MOST_JUDGED)  # the end of the run decides about these triggers
            elif (letter is not None or item in self._failures) and self._are_echoes(item, log):
                delay = self._delays.waiting.get(item)
                held = letter if letter is not None else delay
                if held is not None:
                    held.triggers.extend(log)
                    self._merged += 1
                    return "merged"
        if letter is not None:
            self._dead.remove(item)
            older = letter.triggers.copy()
            older.extend(log)
            log = older
        return super()._join(item, now, log)

    # Echoes

    def _are_echoes(self, item: K, log: TriggerLog) -> bool:
        """Return whether failed runs of an item caused all triggers of a log."""
        is_echo, triggers = self._is_echo, log.kept
        if is_echo is None or log.dropped or not triggers:
            return False
        return all(is_echo(item, trigger) for trigger in triggers)

    def _withdraw(self, item: K) -> TriggerLog:
        """Cancel the next run of an item that is being processed, and return its triggers."""
        self._withdrawn += 1
        return self._dirty.pop(item)

    def dead_letters(self) -> list[ParkedItem[K]]:
        return self._dead.in_order()

    def retry_dead_letter(self, item: K, now: float, *, trigger: object | None = None) -> bool:
        """Add the item of a dead letter, and return whether it was one. After a shutdown this has no effect."""
        letter = self._dead.get(item)
        if letter is None or self._shutting_down:
            return False
        self.add(item, now, trigger=trigger, priority=letter.triggers.priority)
        return True

    def discard_dead_letter(self, item: K) -> ParkedItem[K] | None:
        return self._dead.remove(item)

    def statistics(self, now: float) -> QueueStatistics:
        dead = self._dead
        return msgspec.structs.replace(
            super().statistics(now), parked=len(dead), parked_total=dead.total, parked_dropped=dead.dropped
        )

    # Counts

    def forget(self, item: K) -> None:
        """Reset the failure counts of an item in the limiter and the queue."""
        super().forget(item)
        self._to_forget.discard(item)
        self._limiter.forget(item)

    def num_requeues(self, item: K) -> int:
        """Return the number of limiter calls for an item since ``forget``."""
        return self._limiter.num_requeues(item)

    def _refund(self, item: K) -> None:
        if self._takes_back is not None:
            self._takes_back.refund(item)
