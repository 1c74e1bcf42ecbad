"""asyncio's sets of tasks, in order."""

from __future__ import annotations

import asyncio
import operator
from asyncio import tasks

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from deltaloop.simulation.ordered_tasks import OrderedSet, ordered_tasks


class Member:
    """Its hash is its address."""


def test_ordered_set_iterates_in_order_of_insertion() -> None:
    members = [Member() for _ in range(100)]
    found = OrderedSet(members[:50])
    for member in members[50:]:
        found.add(member)
    found.update(members)
    assert [*found] == members
    found.remove(members[1])
    found.discard(members[2])
    found.discard(members[2])
    assert found.pop() is members[0]
    assert [*found] == members[3:]
    assert found == {*members[3:]}
    assert found | {members[0]} == {members[0], *members[3:]}
    assert len(found) == 97
    assert members[1] not in found
    with pytest.raises(KeyError):
        found.remove(members[1])
    found.clear()
    assert not found
    with pytest.raises(KeyError):
        found.pop()


MANY = [Member() for _ in range(12)]
SOME = st.lists(st.sampled_from(MANY), max_size=6)
METHODS = ["update", "difference_update", "intersection_update", "symmetric_difference_update"]
OPERATORS = ["__ior__", "__isub__", "__iand__", "__ixor__"]


class AnOrderedSetIsASet(RuleBasedStateMachine):
    """What an ordinary set has, and each new member after those that were there."""

    def __init__(self) -> None:
        super().__init__()
        self.real: set[Member] = set()
        self.found: OrderedSet[Member] = OrderedSet()
        self.before: list[Member] = []

    @rule(name=st.sampled_from(METHODS), others=SOME)
    def changes(self, name: str, others: list[Member]) -> None:
        getattr(self.found, name)(others)
        getattr(self.real, name)(others)

    @rule(name=st.sampled_from(OPERATORS), others=SOME)
    def changes_in_place(self, name: str, others: list[Member]) -> None:
        assert getattr(operator, name)(self.found, {*others}) is self.found
        self.real = getattr(operator, name)(self.real, {*others})

    @rule(member=st.sampled_from(MANY))
    def adds(self, member: Member) -> None:
        self.real.add(member)
        self.found.add(member)

    @rule(member=st.sampled_from(MANY))
    def discards(self, member: Member) -> None:
        self.real.discard(member)
        self.found.discard(member)

    @rule()
    def is_copied(self) -> None:
        copied = self.found.copy()
        assert [*copied] == [*self.found]
        self.found.clear()
        self.found = copied

    @rule()
    def changes_by_itself(self) -> None:
        self.found ^= self.found
        assert not self.found
        self.real.clear()

    @invariant()
    def is_the_same_set(self) -> None:
        now = [*self.found]
        assert len(now) == len(self.found) == len(self.real)
        assert self.found == self.real
        kept = [member for member in self.before if member in self.real]
        assert now[: len(kept)] == kept
        self.before = now


TestAnOrderedSetIsASet = AnOrderedSetIsASet.TestCase


def test_ordered_set_updates_in_place_with_sets_only() -> None:
    found = OrderedSet([1])
    assert found.__ior__([2]) is NotImplemented


async def test_pending_tasks_can_be_awaited_again() -> None:
    with ordered_tasks():
        never = asyncio.get_running_loop().create_future()
        _, pending = await asyncio.wait(
            [asyncio.ensure_future(asyncio.sleep(1.0)), never], return_when=asyncio.FIRST_COMPLETED
        )
        soon = asyncio.ensure_future(asyncio.sleep(1.0))
        pending |= {soon}
        done, left = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
        assert done == {soon}
        assert left == {never}


async def cancelled_order() -> list[int]:
    ended: list[int] = []

    async def waits(number: int) -> None:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            ended.append(number)

    async def fails() -> None:
        await asyncio.sleep(1.0)
        raise LookupError

    async def group_of_tasks() -> None:
        async with asyncio.TaskGroup() as group:
            for number in range(50):
                group.create_task(waits(number))
            group.create_task(fails())

    with pytest.raises(ExceptionGroup):
        await group_of_tasks()
    return ended


async def test_task_groups_cancel_and_gather_in_order() -> None:
    begun: list[int] = []

    async def begins(number: int) -> int:
        begun.append(number)
        return number

    with ordered_tasks():
        assert await cancelled_order() == [*range(50)]
        for each in asyncio.as_completed([begins(number) for number in range(50)]):
            await each
        assert begun == [*range(50)]
        waited = [asyncio.create_task(begins(number)) for number in range(50)]
        done, left = await asyncio.wait(waited)
        assert [task.result() for task in done] == [*range(50)]
        assert not left
    assert "set" not in vars(tasks)
