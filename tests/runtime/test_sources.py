"""Channels and timers by themselves."""

from __future__ import annotations

import asyncio
import functools
import logging
import threading
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import pytest

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.references import Trigger
from deltaloop.runtime import Request
from deltaloop.sources import Channel, Periodic, Source, Watch
from tests.having import having
from tests.runtime.worlds import until


class Told:
    """Takes keys as a queue does, and what a metric is told."""

    def __init__(self) -> None:
        self.keys: list[tuple[str, Trigger]] = []
        self.counted: list[tuple[str, str]] = []

    def add(self, item: str, *, trigger: object | None = None) -> None:
        assert isinstance(trigger, Trigger)
        self.keys.append((item, trigger))

    def count(self, source: str, verb: str) -> None:
        self.counted.append((source, verb))

    @property
    def texts(self) -> list[str]:
        return [f"{key}: {trigger.source} {trigger.verb}" for key, trigger in self.keys]


class Running:
    """A source that runs until this is left."""

    def __init__(self, source: Source, told: Told) -> None:
        self._source, self._told = source, told

    async def __aenter__(self) -> Told:
        self._task = asyncio.create_task(self._source.run(self._told, self._told.count))
        await asyncio.sleep(0.0)
        return self._told

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task


async def test_keys_sent_before_start_are_delivered_once() -> None:
    channel = Channel()
    assert channel.name == "channel"
    assert channel.send("default/a", verb="ping")
    assert channel.send(Request("default", "b"))
    assert channel.send("default/a", verb="pong"), "it waits already"
    async with Running(channel, Told()) as told:
        assert told.texts == ["default/a: channel ping", "default/b: channel event"]
        assert told.counted == [("channel", "ping"), ("channel", "event")]
        channel.send("default/a")
        assert told.texts[2:] == ["default/a: channel event"]
        assert told.counted[2:] == [("channel", "event")]
        async with Running(channel, Told()) as second:
            assert second.texts == [], "that was for the first"
            channel.send("default/c")
            assert second.texts == told.texts[3:] == ["default/c: channel event"]


async def test_keys_sent_between_runs_are_delivered_to_next_run() -> None:
    channel = Channel("hook")
    channel.send("default/a")
    async with Running(channel, Told()) as first:
        assert len(first.keys) == 1
    assert channel.send("default/a")
    assert len(first.keys) == 1
    async with Running(channel, Told()) as second:
        assert second.texts == ["default/a: hook event"]


def test_channel_buffers_ten_thousand_keys() -> None:
    channel = Channel()
    assert all(channel.send(f"default/{number}") for number in range(10_000))
    assert not channel.send("default/more")
    assert channel.send("default/0")


async def test_channel_changes_state_under_lock() -> None:
    channel = Channel()
    owned: list[bool] = []

    class Guarded(list[Any]):
        def append(self, item: Any) -> None:
            owned.append(held())
            super().append(item)

        def remove(self, item: Any) -> None:
            owned.append(held())
            super().remove(item)

        def __iter__(self) -> Any:
            owned.append(held())
            return super().__iter__()

    def held() -> bool:
        lock: Any = channel._lock
        return bool(lock._is_owned())

    channel._queues = Guarded()
    async with Running(channel, Told()):
        channel.send("default/a")
    assert owned == [True, True, True]  # one is added, read, removed


@pytest.mark.parametrize("held", [False, True])
def test_forked_channel_keeps_pending_keys_without_queues(held: bool) -> None:
    channel, told = Channel(), Told()
    channel.send("default/a")
    if held:  # at the fork, between the two
        channel._pending_keys.add("default/b")
    channel._queues = [(told, told.count)]
    channel._in_child(held)
    assert channel.send("default/b")
    assert told.keys == []
    assert [key for key, _ in channel._pending] == ["default/a", "default/b"]


async def test_timer_triggers_each_key_in_loop_time() -> None:
    async with Running(Periodic(10.0, ["default/a", Request("", "all")], name="ticks"), Told()) as told:
        await asyncio.sleep(5.0)
        assert told.keys == []
        await asyncio.sleep(20.0)
        assert [(key, trigger.verb, trigger.source, trigger.at) for key, trigger in told.keys] == [
            ("default/a", "tick", "ticks", 10.0),
            ("all", "tick", "ticks", 10.0),
            ("default/a", "tick", "ticks", 20.0),
            ("all", "tick", "ticks", 20.0),
        ]
        assert told.counted == [("ticks", "tick")] * 4


async def test_failing_timer_function_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    def whom() -> Iterable[str]:
        raise ValueError("nobody knows")

    async with Running(Periodic(10.0, whom, name="ticks"), Told()) as told:
        await asyncio.sleep(15.0)
        assert told.keys == []
    [record] = caplog.records
    assert (record.levelno, vars(record)["source"]) == (logging.ERROR, "ticks")
    assert "nobody knows" in vars(record)["raised"]


async def test_timer_calls_plain_or_async_function_each_period() -> None:
    asked: list[float] = []

    async def waits() -> list[Request]:
        asked.append(asyncio.get_running_loop().time())
        await asyncio.sleep(1.0)
        return [Request("default", "a")]

    async with (
        Running(Periodic(10.0, waits), Told()) as first,
        Running(Periodic(10.0, functools.partial(waits)), Told()) as second,
    ):
        await asyncio.sleep(25.0)
        assert asked == [10.0, 10.0, 20.0, 20.0]
        assert first.texts == second.texts == ["default/a: timer tick"] * 2


async def test_iterator_of_timer_is_consumed_once() -> None:
    async with Running(Periodic(10.0, (key for key in ["default/a"])), Told()) as told:
        await asyncio.sleep(25.0)
        assert told.texts == ["default/a: timer tick"] * 2


async def test_poll_triggers_new_changed_and_gone_keys() -> None:
    found = {"default/a": 1, "default/b": 1}

    async def poll() -> dict[str, int]:
        await asyncio.sleep(3.0)
        return found

    async with Running(Periodic(10.0, poll, changed_only=True, name="buckets"), Told()) as told:
        await asyncio.sleep(5.0)
        assert told.texts == ["default/a: buckets new", "default/b: buckets new"], "at once, and all of them"
        await asyncio.sleep(10.0)
        assert len(told.keys) == 2
        found["default/b"] = 2
        del found["default/a"]
        await asyncio.sleep(10.0)
        assert told.texts[2:] == ["default/b: buckets changed", "default/a: buckets gone"]
        assert told.counted[2:] == [("buckets", "changed"), ("buckets", "gone")]
        assert [trigger.at for _, trigger in told.keys] == [3.0, 3.0, 23.0, 23.0]


async def test_slow_poll_delays_next_poll() -> None:
    begun: list[float] = []
    running: list[int] = []

    async def poll() -> dict[str, int]:
        begun.append(asyncio.get_running_loop().time())
        running.append(1)
        assert len(running) == 1, "one at a time"
        await asyncio.sleep(25.0 if len(begun) == 1 else 1.0)
        running.pop()
        return {}

    async with Running(Periodic(10.0, poll, changed_only=True), Told()):
        await asyncio.sleep(50.0)
    assert begun == [0.0, 25.0, 35.0, 45.0]


@pytest.mark.parametrize("failure", ["raises", "answers", "is cancelled"])
async def test_failing_poll_is_logged_once_a_minute_and_retried(failure: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "deltaloop.runtime")
    value, fails = 1, False

    async def poll() -> Any:
        if not fails:
            return {"default/a": value}
        if failure == "is cancelled":
            other = asyncio.create_task(asyncio.sleep(60.0))
            other.cancel()
            await other
        if failure == "answers":
            return ["default/a"]
        raise ConnectionError("the provider is away")

    async with Running(Periodic(10.0, poll, changed_only=True, name="buckets"), Told()) as told:
        await asyncio.sleep(5.0)
        fails = True
        await asyncio.sleep(100.0)
        fails, value = False, 2
        await asyncio.sleep(10.0)
        assert told.texts == ["default/a: buckets new", "default/a: buckets changed"]
    said = [record for record in caplog.records if "polling function failed" in record.message]
    assert [record.levelno for record in said].count(logging.ERROR) == 2
    assert [record.levelno for record in said].count(logging.DEBUG) == 8
    assert all(vars(record)["source"] == "buckets" for record in said)


async def test_canceled_poll_ends() -> None:
    async def poll() -> dict[str, int]:
        await asyncio.sleep(60.0)
        return {}

    running = asyncio.create_task(Periodic(10.0, poll, changed_only=True).run(Told(), Told().count))
    await asyncio.sleep(5.0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


@pytest.mark.real_time
async def test_plain_poll_runs_in_thread_that_is_not_awaited() -> None:
    go, polled_in, ended = threading.Event(), list[str](), list[bool]()

    def poll() -> dict[str, int]:
        polled_in.append(threading.current_thread().name)
        if len(polled_in) == 1:
            raise StopIteration  # no future can carry it
        if len(polled_in) == 3:
            go.wait(5.0)
            ended.append(True)
        return {"default/a": len(polled_in)}

    async with Running(Periodic(0.01, poll, changed_only=True, name="buckets"), Told()) as told:
        await until(lambda: len(polled_in) == 3, timeout=5.0)
        assert told.texts == ["default/a: buckets new"]
    assert ended == []
    go.set()
    assert set(polled_in) == {"buckets-_0"}


@pytest.mark.parametrize(
    ("requests", "changed_only"),
    [
        ("default/a", False),
        (Request("", "all"), False),
        (["default/a"], True),
        ({"default/a": 1}, True),
    ],
)
def test_invalid_requests_of_timer_are_rejected(requests: Any, changed_only: bool) -> None:
    with pytest.raises(InvalidArgumentError, check=having(argument="Periodic.requests")):
        Periodic(10.0, requests, changed_only=changed_only)


@pytest.mark.parametrize("period", [0.0, -1.0, float("nan")])
def test_period_must_be_positive(period: float) -> None:
    with pytest.raises(InvalidArgumentError, check=having(argument="Periodic.period")):
        Periodic(period, [])


def test_watch_options_are_keyword_only() -> None:
    positional: Any = Watch
    with pytest.raises(TypeError, match="positional"):
        positional("v1/Pod", None)
    watch = Watch("v1/Pod")
    assert (watch.to, watch.predicates, watch.namespace, watch.label_selector) == (None, (), None, "")
    assert (watch.field_selector, watch.indexers, watch.source) == ("", {}, "")
