"""The orders of the line: what they promise holds in all small cases and in many large ones; mutants are seen."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from deltaloop.workqueue.core.orders import SPARE, FairOrder, Patience, PriorityOrder, by_namespace
from deltaloop.workqueue.core.queue import QueueCore
from deltaloop.workqueue.core.queue_order import FirstInFirstOut, QueueOrder
from tests.having import having
from tests.nightly import examples
from tests.workqueue.core.order_bounds import PATIENCE, Item, MakeOrder, Step, all_schedules, check, flow_of

TAKE: Step = ("take",)
TICK: Step = ("tick",)
HIGH: Step = ("join", "a", 1)
LOW: Step = ("join", "a", 0)
RAISE: Step = ("touch", "a", 1)


def fifo() -> QueueOrder[Item]:
    return FirstInFirstOut[Item]()


def priorities() -> QueueOrder[Item]:
    return PriorityOrder[Item](PATIENCE)


def shares() -> QueueOrder[Item]:
    return FairOrder[Item](flow_of)


def both() -> QueueOrder[Item]:
    return FairOrder[Item](flow_of, make_order=priorities)


CASES: dict[str, tuple[MakeOrder, bool, bool, list[Step], int]] = {
    "first in, first out": (fifo, False, False, [HIGH, LOW, RAISE, TAKE], 6),
    "priorities": (priorities, True, False, [HIGH, LOW, RAISE, TICK, TAKE], 6),
    "shares": (shares, False, True, [HIGH, ("join", "b", 0), ("join", "c", 0), TAKE], 7),
    "both": (both, True, True, [HIGH, LOW, ("join", "b", 0), TICK, TAKE], 6),
}


def explore(make_order: MakeOrder, alphabet: list[Step], length: int, *, ageing: bool, fair: bool) -> None:
    for steps in all_schedules(alphabet, length):
        check(make_order, steps, ageing=ageing, fair=fair)


@pytest.mark.nightly
@pytest.mark.parametrize(("make_order", "ageing", "fair", "alphabet", "length"), CASES.values(), ids=CASES)
def test_order_bounds_hold_in_all_small_schedules(
    make_order: MakeOrder, ageing: bool, fair: bool, alphabet: list[Step], length: int
) -> None:
    explore(make_order, alphabet, length, ageing=ageing, fair=fair)


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("join"), st.sampled_from("abcde"), st.sampled_from([-5, 0, 1, 9])),
        st.tuples(st.sampled_from(["join", "touch"]), st.sampled_from("ab"), st.sampled_from([0, 1])),
        st.just(TICK),
        st.just(TAKE),
    ),
    max_size=80,
)


@pytest.mark.parametrize(("make_order", "ageing", "fair", "alphabet", "length"), CASES.values(), ids=CASES)
def test_order_bounds_hold_in_large_schedules(
    make_order: MakeOrder, ageing: bool, fair: bool, alphabet: list[Step], length: int
) -> None:
    @settings(max_examples=examples(150), derandomize=True, database=None)
    @given(STEPS)
    def run(steps: list[Step]) -> None:
        check(make_order, steps, ageing=ageing, fair=fair)

    run()


# -- seeded bugs


# -- rules one by one


def test_low_priority_item_waits_at_most_its_aging_time() -> None:
    """One urgent item each second, for ever; the other one gets its turn after half a minute."""
    core = QueueCore[str](order=PriorityOrder[str]({0: 0.0, -100: 30.0}))
    core.add("patient", 0.0, priority=-100)
    for second in range(1000):
        core.add(f"urgent {second}", float(second))
        run = core.get(float(second))
        assert run is not None
        core.done(run.item, float(second))
        if run.item == "patient":
            assert second == 30
            return
    pytest.fail("it starved")


def test_busy_flow_delays_other_flow_by_one_item() -> None:
    core = QueueCore[str](order=FairOrder[str](by_namespace))
    for number in range(1000):
        core.add(f"busy/{number}", 0.0)
    core.add("quiet/0", 0.0)
    core.add("quiet/1", 0.0)
    taken = [run.item for run in (core.get(0.0) for _ in range(4)) if run is not None]
    assert taken == ["busy/0", "quiet/0", "busy/1", "quiet/1"]


def test_priorities_without_order_are_ignored() -> None:
    core = QueueCore[str]()
    core.add("first", 0.0, priority=-100)
    core.add("second", 0.0, priority=100)
    run = core.get(0.0)
    assert run is not None
    assert run.item == "first"


def test_highest_priority_of_adds_counts() -> None:
    core = QueueCore[str](order=PriorityOrder[str]({0: 0.0, -100: 30.0}))
    core.add("a", 0.0, priority=-100)
    core.add("b", 1.0)
    core.add("a", 2.0)  # now it is urgent, but since two seconds only
    assert [run.item for run in (core.get(2.0) for _ in range(2)) if run is not None] == ["b", "a"]
    core.add("a", 3.0)
    core.add("a", 3.0, priority=-100)  # while it is processed: the higher one stays
    core.add("c", 3.5, priority=-100)
    core.done("a", 4.0)
    run = core.get(4.0)
    assert run is not None
    assert (run.item, run.triggers.priority) == ("a", 0)


@pytest.mark.parametrize(("priority", "seconds"), [(5, 0.0), (0, 0.0), (-1, 30.0), (-100, 30.0), (-101, 60.0)])
def test_unlisted_priority_uses_next_lower_priority(priority: int, seconds: float) -> None:
    assert Patience({0: 0.0, -100: 30.0, -200: 60.0}).of(priority) == seconds


def test_priority_below_lowest_uses_lowest() -> None:
    assert Patience({0: 1.0, -100: 30.0}).of(-(10**9)) == 30.0


@pytest.mark.parametrize("seconds", [{}, {0: -1.0}, {0: math.nan}, {0: math.inf}, {0: 5.0, -100: 1.0}])
def test_invalid_priority_aging_is_rejected(seconds: dict[int, float]) -> None:
    with pytest.raises(ValueError, check=having(argument="QueueOptions.priority_aging")):
        Patience(seconds)


def test_repeated_touch_does_not_grow_heap() -> None:
    order = PriorityOrder[int]({n: 20_000.0 - n for n in range(10_000)})
    order.push(-1, 0.0, priority=0)
    for priority in range(10_000):
        order.touch(-1, 0.0, priority=priority)
        assert order.entries <= 2 + SPARE + 1
    assert order.pop() == -1
    assert len(order) == 0


class Named:
    def __init__(self, namespace: object) -> None:
        self.namespace = namespace


@pytest.mark.parametrize(
    ("item", "flow"),
    [("ns/a", "ns"), ("a", ""), ("ns/a/b", "ns"), (Named("ns"), "ns"), (Named(None), ""), (7, ""), (("ns", "a"), "")],
)
def test_default_flow_is_namespace(item: object, flow: str) -> None:
    assert by_namespace(item) == flow


@settings(derandomize=True, database=None)
@example([0, 1, 0])
@given(st.lists(st.integers(min_value=0, max_value=3), max_size=60))
def test_orders_are_fifo_with_one_priority_and_flow(numbers: list[int]) -> None:
    """Each order does what the plain line does, when there is nothing to tell items apart by."""
    makers: list[Callable[[], QueueOrder[int]]] = [
        FirstInFirstOut[int],
        lambda: PriorityOrder[int]({0: 5.0}),
        lambda: FairOrder[int](lambda item: "one flow"),
    ]
    results: list[list[int]] = []
    for make in makers:
        core, taken = QueueCore[int](order=make()), list[int]()
        for now, number in enumerate(numbers):
            if number:
                core.add(number, float(now))
            elif (run := core.get(float(now))) is not None:
                taken.append(run.item)
                core.done(run.item, float(now))
        results.append(taken)
    assert results[0] == results[1] == results[2]
