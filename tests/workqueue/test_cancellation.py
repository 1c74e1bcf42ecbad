"""Cancelling at every point where a task can be: nothing is lost, nothing is done twice at a time, nobody hangs."""

from __future__ import annotations

import asyncio
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltaloop.testing import StalledError, run_virtual
from deltaloop.workqueue import ItemExponentialFailureRateLimiter, RateLimitingQueue
from deltaloop.workqueue.queue import WorkQueue
from tests.nightly import examples


async def steps(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


@pytest.mark.parametrize("before_add", range(4))
@pytest.mark.parametrize("after_add", range(6))
@pytest.mark.parametrize("timeout", [None, 10.0])
async def test_get_canceled_at_any_step_loses_no_item(before_add: int, after_add: int, timeout: float | None) -> None:
    queue = WorkQueue[str]()
    first = asyncio.create_task(queue.get(timeout))
    second = asyncio.create_task(queue.get(timeout))
    await steps(before_add)
    queue.add("a")
    await steps(after_add)
    first.cancel()
    outcome = (await asyncio.gather(first, return_exceptions=True))[0]
    if outcome == "a":  # it had ended before it was cancelled
        queue.done("a")
        queue.add("b")
        assert await second == "b"
    else:
        assert isinstance(outcome, asyncio.CancelledError)
        assert await second == "a"
    assert queue.statistics().queued == 0
    assert len(queue._getters) == 0


@pytest.mark.parametrize("when", range(30))
async def test_worker_canceled_at_any_step_loses_no_item(when: int) -> None:
    queue = RateLimitingQueue[str](rate_limiter=ItemExponentialFailureRateLimiter(1.0))
    finished = list[str]()

    async def worker() -> None:
        async for work in queue:
            async with work:
                await asyncio.sleep(0)
                await asyncio.sleep(0)
                finished.append(work.key)

    for item in "abcde":
        queue.add(item, trigger=item)
    task = asyncio.create_task(worker())
    await steps(when)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert queue.statistics().processing == 0
    queue.shut_down()
    await worker()
    assert sorted(finished) == list("abcde")


@pytest.mark.parametrize("when", range(12))
async def test_drain_canceled_at_any_step_does_not_end_other_drain(when: int) -> None:
    queue = WorkQueue[str]()
    queue.add("a")
    await queue.get()
    cancelled = asyncio.create_task(queue.shut_down_with_drain())
    other = asyncio.create_task(queue.shut_down_with_drain())
    await steps(when)
    cancelled.cancel()
    await asyncio.gather(cancelled, return_exceptions=True)
    await steps(3)
    assert not other.done()
    queue.done("a")
    await other


async def churn(seed: int, queue: RateLimitingQueue[int]) -> None:
    """Add, take, fail and cancel by chance; afterwards each added item must have been finished since its last add."""
    chance = random.Random(seed)
    present, together = set[int](), list[int]()
    unfinished = dict[int, int]()  # item: number of the last add

    async def worker() -> None:
        async for work in queue:
            async with work:
                seen = unfinished.get(work.key)
                if work.key in present:
                    together.append(work.key)
                present.add(work.key)
                try:
                    for _ in range(chance.randrange(4)):
                        await asyncio.sleep(chance.choice([0, 0, 0.5]))
                    if chance.random() < 0.2:
                        raise LookupError("by chance")
                    if unfinished.get(work.key) == seen:
                        unfinished.pop(work.key, None)
                finally:
                    present.remove(work.key)

    async def impatient() -> None:
        while True:
            try:
                async with await queue.get_work(timeout=chance.choice([0, 0.25, 1.0])):
                    raise LookupError("not mine")  # so it is tried again
            except TimeoutError:
                await asyncio.sleep(0.1)

    workers = [asyncio.create_task(worker()) for _ in range(4)]
    other = asyncio.create_task(impatient())
    for number in range(60):
        item = chance.randrange(5)
        unfinished[item] = number
        way = chance.randrange(3)
        if way == 0:
            queue.add(item)
        elif way == 1:
            queue.add_after(item, 0.75)
        else:
            queue.add_rate_limited(item)
        for _ in range(chance.randrange(3)):
            await asyncio.sleep(chance.choice([0, 0.25]))
        if chance.random() < 0.4:
            victim = chance.randrange(len(workers))
            workers[victim].cancel()
            workers.append(asyncio.create_task(worker()))
            await asyncio.gather(workers.pop(victim), return_exceptions=True)
    other.cancel()
    await asyncio.gather(other, return_exceptions=True)
    await asyncio.sleep(200.0)
    assert unfinished == {}
    assert together == []
    queue.shut_down()
    await asyncio.gather(*workers)


@settings(max_examples=examples(15), derandomize=True, database=None)
@given(st.integers(min_value=0, max_value=10_000))
def test_random_cancellations_lose_no_item(seed: int) -> None:
    queue = RateLimitingQueue[int](rate_limiter=ItemExponentialFailureRateLimiter(0.1, 2.0))
    run_virtual(churn(seed, queue))


@pytest.mark.nightly
def test_lost_wakeup_after_cancellation_is_detected() -> None:
    """A seeded bug: the queue does not look again when a get was cancelled."""

    class Forgetful(WorkQueue[str]):
        def _serve(self) -> None:
            task = asyncio.current_task() if asyncio._get_running_loop() else None
            if task is None or not task.cancelling():
                super()._serve()

    async def main() -> None:
        queue = Forgetful()
        first, second = (asyncio.create_task(queue.get()) for _ in range(2))
        await steps(3)
        queue.add("a")
        first.cancel()
        await second

    with pytest.raises(StalledError):
        run_virtual(main())
