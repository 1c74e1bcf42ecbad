"""The rate limiting queue's rules, one by one."""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Any

import pytest

from deltaloop.workqueue.core.facts import AddOutcome, Again, Failed, Interrupted, RunOutcome, Succeeded
from deltaloop.workqueue.core.limiters import ItemExponentialFailureRateLimiter, default_controller_rate_limiter
from deltaloop.workqueue.core.queue import Run
from deltaloop.workqueue.core.rate_limiting import BROKEN_LIMITER_DELAY, MOST_JUDGED, RateLimitingCore
from deltaloop.workqueue.errors import TerminalError
from tests.having import having

ERROR = KeyError("x")


class FixedLimiter:
    """Always answers the same, and keeps a ledger."""

    def __init__(self, delay: float) -> None:
        self.delay = delay
        self.tokens = 0
        self.errors: list[BaseException | None] = []

    def when(self, item: Hashable, *, error: BaseException | None = None) -> float:
        self.tokens += 1
        self.errors.append(error)
        return self.delay

    def forget(self, item: Hashable) -> None:
        """Remember nothing."""

    def num_requeues(self, item: Hashable) -> int:
        return len(self.errors)

    def refund(self, item: Hashable) -> None:
        self.tokens -= 1


class BrokenLimiter:
    """Raises whatever is asked."""

    def when(self, item: Hashable, *, error: BaseException | None = None) -> float:
        raise RuntimeError("broken")

    def forget(self, item: Hashable) -> None:
        raise RuntimeError("broken")

    def num_requeues(self, item: Hashable) -> int:
        return 0


def core_with(delay: float) -> tuple[RateLimitingCore[str], FixedLimiter]:
    limiter = FixedLimiter(delay)
    return RateLimitingCore[str](limiter=limiter), limiter


def taken(core: RateLimitingCore[str], now: float = 0.0) -> Run[str]:
    run = core.get(now)
    assert run is not None
    return run


def test_delays_grow_with_each_failure_and_forget_begins_again() -> None:
    core = RateLimitingCore[str](limiter=ItemExponentialFailureRateLimiter(0.001, 1.0))
    now = 0.0
    core.add("a", now)
    for attempt, delay in enumerate([0.001, 0.002, 0.004]):
        run = taken(core, now)
        assert run.failures == attempt
        finished = core.finish(run, now, Failed(ERROR))
        assert finished.fate is RunOutcome.RETRIED
        assert finished.delay == pytest.approx(delay)
        now += delay
        assert core.promote(now) == 1
    assert core.num_requeues("a") == 3
    core.finish(taken(core, now), now, Succeeded())
    assert core.num_requeues("a") == 0
    core.add("a", now)
    assert taken(core, now).failures == 0


def test_triggers_are_kept_over_retries_until_success() -> None:
    core, _ = core_with(1.0)
    core.add("a", 0.0, trigger="first")
    core.finish(taken(core), 0.0, Failed(ERROR))
    core.promote(1.0)
    run = taken(core)
    core.add("a", 1.0, trigger="second")
    core.finish(run, 1.0, Failed(ERROR))
    run = taken(core)  # the item was postponed: no second wait
    assert run.triggers.kept == ("first", "second")
    assert run.failures == 2
    core.finish(run, 1.0, Succeeded())
    core.add("a", 1.0, trigger="third")
    assert taken(core).triggers.kept == ("third",)


def test_plain_calls_of_a_worker_do_the_same() -> None:
    core, limiter = core_with(1.0)
    core.add("a", 0.0, trigger="first")
    taken(core)
    core.add_rate_limited("a", 0.0, error=ERROR)
    core.done("a", 0.0)
    core.promote(1.0)
    run = taken(core)
    assert run.triggers.kept == ("first",)
    assert run.failures == 1
    core.forget("a")
    core.done("a", 1.0)
    core.add("a", 1.0)
    run = taken(core)
    assert (run.triggers.kept, run.failures) == ((), 0)
    assert limiter.errors == [ERROR]


def test_a_handlers_add_while_the_item_is_processed_is_no_failure() -> None:
    core, _ = core_with(1.0)
    core.add("a", 0.0, trigger="run")
    run = taken(core)
    core.add_rate_limited("a", 0.0, trigger="event")
    core.finish(run, 0.0, Succeeded())
    core.promote(1.0)
    run = taken(core)
    assert (run.triggers.kept, run.failures) == (("event",), 0)


def test_an_item_in_line_needs_no_rate_limited_run_and_its_token_goes_back() -> None:
    core, limiter = core_with(1.0)
    core.add("a", 0.0, trigger=1)
    for trigger in (2, 3):
        assert core.add_rate_limited("a", 0.0, trigger=trigger) is AddOutcome.MERGED
    assert limiter.tokens == 0
    assert core.delayed() == []
    assert taken(core).triggers.kept == (1, 2, 3)


def test_a_delayed_item_gives_the_token_back_that_is_not_needed() -> None:
    core, limiter = core_with(5.0)
    core.add_rate_limited("a", 0.0, trigger=1)
    for _ in range(100):
        core.add_rate_limited("a", 1.0, trigger=2)
    assert limiter.tokens == 1
    limiter.delay = 1.0
    core.add_rate_limited("a", 1.0, trigger=3)  # earlier: now the old token is not needed
    assert limiter.tokens == 1
    core.add_after("a", 1.0, 0.5)  # earlier still, and for nothing
    assert limiter.tokens == 0
    assert core.next_due_at() == 1.5


def test_a_token_goes_back_when_its_delay_is_cancelled_or_ends_in_a_merge() -> None:
    core, limiter = core_with(5.0)
    core.add_rate_limited("a", 0.0)
    core.cancel_delayed("a")
    assert limiter.tokens == 0
    core.add_rate_limited("a", 0.0)
    core.add("a", 4.0)
    core.promote(5.0)
    assert limiter.tokens == 0
    core.add_rate_limited("b", 0.0)
    core.promote(5.0)
    assert limiter.tokens == 1


@pytest.mark.nightly
def test_thousands_of_needless_adds_do_not_cost_the_next_one_hours() -> None:
    """kubernetes issue 104554: a storm of adds that make no difference."""
    now = 0.0
    core = RateLimitingCore[str](limiter=default_controller_rate_limiter(clock=lambda: now))
    core.add("busy", now)
    for _ in range(20_000):
        core.add_rate_limited("busy", now)
    core.add_rate_limited("other", now)
    assert core.next_due_at() == 0.005


def test_a_failure_is_counted_once_however_often_its_retry_is_asked_for() -> None:
    core, limiter = core_with(1.0)
    core.add("a", 0.0, trigger="t")
    run = taken(core)
    core.add_rate_limited("a", 0.0, error=ERROR)
    core.add_rate_limited("a", 0.0, error=ERROR)
    assert core.finish(run, 0.0, Failed(ERROR)).fate is RunOutcome.RETRIED
    assert len(limiter.errors) == 2
    core.promote(1.0)
    run = taken(core)
    assert (run.triggers.kept, run.failures) == (("t",), 1)


@pytest.mark.parametrize("ending", [Interrupted(), Again(1.0)])
def test_a_worker_that_asked_for_a_retry_hands_its_triggers_on_once(ending: Interrupted | Again) -> None:
    core, _ = core_with(1.0)
    core.add("a", 0.0, trigger="t")
    run = taken(core)
    core.add_rate_limited("a", 0.0)
    core.finish(run, 0.0, ending)
    core.promote(1.0)
    assert taken(core).triggers.kept == ("t",)
    assert len(core) == 0


def test_after_shutdown_nothing_is_asked_and_what_failed_is_given_up() -> None:
    core, limiter = core_with(1.0)
    core.add("a", 0.0)
    core.add("b", 0.0, trigger="old")
    lost, postponed = taken(core), taken(core)
    core.add("b", 0.0, trigger="new")
    core.shut_down()
    assert core.add_rate_limited("c", 0.0) is AddOutcome.IGNORED
    assert core.add_rate_limited("a", 0.0) is AddOutcome.IGNORED
    finished = core.finish(lost, 0.0, Failed(ERROR))
    assert (finished.fate, finished.suppressed) == (RunOutcome.GIVEN_UP, True)
    assert limiter.errors == []
    assert core.finish(postponed, 0.0, Failed(ERROR)).fate is RunOutcome.RETRIED  # it comes anyway
    assert taken(core).triggers.kept == ("old", "new")
    assert limiter.tokens == 0


@pytest.mark.parametrize("answer", [math.nan, math.inf])
def test_an_impossible_answer_of_a_limiter_is_refused_but_costs_no_item(answer: float) -> None:
    core, _ = core_with(answer)
    with pytest.raises(ValueError, check=having(argument="delay")):
        core.add_rate_limited("a", 0.0, trigger="t")
    core.add("a", 0.0, trigger="t")
    finished = core.finish(taken(core), 0.0, Failed(ERROR))
    assert (finished.fate, finished.delay) == (RunOutcome.RETRIED, BROKEN_LIMITER_DELAY)
    assert isinstance(finished.limiter_error, ValueError)
    core.promote(BROKEN_LIMITER_DELAY)
    run = taken(core)
    assert (run.triggers.kept, run.failures) == (("t",), 1)


def test_a_broken_limiter_costs_no_item() -> None:
    core = RateLimitingCore[str](limiter=BrokenLimiter())
    core.add("a", 0.0)
    finished = core.finish(taken(core), 0.0, Failed(ERROR))
    assert (finished.fate, finished.delay) == (RunOutcome.RETRIED, BROKEN_LIMITER_DELAY)
    assert isinstance(finished.limiter_error, RuntimeError)
    core.promote(5.0)
    run = taken(core, 5.0)
    with pytest.raises(RuntimeError, match="broken"):
        core.finish(run, 5.0, Succeeded())
    assert core.processing == 0


def test_a_negative_answer_means_now() -> None:
    core, _ = core_with(-3.0)
    assert core.add_rate_limited("a", 0.0) is AddOutcome.QUEUED
    finished = core.finish(taken(core), 0.0, Failed(ERROR))
    assert finished.delay == 0.0
    assert len(core) == 1


def test_a_rate_limited_add_of_what_is_in_line_counts_as_merged() -> None:
    core, _ = core_with(1.0)
    core.add("a", 0.0)
    core.add_rate_limited("a", 0.0, trigger="again")
    core.add_rate_limited("a", 0.0, trigger="and again")
    seen = core.statistics(0.0)
    assert (seen.adds, seen.merged, seen.retries, seen.ignored) == (1, 2, 2, 0)


def test_a_rate_limited_add_after_shutdown_counts_as_ignored() -> None:
    core, _ = core_with(1.0)
    core.shut_down()
    assert core.add_rate_limited("a", 0.0) is AddOutcome.IGNORED
    assert core.add_rate_limited("b", 0.0) is AddOutcome.IGNORED
    assert core.statistics(0.0).ignored == 2


# -- echoes


def echoing(delay: float = 60.0, **options: Any) -> tuple[RateLimitingCore[str], FixedLimiter]:
    """Return a core for which triggers that begin with ``echo`` are echoes."""

    def is_echo(item: Hashable, trigger: object) -> bool:
        return str(trigger).startswith("echo")

    limiter = FixedLimiter(delay)
    return RateLimitingCore[str](limiter=limiter, is_echo=is_echo, **options), limiter


def failed(core: RateLimitingCore[str], *during: str, error: Exception = ERROR) -> RunOutcome:
    """Add an item, add it again while it is processed, and let that run fail."""
    core.add("a", 0.0, trigger="t")
    run = taken(core)
    for trigger in during:
        core.add("a", 0.0, trigger=trigger)
    return core.finish(run, 0.0, Failed(error)).fate


def test_echo_waits_for_the_retry_whether_it_comes_before_or_after_the_end_of_the_run() -> None:
    core, limiter = echoing()
    assert failed(core, "echo 1") is RunOutcome.RETRIED
    assert core.add("a", 1.0, trigger="echo 2") is AddOutcome.MERGED
    assert (len(core), limiter.tokens, core.statistics(1.0).adds) == (0, 1, 2)
    core.promote(60.0)
    run = taken(core, 60.0)
    assert (run.triggers.kept, run.failures) == (("t", "echo 1", "echo 2"), 1)


def test_other_trigger_runs_at_once_with_echoes_before_or_after_it() -> None:
    for during in (("echo", "news"), ("news", "echo")):
        core, limiter = echoing()
        failed(core, *during)
        assert (len(core), limiter.tokens) == (1, 0)
    core, _ = echoing()
    failed(core, "echo")
    assert core.add("a", 1.0, trigger="news") is AddOutcome.QUEUED
    assert core.add("a", 1.0) is AddOutcome.MERGED


def test_add_without_a_trigger_is_no_echo() -> None:
    core, _ = echoing()
    failed(core, "echo")
    assert core.add("a", 1.0) is AddOutcome.QUEUED


def test_many_echoes_are_judged_although_few_are_kept() -> None:
    core, _ = echoing(max_triggers=4)
    assert failed(core, *(f"echo {number}" for number in range(200))) is RunOutcome.RETRIED
    assert len(core) == 0
    [delay] = core.delayed()
    assert (len(delay.triggers), delay.triggers.dropped) == (4, 197)
    core, _ = echoing(max_triggers=4)
    failed(core, *(f"echo {number}" for number in range(MOST_JUDGED + 1)))
    assert len(core) == 1


def test_run_gets_as_many_triggers_as_the_bound_allows_after_a_run_that_went_well() -> None:
    core, _ = echoing(max_triggers=4)
    core.add("a", 0.0, trigger="t")
    run = taken(core)
    for number in range(10):
        core.add("a", 0.0, trigger=f"echo {number}")
    core.finish(run, 0.0, Succeeded())
    run = taken(core)
    assert (run.triggers.kept, run.triggers.dropped) == (("echo 0", "echo 1", "echo 8", "echo 9"), 6)


def test_echo_neither_prevents_parking_nor_ends_it() -> None:
    core, _ = echoing()
    assert failed(core, "echo 1", error=TerminalError("for good")) is RunOutcome.PARKED
    assert core.add("a", 1.0, trigger="echo 2") is AddOutcome.MERGED
    [letter] = core.dead_letters()
    assert (len(core), letter.triggers.kept) == (0, ("t", "echo 1", "echo 2"))
    assert core.add("a", 1.0, trigger="news") is AddOutcome.QUEUED
    assert taken(core).triggers.kept == ("t", "echo 1", "echo 2", "news")
    assert not core.dead_letters()


def test_item_that_fails_and_has_no_retry_ahead_runs_by_an_echo() -> None:
    core, _ = echoing()
    failed(core)
    core.cancel_delayed("a")
    assert core.add("a", 1.0, trigger="echo") is AddOutcome.QUEUED


def test_echo_of_a_run_that_succeeded_runs_at_once() -> None:
    core, _ = echoing()
    failed(core)
    core.promote(60.0)
    run = taken(core, 60.0)
    core.add("a", 61.0, trigger="echo")
    core.finish(run, 62.0, Succeeded())
    assert len(core) == 1


def test_put_back_with_a_delay_keeps_triggers_and_failures() -> None:
    core, limiter = echoing(1.0)
    failed(core)
    core.promote(1.0)
    finished = core.finish(taken(core, 1.0), 1.0, Interrupted(5.0))
    assert (finished.fate, finished.delay, len(core), limiter.tokens) == (RunOutcome.PUT_BACK, 5.0, 0, 1)
    core.promote(6.0)
    run = taken(core, 6.0)
    assert (run.triggers.kept, run.failures) == (("t",), 1)
    core.shut_down()
    assert core.finish(run, 7.0, Interrupted(5.0)).fate is RunOutcome.GIVEN_UP
