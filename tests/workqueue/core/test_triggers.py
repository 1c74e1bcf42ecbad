"""Which triggers are kept when there are too many."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltaloop.workqueue.core.triggers import TriggerLog
from tests.workqueue.core.models import dropped, kept


def log_of(triggers: list[int], bound: int) -> TriggerLog:
    log = TriggerLog(bound)
    for trigger in triggers:
        log.add(trigger)
    return log


@pytest.mark.parametrize(
    ("bound", "count", "expected", "dropped"),
    [
        (4, 3, (0, 1, 2), 0),
        (4, 4, (0, 1, 2, 3), 0),
        (4, 9, (0, 1, 7, 8), 5),
        (3, 9, (0, 1, 8), 6),
        (1, 9, (0,), 8),
        (0, 9, (), 9),
        (16, 100, (*range(8), *range(92, 100)), 84),
    ],
)
def test_first_and_latest_triggers_are_kept(bound: int, count: int, expected: tuple[int, ...], dropped: int) -> None:
    log = log_of(list(range(count)), bound)
    assert log.kept == expected
    assert log.dropped == dropped
    assert len(log) == len(expected)


def test_missing_trigger_is_not_stored() -> None:
    log = TriggerLog(1)
    log.add(None)
    log.add(None)
    assert (log.kept, log.dropped) == ((), 0)
    assert repr(log) == "<TriggerLog of 0, 0 dropped>"


def test_snapshot_and_copy_are_independent() -> None:
    log = log_of([1, 2], 4)
    snapshot, copy = log.kept, log.copy()
    log.add(3)
    assert snapshot == copy.kept == (1, 2)


@given(st.lists(st.lists(st.integers(), max_size=9), max_size=5), st.integers(min_value=0, max_value=6))
def test_merging_bounded_logs_equals_bounding_merged_triggers(parts: list[list[int]], bound: int) -> None:
    log = TriggerLog(bound)
    for part in parts:
        log.extend(log_of(part, bound))
    everything = [trigger for part in parts for trigger in part]
    assert log.kept == kept(everything, bound)
    assert log.dropped == dropped(everything, bound)


def test_sixteen_triggers_are_stored_by_default() -> None:
    log = TriggerLog()
    for number in range(17):
        log.add(number)
    assert (len(log), log.dropped) == (16, 1)
