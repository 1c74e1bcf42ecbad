"""Tests of tasks that are started for queued items."""

from __future__ import annotations

import asyncio

from deltaloop.workqueue import RateLimitingQueue
from deltaloop.workqueue.core.facts import INTERRUPTED, SUCCEEDED, Ending
from deltaloop.workqueue.core.queue import Run
from deltaloop.workqueue.slots import Slots


class Program:
    """Starts a task for each item; each run ends when the test says so."""

    def __init__(self, queue: RateLimitingQueue[str], number: int) -> None:
        self.taken: list[Run[str] | None] = []
        self.started = self.ended = 0
        self.tasks: set[asyncio.Task[None]] = set()
        self.slots: Slots[str] = Slots(queue, number, start=self.start, on_end=self.end)

    def start(self) -> None:
        self.started += 1
        self.tasks.add(asyncio.create_task(self.work()))

    def end(self) -> None:
        self.ended += 1

    async def work(self) -> None:
        self.taken.append(self.slots.take())

    def finish(self, run: Run[str], ending: Ending) -> None:
        if self.slots.end(run, ending):
            self.start()

    @property
    def items(self) -> list[str]:
        return [run.item for run in self.taken if run is not None]


async def test_task_is_started_for_each_item_while_slots_are_free() -> None:
    queue: RateLimitingQueue[str] = RateLimitingQueue()
    queue.add("before")
    program = Program(queue, 2)
    for item in ("a", "a", "b"):
        queue.add(item)
    assert program.started == 2
    assert len(queue) == 3, "adds are merged until a task takes the item"
    await asyncio.sleep(0)
    assert program.items == ["before", "a"]
    first = program.taken[0]
    assert first is not None
    program.finish(first, SUCCEEDED)
    await asyncio.sleep(0)
    assert program.items == ["before", "a", "b"]


async def test_item_added_during_its_run_gets_slot_of_run() -> None:
    queue: RateLimitingQueue[str] = RateLimitingQueue()
    program = Program(queue, 1)
    queue.add("a")
    await asyncio.sleep(0)
    queue.add("a")
    [run] = program.taken
    assert run is not None
    program.finish(run, SUCCEEDED)
    await asyncio.sleep(0)
    assert program.items == ["a", "a"]
    assert queue.statistics().processing == 1


async def test_add_from_other_thread_starts_task() -> None:
    queue: RateLimitingQueue[str] = RateLimitingQueue()
    program = Program(queue, 1)
    await asyncio.to_thread(queue.add, "a")
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert program.items == ["a"]


async def test_delayed_item_starts_task_when_due() -> None:
    queue: RateLimitingQueue[str] = RateLimitingQueue()
    program = Program(queue, 1)
    queue.add_after("a", 5.0)
    await asyncio.sleep(4.0)
    assert program.started == 0
    await asyncio.sleep(2.0)
    assert program.items == ["a"]


async def test_closed_slots_leave_items_in_queue() -> None:
    queue: RateLimitingQueue[str] = RateLimitingQueue()
    program = Program(queue, 2)
    queue.add("a")
    await asyncio.sleep(0)
    queue.add("b")
    program.slots.close()
    await asyncio.sleep(0)
    run = program.taken[0]
    assert run is not None
    program.finish(run, INTERRUPTED)
    queue.add("c")
    await asyncio.sleep(0)
    assert program.items == ["a"], "the task of b was started and takes nothing"
    assert len(queue) == 3
    assert await queue.get() == "b", "tasks can wait in get again"


async def test_slots_report_end_of_queue() -> None:
    queue: RateLimitingQueue[str] = RateLimitingQueue()
    queue.add("a")
    program = Program(queue, 1)
    queue.shut_down()
    assert program.ended == 0, "the item is still to be taken"
    await asyncio.sleep(0)
    run = program.taken[0]
    assert run is not None
    program.finish(run, SUCCEEDED)
    assert program.ended
