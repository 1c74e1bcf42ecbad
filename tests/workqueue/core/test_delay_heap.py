"""The heap beside a sorted list, and its bound."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltaloop.workqueue.core.delay_heap import SPARE, DelayHeap, WaitingItem
from deltaloop.workqueue.core.triggers import TriggerLog

Operation = tuple[str, int, float]
OPERATIONS = st.lists(
    st.tuples(
        st.sampled_from(["put", "put", "put", "remove", "pop"]),
        st.integers(min_value=0, max_value=8),
        st.integers(min_value=0, max_value=6).map(float),
    ),
    max_size=60,
)


def delay_of(item: int, due_at: float) -> WaitingItem[int]:
    return WaitingItem(item, due_at, TriggerLog())


@given(OPERATIONS)
def test_heap_matches_sorted_list(operations: list[Operation]) -> None:
    heap = DelayHeap[int]()
    model: list[tuple[int, float]] = []  # in the order in which they were put in
    for what, item, due_at in operations:
        if what == "put":
            heap.put(delay_of(item, due_at))
            model = [entry for entry in model if entry[0] != item] + [(item, due_at)]
        elif what == "remove":
            removed = heap.remove(item)
            assert (removed is not None) == any(entry[0] == item for entry in model)
            model = [entry for entry in model if entry[0] != item]
        else:
            due = sorted((entry for entry in model if entry[1] <= due_at), key=lambda entry: entry[1])
            assert [(delay.item, delay.due_at) for delay in heap.pop_due(due_at)] == due
            model = [entry for entry in model if entry[1] > due_at]
        ordered = sorted(model, key=lambda entry: entry[1])
        assert [(delay.item, delay.due_at) for delay in heap.in_order()] == ordered
        assert [due_at for due_at, _, _ in heap.heap[:1]] == [due_at for _, due_at in ordered[:1]]
        assert len(heap) == len(model)
        assert heap.entries <= 2 * len(heap) + SPARE


def test_earlier_times_of_one_item_do_not_grow_heap() -> None:
    heap = DelayHeap[int]()
    longest = 0
    for step in range(10_000):
        heap.put(delay_of(1, 20_000.0 - step))
        longest = max(longest, heap.entries)
    assert longest <= 2 + SPARE
    assert [delay.due_at for delay in heap.pop_due(1e9)] == [10_001.0]


def test_canceled_items_do_not_grow_heap() -> None:
    heap = DelayHeap[int]()
    heap.put(delay_of(-1, 0.0))  # the top stays, so nothing is dropped from there
    for item in range(10_000):
        heap.put(delay_of(item, 5.0))
        heap.remove(item)
    assert heap.entries <= 2 + SPARE
    assert heap.clear() == 1
    assert (len(heap), heap.entries, heap.heap) == (0, 0, [])


def test_removed_items_leave_heap_without_new_items() -> None:
    heap = DelayHeap[int]()
    for item in range(300):
        heap.put(delay_of(item, 1000.0 - item))  # each is due before all others
    for item in range(299, 49, -2):
        heap.remove(item)
        assert heap.entries <= 2 * len(heap) + SPARE
    due = heap.pop_due(1e9)
    assert [delay.due_at for delay in due] == sorted(delay.due_at for delay in due)
    assert len(due) == 175


def test_postponed_item_is_not_due_earlier() -> None:
    heap = DelayHeap[int]()
    heap.put(delay_of(1, 1.0))
    heap.put(delay_of(1, 5.0))
    assert heap.pop_due(3.0) == []
    assert [delay.due_at for delay in heap.pop_due(5.0)] == [5.0]


@pytest.mark.parametrize("count", [1, 1000])
def test_items_with_equal_times_keep_order_of_adds(count: int) -> None:
    heap = DelayHeap[int]()
    for item in range(count):
        heap.put(delay_of(item, 7.0))
    assert heap.pop_due(6.999) == []
    assert [delay.item for delay in heap.pop_due(7.0)] == list(range(count))
