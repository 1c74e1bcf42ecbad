"""The cores beside their models, and proof that the machines see each of the bugs seeded below."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

from deltaloop.workqueue.core.delay_heap import WaitingItem
from deltaloop.workqueue.core.facts import Added, AddOutcome, Ending, Finished, Interrupted
from deltaloop.workqueue.core.queue import QueueCore, Run
from deltaloop.workqueue.core.rate_limiting import RateLimitingCore
from deltaloop.workqueue.core.triggers import TriggerLog
from tests.workqueue.core.machines import QueueMachine, RateLimitingMachine

CHECK = settings(max_examples=30, stateful_step_count=40, derandomize=True, database=None)
FIND = settings(
    max_examples=400,
    stateful_step_count=40,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    report_multiple_bugs=False,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


@pytest.mark.parametrize("machine", [QueueMachine, RateLimitingMachine])
def test_core_does_what_its_model_does(machine: type[RuleBasedStateMachine]) -> None:
    run_state_machine_as_test(machine, settings=CHECK)


# -- seeded bugs of the plain queue


class TwoWorkersOnOneItem(QueueCore[str]):
    def _join(self, item: str, now: float, log: TriggerLog) -> AddOutcome:
        outcome = super()._join(item, now, log)
        if outcome is AddOutcome.POSTPONED:
            self._line.push(item, now, priority=0)
        return outcome


class QueuedTwice(QueueCore[str]):
    def add(self, item: str, now: float, *, trigger: object | None = None, priority: int = 0) -> AddOutcome:
        outcome = super().add(item, now, trigger=trigger, priority=priority)
        if outcome is AddOutcome.MERGED and item not in self._processing:
            self._line.push(item, now, priority=0)
        return outcome


class PostponedItemLost(QueueCore[str]):
    def done(self, item: str, now: float) -> bool:
        self._dirty.pop(item, None)
        return super().done(item, now)


class PostponedItemJumpsTheLine(QueueCore[str]):
    def done(self, item: str, now: float) -> bool:
        requeued = super().done(item, now)
        if requeued:
            for _ in range(len(self._line) - 1):
                self._line.push(self._line.pop(), now, priority=0)
        return requeued


class TriggerOfMergedAddLost(QueueCore[str]):
    def add(self, item: str, now: float, *, trigger: object | None = None, priority: int = 0) -> AddOutcome:
        return super().add(item, now, trigger=None if item in self._dirty else trigger)


class TriggerGoesToThePresentRun(QueueCore[str]):
    def add(self, item: str, now: float, *, trigger: object | None = None, priority: int = 0) -> AddOutcome:
        run = self._processing.get(item)
        if run is None:
            return super().add(item, now, trigger=trigger)
        run.triggers.add(trigger)
        return super().add(item, now)


class LatencyFromLastAdd(QueueCore[str]):
    def add(self, item: str, now: float, *, trigger: object | None = None, priority: int = 0) -> AddOutcome:
        outcome = super().add(item, now, trigger=trigger)
        if outcome is AddOutcome.MERGED:
            self._dirty[item].added_at = now
        return outcome


class EndsBeforePostponedItems(QueueCore[str]):
    @property
    def ended(self) -> bool:
        return self._shutting_down and not self._line


class DrainForgetsTheLine(QueueCore[str]):
    @property
    def drain_over(self) -> bool:
        return not self._draining or not self._processing


class TakesItemsAfterShutdown(QueueCore[str]):
    def add(self, item: str, now: float, *, trigger: object | None = None, priority: int = 0) -> AddOutcome:
        shutting_down, self._shutting_down = self._shutting_down, False
        outcome = super().add(item, now, trigger=trigger)
        self._shutting_down = shutting_down
        return outcome


class InterruptedItemLost(QueueCore[str]):
    def _put_back(self, run: Run[str], now: float) -> Finished:
        finished = super()._put_back(run, now)
        if run.item in self._dirty and len(self._dirty) > 1:
            self._dirty.pop(run.item)
        return finished


class TriggersOfInterruptedRunLost(QueueCore[str]):
    def _hand_on(self, run: Run[str], now: float) -> AddOutcome:
        if run.item in self._dirty:
            return AddOutcome.MERGED
        return super()._hand_on(run, now)


class TriggersOfInterruptedRunBehindNewOnes(QueueCore[str]):
    def _hand_on(self, run: Run[str], now: float) -> AddOutcome:
        waiting = self._dirty.get(run.item)
        if waiting is None:
            return super()._hand_on(run, now)
        waiting.triggers.extend(run.triggers)
        return AddOutcome.MERGED


# -- seeded bugs of delays and rate limits


class LaterTimeWins(RateLimitingCore[str]):
    def _add_after(self, item: str, now: float, delay: float, log: TriggerLog, *, paid: bool = False) -> AddOutcome:
        present = self._delays.get(item)
        if present is not None and delay > 0 and not self._shutting_down:
            present.due_at = max(present.due_at, now + delay)
            self._delays.put(present)
        return super()._add_after(item, now, delay, log, paid=paid)


class AddCancelsDelay(RateLimitingCore[str]):
    def add(self, item: str, now: float, *, trigger: object | None = None, priority: int = 0) -> AddOutcome:
        self._delays.remove(item)
        return super().add(item, now, trigger=trigger)


class CancelledDelayComesBack(RateLimitingCore[str]):
    def cancel_delayed(self, item: str) -> WaitingItem[str] | None:
        delay = super().cancel_delayed(item)
        if delay is not None and len(self._delays):
            self._delays.put(delay)
        return delay


class WakesTooEarly(RateLimitingCore[str]):
    def promote(self, now: float) -> int:
        return super().promote(now + 5.0)


class NoTimerSlack(RateLimitingCore[str]):
    def promote(self, now: float) -> int:
        return super().promote(now - 0.001)


class DelaysOutliveShutdown(RateLimitingCore[str]):
    def shut_down(self, *, drain: bool = False) -> None:
        QueueCore[str].shut_down(self, drain=drain)


class TriggersOfMergedDelayLost(RateLimitingCore[str]):
    def _add_after(self, item: str, now: float, delay: float, log: TriggerLog, *, paid: bool = False) -> AddOutcome:
        if self._delays.get(item) is not None and delay > 0:
            log = TriggerLog(0)
        return super()._add_after(item, now, delay, log, paid=paid)


class TokensNeverGoBack(RateLimitingCore[str]):
    def _give_back(self, item: str) -> None:
        pass


class TokenOfReplacedDelayKept(RateLimitingCore[str]):
    def _add_after(self, item: str, now: float, delay: float, log: TriggerLog, *, paid: bool = False) -> AddOutcome:
        present = self._delays.get(item)
        if present is not None and present.due_at > now + delay:
            present.paid = False
        return super()._add_after(item, now, delay, log, paid=paid)


class FailureCountedTwice(RateLimitingCore[str]):
    def _settle(self, run: Run[str], now: float, ending: Ending) -> Finished:
        run.handed_on = False
        return super()._settle(run, now, ending)


class InterruptCountsAsFailure(RateLimitingCore[str]):
    def _settle(self, run: Run[str], now: float, ending: Ending) -> Finished:
        finished = super()._settle(run, now, ending)
        if isinstance(ending, Interrupted):
            self._failures[run.item] = run.failures + 1
        return finished


class ForgetMissesTheLimiter(RateLimitingCore[str]):
    def forget(self, item: str) -> None:
        QueueCore[str].forget(self, item)


class RetriedRunLosesItsTriggers(RateLimitingCore[str]):
    def _settle(self, run: Run[str], now: float, ending: Ending) -> Finished:
        if not isinstance(ending, Interrupted):
            run.triggers = TriggerLog(0)
        return super()._settle(run, now, ending)


QUEUE_BUGS: list[type[QueueCore[str]]] = [
    TwoWorkersOnOneItem,
    QueuedTwice,
    PostponedItemLost,
    PostponedItemJumpsTheLine,
    TriggerOfMergedAddLost,
    TriggerGoesToThePresentRun,
    LatencyFromLastAdd,
    EndsBeforePostponedItems,
    DrainForgetsTheLine,
    TakesItemsAfterShutdown,
    InterruptedItemLost,
    TriggersOfInterruptedRunLost,
    TriggersOfInterruptedRunBehindNewOnes,
]
RATE_LIMITING_BUGS: list[type[RateLimitingCore[str]]] = [
    LaterTimeWins,
    AddCancelsDelay,
    CancelledDelayComesBack,
    WakesTooEarly,
    NoTimerSlack,
    DelaysOutliveShutdown,
    TriggersOfMergedDelayLost,
    TokensNeverGoBack,
    TokenOfReplacedDelayKept,
    FailureCountedTwice,
    InterruptCountsAsFailure,
    ForgetMissesTheLimiter,
    RetriedRunLosesItsTriggers,
]


@pytest.mark.parametrize("bug", QUEUE_BUGS)
def test_machine_sees_a_seeded_bug_of_the_queue(bug: type[QueueCore[str]]) -> None:
    class Mutant(QueueMachine):
        core_type = bug

    with pytest.raises((AssertionError, KeyError, IndexError, ValueError)):
        run_state_machine_as_test(Mutant, settings=FIND)


@pytest.mark.parametrize("bug", RATE_LIMITING_BUGS)
def test_machine_sees_a_seeded_bug_of_rate_limiting(bug: type[RateLimitingCore[str]]) -> None:
    class Mutant(RateLimitingMachine):
        limited_type = bug

    with pytest.raises((AssertionError, KeyError, IndexError, ValueError)):
        run_state_machine_as_test(Mutant, settings=FIND)


def test_facts_are_collected_only_if_somebody_observes() -> None:
    silent = QueueCore[str]()
    silent.add("a", 0.0)
    assert silent.take_facts() == []
    observed = QueueCore[str](observed=True)
    observed.add("a", 0.0)
    assert observed.take_facts() == [Added()]
    assert observed.take_facts() == []
