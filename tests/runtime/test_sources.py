"""Channels and timers by themselves."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import pytest

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.references import Trigger
from deltaloop.runtime import Request
from deltaloop.sources import Channel, Every, Source, Watch


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


async def test_what_was_sent_before_is_passed_on_once_and_counted() -> None:
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


async def test_what_is_sent_between_two_runs_waits_for_the_next() -> None:
    channel = Channel("hook")
    channel.send("default/a")
    async with Running(channel, Told()) as first:
        assert len(first.keys) == 1
    assert channel.send("default/a")
    assert len(first.keys) == 1
    async with Running(channel, Told()) as second:
        assert second.texts == ["default/a: hook event"]


def test_ten_thousand_keys_wait_and_no_more() -> None:
    channel = Channel()
    assert all(channel.send(f"default/{number}") for number in range(10_000))
    assert not channel.send("default/more")
    assert channel.send("default/0")


async def test_a_channel_changes_nothing_without_its_lock() -> None:
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
def test_a_forked_child_keeps_what_waits_and_has_no_queues(held: bool) -> None:
    channel, told = Channel(), Told()
    channel.send("default/a")
    if held:  # at the fork, between the two
        channel._pending_keys.add("default/b")
    channel._queues = [(told, told.count)]
    channel._in_child(held)
    assert channel.send("default/b")
    assert told.keys == []
    assert [key for key, _ in channel._pending] == ["default/a", "default/b"]


async def test_a_timer_ticks_for_each_of_its_keys_by_the_loops_time() -> None:
    async with Running(Every(10.0, ["default/a", Request("", "all")], name="ticks"), Told()) as told:
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


async def test_a_timer_that_does_not_know_whom_is_told_of(caplog: pytest.LogCaptureFixture) -> None:
    def whom() -> Iterable[str]:
        raise ValueError("nobody knows")

    async with Running(Every(10.0, whom, name="ticks"), Told()) as told:
        await asyncio.sleep(15.0)
        assert told.keys == []
    [record] = caplog.records
    assert (record.levelno, vars(record)["source"]) == (logging.ERROR, "ticks")
    assert "nobody knows" in vars(record)["raised"]


@pytest.mark.parametrize("period", [0.0, -1.0, float("nan")])
def test_a_period_is_positive(period: float) -> None:
    with pytest.raises(InvalidArgumentError, match=r"Every.period"):
        Every(period, [])


def test_a_watch_is_of_a_kind_and_the_rest_has_names() -> None:
    positional: Any = Watch
    with pytest.raises(TypeError, match="positional"):
        positional("v1/Pod", None)
    watch = Watch("v1/Pod")
    assert (watch.to, watch.predicates, watch.namespace, watch.label_selector) == (None, (), None, "")
    assert (watch.field_selector, watch.indexers, watch.source) == ("", {}, "")
