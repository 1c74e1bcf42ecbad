"""When an item is parked, and how it comes back."""

from __future__ import annotations

import pytest

from deltaloop.errors import TerminalError
from deltaloop.workqueue.core.dead_letters import DeadLetters, ParkedItem
from deltaloop.workqueue.core.facts import Failed, Succeeded
from deltaloop.workqueue.core.limiters import ItemExponentialFailureRateLimiter
from deltaloop.workqueue.core.queue import Run
from deltaloop.workqueue.core.rate_limiting import RateLimitingCore
from deltaloop.workqueue.core.triggers import TriggerLog
from deltaloop.workqueue.errors import is_terminal

ERROR = KeyError("x")


def make_core(max_requeues: int | None = None, max_dead_letters: int = 10) -> RateLimitingCore[str]:
    limiter = ItemExponentialFailureRateLimiter(1.0, 1.0)
    return RateLimitingCore[str](limiter=limiter, max_requeues=max_requeues, max_dead_letters=max_dead_letters)


def taken(core: RateLimitingCore[str], now: float) -> Run[str]:
    core.promote(now)
    run = core.get(now)
    assert run is not None
    return run


@pytest.mark.parametrize("retries", [0, 1, 3])
def test_item_is_parked_with_last_error_after_retries(retries: int) -> None:
    core = make_core(retries)
    core.add("a", 0.0, trigger="why")
    now = 0.0
    for attempt in range(retries):
        finished = core.finish(taken(core, now), now, Failed(KeyError(attempt)))
        assert finished.fate == "retried"
        now += 1.0
    finished = core.finish(taken(core, now), now, Failed(ERROR))
    assert (finished.fate, finished.suppressed) == ("parked", True)
    (letter,) = core.dead_letters()
    assert (letter.item, letter.error, letter.attempts, letter.parked_at) == ("a", ERROR, retries + 1, now)
    assert letter.triggers.kept == ("why",)
    assert core.num_requeues("a") == 0
    assert core.next_due_at() is None
    statistics = core.statistics(now)
    assert (statistics.parked, statistics.parked_total, statistics.failing) == (1, 1, 0)


def test_item_without_retry_limit_is_retried_forever() -> None:
    core = make_core(None)
    core.add("a", 0.0)
    for attempt in range(100):
        assert core.finish(taken(core, float(attempt)), float(attempt), Failed(ERROR)).fate == "retried"


def test_only_consecutive_retries_count() -> None:
    core = make_core(1)
    for now in (0.0, 10.0, 20.0):
        core.add("a", now)
        core.finish(taken(core, now), now, Failed(ERROR))
        core.finish(taken(core, now + 1.0), now + 1.0, Succeeded())
    assert core.dead_letters() == []


def test_terminal_error_parks_item_immediately() -> None:
    core = make_core(None)
    core.add("a", 0.0)
    assert core.finish(taken(core, 0.0), 0.0, Failed(TerminalError("spec.replicas is negative"))).fate == "parked"


class BadSpecError(TerminalError):
    """A user's own."""


@pytest.mark.parametrize(
    ("error", "terminal"),
    [
        (None, False),
        (KeyError("x"), False),
        (TerminalError("x"), True),
        (BadSpecError("x"), True),
        (ExceptionGroup("g", [TerminalError("x"), BadSpecError("y")]), True),
        (ExceptionGroup("g", [TerminalError("x"), KeyError("y")]), False),
        (ExceptionGroup("g", [ExceptionGroup("h", [TerminalError("x")])]), True),
    ],
)
def test_terminal_errors_are_recognized(error: BaseException | None, terminal: bool) -> None:
    assert is_terminal(error) == terminal


def test_add_restores_parked_item_with_triggers_and_all_retries() -> None:
    core = make_core(1)
    core.add("a", 0.0, trigger="old")
    core.finish(taken(core, 0.0), 0.0, Failed(ERROR))
    core.finish(taken(core, 1.0), 1.0, Failed(ERROR))
    assert len(core.dead_letters()) == 1
    core.add("a", 5.0, trigger="new")
    assert core.dead_letters() == []
    run = taken(core, 5.0)
    assert (run.triggers.kept, run.failures) == (("old", "new"), 0)
    assert core.finish(run, 5.0, Failed(ERROR)).fate == "retried"


def test_item_added_during_run_is_not_parked() -> None:
    core = make_core()
    core.add("a", 0.0, trigger="old")
    run = taken(core, 0.0)
    core.add("a", 0.0, trigger="new")
    finished = core.finish(run, 0.0, Failed(TerminalError("x")))
    assert (finished.fate, finished.suppressed) == ("retried", True)
    assert core.dead_letters() == []
    again = taken(core, 0.0)
    assert (again.triggers.kept, again.failures) == (("old", "new"), 0)


def test_dead_letter_can_be_retried_or_discarded() -> None:
    core = make_core()
    for item in ("a", "b"):
        core.add(item, 0.0, trigger=f"old {item}")
        core.finish(taken(core, 0.0), 0.0, Failed(TerminalError(item)))
    assert not core.retry_dead_letter("c", 1.0)
    assert core.discard_dead_letter("c") is None
    assert core.retry_dead_letter("a", 1.0, trigger="by hand")
    assert taken(core, 1.0).triggers.kept == ("old a", "by hand")
    letter = core.discard_dead_letter("b")
    assert letter is not None
    assert letter.item == "b"
    assert core.dead_letters() == []
    core.add("b", 2.0)
    assert taken(core, 2.0).triggers.kept == ()


def test_failures_are_parked_but_not_retried_after_shutdown() -> None:
    core = make_core()
    core.add("a", 0.0)
    run = taken(core, 0.0)
    core.shut_down()
    assert core.finish(run, 0.0, Failed(TerminalError("x"))).fate == "parked"
    assert not core.retry_dead_letter("a", 1.0)
    assert len(core.dead_letters()) == 1
    assert core.ended


def test_add_rate_limited_parks_item() -> None:
    core = make_core(0)
    core.add("a", 0.0, trigger="why")
    run = taken(core, 0.0)
    assert core.add_rate_limited("a", 0.0, error=ERROR) == "parked"
    core.done("a", 0.0)
    (letter,) = core.dead_letters()
    assert (letter.attempts, letter.triggers.kept) == (1, ("why",))
    assert core.finish(run, 0.0, Failed(ERROR)).fate == "over"


def test_add_rate_limited_followed_by_error_is_one_dead_letter() -> None:
    core = make_core(0)
    core.add("a", 0.0)
    run = taken(core, 0.0)
    core.add_rate_limited("a", 0.0, error=ERROR)
    assert core.finish(run, 0.0, Failed(ERROR)).fate == "parked"
    assert core.statistics(0.0).parked_total == 1


def test_terminal_error_after_done_parks_item_unless_queued() -> None:
    core = make_core()
    assert core.add_rate_limited("a", 0.0, error=TerminalError("x"), trigger="t") == "parked"
    core.add("b", 0.0)
    assert core.add_rate_limited("b", 0.0, error=TerminalError("x")) == "merged"
    assert [letter.item for letter in core.dead_letters()] == ["a"]
    assert (core.statistics(0.0).merged, core.statistics(0.0).retries) == (1, 1)


def test_requested_retry_precedes_later_terminal_error() -> None:
    core = make_core()
    core.add("a", 0.0)
    run = taken(core, 0.0)
    core.add_rate_limited("a", 0.0, error=ERROR)
    assert core.finish(run, 0.0, Failed(TerminalError("x"))).fate == "retried"
    assert core.dead_letters() == []
    assert core.next_due_at() == 1.0


def test_dead_letters_are_bounded() -> None:
    core = make_core(0, max_dead_letters=2)
    for item in "abc":
        core.add(item, 0.0)
        core.finish(taken(core, 0.0), 0.0, Failed(ERROR))
    assert [letter.item for letter in core.dead_letters()] == ["b", "c"]
    statistics = core.statistics(0.0)
    assert (statistics.parked, statistics.parked_total, statistics.parked_dropped) == (2, 3, 1)


def test_item_has_one_dead_letter() -> None:
    letters = DeadLetters[str](2)
    for item in ("a", "b", "a"):
        letters.put(ParkedItem(item, ERROR, 1, TriggerLog(), 0.0))
    assert [letter.item for letter in letters.in_order()] == ["b", "a"]
    assert (letters.total, letters.dropped) == (3, 0)


def test_parked_item_keeps_trigger_of_terminal_error() -> None:
    core = RateLimitingCore[str](limiter=ItemExponentialFailureRateLimiter(1.0))
    core.add_rate_limited("a", 0.0, error=TerminalError("for good"), trigger="why")
    (letter,) = core.dead_letters()
    assert letter.triggers.kept == ("why",)


def test_thousand_dead_letters_are_stored_by_default() -> None:
    core = RateLimitingCore[int](limiter=ItemExponentialFailureRateLimiter(1.0))
    for item in range(1001):
        core.add_rate_limited(item, 0.0, error=TerminalError("for good"))
    assert [len(core.dead_letters()), core.dead_letters()[0].item] == [1000, 1]
