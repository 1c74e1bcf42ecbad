"""asyncio's sets of tasks, in order."""

from __future__ import annotations

import asyncio
from asyncio import tasks

import pytest

from deltaloop.simulation.ordered_tasks import OrderedSet, ordered_tasks


class Member:
    """Its hash is its address."""


def test_it_is_walked_in_the_order_of_arrival_and_is_a_set_otherwise() -> None:
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


async def test_a_task_group_cancels_and_others_start_and_return_tasks_in_order() -> None:
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
