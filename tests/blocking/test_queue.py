"""Work queues as threads use them."""

from __future__ import annotations

import asyncio
import threading
import warnings
from collections.abc import Callable

import pytest

from deltaloop.blocking import BackgroundLoop
from deltaloop.blocking.queue import BlockingQueue
from deltaloop.errors import BackgroundLoopError, QueueShutDownError
from deltaloop.workqueue import ItemExponentialFailureRateLimiter, QueueOptions, RateLimitingQueue, Work, WorkQueue
from tests.blocking.serving import until
from tests.having import having


def test_get_add_and_done_from_thread() -> None:
    with BackgroundLoop() as loop:
        queue = BlockingQueue(WorkQueue[str](name="pods"), loop=loop)
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


def test_threads_share_work_until_shutdown() -> None:
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
        queue = BlockingQueue(WorkQueue[int](), loop=loop)
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


def test_failure_in_thread_is_retried() -> None:
    with BackgroundLoop() as loop:
        limited = RateLimitingQueue[str](rate_limiter=ItemExponentialFailureRateLimiter(0.001, 1.0))
        queue = BlockingQueue(limited, loop=loop)
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


def test_drain_timeout_leaves_queue_shut_down() -> None:
    with BackgroundLoop() as loop:
        queue = BlockingQueue(WorkQueue[str](), loop=loop)
        queue.add("a")
        assert queue.get() == "a"
        with pytest.raises(TimeoutError):
            queue.shut_down_with_drain(timeout=0.01)
        assert queue.queue.shutting_down
        queue.done("a")
        queue.shut_down_with_drain(timeout=5)


def test_handlers_on_loop_can_add() -> None:
    with BackgroundLoop() as loop:
        queue = BlockingQueue(WorkQueue[str](), loop=loop)

        async def handler() -> None:
            queue.add("a")

        loop.run(handler())
        assert queue.get(timeout=5) == "a"
        queue.done("a")


def test_item_taken_after_timeout_is_put_back() -> None:
    with BackgroundLoop() as loop:
        queue = WorkQueue[str]()

        async def take_late() -> Work[str]:
            await asyncio.sleep(0.25)
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
            loop.run_keeping(stubborn(), timeout=0.1, unwanted=put_back)
        assert returned.wait(5)
        assert BlockingQueue(queue, loop=loop).get(timeout=5) == "a"
        queue.done("a")


def test_trigger_and_priority_reach_worker() -> None:
    with BackgroundLoop() as loop:
        queue = BlockingQueue(WorkQueue[str](options=QueueOptions(priority_aging={0: 60.0, 5: 0.0})), loop=loop)
        queue.add("later", trigger="why")
        queue.add("sooner", priority=5)
        seen: list[object] = []
        with queue.get_work(timeout=5) as sooner, queue.get_work(timeout=5) as later:
            seen += [(work.key, work.triggers) for work in (sooner, later)]
        assert seen == [("sooner", ()), ("later", ("why",))]
        with pytest.raises(TimeoutError):
            queue.get_work(timeout=0.001)


def test_done_is_required_once_per_item() -> None:
    with BackgroundLoop() as loop:
        queue = BlockingQueue(WorkQueue[str](), loop=loop)
        queue.add("a")
        assert queue.get(timeout=5) == "a"
        queue.add("a")
        with pytest.raises(TimeoutError):
            queue.get(timeout=0.001)
        queue.done("a")
        assert queue.get(timeout=5) == "a"
        queue.done("a")
        with pytest.raises(ValueError, check=having(argument="item of done()")):
            queue.done("a")


def test_queue_with_closed_loop_rejects_calls() -> None:
    queue = WorkQueue[str]()
    with BackgroundLoop() as loop:
        blocking = BlockingQueue(queue, loop=loop)
    calls: list[Callable[[], object]] = [lambda: blocking.add("a"), blocking.get, lambda: blocking.done("a")]
    for call in [*calls, blocking.shut_down, blocking.shut_down_with_drain]:
        with pytest.raises(BackgroundLoopError):
            call()
    assert len(blocking) == 0
    assert not queue.shutting_down


def test_unended_work_gives_warning_during_iteration() -> None:
    with BackgroundLoop() as loop, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        queue = BlockingQueue(WorkQueue[str](), loop=loop)
        queue.add("a")
        works = iter(queue)
        next(works)
        waiting = threading.Thread(target=lambda: list(works))
        waiting.start()
        until(lambda: any("'a' never ended" in str(each.message) for each in caught))
        assert waiting.is_alive()
        queue.shut_down()
        waiting.join(5)
        assert not waiting.is_alive()
