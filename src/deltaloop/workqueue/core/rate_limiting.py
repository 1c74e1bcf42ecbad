"""Adds that a rate limiter spaces out, and what happens to an item whose run failed.

``add_rate_limited`` asks the limiter and then adds after that delay, with one difference to ``add_after``: the delay is
a price, not a wish. So an item that waits for a run anyway (it is in line, or it is postponed) needs no second run
later; the triggers are merged, and the token goes back (``GivesBack``). A delay by ``add_after`` is a wish and is kept,
as upstream.

Whose call is it? Workers ask for a retry of the run at hand; handlers ask for a new run. A call while the item is
processed is the worker's if it names an error or no trigger: then the run counts as failed (once), and its triggers go
on to the next run. ``forget`` begins the counts again.

Source: client-go util/workqueue/rate_limiting_queue.go.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final, TypeVar

from deltaloop.workqueue.core.delaying import DelayingCore, check_delay
from deltaloop.workqueue.core.facts import AddOutcome, Ending, Failed, Fate, Finished, Retried
from deltaloop.workqueue.core.limiters import RateLimiter, taker_back
from deltaloop.workqueue.core.queue import Run
from deltaloop.workqueue.core.triggers import DEFAULT_MAX_TRIGGERS, TriggerLog

K = TypeVar("K", bound=Hashable)

BROKEN_LIMITER_DELAY: Final = 5.0
"""Seconds until the retry of an item whose rate limiter raised an exception."""


class RateLimitingCore(DelayingCore[K]):
    """A queue whose items may be added when a rate limiter says so."""

    def __init__(
        self, *, limiter: RateLimiter[K], max_triggers: int = DEFAULT_MAX_TRIGGERS, observed: bool = False
    ) -> None:
        """Make an empty queue.

        Args:
            limiter: Asked for each rate limited add; its owner is this queue.
            max_triggers: Most triggers kept for one run of one item.
            observed: Whether facts are collected for ``take_facts``.
        """
        super().__init__(max_triggers=max_triggers, observed=observed)
        self._limiter = limiter
        self._takes_back = taker_back(limiter)

    def add_rate_limited(
        self, item: K, now: float, *, error: BaseException | None = None, trigger: object | None = None
    ) -> AddOutcome:
        """Add ``item`` when the limiter says so.

        Raises:
            ValueError: If the limiter's answer is no finite number. What the limiter raises is raised, too. The queue
                has not changed then.
        """
        run = self._processing.get(item)
        retried = run if error is not None or trigger is None else None
        if self._shutting_down and (retried is None or item not in self._dirty):
            self._ignored += 1
            return AddOutcome.IGNORED
        return self._pay_and_add(item, now, self._ask(item, error), retried=retried, trigger=trigger)[0]

    def _ask(self, item: K, error: BaseException | None) -> float:
        return max(0.0, check_delay(self._limiter.when(item, error=error)))

    def _pay_and_add(
        self, item: K, now: float, delay: float, *, retried: Run[K] | None, trigger: object | None, paid: bool = True
    ) -> tuple[AddOutcome, float]:
        """Add an item whose delay is known; return what that did, and in how many seconds the item runs."""
        log = TriggerLog(self._max_triggers)
        if retried is not None and not retried.handed_on:
            retried.handed_on = True
            self._failures[item] = retried.failures + 1
            log.extend(retried.triggers)
        waiting = self._dirty.get(item)
        if waiting is None:
            log.add(trigger)
            outcome = self._add_after(item, now, delay, log, paid=paid)
            present = self._delays.get(item)
            return outcome, 0.0 if present is None else max(0.0, present.due_at - now)
        self._merged += 1
        self._retries += 1
        self._tell(Retried())
        log.extend(waiting.triggers)
        log.add(trigger)
        waiting.triggers = log
        if paid:
            self._give_back(item)
        return AddOutcome.MERGED, 0.0

    def _settle(self, run: Run[K], now: float, ending: Ending) -> Finished:
        if not isinstance(ending, Failed):
            return super()._settle(run, now, ending)
        error, item = ending.error, run.item
        if self._shutting_down and item not in self._dirty:
            self._ignored += 1
            return Finished(fate=Fate.GIVEN_UP, error=error)
        if run.handed_on:  # its worker asked for the retry itself
            return Finished(fate=Fate.RETRIED, error=error)
        limiter_error: Exception | None = None
        try:
            delay = self._ask(item, error)
        except Exception as broken:  # noqa: BLE001  # a broken limiter must not cost the item; the driver logs it
            delay, limiter_error = BROKEN_LIMITER_DELAY, broken
        _, delay = self._pay_and_add(item, now, delay, retried=run, trigger=None, paid=limiter_error is None)
        return Finished(fate=Fate.RETRIED, delay=delay, error=error, limiter_error=limiter_error)

    def forget(self, item: K) -> None:
        """Begin the limiter's and the queue's count of failures of ``item`` again at zero."""
        super().forget(item)
        self._limiter.forget(item)

    def num_requeues(self, item: K) -> int:
        """Return how often the limiter was asked for ``item`` since it was forgotten."""
        return self._limiter.num_requeues(item)

    def _give_back(self, item: K) -> None:
        if self._takes_back is not None:
            self._takes_back.give_back(item)
