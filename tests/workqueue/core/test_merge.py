"""Triggers that are folded into one another, and the priority that goes with them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from deltaloop.workqueue.core.facts import Failed, Interrupted
from deltaloop.workqueue.core.limiters import ItemExponentialFailureRateLimiter
from deltaloop.workqueue.core.queue import QueueCore
from deltaloop.workqueue.core.rate_limiting import RateLimitingCore
from deltaloop.workqueue.core.triggers import TriggerLog


def latest_of_each_kind(kept: tuple[object, ...], trigger: object) -> Sequence[object]:
    """Triggers are texts such as ``update 7``; keep one of each kind."""
    kind = str(trigger).split()[0]
    return [*(other for other in kept if str(other).split()[0] != kind), trigger]


def test_merge_function_reduces_triggers_and_counts_dropped() -> None:
    log = TriggerLog(merge=latest_of_each_kind)
    for trigger in ("add 1", "update 2", "update 3", "delete 4", "update 5"):
        log.add(trigger)
    assert log.kept == ("add 1", "delete 4", "update 5")
    assert log.dropped == 2


@pytest.mark.parametrize(
    ("answer", "snapshot", "dropped"),
    [((), (), 2), (("x",), ("x",), 1), (("x", "y"), ("x", "y"), 0), (("x", "y", "z"), ("x", "y"), 0)],
)
def test_kept_and_dropped_triggers_sum_to_added(
    answer: tuple[object, ...], snapshot: tuple[object, ...], dropped: int
) -> None:
    log = TriggerLog(merge=lambda kept, trigger: answer)
    log.add(1)
    log.add(2)
    assert (log.kept, log.dropped) == (snapshot, dropped)


def test_trigger_bound_applies_after_merge() -> None:
    log = TriggerLog(2, merge=lambda kept, trigger: (*kept, trigger))
    for trigger in range(5):
        log.add(trigger)
    assert (log.kept, log.dropped) == ((0, 4), 3)


def test_triggers_are_merged_for_all_combined_adds() -> None:
    core = RateLimitingCore[str](limiter=ItemExponentialFailureRateLimiter(1.0), merge_triggers=latest_of_each_kind)
    core.add("a", 0.0, trigger="update 1")
    core.add("a", 0.0, trigger="update 2")
    run = core.get(0.0)
    assert run is not None
    assert (run.triggers.kept, run.triggers.dropped) == (("update 2",), 1)
    core.add_after("a", 0.0, 1.0, trigger="update 3")
    core.add_after("a", 0.0, 1.0, trigger="update 4")
    core.finish(run, 0.0, Failed(KeyError("x")))  # its retry is due at the same time
    core.promote(1.0)
    run = core.get(1.0)
    assert run is not None
    assert run.triggers.dropped + len(run.triggers) == 4
    core.add("a", 1.0, trigger="update 5")
    core.finish(run, 1.0, Interrupted())
    run = core.get(1.0)
    assert run is not None
    assert (run.triggers.kept, run.triggers.dropped) == (("update 5",), 4)


def test_priority_is_highest_specified_priority() -> None:
    low, nothing, high = TriggerLog(stated_priority=-100), TriggerLog(), TriggerLog(stated_priority=3)
    assert (low.priority, nothing.priority, high.priority) == (-100, 0, 3)
    nothing.extend(low)
    assert nothing.priority == -100
    nothing.extend(TriggerLog())
    assert nothing.copy().priority == -100
    nothing.extend(high)
    assert nothing.priority == 3


def test_retry_keeps_priority_and_other_add_has_its_own() -> None:
    core = RateLimitingCore[str](limiter=ItemExponentialFailureRateLimiter(1.0))
    core.add("a", 0.0, priority=-100)
    for now in (0.0, 1.0):
        core.promote(now)
        run = core.get(now)
        assert run is not None
        assert run.triggers.priority == -100
        core.finish(run, now, Failed(KeyError("x")))
    core.add_rate_limited("a", 1.0, trigger="event")
    core.promote(100.0)
    run = core.get(100.0)
    assert run is not None
    assert run.triggers.priority == 0


def test_adds_during_processing_do_not_change_order() -> None:
    core = QueueCore[str]()
    core.add("a", 0.0)
    core.get(0.0)
    core.add("a", 0.0, priority=1)
    core.add("a", 0.0, priority=2)
    assert len(core) == 0
