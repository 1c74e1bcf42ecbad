"""The plain queue on a loop: waiting, waking, timeouts, shutdown, drain, loops and threads."""

from __future__ import annotations

import asyncio
import gc
import logging
import threading
import weakref

import pytest

from deltaloop.errors import QueueShutDownError
from deltaloop.testing import VirtualLoop, run_virtual
from deltaloop.workqueue import QueueOptions, RateLimitingQueue, WorkQueue
from tests.having import having


async def settle() -> None:
    for _ in range(6):
        await asyncio.sleep(0)


async def collect(queue: WorkQueue[str], seen: list[str], pause: float = 0.0) -> None:
    async for work in queue:
        async with work:
            await asyncio.sleep(pause)
            seen.append(work.key)


@pytest.mark.parametrize("drain", [False, True])
async def test_producers_and_workers_process_each_item_once_at_a_time(drain: bool) -> None:
    queue = WorkQueue[int](name="basic")
    present, together, done = set[int](), list[int](), list[int]()

    async def produce(number: int) -> None:
        for _ in range(50):
            queue.add(number)
            await asyncio.sleep(0.001)

    async def worker() -> None:
        async for work in queue:
            async with work:
                if work.key in present:
                    together.append(work.key)
                present.add(work.key)
                await asyncio.sleep(0.003)
                present.remove(work.key)
                done.append(work.key)

    async with asyncio.TaskGroup() as workers:
        for _ in range(10):
            workers.create_task(worker())
        async with asyncio.TaskGroup() as producers:
            for number in range(50):
                producers.create_task(produce(number))
        if drain:
            await queue.shut_down_with_drain()
            assert not present
        else:
            queue.shut_down()
        queue.add(1000)
    assert together == []
    assert set(done) == set(range(50))
    assert len(queue) == 0
    assert queue.statistics().ignored == 1


async def test_plain_add_get_and_done() -> None:
    queue = WorkQueue[str]()
    queue.add("a")
    queue.add("b")
    queue.add("a")
    assert len(queue) == 2
    assert await queue.get() == "a"
    queue.add("a")
    assert len(queue) == 1
    queue.done("a")
    assert len(queue) == 2
    assert [await queue.get(), await queue.get()] == ["b", "a"]
    with pytest.raises(ValueError, check=having(argument="item of done()")):
        queue.done("c")


async def test_get_waits_for_an_add() -> None:
    loop = asyncio.get_running_loop()
    queue = WorkQueue[str]()
    loop.call_later(5.0, queue.add, "a")
    assert await queue.get() == "a"
    assert loop.time() == 5.0


@pytest.mark.parametrize("timeout", [0.0, -1.0, 3.0])
async def test_get_raises_timeout_error(timeout: float) -> None:
    loop = asyncio.get_running_loop()
    queue = WorkQueue[str]()
    with pytest.raises(TimeoutError):
        await queue.get(timeout=timeout)
    assert loop.time() == max(0.0, timeout)
    queue.add("a")
    assert await queue.get(timeout=timeout) == "a"


async def test_item_added_at_timeout_is_not_lost() -> None:
    loop = asyncio.get_running_loop()
    queue = WorkQueue[str]()
    loop.call_at(3.0, queue.add, "a")
    try:
        item = await queue.get(timeout=3.0)
    except TimeoutError:
        item = await queue.get(timeout=0)
    assert item == "a"


async def test_workers_take_turns() -> None:
    queue = WorkQueue[int]()
    turns = list[str]()

    async def worker(name: str) -> None:
        async for work in queue:
            async with work:
                turns.append(name)

    async with asyncio.TaskGroup() as workers:
        for name in "abc":
            workers.create_task(worker(name))
        await settle()
        for number in range(9):
            queue.add(number)
            await settle()
        queue.shut_down()
    assert "".join(turns) == "abcabcabc"


async def test_new_get_does_not_take_item_of_woken_worker() -> None:
    queue = WorkQueue[str]()
    waiting = asyncio.create_task(queue.get())
    await settle()
    queue.add("a")  # wakes the waiting one, which has not run yet
    with pytest.raises(TimeoutError):
        await queue.get(timeout=1.0)
    assert await waiting == "a"


async def test_new_get_takes_surplus_item() -> None:
    queue = WorkQueue[str]()
    waiting = asyncio.create_task(queue.get())
    await settle()
    queue.add("a")
    queue.add("b")
    assert await queue.get(timeout=0) == "a"
    assert await waiting == "b"


async def test_busy_worker_yields_to_other_tasks() -> None:
    queue = WorkQueue[int]()
    for number in range(1000):
        queue.add(number)
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while len(queue):
            ticks += 1
            await asyncio.sleep(0)

    async def work() -> None:
        async for item in queue:
            async with item:
                pass

    other = asyncio.create_task(tick())
    queue.shut_down()
    await work()
    await other
    assert ticks > 20


async def test_shutdown_ends_waiting_workers(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "deltaloop.workqueue")
    queue = WorkQueue[str](name="pods")
    getters = [asyncio.create_task(queue.get()) for _ in range(3)]
    iterating = asyncio.create_task(collect(queue, []))
    await settle()
    queue.shut_down()
    queue.shut_down()
    assert queue.shutting_down
    for getter in getters:
        with pytest.raises(QueueShutDownError, check=having(queue="pods")):
            await getter
    await iterating
    with pytest.raises(QueueShutDownError):
        await queue.get(timeout=0)
    assert [record.message for record in caplog.records] == ["shutting down work queue"]


async def test_queued_items_are_processed_after_shutdown() -> None:
    queue, seen = WorkQueue[str](), list[str]()
    for item in "abc":
        queue.add(item)
    queue.shut_down()
    await collect(queue, seen)
    assert seen == ["a", "b", "c"]


async def test_workers_wait_for_postponed_item_after_shutdown() -> None:
    queue = WorkQueue[str]()
    queue.add("a")
    await queue.get()
    queue.add("a")
    queue.shut_down()
    seen = list[str]()
    other = asyncio.create_task(collect(queue, seen))
    await settle()
    assert not other.done()
    queue.done("a")  # whoever did this may go home
    await other
    assert seen == ["a"]


async def test_drain_waits_for_queued_and_running_items() -> None:
    loop = asyncio.get_running_loop()
    queue, seen = WorkQueue[str](), list[str]()
    for item in "abc":
        queue.add(item)
    worker = asyncio.create_task(collect(queue, seen, pause=2.0))
    await asyncio.sleep(1.0)
    queue.add("a")  # processed now, so it comes once more
    await queue.shut_down_with_drain()
    assert loop.time() == 8.0
    assert seen == ["a", "b", "c", "a"]
    await worker
    await queue.shut_down_with_drain()


async def test_drain_waits_for_items_without_worker() -> None:
    queue, seen = WorkQueue[str](), list[str]()
    queue.add("a")
    drain = asyncio.create_task(queue.shut_down_with_drain())
    await settle()
    assert not drain.done()  # upstream returns here
    await collect(queue, seen)
    await drain
    assert seen == ["a"]


async def test_shutdown_without_drain_ends_drain() -> None:
    queue = WorkQueue[str]()
    queue.add("a")
    await queue.get()
    drains = [asyncio.create_task(queue.shut_down_with_drain()) for _ in range(2)]
    await settle()
    queue.shut_down()
    await asyncio.gather(*drains)
    queue.done("a")


async def test_canceled_drain_leaves_queue_shut_down() -> None:
    queue, seen = WorkQueue[str](), list[str]()
    queue.add("a")
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(1.0):
            await queue.shut_down_with_drain()
    assert queue.shutting_down
    await collect(queue, seen)
    assert seen == ["a"]


def test_queue_filled_before_loop_runs_keeps_items() -> None:
    queue = WorkQueue[str](name="early")
    queue.add("a", trigger="t")
    queue.add("b")
    assert repr(queue) == "<WorkQueue 'early': 2 queued, 0 processing, 0 delayed>"

    async def main() -> None:
        work = await queue.get_work()
        assert (work.key, work.triggers) == ("a", ("t",))
        async with work:
            pass
        assert await queue.get() == "b"
        queue.done("b")

    run_virtual(main())


def test_queue_continues_after_its_loop_is_closed() -> None:
    queue = WorkQueue[str]()

    async def take() -> str:
        return await queue.get()

    async def abandon() -> None:
        getter = asyncio.create_task(queue.get())
        await settle()
        getter.cancel()

    run_virtual(abandon())
    queue.add("a")  # the loop is closed; nobody can be woken
    assert run_virtual(take()) == "a"
    queue.add("b")
    assert run_virtual(take()) == "b"


def test_waiters_of_closed_loop_do_not_block_queue() -> None:
    queue = WorkQueue[str]()

    async def take() -> str:
        return await queue.get()

    loop = VirtualLoop()
    abandoned = loop.create_task(queue.get())
    loop.run_until_complete(settle())
    loop.close()
    queue.add("a")
    assert run_virtual(take()) == "a"
    assert not abandoned.done()


def test_pending_wakeup_of_closed_loop_does_not_block_queue() -> None:
    queue = WorkQueue[str]()
    loop = VirtualLoop()
    abandoned = loop.create_task(queue.get())
    loop.run_until_complete(settle())
    queue.add("a")  # the loop is to wake its waiter, and is closed before it does
    loop.close()

    async def main() -> None:
        assert await queue.get() == "a"
        async with asyncio.timeout(5):
            getter = asyncio.create_task(queue.get())
            await settle()
            await asyncio.to_thread(queue.add, "b")
            assert await getter == "b"

    asyncio.run(main())
    assert not abandoned.done()


async def test_queue_rejects_second_event_loop() -> None:
    queue = WorkQueue[str](name="mine")

    def elsewhere() -> None:
        async def take() -> None:
            await queue.get()

        with pytest.raises(RuntimeError, match=r"'mine'.*another event loop"):
            run_virtual(take())

    await asyncio.to_thread(elsewhere)


async def test_repr_and_statistics_show_the_state() -> None:
    loop = asyncio.get_running_loop()
    queue = WorkQueue[str](name="pods")
    for item in "abca":
        queue.add(item)
    await queue.get()
    await asyncio.sleep(2.0)
    await queue.get()
    await asyncio.sleep(1.0)
    queue.add("a")
    queue.shut_down()
    assert loop.time() == 3.0
    assert repr(queue) == "<WorkQueue 'pods': 1 queued, 2 processing, 0 delayed, shutting down>"
    shown = queue.statistics()
    assert (shown.queued, shown.processing, shown.postponed, shown.delayed) == (1, 2, 1, 0)
    assert (shown.adds, shown.merged, shown.taken, shown.done, shown.retries) == (4, 1, 2, 0, 0)
    assert (shown.unfinished_work_seconds, shown.longest_running_seconds) == (4.0, 3.0)
    assert shown.shutting_down
    assert queue.name == "pods"


class Item:
    """An item that can be watched by the garbage collector."""


async def test_processed_items_are_not_kept_alive() -> None:
    queue = WorkQueue[Item]()

    def fill() -> list[weakref.ref[Item]]:
        items, triggers = [Item() for _ in range(10)], [Item() for _ in range(10)]
        for item, trigger in zip(items, triggers, strict=True):
            queue.add(item, trigger=trigger)
        return [weakref.ref(item) for item in (*items, *triggers)]

    async def work_off() -> None:
        async for work in queue:
            async with work:
                pass

    references = fill()
    queue.shut_down()
    assert None not in [reference() for reference in references]
    await work_off()
    gc.collect()
    assert [reference() for reference in references] == [None] * 20


def test_options_are_checked() -> None:
    with pytest.raises(ValueError, check=having(argument="QueueOptions.max_triggers")):
        QueueOptions(max_triggers=-1)
    with pytest.raises(ValueError, check=having(argument="QueueOptions.metrics_period")):
        QueueOptions(metrics_period=0.0)


async def test_number_of_stored_triggers_is_configurable() -> None:
    queue = WorkQueue[str](options=QueueOptions(max_triggers=2))
    for trigger in range(5):
        queue.add("a", trigger=trigger)
    work = await queue.get_work()
    assert (work.triggers, work.triggers_dropped) == ((0, 4), 3)
    work.put_back()


async def test_failed_run_is_logged_with_item_and_triggers(caplog: pytest.LogCaptureFixture) -> None:
    queue = RateLimitingQueue[str](name="pods", options=QueueOptions(max_triggers=1))
    for trigger in (1, 2, 3):
        queue.add("a", trigger=trigger)
    async with await queue.get_work():
        raise KeyError("x")
    (record,) = caplog.records
    fields = ("key", "queue", "attempts", "triggers", "triggers_dropped", "delay")
    assert [record.__dict__[name] for name in fields] == ["a", "pods", 1, (1,), 2, 0.005]


async def test_shutdown_is_logged_with_remaining_items(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "deltaloop.workqueue")
    queue = WorkQueue[str](name="pods")
    queue.add("a")
    queue.shut_down()
    (record,) = caplog.records
    assert [record.__dict__[name] for name in ("queue", "queued", "drain")] == ["pods", 1, False]


def test_drain_binds_queue_to_its_loop() -> None:
    queue = WorkQueue[str](name="mine")
    queue.add("a")

    async def drain() -> None:
        draining = asyncio.create_task(queue.shut_down_with_drain())
        await settle()
        assert not draining.done()
        await asyncio.to_thread(elsewhere)
        queue.shut_down()
        await draining

    def elsewhere() -> None:
        with pytest.raises(RuntimeError, match="another event loop"):
            run_virtual(queue.shut_down_with_drain())

    run_virtual(drain())


async def test_new_get_does_not_take_item_added_by_thread_for_waiting_worker() -> None:
    queue = WorkQueue[str]()
    waiting = asyncio.create_task(queue.get())
    await settle()
    adding = threading.Thread(target=queue.add, args=("a",))
    adding.start()
    adding.join()  # the loop has not heard of it yet
    with pytest.raises(TimeoutError):
        await queue.get(timeout=1.0)
    assert await waiting == "a"
