"""What becomes of an item, by how its ``async with`` block ends."""

from __future__ import annotations

import asyncio
import logging
import math

import pytest

from deltaloop.workqueue import DelayingQueue, ItemExponentialFailureRateLimiter, RateLimitingQueue, WorkQueue
from tests.having import having


def make_queue() -> RateLimitingQueue[str]:
    return RateLimitingQueue[str](name="pods", rate_limiter=ItemExponentialFailureRateLimiter(1.0, 60.0))


async def test_success_ends_run_and_forgets_failures() -> None:
    queue = make_queue()
    queue.add_rate_limited("a")
    work = await queue.get_work()
    assert queue.num_requeues("a") == 1
    processing = 0
    async with work as same:
        processing = queue.statistics().processing
    assert same is work
    assert processing == 1
    assert queue.num_requeues("a") == 0
    assert queue.statistics().processing == 0
    assert len(queue.delayed()) == 0


async def test_failure_is_logged_and_retried_with_triggers(caplog: pytest.LogCaptureFixture) -> None:
    loop = asyncio.get_running_loop()
    queue = make_queue()
    queue.add("a", trigger="why")
    seen = list[tuple[float, int, tuple[object, ...]]]()
    async for work in queue:
        async with work:
            seen.append((loop.time(), work.attempts, work.triggers))
            if work.attempts < 3:
                raise LookupError("not yet")
            queue.shut_down()
    assert seen == [(0.0, 1, ("why",)), (1.0, 2, ("why",)), (3.0, 3, ("why",))]
    failures = [record for record in caplog.records if record.name == "deltaloop.workqueue"]
    assert [record.getMessage() for record in failures] == ["work failed and will be tried again"] * 2
    first = failures[0]
    assert first.levelno == logging.WARNING
    assert first.exc_info is not None
    assert isinstance(first.exc_info[1], LookupError)
    shown = {name: first.__dict__[name] for name in ("key", "queue", "attempts", "triggers", "delay", "raised")}
    assert shown == {
        "key": "a",
        "queue": "pods",
        "attempts": 1,
        "triggers": ("why",),
        "delay": 1.0,
        "raised": "LookupError: not yet",
    }
    assert [place.rpartition(" ")[2] for place in vars(first)["where"]] == [
        "test_failure_is_logged_and_retried_with_triggers"
    ]
    again = failures[1]  # the same line failed again within the minute
    assert again.exc_info is None
    assert vars(again)["raised"] == "LookupError: not yet"


@pytest.mark.parametrize("kind", [WorkQueue, DelayingQueue])
async def test_failure_without_limiter_is_raised(kind: type[WorkQueue[str]]) -> None:
    queue = kind()
    queue.add("a")
    with pytest.raises(LookupError):
        async with await queue.get_work():
            raise LookupError("x")
    assert queue.statistics().processing == 0
    assert len(queue) == 0


async def test_cancellation_puts_item_back_without_counting() -> None:
    queue = make_queue()
    queue.add("a", trigger="why")
    started = asyncio.Event()

    async def worker() -> None:
        async for work in queue:
            async with work:
                started.set()
                await asyncio.sleep(60.0)

    task = asyncio.create_task(worker())
    await started.wait()
    queue.add("a", trigger="meanwhile")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert queue.num_requeues("a") == 0
    work = await queue.get_work(timeout=0)
    assert (work.triggers, work.attempts) == (("why", "meanwhile"), 1)
    work.put_back()


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(3)])
async def test_base_exceptions_put_item_back_and_are_raised(error: BaseException) -> None:
    queue = make_queue()
    queue.add("a", trigger="why")
    with pytest.raises(type(error)):
        async with await queue.get_work():
            raise error
    work = await queue.get_work(timeout=0)
    assert (work.triggers, work.attempts) == (("why",), 1)
    work.put_back()


async def test_failed_or_canceled_item_is_dropped_after_shutdown(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "deltaloop.workqueue")
    queue = make_queue()
    queue.add("a")
    queue.add("b")
    failing, cancelled = await queue.get_work(), await queue.get_work()
    queue.shut_down()
    async with failing:
        raise LookupError("x")
    with pytest.raises(asyncio.CancelledError):
        async with cancelled:
            raise asyncio.CancelledError
    given_up = [record for record in caplog.records if record.getMessage() == "work given up: the queue is shut down"]
    assert [record.levelname for record in given_up] == ["WARNING", "INFO"]
    assert queue.statistics().ignored == 2
    await queue.shut_down_with_drain()


@pytest.mark.parametrize("way", ["continue", "break", "return"])
async def test_early_exit_from_block_is_success(way: str) -> None:
    queue = make_queue()

    async def work_on() -> None:
        async for work in queue:
            async with work:
                queue.shut_down()
                if way == "continue":
                    continue
                if way == "break":
                    break
                return

    queue.add("a")
    await work_on()
    assert queue.statistics().done == 1


async def test_retry_after_requests_later_run_without_error() -> None:
    loop = asyncio.get_running_loop()
    queue = make_queue()
    queue.add_rate_limited("a", trigger="why")
    async with await queue.get_work() as work:
        work.retry_after(99.0)
        work.retry_after(10.0, trigger="too early")
    assert queue.num_requeues("a") == 0
    work = await queue.get_work()
    assert loop.time() == 11.0
    assert (work.triggers, work.attempts) == (("why", "too early"), 1)
    async with work:
        work.retry_after(0, trigger="at once", keep_triggers=False)
    work = await queue.get_work(timeout=0)
    assert work.triggers == ("at once",)
    work.put_back()


async def test_error_replaces_requested_later_run() -> None:
    loop = asyncio.get_running_loop()
    queue = make_queue()
    queue.add("a")
    async with await queue.get_work() as work:
        work.retry_after(500.0)
        raise LookupError("x")
    await queue.get()
    assert loop.time() == 1.0


async def test_retry_after_rejects_invalid_delay() -> None:
    queue = make_queue()
    queue.add("a")
    async with await queue.get_work() as work:
        for delay in (math.nan, math.inf):
            with pytest.raises(ValueError, check=having(argument="delay")):
                work.retry_after(delay)
    plain = WorkQueue[str]()
    plain.add("a")
    async with await plain.get_work() as work:
        with pytest.raises(TypeError, match="DelayingQueue"):
            work.retry_after(1.0)


async def test_done_inside_block_does_not_end_next_run() -> None:
    queue = make_queue()
    queue.add("a")
    work = await queue.get_work()
    await work.__aenter__()
    queue.done("a")
    queue.add("a")
    other = await queue.get_work()
    await work.__aexit__(None, None, None)
    assert queue.statistics().processing == 1  # the block ended its own run only
    async with other:
        pass
    assert queue.statistics().processing == 0


async def test_work_cannot_be_entered_twice() -> None:
    queue = make_queue()
    queue.add("a", trigger="t")
    work = await queue.get_work()
    assert repr(work) == "<Work on 'a', attempt 1, 1 triggers>"
    async with work:
        pass
    with pytest.raises(RuntimeError):
        async with work:
            pass
