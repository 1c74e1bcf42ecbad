"""The delaying queue's rules, one by one."""

from __future__ import annotations

import math

import pytest

from deltaloop.workqueue.core.delaying import DelayingCore
from deltaloop.workqueue.core.facts import Again, Retried, Succeeded
from deltaloop.workqueue.core.queue import QueueCore, Run
from tests.having import having


def taken(core: QueueCore[str], now: float = 0.0) -> Run[str]:
    run = core.get(now)
    assert run is not None
    return run


def test_item_is_queued_after_its_delay() -> None:
    core = DelayingCore[str]()
    assert core.add_after("a", 10.0, 5.0, trigger="t") == "delayed"
    assert core.next_due_at() == 15.0
    assert core.promote(14.9) == 0
    assert len(core) == 0
    assert core.promote(15.0) == 1
    assert core.next_due_at() is None
    assert taken(core).triggers.kept == ("t",)


def test_timer_can_be_one_millisecond_early() -> None:
    core = DelayingCore[str]()
    core.add_after("a", 0.0, 5.0)
    assert core.promote(4.9989) == 0
    assert core.promote(4.9991) == 1


@pytest.mark.parametrize("delay", [0.0, -0.0, -5.0, -1e308])
def test_zero_delay_queues_item_immediately(delay: float) -> None:
    core = DelayingCore[str](observed=True)
    assert core.add_after("a", 0.0, delay) == "queued"
    assert len(core) == 1
    assert Retried() in core.take_facts()


@pytest.mark.parametrize("delay", [math.nan, math.inf, -math.inf])
def test_invalid_delay_is_rejected_without_change(delay: float) -> None:
    core = DelayingCore[str]()
    core.add_after("a", 0.0, 3.0, trigger="old")
    with pytest.raises(ValueError, check=having(argument="delay")):
        core.add_after("a", 0.0, delay, trigger="new")
    assert [entry.triggers.kept for entry in core.delayed()] == [("old",)]
    assert core.statistics(0.0).retries == 1


def test_huge_delay_is_valid() -> None:
    core = DelayingCore[str]()
    core.add_after("a", 1.0, 1e308)
    assert core.promote(1e300) == 0
    assert core.promote(1.1e308) == 1


@pytest.mark.parametrize("delays", [(5.0, 3.0), (3.0, 5.0)])
def test_earlier_time_wins_and_triggers_are_merged(delays: tuple[float, float]) -> None:
    core = DelayingCore[str]()
    assert core.add_after("a", 0.0, delays[0], trigger=1) == "delayed"
    assert core.add_after("a", 0.0, delays[1], trigger=2) == "merged"
    assert core.next_due_at() == 3.0
    assert core.promote(10.0) == 1
    assert taken(core).triggers.kept == (1, 2)
    assert core.promote(10.0) == 0


def test_delayed_items_are_queued_in_order_of_time() -> None:
    core = DelayingCore[str]()
    for item, delay in [("c", 3.0), ("a", 1.0), ("d", 3.0), ("b", 2.0)]:
        core.add_after(item, 0.0, delay)
    assert [entry.item for entry in core.delayed()] == ["a", "b", "c", "d"]
    core.promote(10.0)
    assert [taken(core).item for _ in range(4)] == ["a", "b", "c", "d"]


def test_add_does_not_cancel_delay() -> None:
    core = DelayingCore[str]()
    core.add_after("a", 0.0, 5.0, trigger="later")
    core.add("a", 1.0, trigger="now")
    run = taken(core, 1.0)
    assert run.triggers.kept == ("now",)
    core.finish(run, 1.0, Succeeded())
    core.promote(5.0)
    assert taken(core, 5.0).triggers.kept == ("later",)


def test_expired_delay_of_queued_item_is_merged() -> None:
    core = DelayingCore[str]()
    core.add("a", 0.0, trigger="now")
    core.add_after("a", 0.0, 5.0, trigger="later")
    core.promote(5.0)
    assert len(core) == 1
    assert taken(core).triggers.kept == ("now", "later")


def test_delays_can_be_listed_and_canceled() -> None:
    core = DelayingCore[str]()
    core.add_after("a", 0.0, 5.0, trigger="t")
    core.add_after("b", 0.0, 7.0)
    cancelled = core.cancel_delayed("a")
    assert cancelled is not None
    assert (cancelled.due_at, cancelled.triggers.kept) == (5.0, ("t",))
    assert core.cancel_delayed("a") is None
    assert core.next_due_at() == 7.0
    assert core.promote(6.0) == 0
    statistics = core.statistics(6.0)
    assert (statistics.delayed, statistics.next_due_in) == (1, 1.0)


def test_shutdown_drops_and_counts_delays() -> None:
    core = DelayingCore[str]()
    core.add_after("a", 0.0, 5.0)
    core.shut_down(drain=True)
    assert core.drain_over
    assert core.ended
    assert core.next_due_at() is None
    assert core.add_after("b", 0.0, 5.0) == "ignored"
    assert core.statistics(0.0).ignored == 2


@pytest.mark.parametrize(("keep", "expected"), [(True, ("why", "wait")), (False, ("wait",))])
def test_run_can_request_later_run(keep: bool, expected: tuple[str, ...]) -> None:
    core = DelayingCore[str]()
    core.add("a", 0.0, trigger="why")
    finished = core.finish(taken(core), 1.0, Again(60.0, "wait", keep))
    assert (finished.fate, finished.delay) == ("repeated", 60.0)
    assert core.processing == 0
    assert core.promote(61.0) == 1
    run = taken(core)
    assert run.triggers.kept == expected
    assert run.failures == 0


def test_later_run_after_shutdown_is_dropped() -> None:
    core = DelayingCore[str]()
    core.add("a", 0.0)
    core.shut_down()
    assert core.finish(taken(core), 0.0, Again(60.0)).fate == "given up"
    assert core.processing == 0


@pytest.mark.parametrize("keep", [True, False])
def test_later_run_keeps_priority(keep: bool) -> None:
    core = DelayingCore[str]()
    core.add("a", 0.0, priority=5)
    core.finish(taken(core), 0.0, Again(1.0, "wait", keep))
    core.promote(1.0)
    assert taken(core).triggers.priority == 5


def test_facts_are_off_and_priority_is_zero_by_default() -> None:
    core = DelayingCore[str]()
    core.add_after("a", 0.0, 1.0)
    core.promote(1.0)
    assert taken(core).triggers.priority == 0
    assert core.take_facts() == []
