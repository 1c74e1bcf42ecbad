"""The plain queue's rules, one by one."""

from __future__ import annotations

from collections.abc import Hashable
from typing import cast

import pytest

from deltaloop.workqueue.core.facts import (
    Added,
    Again,
    Done,
    Failed,
    Interrupted,
    Started,
    Succeeded,
)
from deltaloop.workqueue.core.orders import PriorityOrder
from deltaloop.workqueue.core.queue import QueueCore, Run
from deltaloop.workqueue.core.queue_order import FirstInFirstOut, QueueOrder
from tests.having import having


def taken(core: QueueCore[str], now: float = 0.0) -> Run[str]:
    run = core.get(now)
    assert run is not None
    return run


def test_items_are_taken_in_order_of_first_add() -> None:
    core = QueueCore[str]()
    for item in "abcab":
        core.add(item, 0.0)
    assert [taken(core).item for _ in range(3)] == ["a", "b", "c"]
    assert core.get(0.0) is None


def test_repeated_adds_are_one_run() -> None:
    core = QueueCore[str]()
    assert core.add("a", 0.0, trigger=0) == "queued"
    assert {core.add("a", 0.0, trigger=trigger) for trigger in range(1, 10)} == {"merged"}
    assert len(core) == 1
    run = taken(core)
    assert run.triggers.kept == tuple(range(10))
    assert not core.done("a", 0.0)
    assert core.get(0.0) is None


def test_repeated_adds_during_processing_are_one_more_run() -> None:
    core = QueueCore[str]()
    core.add("a", 0.0, trigger="before")
    run = taken(core)
    assert core.add("a", 0.0, trigger="meanwhile") == "postponed"
    assert core.add("a", 0.0, trigger="meanwhile too") == "merged"
    assert len(core) == 0
    assert core.get(0.0) is None
    assert core.done("a", 0.0)
    assert len(core) == 1
    assert run.triggers.kept == ("before",)
    assert taken(core).triggers.kept == ("meanwhile", "meanwhile too")


def test_item_added_during_processing_goes_to_end_of_queue() -> None:
    core = QueueCore[str]()
    core.add("a", 0.0)
    taken(core)
    core.add("a", 0.0)
    core.add("b", 0.0)
    core.done("a", 0.0)
    assert [taken(core).item, taken(core).item] == ["b", "a"]


def test_done_without_get_is_rejected_without_change() -> None:
    core = QueueCore[str]()
    core.add("a", 0.0)
    with pytest.raises(ValueError, check=having(argument="item of done()")):
        core.done("a", 0.0)
    taken(core)
    core.done("a", 0.0)
    with pytest.raises(ValueError, check=having(argument="item of done()")):
        core.done("a", 0.0)
    assert core.statistics(0.0).done == 1


def test_ended_run_cannot_end_next_run() -> None:
    core = QueueCore[str]()
    core.add("a", 0.0)
    first = taken(core)
    core.done("a", 0.0)
    core.add("a", 0.0)
    taken(core)
    assert core.finish(first, 0.0, Interrupted()).fate == "over"
    assert core.processing == 1
    error = KeyError("x")
    assert core.finish(first, 0.0, Failed(error)).error is error


def test_failure_without_limiter_is_unhandled() -> None:
    core = QueueCore[str]()
    core.add("a", 0.0)
    finished = core.finish(taken(core), 0.0, Failed(KeyError("x")))
    assert finished.fate == "unhandled"
    assert not finished.suppressed
    assert core.processing == 0


def test_interrupted_run_is_put_back_with_its_triggers_first() -> None:
    core = QueueCore[str](max_triggers=3)
    for trigger in range(4):
        core.add("a", 0.0, trigger=trigger)
    run = taken(core)
    core.add("a", 0.0, trigger="new")
    assert core.finish(run, 0.0, Interrupted()).fate == "put back"
    again = taken(core)
    assert again.triggers.kept == (0, 1, "new")
    assert again.triggers.dropped == 2
    assert again.failures == 0


def test_interrupted_run_after_shutdown_is_dropped_unless_queued_again() -> None:
    core = QueueCore[str]()
    core.add("a", 0.0)
    core.add("b", 0.0)
    lost, kept = taken(core), taken(core)
    core.add("b", 0.0, trigger="meanwhile")
    core.shut_down()
    assert core.finish(lost, 0.0, Interrupted()).fate == "given up"
    assert core.finish(kept, 0.0, Interrupted()).fate == "put back"
    assert taken(core).item == "b"
    assert core.statistics(0.0).ignored == 1


def test_shutdown_ignores_adds_and_keeps_queued_items() -> None:
    core = QueueCore[str]()
    core.add("a", 0.0)
    core.shut_down()
    assert core.add("b", 0.0) == "ignored"
    assert not core.ended
    run = taken(core)
    assert core.ended
    core.finish(run, 0.0, Succeeded())
    assert core.get(0.0) is None


def test_queue_ends_after_postponed_items_are_taken() -> None:
    core = QueueCore[str]()
    core.add("a", 0.0)
    taken(core)
    core.add("a", 0.0)
    core.shut_down()
    assert not core.ended
    core.done("a", 0.0)
    assert not core.ended
    taken(core)
    assert core.ended


def test_drain_waits_for_queued_and_processed_items_until_a_plain_shutdown() -> None:
    core = QueueCore[str]()
    core.add("a", 0.0)
    core.shut_down(drain=True)
    assert not core.drain_over
    run = taken(core)
    assert not core.drain_over
    core.finish(run, 0.0, Succeeded())
    assert core.drain_over

    core = QueueCore[str]()
    core.add("a", 0.0)
    core.shut_down(drain=True)
    core.shut_down()
    assert core.drain_over


def test_latency_starts_at_first_add_and_duration_at_get() -> None:
    core = QueueCore[str](observed=True)
    core.add("a", 1.0)
    core.add("a", 3.0)
    taken(core, 4.0)
    core.add("a", 5.0)
    core.add("a", 6.0)
    core.done("a", 10.0)
    taken(core, 10.5)
    assert core.take_facts() == [Added(), Started(3.0), Added(), Done(6.0), Started(5.5)]
    assert core.unfinished(12.0) == (1.5, 1.5)


def test_unhashable_item_is_rejected_without_change() -> None:
    core = QueueCore[Hashable]()
    with pytest.raises(TypeError, match="unhashable"):
        core.add(cast("Hashable", [1]), 0.0)
    assert len(core) == 0
    assert core.statistics(0.0).adds == 0


def test_plain_queue_ignores_requested_later_run() -> None:
    core = QueueCore[str]()
    core.add("a", 0.0)
    assert core.finish(taken(core), 0.0, Again(3.0)).fate == "finished"
    assert not core.can_delay


def test_done_at_once_is_false_if_end_has_effects() -> None:
    observed = QueueCore[str](observed=True)
    observed.add("a", 0.0)
    observed.get(0.0)
    core = QueueCore[str]()
    for item in "abc":
        core.add(item, 0.0)
    for _ in "abc":
        core.get(0.0)
    core.add("b", 0.0)
    assert [core.done_at_once(item) for item in ("a", "a", "b", "nobody's")] == [True, False, False, False]
    core.shut_down()
    assert not core.done_at_once("c")
    assert not observed.done_at_once("a")
    assert (observed.processing, core.processing, core.statistics(0.0).done) == (1, 2, 1)


@pytest.mark.parametrize("order", [None, FirstInFirstOut[str](), PriorityOrder[str]({0: 0.0})])
@pytest.mark.parametrize("observed", [False, True])
def test_add_time_is_needed_only_for_facts_and_priorities(order: QueueOrder[str] | None, observed: bool) -> None:
    core = QueueCore[str](order=order, observed=observed)
    assert core.dated == (observed or isinstance(order, PriorityOrder))
