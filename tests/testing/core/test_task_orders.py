"""In which order ready tasks take their steps."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltaloop.testing.deterministic_loop.core.task_orders import PreemptiveOrder, RandomOrder, TaskOrder

ORDERS: list[Callable[[Callable[[], float]], TaskOrder]] = [RandomOrder, PreemptiveOrder]


class Task:
    """Stands for one: it can be referred to weakly."""


@pytest.mark.parametrize("order", ORDERS)
@given(seed=st.integers(), turns=st.lists(st.integers(1, 6), max_size=20))
def test_each_task_takes_at_most_one_step_per_turn(
    order: Callable[[Callable[[], float]], TaskOrder], seed: int, turns: list[int]
) -> None:
    tasks = [Task() for _ in range(6)]
    decides, again = order(random.Random(seed).random), order(random.Random(seed).random)
    for number in turns:
        now = [*decides.turn(tasks[:number])]
        assert 1 <= len(now) == len({*now})
        assert {*now} <= {*range(number)}
        assert now == [*again.turn(tasks[:number])], "the seed decides"


def test_random_order_covers_all_orders() -> None:
    order = RandomOrder(random.Random(1).random)
    tasks = [Task() for _ in range(3)]
    seen = {tuple(order.turn(tasks)) for _ in range(2000)}
    assert len(seen) == 3 + 6 + 6


def test_preemptive_order_changes_priorities_rarely() -> None:
    first_chosen: list[int] = []
    changed = 0
    for seed in range(50):
        order = PreemptiveOrder(random.Random(seed).random)
        tasks = [Task() for _ in range(3)]
        chosen = [order.turn(tasks)[0] for _ in range(500)]
        first_chosen.append(chosen[0])
        changes = sum(one != other for one, other in itertools.pairwise(chosen))
        assert changes <= 3
        changed += changes > 0
    assert {*first_chosen} == {0, 1, 2}
    assert changed > 20


def test_busy_task_does_not_starve_others() -> None:
    order = PreemptiveOrder(random.Random(0).random)
    tasks = [Task(), Task()]
    steps = [len(order.turn(tasks)) for _ in range(2500)]
    assert steps.count(2) == 2
