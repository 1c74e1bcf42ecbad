"""Turns in a waiting line, and what a cancelled wait leaves behind."""

from __future__ import annotations

import asyncio

import pytest

from deltaloop.workqueue.waiting_line import WaitingLine


async def in_line(line: WaitingLine, *, first: bool = False) -> None:
    await line.turn(line.join(asyncio.get_running_loop(), first=first))


async def settle() -> None:
    for _ in range(4):
        await asyncio.sleep(0)


async def waiter(line: WaitingLine, name: str, seen: list[str], *, first: bool = False) -> None:
    await in_line(line, first=first)
    seen.append(name)


async def test_tasks_are_woken_in_order_of_arrival() -> None:
    line, seen = WaitingLine(), list[str]()
    async with asyncio.TaskGroup() as tasks:
        for name in "abc":
            tasks.create_task(waiter(line, name, seen))
        await settle()
        tasks.create_task(waiter(line, "first", seen, first=True))
        await settle()
        assert (len(line), len(line.asleep)) == (4, 4)
        line.wake(2)
        line.wake(2)  # the same two claims
        assert (len(line), len(line.asleep), line.woken) == (4, 2, 2)
        await settle()
        assert seen == ["first", "a"]
        assert line.woken == 0
        line.wake_all()
    assert seen == ["first", "a", "b", "c"]
    assert len(line) == 0


@pytest.mark.parametrize("woken", [False, True])
async def test_canceled_wait_leaves_no_waiter(woken: bool) -> None:
    line, seen = WaitingLine(), list[str]()
    task = asyncio.create_task(waiter(line, "a", seen))
    other = asyncio.create_task(waiter(line, "b", seen))
    await settle()
    if woken:
        line.wake(1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (len(line), line.woken, len(line.asleep)) == (1, 0, 1)
    line.wake(1)
    await other
    assert seen == ["b"]


async def test_wake_skips_task_that_was_canceled() -> None:
    line, seen = WaitingLine(), list[str]()
    task = asyncio.create_task(waiter(line, "a", seen))
    other = asyncio.create_task(waiter(line, "b", seen))
    await settle()
    task.cancel()
    line.wake(1)  # before the cancelled task has run
    await other
    assert seen == ["b"]
    assert len(line) == 0
    assert task.cancelled()


async def test_waiters_join_at_end_by_default() -> None:
    line, seen = WaitingLine(), list[str]()

    async def wait(name: str) -> None:
        await in_line(line)
        seen.append(name)

    async with asyncio.TaskGroup() as tasks:
        for name in "abc":
            tasks.create_task(wait(name))
        await settle()
        for _ in range(3):
            line.wake(1)
            await settle()
    assert seen == ["a", "b", "c"]


async def test_discarded_wait_leaves_no_waiter() -> None:
    line = WaitingLine()
    waiting = in_line(line)
    waiting.send(None)
    assert len(line.asleep) == 1
    waiting.close()
    assert (len(line), line.woken, len(line.asleep)) == (0, 0, 0)
