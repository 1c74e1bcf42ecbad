"""Delays on a loop: one timer, exact times, looking and cancelling."""

from __future__ import annotations

import asyncio
import math

import pytest

from deltaloop.errors import QueueShutDownError
from deltaloop.testing import run_virtual
from deltaloop.workqueue import DelayedItem, DelayingQueue, QueueOptions
from tests.having import having
from tests.workqueue.timers import live_timers


async def arrivals(queue: DelayingQueue[str], count: int) -> list[tuple[str, float]]:
    loop = asyncio.get_running_loop()
    seen = list[tuple[str, float]]()
    for _ in range(count):
        async with await queue.get_work() as work:
            seen.append((work.key, loop.time()))
    return seen


async def test_delayed_items_arrive_on_time() -> None:
    queue = DelayingQueue[str]()
    queue.add_after("c", 3.0)
    queue.add_after("a", 1.0)
    queue.add_after("b", 2.0)
    queue.add_after("now", 0.0)
    assert len(queue) == 1
    assert await arrivals(queue, 4) == [("now", 0.0), ("a", 1.0), ("b", 2.0), ("c", 3.0)]


async def test_earlier_time_wins() -> None:
    queue = DelayingQueue[str]()
    queue.add_after("a", 50.0, trigger=1)
    queue.add_after("a", 30.0, trigger=2)
    queue.add_after("a", 40.0, trigger=3)
    work = await queue.get_work()
    assert asyncio.get_running_loop().time() == 30.0
    assert work.triggers == (1, 2, 3)
    with pytest.raises(TimeoutError):
        await queue.get(timeout=100.0)
    work.put_back()


async def test_earlier_item_resets_timer_of_waiting_worker() -> None:
    loop = asyncio.get_running_loop()
    queue = DelayingQueue[str]()
    queue.add_after("late", 1000.0)
    loop.call_at(5.0, queue.add_after, "soon", 1.0)
    assert await arrivals(queue, 2) == [("soon", 6.0), ("late", 1000.0)]


async def test_add_does_not_cancel_delay() -> None:
    queue = DelayingQueue[str]()
    queue.add_after("a", 5.0)
    queue.add("a")
    assert await arrivals(queue, 2) == [("a", 0.0), ("a", 5.0)]


@pytest.mark.nightly
async def test_many_delays_use_one_timer() -> None:
    queue = DelayingQueue[int]()
    for number in range(100_000):
        queue.add_after(number, 10.0 + number % 1000)
    assert live_timers() == 1
    assert queue.statistics().delayed == 100_000
    queue.add_after(-1, 5.0)
    assert live_timers() == 1
    assert await queue.get() == -1
    assert live_timers() == 1
    queue.shut_down()
    assert live_timers() == 0


async def test_delays_can_be_listed_and_canceled() -> None:
    loop = asyncio.get_running_loop()
    queue = DelayingQueue[str](name="pods")
    queue.add_after("a", 5.0, trigger="t")
    queue.add_after("b", 7.0)
    await asyncio.sleep(1.0)
    assert queue.delayed() == (
        DelayedItem(item="a", delay=4.0, triggers=("t",)),
        DelayedItem(item="b", delay=6.0, triggers=()),
    )
    assert queue.statistics().next_due_in == 4.0
    assert repr(queue) == "<DelayingQueue 'pods': 0 queued, 0 processing, 2 delayed>"
    assert queue.cancel_delayed("a") == DelayedItem(item="a", delay=4.0, triggers=("t",))
    assert queue.cancel_delayed("a") is None
    assert await queue.get() == "b"
    assert loop.time() == 7.0
    assert live_timers() == 0


async def test_canceling_last_delay_cancels_timer() -> None:
    queue = DelayingQueue[str]()
    queue.add_after("a", 5.0)
    queue.cancel_delayed("a")
    assert live_timers() == 0


async def test_shutdown_drops_delays() -> None:
    queue = DelayingQueue[str]()
    queue.add_after("a", 5.0)
    queue.shut_down()
    queue.add_after("b", 5.0)
    with pytest.raises(QueueShutDownError):
        await queue.get()
    await queue.shut_down_with_drain()
    assert queue.statistics().ignored == 2


@pytest.mark.parametrize("delay", [math.nan, math.inf])
async def test_invalid_delay_is_rejected(delay: float) -> None:
    queue = DelayingQueue[str]()
    with pytest.raises(ValueError, check=having(argument="delay")):
        queue.add_after("a", delay)
    assert queue.delayed() == ()


def test_delays_added_before_loop_runs_are_preserved() -> None:
    queue = DelayingQueue[str]()
    queue.add_after("b", 20.0)
    queue.add_after("a", 10.0)

    async def main() -> None:
        seen = await arrivals(queue, 2)
        assert [item for item, _ in seen] == ["a", "b"]
        # Real time has passed since the adds, and counts.
        assert [time for _, time in seen] == pytest.approx([10.0, 20.0], abs=5.0)
        assert seen[0][1] <= 10.0
        assert seen[1][1] - seen[0][1] == pytest.approx(10.0, abs=5.0)

    run_virtual(main())


def test_delays_continue_in_next_event_loop() -> None:
    queue = DelayingQueue[str]()

    async def ask() -> None:
        with pytest.raises(TimeoutError):
            await queue.get(timeout=0)
        queue.add_after("a", 10.0)
        await asyncio.sleep(4.0)

    async def take() -> float:
        await queue.get()
        return asyncio.get_running_loop().time()

    run_virtual(ask())
    assert run_virtual(take(), start=500.0) == pytest.approx(506.0)


async def test_triggers_are_merged_with_function_of_options() -> None:
    queue = DelayingQueue[str](options=QueueOptions(merge_triggers=lambda kept, trigger: [trigger]))
    queue.add_after("a", 1.0, trigger=1)
    queue.add_after("a", 1.0, trigger=2)
    work = await queue.get_work()
    assert work.triggers == (2,)
    queue.done("a")


async def test_add_without_priority_equals_lowest_priority() -> None:
    queue = DelayingQueue[str](options=QueueOptions(priority_aging={0: 10.0, 1: 1.0}))
    queue.add_after("a", 0.0, priority=0)
    queue.add_after("b", 0.0)
    queue.add("c", priority=0)
    queue.add("d")
    queue.add("e", priority=1)
    assert [await queue.get() for _ in range(5)] == ["e", "a", "b", "c", "d"]


async def test_zero_delay_wakes_worker_during_other_delay() -> None:
    queue = DelayingQueue[str]()
    queue.add_after("late", 9.0)
    seen = asyncio.create_task(arrivals(queue, 2))
    await asyncio.sleep(1.0)
    queue.add_after("now", 0.0)
    assert await seen == [("now", 1.0), ("late", 9.0)]
