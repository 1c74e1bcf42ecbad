"""The bounds that the orders promise, checked on a schedule of joins, touches and takes; and all small schedules.

A schedule is a list of steps: ``("join", flow, priority)``, ``("touch", flow, priority)`` for the oldest item of a flow
that is in line, ``("tick",)`` for a second that passes, and ``("take",)``. Items are ``(flow, number)``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TypeAlias

from deltaloop.workqueue.core.orders import Patience
from deltaloop.workqueue.core.queue_order import QueueOrder

Item: TypeAlias = tuple[str, int]
Step: TypeAlias = tuple[str, str, int] | tuple[str]
MakeOrder: TypeAlias = Callable[[], QueueOrder[Item]]

PATIENCE = {1: 0.0, 0: 2.0}


@dataclass
class Waiting:
    item: Item
    joined_at: float
    deadline: float
    """The earliest of all its adds."""
    others: dict[str, int]
    """Items of each flow, its own too, taken since it joined."""


def flow_of(item: Item) -> str:
    return item[0]


def check(make_order: MakeOrder, steps: Sequence[Step], *, ageing: bool, fair: bool) -> None:
    """Run a schedule, take what is left in the end, and assert each bound at each take."""
    order, patience = make_order(), Patience(PATIENCE)
    waiting: list[Waiting] = []
    now, joined = 0.0, 0
    for step in [*steps, *[("take",)] * len(steps)]:
        if step[0] == "tick":
            now += 1.0
        elif step[0] == "take":
            assert len(order) == len(waiting)
            if waiting:
                take(order, waiting, ageing=ageing, fair=fair)
        elif step[0] == "join" and len(step) == 3:
            item = (step[1], joined)
            joined += 1
            order.push(item, now, priority=step[2])
            waiting.append(Waiting(item, now, now + patience.of(step[2]), {}))
        elif len(step) == 3:
            found = next((other for other in waiting if flow_of(other.item) == step[1]), None)
            if found is not None:
                order.touch(found.item, now, priority=step[2])
                found.deadline = min(found.deadline, now + patience.of(step[2]))
    assert not waiting
    assert len(order) == 0


def take(order: QueueOrder[Item], waiting: list[Waiting], *, ageing: bool, fair: bool) -> None:
    item = order.pop()
    taken = next(other for other in waiting if other.item == item)  # StopIteration: it was not in line
    waiting.remove(taken)
    flow = flow_of(item)
    for other in waiting:
        own = flow_of(other.item) == flow
        if own or not fair:
            if ageing:  # nothing that joined when the other's patience had ended overtakes it, ...
                assert taken.joined_at < other.deadline or taken.item[1] < other.item[1]
                # ... and what overtakes it has an earlier deadline, or joined first.
                assert (taken.deadline, taken.item[1]) < (other.deadline, other.item[1])
            else:
                assert taken.item[1] < other.item[1]
        other.others[flow] = other.others.get(flow, 0) + 1
        if fair:
            own_taken = other.others.get(flow_of(other.item), 0)
            assert all(count <= own_taken + 1 for name, count in other.others.items() if name != flow_of(other.item))


def all_schedules(alphabet: Sequence[Step], length: int) -> Iterator[tuple[Step, ...]]:
    """Yield each schedule of this length; shorter ones are its beginnings, whose asserts run, too."""
    yield from product(alphabet, repeat=length)
