"""The rate limiting queue's rules, one by one."""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Any

import pytest

from deltaloop.workqueue.core.facts import Again, Failed, Interrupted, RunOutcome, Succeeded
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


def test_delays_grow_with_failures_until_forget() -> None:
    core = RateLimitingCore[str](limiter=ItemExponentialFailureRateLimiter(0.001, 1.0))
    now = 0.0
    core.add("a", now)
    for attempt, delay in enumerate([0.001, 0.002, 0.004]):
        run = taken(core, now)
        assert run.failures == attempt
        finished = core.finish(run, now, Failed(ERROR))
        assert finished.fate == "retried"
        assert finished.delay == pytest.approx(delay)
        now += delay
        assert core.promote(now) == 1
    assert core.num_requeues("a") == 3
    core.finish(taken(core, now), now, Succeeded())
    assert core.num_requeues("a") == 0
    core.add("a", now)
    assert taken(core, now).failures == 0


def test_triggers_survive_retries_until_success() -> None:
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


def test_plain_calls_keep_triggers_and_failures() -> None:
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


def test_add_during_processing_is_not_failure() -> None:
    core, _ = core_with(1.0)
    core.add("a", 0.0, trigger="run")
    run = taken(core)
    core.add_rate_limited("a", 0.0, trigger="event")
    core.finish(run, 0.0, Succeeded())
    core.promote(1.0)
    run = taken(core)
    assert (run.triggers.kept, run.failures) == (("event",), 0)


def test_rate_limited_add_of_queued_item_refunds_token() -> None:
    core, limiter = core_with(1.0)
    core.add("a", 0.0, trigger=1)
    for trigger in (2, 3):
        assert core.add_rate_limited("a", 0.0, trigger=trigger) == "merged"
    assert limiter.tokens == 0
    assert core.delayed() == []
    assert taken(core).triggers.kept == (1, 2, 3)


def test_rate_limited_add_of_delayed_item_refunds_token() -> None:
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


def test_token_is_refunded_if_delay_is_canceled_or_merged() -> None:
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
def test_redundant_adds_do_not_delay_next_item() -> None:
    """kubernetes issue 104554: a storm of adds that make no difference."""
    now = 0.0
    core = RateLimitingCore[str](limiter=default_controller_rate_limiter(clock=lambda: now))
    core.add("busy", now)
    for _ in range(20_000):
        core.add_rate_limited("busy", now)
    core.add_rate_limited("other", now)
    assert core.next_due_at() == 0.005


def test_failure_with_repeated_retry_requests_counts_once() -> None:
    core, limiter = core_with(1.0)
    core.add("a", 0.0, trigger="t")
    run = taken(core)
    core.add_rate_limited("a", 0.0, error=ERROR)
    core.add_rate_limited("a", 0.0, error=ERROR)
    assert core.finish(run, 0.0, Failed(ERROR)).fate == "retried"
    assert len(limiter.errors) == 2
    core.promote(1.0)
    run = taken(core)
    assert (run.triggers.kept, run.failures) == (("t",), 1)


@pytest.mark.parametrize("ending", [Interrupted(), Again(1.0)])
def test_requested_retry_gets_triggers_once(ending: Interrupted | Again) -> None:
    core, _ = core_with(1.0)
    core.add("a", 0.0, trigger="t")
    run = taken(core)
    core.add_rate_limited("a", 0.0)
    core.finish(run, 0.0, ending)
    core.promote(1.0)
    assert taken(core).triggers.kept == ("t",)
    assert len(core) == 0


def test_failure_after_shutdown_is_dropped_without_limiter() -> None:
    core, limiter = core_with(1.0)
    core.add("a", 0.0)
    core.add("b", 0.0, trigger="old")
    lost, postponed = taken(core), taken(core)
    core.add("b", 0.0, trigger="new")
    core.shut_down()
    assert core.add_rate_limited("c", 0.0) == "ignored"
    assert core.add_rate_limited("a", 0.0) == "ignored"
    finished = core.finish(lost, 0.0, Failed(ERROR))
    assert (finished.fate, finished.suppressed) == ("given up", True)
    assert limiter.errors == []
    assert core.finish(postponed, 0.0, Failed(ERROR)).fate == "retried"  # it comes anyway
    assert taken(core).triggers.kept == ("old", "new")
    assert limiter.tokens == 0


@pytest.mark.parametrize("answer", [math.nan, math.inf])
def test_invalid_delay_of_limiter_is_rejected_without_losing_item(answer: float) -> None:
    core, _ = core_with(answer)
    with pytest.raises(ValueError, check=having(argument="delay")):
        core.add_rate_limited("a", 0.0, trigger="t")
    core.add("a", 0.0, trigger="t")
    finished = core.finish(taken(core), 0.0, Failed(ERROR))
    assert (finished.fate, finished.delay) == ("retried", BROKEN_LIMITER_DELAY)
    assert isinstance(finished.limiter_error, ValueError)
    core.promote(BROKEN_LIMITER_DELAY)
    run = taken(core)
    assert (run.triggers.kept, run.failures) == (("t",), 1)


def test_broken_limiter_loses_no_item() -> None:
    core = RateLimitingCore[str](limiter=BrokenLimiter())
    core.add("a", 0.0)
    finished = core.finish(taken(core), 0.0, Failed(ERROR))
    assert (finished.fate, finished.delay) == ("retried", BROKEN_LIMITER_DELAY)
    assert isinstance(finished.limiter_error, RuntimeError)
    core.promote(5.0)
    run = taken(core, 5.0)
    with pytest.raises(RuntimeError, match="broken"):
        core.finish(run, 5.0, Succeeded())
    assert core.processing == 0


def test_negative_delay_of_limiter_means_immediately() -> None:
    core, _ = core_with(-3.0)
    assert core.add_rate_limited("a", 0.0) == "queued"
    finished = core.finish(taken(core), 0.0, Failed(ERROR))
    assert finished.delay == 0.0
    assert len(core) == 1


def test_rate_limited_add_of_queued_item_counts_as_merged() -> None:
    core, _ = core_with(1.0)
    core.add("a", 0.0)
    core.add_rate_limited("a", 0.0, trigger="again")
    core.add_rate_limited("a", 0.0, trigger="and again")
    seen = core.statistics(0.0)
    assert (seen.adds, seen.merged, seen.retries, seen.ignored) == (1, 2, 2, 0)


def test_rate_limited_add_after_shutdown_counts_as_ignored() -> None:
    core, _ = core_with(1.0)
    core.shut_down()
    assert core.add_rate_limited("a", 0.0) == "ignored"
    assert core.add_rate_limited("b", 0.0) == "ignored"
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


def test_echo_waits_for_retry_before_or_after_end_of_run() -> None:
    core, limiter = echoing()
    assert failed(core, "echo 1") == "retried"
    assert core.add("a", 1.0, trigger="echo 2") == "merged"
    assert (len(core), limiter.tokens, core.statistics(1.0).adds) == (0, 1, 2)
    core.promote(60.0)
    run = taken(core, 60.0)
    assert (run.triggers.kept, run.failures) == (("t", "echo 1", "echo 2"), 1)


def test_other_trigger_runs_immediately_together_with_echoes() -> None:
    for during in (("echo", "news"), ("news", "echo")):
        core, limiter = echoing()
        failed(core, *during)
        assert (len(core), limiter.tokens) == (1, 0)
    core, _ = echoing()
    failed(core, "echo")
    assert core.add("a", 1.0, trigger="news") == "queued"
    assert core.add("a", 1.0) == "merged"


def test_add_without_trigger_is_not_echo() -> None:
    core, _ = echoing()
    failed(core, "echo")
    assert core.add("a", 1.0) == "queued"


def test_echoes_beyond_trigger_bound_are_recognized() -> None:
    core, _ = echoing(max_triggers=4)
    assert failed(core, *(f"echo {number}" for number in range(200))) == "retried"
    assert len(core) == 0
    [delay] = core.delayed()
    assert (len(delay.triggers), delay.triggers.dropped) == (4, 197)
    core, _ = echoing(max_triggers=4)
    failed(core, *(f"echo {number}" for number in range(MOST_JUDGED + 1)))
    assert len(core) == 1


def test_triggers_are_bounded_after_successful_run() -> None:
    core, _ = echoing(max_triggers=4)
    core.add("a", 0.0, trigger="t")
    run = taken(core)
    for number in range(10):
        core.add("a", 0.0, trigger=f"echo {number}")
    core.finish(run, 0.0, Succeeded())
    run = taken(core)
    assert (run.triggers.kept, run.triggers.dropped) == (("echo 0", "echo 1", "echo 8", "echo 9"), 6)


def test_echo_does_not_affect_parking() -> None:
    core, _ = echoing()
    assert failed(core, "echo 1", error=TerminalError("for good")) == "parked"
    assert core.add("a", 1.0, trigger="echo 2") == "merged"
    [letter] = core.dead_letters()
    assert (len(core), letter.triggers.kept) == (0, ("t", "echo 1", "echo 2"))
    assert core.add("a", 1.0, trigger="news") == "queued"
    assert taken(core).triggers.kept == ("t", "echo 1", "echo 2", "news")
    assert not core.dead_letters()


def test_echo_queues_failed_item_without_pending_retry() -> None:
    core, _ = echoing()
    failed(core)
    core.cancel_delayed("a")
    assert core.add("a", 1.0, trigger="echo") == "queued"


def test_echo_of_successful_run_is_queued_immediately() -> None:
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
    assert (finished.fate, finished.delay, len(core), limiter.tokens) == ("put back", 5.0, 0, 1)
    core.promote(6.0)
    run = taken(core, 6.0)
    assert (run.triggers.kept, run.failures) == (("t",), 1)
    core.shut_down()
    assert core.finish(run, 7.0, Interrupted(5.0)).fate == "given up"
