"""Work queues as threads use them."""

from __future__ import annotations

import asyncio
import threading

import pytest

from deltaloop.blocking import BackgroundLoop
from deltaloop.blocking.queue import BlockingQueue
from deltaloop.workqueue import (
    ItemExponentialFailureRateLimiter,
    QueueShutDownError,
    RateLimitingQueue,
    Work,
    WorkQueue,
)


def test_get_add_and_done_from_a_thread() -> None:
    with BackgroundLoop() as loop:
        queue = loop.queue(WorkQueue[str](name="pods"))
        with pytest.raises(TimeoutError):
            queue.get(timeout=0.01)
        queue.add("a", trigger="why")
        queue.add("b", priority=5)
        assert len(queue) == 2
        assert queue.get(timeout=5) == "a"
        queue.done("a")
        with queue.get_work(timeout=5) as work:
            pass
        assert work.key == "b"
        queue.shut_down()
        with pytest.raises(QueueShutDownError):
            queue.get()
        assert repr(queue).startswith("<BlockingQueue of <WorkQueue 'pods'")


def test_threads_share_the_work_and_the_loop_over_it_ends() -> None:
    seen, present, together, lock = list[int](), set[int](), list[int](), threading.Lock()

    def worker(queue: BlockingQueue[int]) -> None:
        for work in queue:
            with work:
                with lock:
                    if work.key in present:
                        together.append(work.key)
                    present.add(work.key)
                    seen.append(work.key)
                with lock:
                    present.remove(work.key)

    with BackgroundLoop() as loop:
        queue = loop.queue(WorkQueue[int]())
        threads = [threading.Thread(target=worker, args=(queue,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for number in range(500):
            queue.add(number)
        queue.shut_down_with_drain(timeout=10)
        for thread in threads:
            thread.join(5)
            assert not thread.is_alive()
    assert together == []
    assert sorted(seen) == list(range(500))


def test_a_failure_in_a_thread_is_tried_again() -> None:
    with BackgroundLoop() as loop:
        limited = RateLimitingQueue[str](rate_limiter=ItemExponentialFailureRateLimiter(0.001, 1.0))
        queue = loop.queue(limited)
        assert queue.queue is limited
        queue.add("a")
        attempts = list[int]()
        for work in queue:
            with work:
                attempts.append(work.attempts)
                if work.attempts < 3:
                    raise LookupError("not yet")
                queue.shut_down()
        assert attempts == [1, 2, 3]


def test_a_drain_that_takes_too_long_leaves_the_queue_shut_down() -> None:
    with BackgroundLoop() as loop:
        queue = loop.queue(WorkQueue[str]())
        queue.add("a")
        assert queue.get() == "a"
        with pytest.raises(TimeoutError):
            queue.shut_down_with_drain(timeout=0.01)
        assert queue.queue.shutting_down
        queue.done("a")
        queue.shut_down_with_drain(timeout=5)


def test_handlers_on_the_loop_may_add() -> None:
    with BackgroundLoop() as loop:
        queue = loop.queue(WorkQueue[str]())

        async def handler() -> None:
            queue.add("a")

        loop.run(handler())
        assert queue.get(timeout=5) == "a"
        queue.done("a")


def test_an_item_that_comes_when_nobody_waits_any_more_goes_back() -> None:
    with BackgroundLoop() as loop:
        queue = WorkQueue[str]()

        async def take_late() -> Work[str]:
            await asyncio.sleep(0.05)
            return await queue.get_work()

        queue.add("a")
        returned = threading.Event()

        def put_back(work: Work[str]) -> None:
            work.put_back()
            returned.set()

        async def stubborn() -> Work[str]:
            task = asyncio.ensure_future(take_late())
            while not task.done():
                try:
                    await asyncio.shield(task)
                except asyncio.CancelledError:
                    continue  # as a coroutine that is just about to return
            return task.result()

        with pytest.raises(TimeoutError):
            loop.run_keeping(stubborn(), timeout=0.01, unwanted=put_back)
        assert returned.wait(5)
        assert loop.queue(queue).get(timeout=5) == "a"
        queue.done("a")
