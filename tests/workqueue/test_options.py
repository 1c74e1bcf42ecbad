"""What can be chosen about a queue, on a loop."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Hashable
from functools import partial

import pytest

from deltaloop.workqueue import (
    DelayingQueue,
    FirstInFirstOut,
    ItemExponentialFailureRateLimiter,
    QueueOptions,
    RateLimitingQueue,
    WorkQueue,
    by_namespace,
)


async def drained(queue: WorkQueue[str]) -> list[str]:
    queue.shut_down()
    items = list[str]()
    async for work in queue:
        async with work:
            items.append(work.key)
    return items


@pytest.mark.parametrize("kind", [WorkQueue, DelayingQueue, RateLimitingQueue])
async def test_priorities_and_fairness_are_enabled_by_options(kind: type[WorkQueue[str]]) -> None:
    items = [("a/1", -100), ("a/2", -100), ("a/3", 0), ("b/1", 0)]
    expected = {
        QueueOptions(): ["a/1", "a/2", "a/3", "b/1"],
        QueueOptions(fairness_key=by_namespace): ["a/1", "b/1", "a/2", "a/3"],
    }
    patience = {0: 0.0, -100: 30.0}
    for options, order in [
        *expected.items(),
        (QueueOptions(priority_aging=patience), ["a/3", "b/1", "a/1", "a/2"]),
        (QueueOptions(priority_aging=patience, fairness_key=by_namespace), ["a/3", "b/1", "a/1", "a/2"]),
    ]:
        queue = kind(options=options)
        for item, priority in items:
            queue.add(item, priority=priority)
        assert await drained(queue) == order


async def test_low_priority_item_is_taken_after_its_aging_time() -> None:
    loop = asyncio.get_running_loop()
    queue = DelayingQueue[str](options=QueueOptions(priority_aging={0: 0.0, -100: 30.0}))
    queue.add("busy")
    queue.add("patient", priority=-100)
    async for work in queue:  # "busy" wants to run without end
        async with work:
            queue.add(f"busy {loop.time()}")
            if work.key == "patient":
                break
            await asyncio.sleep(1.0)
        if loop.time() > 100.0:
            pytest.fail("it starved")
    assert loop.time() == 31.0  # what was added at 29 s was before it, what was added at 30 s was not


async def test_delayed_and_rate_limited_adds_have_priorities() -> None:
    queue = RateLimitingQueue[str](
        rate_limiter=ItemExponentialFailureRateLimiter(1.0), options=QueueOptions(priority_aging={1: 0.0, 0: 5.0})
    )
    queue.add_after("a", 1.0)
    queue.add_after("b", 1.0, priority=1)
    queue.add_rate_limited("c", trigger="event", priority=1)
    await asyncio.sleep(2.0)
    assert await drained(queue) == ["b", "c", "a"]


class NewestFirst:
    """A line of one's own: last in, first out."""

    def __init__(self) -> None:
        self.items = list[str]()
        self.touched = list[str]()

    def push(self, item: str, now: float, *, priority: int) -> None:
        self.items.append(item)

    def touch(self, item: str, now: float, *, priority: int) -> None:
        self.touched.append(item)

    def pop(self) -> str:
        return self.items.pop()

    def __len__(self) -> int:
        return len(self.items)


async def test_custom_order_receives_pushes_and_touches() -> None:
    """Upstream's Collapse tests: it hears of each join once, and of adds while an item waits as touches."""
    lines = list[NewestFirst]()

    def make() -> NewestFirst:
        lines.append(NewestFirst())
        return lines[-1]

    queue = WorkQueue[str](options=QueueOptions(order=make))
    for item in ("a", "b", "a", "a", "c"):
        queue.add(item)
    assert lines[0].items == ["a", "b", "c"]
    assert lines[0].touched == ["a", "a"]
    assert await queue.get() == "c"
    queue.add("c")
    queue.add("c")
    assert lines[0].touched == ["a", "a"]
    queue.done("c")
    assert await drained(queue) == ["c", "b", "a"]


async def test_failing_flow_function_is_logged_without_losing_item(caplog: pytest.LogCaptureFixture) -> None:
    def fail(item: str) -> Hashable:
        raise LookupError(item)

    broken: list[Callable[[str], Hashable]] = [fail, lambda item: [item]]  # type: ignore[list-item,return-value]  # pyright: ignore[reportAssignmentType]  # an unhashable flow
    for flow in broken:
        queue = WorkQueue[str](name="pods", options=QueueOptions(fairness_key=flow))
        queue.add("a")
        queue.add("b")
        assert await drained(queue) == ["a", "b"]
    assert {record.getMessage() for record in caplog.records} == {"flow function failed"}


async def test_failing_merge_function_keeps_trigger(caplog: pytest.LogCaptureFixture) -> None:
    def newest(kept: tuple[object, ...], trigger: object) -> tuple[object, ...]:
        if trigger == "bad":
            raise LookupError
        return (trigger,)

    queue = WorkQueue[str](options=QueueOptions(merge_triggers=newest))
    for trigger in (1, 2, "bad", 3):
        queue.add("a", trigger=trigger)
        if trigger == "bad":
            assert caplog.records[0].getMessage() == "merge function for triggers failed, keeping the trigger"
    work = await queue.get_work()
    assert (work.triggers, work.triggers_dropped) == ((3,), 3)
    queue.done("a")


async def test_jitter_delays_retries_randomly() -> None:
    loop = asyncio.get_running_loop()
    queue = RateLimitingQueue[int](
        rate_limiter=ItemExponentialFailureRateLimiter(10.0), options=QueueOptions(jitter=0.5)
    )
    for number in range(50):
        queue.add_rate_limited(number)
    times = list[float]()
    for _ in range(50):
        queue.done(await queue.get())
        times.append(loop.time())
    assert all(10.0 <= time < 15.0 for time in times)
    assert len(set(times)) > 1


async def test_dead_letters_are_logged_listed_counted_and_retried(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR, "deltaloop.workqueue")
    queue = RateLimitingQueue[str](
        name="pods", rate_limiter=ItemExponentialFailureRateLimiter(1.0), options=QueueOptions(max_requeues=1)
    )
    queue.add("a", trigger="why")
    for _ in range(2):
        async with await queue.get_work():
            raise LookupError("x")
    assert len(queue.delayed()) == 0
    await asyncio.sleep(9.0)
    (letter,) = queue.dead_letters()
    assert isinstance(letter.error, LookupError)
    shown = (letter.item, letter.attempts, letter.triggers, letter.triggers_dropped, letter.parked_for)
    assert shown == ("a", 2, ("why",), 0, 9.0)
    assert queue.statistics().parked == 1
    (record,) = caplog.records
    assert record.getMessage() == "work failed for good and is parked"
    assert (record.__dict__["key"], record.__dict__["queue"], record.__dict__["attempts"]) == ("a", "pods", 2)
    assert queue.retry_dead_letter("a", trigger="by hand")
    assert not queue.retry_dead_letter("a")
    work = await queue.get_work(timeout=0)
    assert (work.triggers, work.attempts) == (("why", "by hand"), 1)
    queue.done("a")
    assert queue.dead_letters() == ()


async def test_parking_by_plain_call_is_logged_and_dead_letter_can_be_discarded(
    caplog: pytest.LogCaptureFixture,
) -> None:
    queue = RateLimitingQueue[str](name="pods", options=QueueOptions(max_requeues=0))
    queue.add("a")
    await queue.get()
    queue.add_rate_limited("a", error=LookupError("x"))
    queue.done("a")
    assert [record.getMessage() for record in caplog.records] == ["work failed for good and is parked"]
    letter = queue.discard_dead_letter("a")
    assert letter is not None
    assert letter.item == "a"
    assert queue.discard_dead_letter("a") is None
    assert queue.dead_letters() == ()


@pytest.mark.parametrize(
    "wrong",
    [
        partial(QueueOptions, max_requeues=-1),
        partial(QueueOptions, max_dead_letters=-1),
        partial(QueueOptions, jitter=math.nan),
        partial(QueueOptions, priority_aging={}),
        partial(QueueOptions, order=FirstInFirstOut, fairness_key=by_namespace),
        partial(QueueOptions, order=FirstInFirstOut, priority_aging={0: 0.0}),
    ],
)
def test_invalid_queue_options_are_rejected(wrong: Callable[[], QueueOptions]) -> None:
    with pytest.raises(ValueError, match=r"QueueOptions|patience"):
        wrong()
