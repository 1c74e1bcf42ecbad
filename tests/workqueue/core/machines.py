"""Hypothesis machines that run a core beside its model. Mutants of the cores go through them, too, and must fail."""

from __future__ import annotations

from collections.abc import Hashable
from typing import ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from deltaloop.workqueue.core.facts import (
    Added,
    Again,
    Done,
    Failed,
    Interrupted,
    Retried,
    Started,
    Succeeded,
)
from deltaloop.workqueue.core.queue import QueueCore, Run
from deltaloop.workqueue.core.rate_limiting import RateLimitingCore
from tests.workqueue.core.models import BOUND, Model, dropped, kept

ITEMS = st.sampled_from(["a", "b", "c"])
DELAYS = st.sampled_from([-1.0, 0.0, 0.5, 1.0, 2.0, 3.0, 3.0005, 5.0, 1e12])
PAUSES = st.sampled_from([0.25, 0.9995, 1.0, 2.0, 7.0])
PICK = st.integers(min_value=0, max_value=10)


class Limiter:
    """Answers 0, 2, 6, 14, ... and keeps a ledger of its tokens."""

    def __init__(self) -> None:
        self.asked: dict[Hashable, int] = {}
        self.tokens = 0

    def when(self, item: Hashable, *, error: BaseException | None = None) -> float:
        self.asked[item] = self.asked.get(item, 0) + 1
        self.tokens += 1
        return float(2 ** self.asked[item] - 2)

    def forget(self, item: Hashable) -> None:
        self.asked.pop(item, None)

    def num_requeues(self, item: Hashable) -> int:
        return self.asked.get(item, 0)

    def refund(self, item: Hashable) -> None:
        self.tokens -= 1


class QueueMachine(RuleBasedStateMachine):
    """The plain queue beside its model."""

    core_type: ClassVar[type[QueueCore[str]]] = QueueCore

    def __init__(self) -> None:
        super().__init__()
        self.core = self.make_core()
        self.model = Model()
        self.now: float = 100.0
        self.runs: list[Run[str]] = []
        self.next_trigger = 0
        self.steps = 0
        self.calm = 0

    def make_core(self) -> QueueCore[str]:
        return self.core_type(max_triggers=BOUND, observed=True)

    def trigger(self, wanted: bool) -> list[int]:
        self.next_trigger += 1
        return [self.next_trigger] if wanted else []

    def pop_run(self, pick: int) -> Run[str]:
        return self.runs.pop(pick % len(self.runs))

    @rule(pause=PAUSES)
    def time_passes(self, pause: float) -> None:
        self.now += pause

    @rule(item=ITEMS, triggered=st.booleans(), times=st.integers(min_value=1, max_value=3))
    def add(self, item: str, triggered: bool, times: int) -> None:
        for _ in range(times):
            triggers = self.trigger(triggered)
            self.core.add(item, self.now, trigger=triggers[0] if triggers else None)
            self.model.add(item, self.now, triggers)

    @precondition(lambda self: self.model.line())
    @rule()
    def get(self) -> None:
        run = self.core.get(self.now)
        job = self.model.get(self.now)
        assert run is not None
        assert job is not None
        assert run.item == job.item
        assert run.failures + 1 == job.attempts
        self.runs.append(run)

    @precondition(lambda self: self.runs)
    @rule(pick=PICK, times=st.integers(min_value=1, max_value=2))
    def add_what_is_processed(self, pick: int, times: int) -> None:
        self.add(self.runs[pick % len(self.runs)].item, triggered=True, times=times)

    @precondition(lambda self: self.runs)
    @rule(pick=PICK)
    def done(self, pick: int) -> None:
        item = self.pop_run(pick).item
        self.core.done(item, self.now)
        self.model.done(item, self.now)

    @precondition(lambda self: self.runs)
    @rule(pick=PICK)
    def succeed(self, pick: int) -> None:
        run = self.pop_run(pick)
        assert self.core.finish(run, self.now, Succeeded()).fate == "finished"
        self.model.forget(run.item)
        self.model.done(run.item, self.now)
        assert self.core.finish(run, self.now, Succeeded()).fate == "over"

    @precondition(lambda self: self.runs)
    @rule(pick=PICK)
    def interrupt(self, pick: int) -> None:
        run = self.pop_run(pick)
        finished = self.core.finish(run, self.now, Interrupted())
        self.model.interrupt(run.item, self.now)
        assert not finished.suppressed

    @initialize(calm=st.sampled_from([3, 6, 12, 1000]))
    def choose_when_a_shutdown_may_come(self, calm: int) -> None:
        """Choose the steps before it: nothing new happens after a shutdown."""
        self.calm = calm

    @precondition(lambda self: self.steps > self.calm and (self.model.needs or self.model.jobs))
    @rule(drain=st.booleans())
    def shut_down(self, drain: bool) -> None:
        self.core.shut_down(drain=drain)
        self.model.shut_down(drain=drain)

    @invariant()
    def count_steps(self) -> None:
        self.steps += 1

    @invariant()
    def state_agrees(self) -> None:
        core, model = self.core, self.model
        assert len(core) == len(model.line())
        assert core.processing == len(model.jobs)
        assert core.shutting_down == model.shut
        assert core.ended == (model.shut and not model.needs)
        if not model.line():
            assert core.get(self.now) is None
        assert core.drain_over == (not model.drain or not (model.needs or model.jobs))
        statistics = core.statistics(self.now)
        assert statistics.postponed == len(model.needs) - len(model.line())
        assert statistics.adds == model.adds
        assert statistics.taken == len(model.latencies)
        assert statistics.done == len(model.durations)
        ages = [self.now - job.started_at for job in model.jobs]
        assert core.unfinished(self.now) == (sum(ages), max(ages, default=0.0))

    @invariant()
    def runs_agree(self) -> None:
        """Also long after ``get``: what comes meanwhile must not touch a run."""
        for run in self.runs:
            job = self.model.job(run.item)
            assert job is not None
            assert run.triggers.kept == kept(job.triggers)
            assert run.triggers.dropped == dropped(job.triggers)

    @invariant()
    def facts_agree(self) -> None:
        for fact in self.core.take_facts():
            if isinstance(fact, Started):
                assert fact.latency == self.model.latencies[-1]
            elif isinstance(fact, Done):
                assert fact.duration == self.model.durations[-1]
            else:
                assert isinstance(fact, Added | Retried)

    def teardown(self) -> None:
        """Whatever was added and not worked on is still there, in the right order."""
        while self.runs:
            self.succeed(0)
        while len(self.core):
            self.get()
            self.runs_agree()
            self.succeed(0)
        assert not self.model.needs


class RateLimitingMachine(QueueMachine):
    """The rate limiting queue, and with it the delaying one, beside their model."""

    limited_type: ClassVar[type[RateLimitingCore[str]]] = RateLimitingCore
    limited: RateLimitingCore[str]
    limiter: Limiter

    def make_core(self) -> QueueCore[str]:
        self.limiter = Limiter()
        self.limited = self.limited_type(limiter=self.limiter, max_triggers=BOUND, observed=True)
        return self.limited

    @rule(item=ITEMS, delay=DELAYS, triggered=st.booleans())
    def add_after(self, item: str, delay: float, triggered: bool) -> None:
        triggers = self.trigger(triggered)
        self.limited.add_after(item, self.now, delay, trigger=triggers[0] if triggers else None)
        self.model.add_after(item, self.now, delay, triggers)

    @rule(item=ITEMS, triggered=st.booleans(), failed=st.booleans())
    def add_rate_limited(self, item: str, triggered: bool, failed: bool) -> None:
        triggers = self.trigger(triggered)
        error = KeyError(item) if failed else None
        self.limited.add_rate_limited(item, self.now, error=error, trigger=triggers[0] if triggers else None)
        self.model.add_rate_limited(item, self.now, triggers, error=failed)

    @precondition(lambda self: self.runs)
    @rule(pick=PICK, failed=st.booleans())
    def worker_asks_for_a_retry(self, pick: int, failed: bool) -> None:
        item = self.runs[pick % len(self.runs)].item
        self.limited.add_rate_limited(item, self.now, error=KeyError(item) if failed else None)
        self.model.add_rate_limited(item, self.now, [], error=failed)

    @precondition(lambda self: self.runs)
    @rule(pick=PICK, seconds=st.sampled_from([0.5, 1.0, 3.0]))
    def earlier_wish_than_the_retry(self, pick: int, seconds: float) -> None:
        """A failed item waits for its retry; a plain delay comes before that."""
        run = self.runs[pick % len(self.runs)]
        for _ in range(2):
            self.limited.add_rate_limited(run.item, self.now)
            self.model.add_rate_limited(run.item, self.now, [], error=False)
        self.add_after(run.item, seconds, triggered=True)

    @precondition(lambda self: self.model.laters)
    @rule(pause=PAUSES)
    def promote(self, pause: float) -> None:
        self.now += pause
        self.limited.promote(self.now)
        self.model.promote(self.now)
        due_at = self.limited.next_due_at()
        assert due_at is None or due_at > self.now

    @precondition(lambda self: self.model.laters)
    @rule(pick=PICK)
    def cancel_delayed(self, pick: int) -> None:
        later = self.model.laters[pick % len(self.model.laters)]
        cancelled = self.limited.cancel_delayed(later.item)
        assert cancelled is not None
        assert (cancelled.due_at, cancelled.triggers.kept) == (later.due_at, kept(later.triggers))
        assert self.limited.cancel_delayed(later.item) is None
        self.model.cancel(later.item)

    @rule(item=ITEMS)
    def forget(self, item: str) -> None:
        self.limited.forget(item)
        self.model.forget(item)

    @precondition(lambda self: self.runs)
    @rule(pick=PICK)
    def fail(self, pick: int) -> None:
        run = self.pop_run(pick)
        finished = self.limited.finish(run, self.now, Failed(KeyError(run.item)))
        self.model.fail(run.item, self.now)
        assert finished.suppressed
        if finished.fate == "retried":
            assert self.model.need(run.item) or self.model.later(run.item)

    @precondition(lambda self: self.runs)
    @rule(pick=PICK, delay=DELAYS, triggered=st.booleans(), keep=st.booleans())
    def ask_again(self, pick: int, delay: float, triggered: bool, keep: bool) -> None:
        run = self.pop_run(pick)
        triggers = self.trigger(triggered)
        ending = Again(delay, triggers[0] if triggers else None, keep)
        assert not self.limited.finish(run, self.now, ending).suppressed
        self.model.again(run.item, self.now, delay, triggers, keep=keep)

    @invariant()
    def delays_agree(self) -> None:
        expected = sorted(self.model.laters, key=lambda later: later.due_at)
        delays = self.limited.delayed()
        assert [(delay.item, delay.due_at) for delay in delays] == [(later.item, later.due_at) for later in expected]
        assert [delay.triggers.kept for delay in delays] == [kept(later.triggers) for later in expected]
        assert [delay.triggers.dropped for delay in delays] == [dropped(later.triggers) for later in expected]
        assert self.limited.next_due_at() == min((later.due_at for later in expected), default=None)
        assert self.limited.statistics(self.now).delayed == len(expected)
        assert self.limited.statistics(self.now).retries == self.model.retries

    @invariant()
    def limiter_agrees(self) -> None:
        assert self.limiter.asked == self.model.asked
        for item in "abc":
            assert self.limited.num_requeues(item) == self.model.asked.get(item, 0)
        assert self.limited.statistics(self.now).failing == len(self.model.failures)
        if not self.model.shut:
            assert self.limiter.tokens == self.model.tokens
