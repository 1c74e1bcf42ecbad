"""What all three kinds of queue make of their options, their name and their clock, and what they log."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Hashable
from functools import partial
from typing import Any

import pytest

from deltaloop._internal.fork_safety import ForkedError
from deltaloop._internal.option_types import OptionTypeError
from deltaloop.errors import QueueShutDownError, TerminalError
from deltaloop.testing import run_virtual
from deltaloop.workqueue import (
    DelayingQueue,
    ItemExponentialFailureRateLimiter,
    QueueOptions,
    RateLimitingQueue,
    WorkQueue,
)
from tests.having import having
from tests.workqueue.test_metrics import Recorder
from tests.workqueue.timers import live_timers

KINDS = pytest.mark.parametrize("kind", [WorkQueue, DelayingQueue, RateLimitingQueue])
DELAYING = pytest.mark.parametrize("kind", [DelayingQueue, RateLimitingQueue])

DEFAULTS: dict[str, object] = {
    "max_triggers": 16,
    "merge_triggers": None,
    "priority_aging": None,
    "fairness_key": None,
    "order": None,
    "max_requeues": None,
    "max_dead_letters": 1000,
    "jitter": 0.0,
    "metrics_period": 0.5,
}


def test_options_have_documented_defaults() -> None:
    assert {name: getattr(QueueOptions(), name) for name in QueueOptions.__struct_fields__} == DEFAULTS


@pytest.mark.parametrize(
    ("name", "wrong", "right"),
    [
        ("max_triggers", -1, 0),
        ("max_requeues", -1, 0),
        ("max_dead_letters", -1, 0),
        ("jitter", -0.1, 0.0),
        ("metrics_period", 0.0, 0.001),
    ],
)
def test_invalid_number_is_rejected_with_option_name(name: str, wrong: float, right: float) -> None:
    options: Any = QueueOptions
    with pytest.raises(ValueError, match=rf"^QueueOptions\.{name}"):
        options(**{name: wrong})
    with pytest.raises(OptionTypeError, match=rf"^QueueOptions\.{name} "):
        options(**{name: "7"})
    options(**{name: right})


def test_custom_order_cannot_be_combined_with_others() -> None:
    for others in (
        {"priority_aging": {0: 0.0}},
        {"fairness_key": str},
        {"priority_aging": {0: 0.0}, "fairness_key": str},
    ):
        with pytest.raises(ValueError, check=having(argument="QueueOptions.order")):
            QueueOptions(order=list, **others)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        QueueOptions(**others)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, check=having(argument="QueueOptions.priority_aging")):
        QueueOptions(priority_aging={})


@KINDS
async def test_every_option_reaches_the_queue(kind: type[WorkQueue[str]], caplog: pytest.LogCaptureFixture) -> None:
    def merge(kept: tuple[object, ...], trigger: object) -> tuple[object, ...]:
        if trigger == "bad":
            raise LookupError("no")
        return (*kept, trigger)

    def flow(item: str) -> str:
        if item == "c":
            raise LookupError("no")
        return item

    queue = kind(name="pods", options=QueueOptions(max_triggers=2, merge_triggers=merge, fairness_key=flow))
    for trigger in ("one", "two", "bad", "four"):
        queue.add("a", trigger=trigger)
    queue.add("c")
    work = await queue.get_work()
    assert (work.triggers, work.triggers_dropped) == (("one", "four"), 2)
    work.put_back()
    told = {record.getMessage(): record for record in caplog.records}
    assert {message: (record.levelname, vars(record)["queue"]) for message, record in told.items()} == {
        "merge function for triggers failed, keeping the trigger": ("ERROR", "pods"),
        "flow function failed": ("ERROR", "pods"),
    }
    assert vars(told["flow function failed"])["key"] == "c"
    urgent = kind(options=QueueOptions(priority_aging={0: 10.0, 1: 0.0}))
    for item in "ab":
        urgent.add(item, priority=int(item == "b"))
    assert await urgent.get() == "b"


@KINDS
async def test_all_queues_call_hooks_and_store_no_facts_without_hooks(
    kind: type[WorkQueue[str]],
) -> None:
    heard = Recorder()
    for queue in (kind(metrics=heard), kind()):
        queue.add("a")
        await queue.get()
        await asyncio.sleep(1.2)
        queue.done("a")
        await asyncio.sleep(1.0)
        assert queue._core.take_facts() == []
    assert (heard.adds, heard.latencies, heard.durations) == (1, [0.0], [1.2])
    assert [(at, seconds) for name, at, seconds in heard.running if name == "longest"] == [
        (0.5, 0.5),
        (1.0, 1.0),
        (1.5, 0.0),
    ]


@KINDS
def test_queue_without_name_has_empty_name(kind: type[WorkQueue[str]]) -> None:
    queue = kind()
    assert (queue.name, repr(queue)) == ("", f"<{kind.__name__} '': 0 queued, 0 processing, 0 delayed>")


@DELAYING
async def test_timer_is_set_again_after_cancellation(kind: type[DelayingQueue[str]]) -> None:
    queue = kind()
    queue.add_after("a", 1.0)
    queue.cancel_delayed("a")
    assert live_timers() == 0
    queue.add_after("b", 5.0)
    assert live_timers() == 1
    assert await queue.get(timeout=10.0) == "b"
    assert asyncio.get_running_loop().time() == 5.0


@DELAYING
async def test_early_timer_is_set_again(kind: type[DelayingQueue[str]]) -> None:
    queue = kind()
    queue.add_after("a", 1.0)
    queue.add_after("b", 5.0)
    queue.cancel_delayed("a")
    assert await queue.get(timeout=10.0) == "b"
    assert asyncio.get_running_loop().time() == 5.0


@DELAYING
async def test_due_item_has_zero_delay(kind: type[DelayingQueue[str]]) -> None:
    queue = kind()
    queue.add_after("a", 1.0, trigger="why")
    queue._clock = lambda: 7.0  # its time has come, and the timer has not gone off yet
    assert [(each.item, each.delay, each.triggers) for each in queue.delayed()] == [("a", 0.0, ("why",))]


@KINDS
async def test_running_time_is_nonnegative(kind: type[WorkQueue[str]]) -> None:
    queue = kind()
    queue.add("a", trigger="why")
    await queue.get()
    (running,) = queue.processing()
    assert (running.item, running.seconds, running.attempts, running.triggers) == ("a", 0.0, 1, ("why",))
    queue._clock = lambda: -5.0  # as a clock that was read before the item was taken
    assert queue.processing()[0].seconds == 0.0


@KINDS
def test_queue_forked_while_locked_rejects_all_calls(kind: type[WorkQueue[str]]) -> None:
    queue = kind(name="pods")
    queue.add("a")
    queue._in_child(held=True)
    uses: list[Callable[[], object]] = [partial(queue.add, "b"), queue.statistics, queue.processing, queue.shut_down]
    if isinstance(queue, DelayingQueue):
        uses += [partial(queue.add_after, "b", 1.0), queue.delayed]
    if isinstance(queue, RateLimitingQueue):
        uses += [partial(queue.add_rate_limited, "b"), queue.dead_letters, partial(queue.forget, "b")]
    for use in uses:
        with pytest.raises(ForkedError, check=having(what="the queue 'pods'")):
            use()


@KINDS
async def test_queue_forked_while_unlocked_uses_new_loop(kind: type[WorkQueue[str]]) -> None:
    queue = kind()
    waiting = asyncio.create_task(queue.get())
    await asyncio.sleep(1.0)
    queue._in_child(held=False)

    async def main() -> str:
        queue.add("a")
        return await queue.get(timeout=5.0)

    assert await asyncio.to_thread(run_virtual, main()) == "a"
    waiting.cancel()


# What is logged


def messages(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    return [(record.levelname, record.getMessage()) for record in caplog.records]


async def test_successful_run_is_logged_at_debug_level(
    caplog: pytest.LogCaptureFixture,
) -> None:
    queue = DelayingQueue[str](name="pods")
    for level in (logging.INFO, logging.DEBUG):
        caplog.clear()
        with caplog.at_level(level, logger="deltaloop.workqueue"):
            queue.add("a", trigger="why")
            async with await queue.get_work():
                pass
            queue.add("b")
            async with await queue.get_work() as work:
                work.retry_after(5.0)
        assert queue.cancel_delayed("b") is not None
        if level == logging.INFO:
            assert messages(caplog) == []
    ended, repeated = caplog.records
    assert messages(caplog) == [("DEBUG", "work ended")] * 2
    names = ("key", "queue", "attempts", "triggers", "triggers_dropped", "delay", "fate")
    assert [vars(ended)[name] for name in names] == ["a", "pods", 1, ("why",), 0, 0.0, "finished"]
    assert [vars(repeated)[name] for name in ("key", "delay", "fate")] == ["b", 5.0, "repeated"]


async def test_dropped_failed_item_is_logged_as_warning(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "deltaloop.workqueue")
    queue = RateLimitingQueue[str](name="pods")
    queue.add("a")
    queue.add("b")
    failing, cancelled = await queue.get_work(), await queue.get_work()
    queue.shut_down()
    caplog.clear()
    async with failing:
        raise LookupError("x")
    with pytest.raises(asyncio.CancelledError):
        async with cancelled:
            raise asyncio.CancelledError
    first, second = caplog.records
    message = "work given up: the queue is shut down"
    assert messages(caplog) == [("WARNING", message), ("INFO", message)]
    assert [vars(first)[name] for name in ("key", "queue", "raised")] == ["a", "pods", "LookupError: x"]
    assert [vars(second)[name] for name in ("key", "queue", "attempts")] == ["b", "pods", 1]


async def test_parked_item_is_logged_as_error(caplog: pytest.LogCaptureFixture) -> None:
    queue = RateLimitingQueue[str](name="pods", options=QueueOptions(max_triggers=1))
    for trigger in (1, 2):
        queue.add("a", trigger=trigger)
    async with await queue.get_work():
        raise TerminalError("for good")
    (record,) = caplog.records
    assert messages(caplog) == [("ERROR", "work failed for good and is parked")]
    names = ("key", "queue", "attempts", "triggers", "triggers_dropped", "raised")
    assert [vars(record)[name] for name in names] == ["a", "pods", 1, (1,), 1, "TerminalError: for good"]
    await asyncio.sleep(3.0)
    letter = queue.discard_dead_letter("a")
    assert letter is not None
    assert (letter.triggers, letter.triggers_dropped, letter.parked_for) == ((1,), 1, 3.0)


async def test_failing_limiter_is_logged_with_error(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(ItemExponentialFailureRateLimiter):  # type: ignore[misc]  # a mutant of a final class
        def when(self, item: Hashable, *, error: BaseException | None = None) -> float:
            raise RuntimeError("broken")

    queue = RateLimitingQueue[str](name="pods", rate_limiter=Broken(1.0))
    queue.add("a")
    async with await queue.get_work():
        raise LookupError("x")
    assert [(vars(each)["key"], vars(each)["queue"], vars(each)["raised"]) for each in caplog.records] == [
        ("a", "pods", "LookupError: x"),
        ("a", "pods", "RuntimeError: broken"),
    ]


@KINDS
async def test_drain_is_logged_once_with_remaining_items(
    kind: type[WorkQueue[str]], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "deltaloop.workqueue")
    queue = kind(name="pods")
    queue.add("a")
    queue.add("b")
    draining = asyncio.create_task(queue.shut_down_with_drain())
    await asyncio.sleep(1.0)
    queue.shut_down()
    await draining
    (record,) = caplog.records
    assert messages(caplog) == [("INFO", "shutting down work queue")]
    assert [vars(record)[name] for name in ("queue", "queued", "drain")] == ["pods", 2, True]
    assert [await queue.get(), await queue.get()] == ["a", "b"]
    with pytest.raises(QueueShutDownError) as caught:
        await queue.get()
    assert caught.value.queue == "pods"


# Retries


async def test_jitter_adds_fraction_of_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    chances = iter((0.0, 0.5, 0.999))
    monkeypatch.setattr(random, "random", lambda: next(chances))
    queue = RateLimitingQueue[str](
        rate_limiter=ItemExponentialFailureRateLimiter(10.0), options=QueueOptions(jitter=0.5)
    )
    for item in "abc":
        queue.add_rate_limited(item)
    assert [each.delay for each in queue.delayed()] == pytest.approx([10.0, 12.5, 14.995])
    plain = RateLimitingQueue[str](rate_limiter=ItemExponentialFailureRateLimiter(10.0))
    plain.add_rate_limited("a")
    assert plain.delayed()[0].delay == 10.0


async def test_dead_letters_are_limited_by_option() -> None:
    queue = RateLimitingQueue[str](options=QueueOptions(max_dead_letters=2))
    for item in "abc":
        queue.add_rate_limited(item, error=TerminalError(item))
        await asyncio.sleep(1.0)
    assert [(each.item, each.parked_for) for each in queue.dead_letters()] == [("b", 2.0), ("c", 1.0)]
    queue._clock = lambda: 0.0  # as a clock that was read before they were parked
    assert [each.parked_for for each in queue.dead_letters()] == [0.0, 0.0]
    assert not queue.retry_dead_letter("a")
    queue.shut_down()
    assert not queue.retry_dead_letter("b")


async def test_retried_dead_letter_wakes_waiting_worker() -> None:
    queue = RateLimitingQueue[str]()
    queue.add_rate_limited("a", error=TerminalError("x"))
    waiting = asyncio.create_task(queue.get_work())
    await asyncio.sleep(1.0)
    assert not waiting.done()
    assert queue.retry_dead_letter("a")
    work = await waiting
    assert work.key == "a"
    work.put_back()


async def test_retry_keeps_priority_of_run_and_other_adds_have_their_own() -> None:
    queue = RateLimitingQueue[str](
        rate_limiter=ItemExponentialFailureRateLimiter(1.0), options=QueueOptions(priority_aging={0: 100.0, 1: 0.0})
    )
    queue.add("urgent", priority=1)
    async with await queue.get_work():
        raise LookupError("x")
    for item, priority in (("plain", None), ("later", 0), ("soon", 1)):
        queue.add_rate_limited(item, trigger=f"why {item}", priority=priority)
    assert {each.item: each.triggers for each in queue.delayed()} == {
        "urgent": (),
        "plain": ("why plain",),
        "later": ("why later",),
        "soon": ("why soon",),
    }
    await asyncio.sleep(5.0)
    assert sorted([await queue.get() for _ in range(2)]) == ["soon", "urgent"]
    assert sorted([await queue.get() for _ in range(2)]) == ["later", "plain"]
