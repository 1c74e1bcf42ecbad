"""The rate limiting queue on a loop."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable

import pytest

from deltaloop.errors import TerminalError
from deltaloop.workqueue import ItemExponentialFailureRateLimiter, RateLimitingQueue
from tests.workqueue.test_metrics import Recorder


async def test_delays_grow_until_forget() -> None:
    """Upstream's test, with a run between the adds: two adds for one run are one retry."""
    loop = asyncio.get_running_loop()
    queue = RateLimitingQueue[str](rate_limiter=ItemExponentialFailureRateLimiter(1.0, 1000.0))
    times = list[float]()
    for _ in range(4):
        queue.add_rate_limited("one")
        await queue.get()
        queue.done("one")
        times.append(loop.time())
    assert times == [1.0, 3.0, 7.0, 15.0]
    assert queue.num_requeues("one") == 4
    queue.add_rate_limited("two")
    queue.add_after("two", 5.0)
    queue.add_after("three", 9.0)
    shown = [(each.item, each.delay, each.rate_limited) for each in queue.delayed()]
    assert shown == [("two", 1.0, True), ("three", 9.0, False)]
    queue.cancel_delayed("three")
    queue.forget("one")
    assert (queue.num_requeues("one"), queue.num_requeues("two")) == (0, 1)
    queue.cancel_delayed("two")
    queue.add_rate_limited("one")
    assert queue.delayed()[0].delay == 1.0


async def test_two_adds_before_run_keep_earlier_time_and_count_twice() -> None:
    queue = RateLimitingQueue[str](rate_limiter=ItemExponentialFailureRateLimiter(1.0, 1000.0))
    queue.add_rate_limited("one")
    queue.add_rate_limited("one")
    assert queue.num_requeues("one") == 2
    assert [entry.delay for entry in queue.delayed()] == [1.0]


async def test_default_limiter_uses_clock_of_loop() -> None:
    loop = asyncio.get_running_loop()
    queue = RateLimitingQueue[int]()
    for number in range(120):
        queue.add_rate_limited(number)
    times = list[float]()
    for _ in range(120):
        queue.done(await queue.get())
        times.append(loop.time())
    assert times[:100] == [0.005] * 100
    assert times[100:] == pytest.approx([0.1 * (n + 1) for n in range(20)], abs=0.002)
    await asyncio.sleep(60.0)
    assert queue._limiting._limiter.when(0) == 0.01  # the bucket is full again; the item has one requeue


async def test_redundant_adds_use_no_tokens() -> None:
    queue = RateLimitingQueue[str]()
    queue.add("busy")
    for _ in range(5000):
        queue.add_rate_limited("busy", trigger="event")
    queue.add_rate_limited("other")
    assert [(entry.item, entry.delay) for entry in queue.delayed()] == [("other", 0.005)]


class BrokenLimiter:
    """Raises whenever it is asked for a delay."""

    def when(self, item: Hashable, *, error: BaseException | None = None) -> float:
        raise RuntimeError("broken")

    def forget(self, item: Hashable) -> None:
        """Remember nothing."""

    def num_requeues(self, item: Hashable) -> int:
        return 0


async def test_broken_limiter_is_logged_without_losing_item(caplog: pytest.LogCaptureFixture) -> None:
    loop = asyncio.get_running_loop()
    queue = RateLimitingQueue[str](rate_limiter=BrokenLimiter())
    with pytest.raises(RuntimeError, match="broken"):
        queue.add_rate_limited("a")
    queue.add("a")
    async with await queue.get_work():
        raise LookupError("x")
    await queue.get()
    assert loop.time() == 5.0
    levels = {record.getMessage(): record.levelname for record in caplog.records}
    assert levels == {"work failed and will be tried again": "WARNING", "a rate limiter failed": "ERROR"}


def test_default_limiter_works_before_loop_runs() -> None:
    queue = RateLimitingQueue[str]()
    queue.add_rate_limited("a")
    assert queue.delayed()[0].delay == pytest.approx(0.005, abs=0.005)
    assert queue.num_requeues("a") == 1


async def test_item_parked_by_plain_call_is_logged_and_can_be_retried_with_trigger(
    caplog: pytest.LogCaptureFixture,
) -> None:
    queue = RateLimitingQueue[str](name="pods")
    queue.add_rate_limited("a", error=TerminalError("for good"))
    (record,) = caplog.records
    assert record.getMessage() == "work failed for good and is parked"
    assert (record.__dict__["key"], record.__dict__["queue"]) == ("a", "pods")
    assert queue.retry_dead_letter("a", trigger="by hand")
    work = await queue.get_work()
    assert work.triggers == ("by hand",)
    queue.done("a")


async def test_hooks_of_rate_limiting_queue_count_adds() -> None:
    heard = Recorder()
    queue = RateLimitingQueue[str](metrics=heard)
    queue.add("a")
    queue.add_rate_limited("b")
    assert (heard.adds, heard.retries) == (1, 1)


class Grudging:
    """Lets items wait for so many seconds, one after the other, and takes no token back."""

    def __init__(self, *delays: float) -> None:
        self._delays = list(delays)

    def when(self, item: Hashable, *, error: BaseException | None = None) -> float:
        return self._delays.pop(0)

    def forget(self, item: Hashable) -> None:
        """Remember nothing."""

    def num_requeues(self, item: Hashable) -> int:
        return 0

    def refund(self, item: Hashable) -> None:
        raise KeyError(item)


async def come_in_time(queue: RateLimitingQueue[str], *items: tuple[str, float]) -> None:
    loop = asyncio.get_running_loop()
    for item in items:
        assert (await queue.get(timeout=100.0), loop.time()) == item


async def test_timer_is_set_after_failing_delayed_add() -> None:
    queue = RateLimitingQueue[str](rate_limiter=Grudging(9.0))
    queue.add_rate_limited("a")
    with pytest.raises(KeyError):
        queue.add_after("a", 1.0)
    queue.add_after("b", 2.0)
    await come_in_time(queue, ("a", 1.0), ("b", 2.0))


async def test_timer_is_set_after_failing_rate_limited_add() -> None:
    queue = RateLimitingQueue[str](rate_limiter=Grudging(9.0, 1.0))
    queue.add_rate_limited("a")
    with pytest.raises(KeyError):
        queue.add_rate_limited("a")
    queue.add_after("b", 2.0)
    await come_in_time(queue, ("a", 1.0), ("b", 2.0))


async def test_timer_is_set_after_failing_end_of_run() -> None:
    queue = RateLimitingQueue[str](rate_limiter=Grudging(9.0, 1.0))
    queue.add_rate_limited("a", trigger="x")
    queue.add("a")
    with pytest.raises(KeyError, match="a"):
        async with await queue.get_work():
            raise ValueError
    queue.add_after("b", 2.0)
    await come_in_time(queue, ("a", 1.0), ("b", 2.0))


async def test_timer_is_set_again_after_failing_limiter() -> None:
    asyncio.get_running_loop().set_exception_handler(lambda _, context: failed.append(context["exception"]))
    failed = list[BaseException]()
    queue = RateLimitingQueue[str](rate_limiter=Grudging(1.0))
    queue.add_rate_limited("a", trigger="x")
    queue.add_after("b", 2.0)
    queue.add("a")
    await asyncio.sleep(1.5)
    await come_in_time(queue, ("a", 1.5), ("b", 2.0))
    assert [type(error) for error in failed] == [KeyError]
