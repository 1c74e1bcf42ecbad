"""Adds from threads, on the real clock."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import permutations
from typing import Any

import pytest

from deltaloop.errors import TerminalError
from deltaloop.workqueue import DelayingQueue, QueueOptions, RateLimitingQueue, WorkQueue
from deltaloop.workqueue.core.delaying import DelayingCore
from deltaloop.workqueue.core.queue import QueueCore
from deltaloop.workqueue.core.rate_limiting import RateLimitingCore
from tests.workqueue.test_metrics import Recorder
from tests.workqueue.timers import live_timers


@pytest.mark.real_time
async def test_adds_of_thread_keep_order_and_wake_loop() -> None:
    queue = WorkQueue[tuple[int, int]]()
    seen = list[tuple[int, int]]()

    async def worker() -> None:
        async for work in queue:
            async with work:
                seen.append(work.key)

    def produce(thread: int) -> None:
        for number in range(500):
            queue.add((thread, number))

    async with asyncio.TaskGroup() as workers:
        for _ in range(3):
            workers.create_task(worker())
        await asyncio.gather(*(asyncio.to_thread(produce, thread) for thread in range(4)))
        await queue.shut_down_with_drain()
    assert len(seen) == 2000
    for thread in range(4):
        assert [number for of, number in seen if of == thread] == list(range(500))


@pytest.mark.real_time
async def test_no_wakeup_is_lost_between_threads_and_loop() -> None:
    """One item at a time, so that each add finds the worker about to wait or waiting."""
    queue = DelayingQueue[int]()
    taken = threading.Semaphore(0)

    def produce() -> None:
        for number in range(1000):
            if number % 2:
                queue.add(number)
            else:
                queue.add_after(number, 0.0001)
            assert taken.acquire(timeout=5.0), number

    producer = asyncio.create_task(asyncio.to_thread(produce))
    for number in range(1000):
        assert await queue.get(timeout=5.0) == number
        queue.done(number)
        taken.release()
    await producer


@pytest.mark.real_time
async def test_threads_never_run_item_twice_and_lose_no_item() -> None:
    queue = RateLimitingQueue[int]()
    present, together = set[int](), list[int]()
    runs = 0
    merged_triggers = 0

    async def worker() -> None:
        nonlocal runs, merged_triggers
        async for work in queue:
            async with work:
                if work.key in present:
                    together.append(work.key)
                present.add(work.key)
                await asyncio.sleep(0)
                present.remove(work.key)
                runs += 1
                merged_triggers += len(work.triggers) + work.triggers_dropped

    def produce(thread: int) -> None:
        for number in range(1000):
            queue.add(number % 7, trigger=(thread, number))
            if number % 50 == 0:
                assert queue.statistics().processing <= 7
                repr(queue)

    async with asyncio.TaskGroup() as workers:
        for _ in range(3):
            workers.create_task(worker())
        await asyncio.gather(*(asyncio.to_thread(produce, thread) for thread in range(4)))
        await queue.shut_down_with_drain()
    assert together == []
    assert merged_triggers == 4000  # each trigger reached exactly one run, or was counted as dropped
    statistics = queue.statistics()
    assert statistics.adds + statistics.merged == 4000
    assert statistics.adds == statistics.taken == statistics.done == runs


@pytest.mark.real_time
async def test_done_forget_and_shutdown_from_threads() -> None:
    queue = RateLimitingQueue[str]()
    queue.add("a")
    await queue.get()
    with ThreadPoolExecutor(1) as pool:
        loop = asyncio.get_running_loop()
        getter = asyncio.create_task(queue.get())
        await loop.run_in_executor(pool, lambda: queue.add("a"))
        await loop.run_in_executor(pool, lambda: queue.forget("a"))
        await loop.run_in_executor(pool, lambda: queue.done("a"))
        assert await asyncio.wait_for(getter, 5.0) == "a"
        await loop.run_in_executor(pool, lambda: queue.done("a"))

        async def end() -> None:
            async for _ in queue:
                pytest.fail("nothing was added")

        ending = asyncio.create_task(end())
        await loop.run_in_executor(pool, queue.shut_down)
        await asyncio.wait_for(ending, 5.0)


def test_threads_can_add_before_loop_runs() -> None:
    queue = DelayingQueue[int]()
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(queue.add, range(100)))
        list(pool.map(queue.add_after, range(100, 120), [0.001] * 20))

    async def main() -> set[int]:
        return {await queue.get(timeout=5.0) for _ in range(120)}

    assert asyncio.run(main()) == set(range(120))


class UnderLock:
    """A core that is called by those only who have the queue's lock."""

    def __init__(self, core: Any, lock: Any, called: set[str]) -> None:
        self._core, self._lock, self._called = core, lock, called

    def __len__(self) -> int:
        return len(self._core)

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._core, name)
        if not callable(value):
            return value  # one look at one number

        def checked(*arguments: Any, **options: Any) -> Any:
            assert self._lock._is_owned(), f"{name} without the lock"
            self._called.add(name)
            return value(*arguments, **options)

        return checked


async def test_core_is_only_used_under_lock() -> None:
    queue = RateLimitingQueue[str](metrics=Recorder(), options=QueueOptions(metrics_period=0.1))
    called: set[str] = set()
    queue._core = queue._delaying = queue._limiting = UnderLock(queue._limiting, queue._lock, called)  # type: ignore[assignment]  # pyright: ignore[reportAttributeAccessIssue]
    queue.add("a")
    queue.add_after("b", 5.0)
    queue.add_after("c", 0.1)
    queue.add_rate_limited("d")
    queue.add_rate_limited("e", error=TerminalError("for good"))
    queue.add_rate_limited("f", error=TerminalError("for good"))
    assert [letter.item for letter in queue.dead_letters()] == ["e", "f"]
    assert queue.retry_dead_letter("e")
    assert queue.discard_dead_letter("f") is not None
    assert queue.cancel_delayed("b") is not None
    assert [delayed.item for delayed in queue.delayed()] == ["d", "c"]
    assert (queue.num_requeues("d"), queue.num_requeues("a")) == (1, 0)
    queue.forget("d")
    assert queue.statistics().queued == 2
    assert await queue.get() == "a"
    assert [running.item for running in queue.processing()] == ["a"]
    queue.done("a")
    async with await queue.get_work() as work:
        await asyncio.sleep(1.0)
    assert work.key == "e"
    assert [await queue.get(), await queue.get()] == ["d", "c"]
    queue.done("d")
    queue.done("c")
    await queue.shut_down_with_drain()
    public = {name for name in vars(RateLimitingCore) | vars(DelayingCore) | vars(QueueCore) if name[0] != "_"}
    properties = {"can_delay", "drain_over", "ended", "processing", "shutting_down"}
    assert public - called == properties


STEPS = ("a thread adds late", "a thread adds soon", "the loop adds", "a thread cancels soon", "the loop hears of it")


async def in_the_order(steps: tuple[str, ...]) -> tuple[list[str], list[str]]:
    """Return what came of delays in which order, and what should have; threads reach the loop when it hears of it."""
    loop, queue, expected = asyncio.get_running_loop(), DelayingQueue[str](), {"late": 3.0, "loop's": 2.0}
    unheard = list[Callable[[], object]]()

    def tell(callback: Callable[[], object]) -> None:
        unheard.append(callback)

    vars(loop)["call_soon_threadsafe"] = tell
    try:
        for step in (*steps, "the loop hears of it"):
            calls: dict[str, Callable[[], object]] = {
                "a thread adds late": lambda: queue.add_after("late", 3.0),
                "a thread adds soon": lambda: queue.add_after("soon", 1.0),
                "a thread cancels soon": lambda: queue.cancel_delayed("soon"),
            }
            if step in calls:
                thread = threading.Thread(target=calls[step])
                thread.start()
                thread.join(5.0)
            elif step == "the loop adds":
                queue.add_after("loop's", 2.0)
            while step == "the loop hears of it" and unheard:
                unheard.pop(0)()
    finally:
        del vars(loop)["call_soon_threadsafe"]
    if steps.index("a thread adds soon") > steps.index("a thread cancels soon"):
        expected["soon"] = 1.0
    wanted = sorted(expected, key=expected.__getitem__)
    try:
        return [await queue.get(timeout=10.0) for _ in wanted], wanted
    except TimeoutError:
        return [repr(queue)], wanted


async def test_delay_is_on_time_for_any_order_of_threads_and_loop() -> None:
    """Those that come later than another one set no timer, and count on whoever sees to that one."""
    for steps in permutations(STEPS):
        seen, wanted = await in_the_order(steps)
        assert seen == wanted, steps


@pytest.mark.real_time
async def test_thread_paused_before_wakeup_does_not_lose_item() -> None:
    loop, queue = asyncio.get_running_loop(), DelayingQueue[str]()
    stands, go_on, tell = threading.Event(), threading.Event(), loop.call_soon_threadsafe

    def held_up(*arguments: Any, **options: Any) -> Any:
        stands.set()
        assert go_on.wait(5.0)
        return tell(*arguments, **options)

    vars(loop)["call_soon_threadsafe"] = held_up
    thread = threading.Thread(target=queue.add_after, args=("first", 0.02))
    thread.start()
    assert stands.wait(5.0)
    queue.add_after("second", 0.04)
    assert live_timers() == 1  # the loop does not wait for the thread
    go_on.set()
    thread.join(5.0)
    del vars(loop)["call_soon_threadsafe"]
    assert [await queue.get(timeout=5.0), await queue.get(timeout=5.0)] == ["first", "second"]
