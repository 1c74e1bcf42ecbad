"""What a reflector tells of its work: log levels and fields, errors, metrics; and what it needs of a store."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from deltaloop.api.kinds import POD
from deltaloop.api.list_options import ListOptions
from deltaloop.api.resource import Resource
from deltaloop.api.watch_event import EventType, WatchEvent
from deltaloop.cache.core.deltas import Unread
from deltaloop.cache.core.reflector.errors import WatchListStalledError
from deltaloop.cache.core.reflector.reactions import Operation, Reaction
from deltaloop.cache.informer import Informer
from deltaloop.cache.metrics import CacheMetrics
from deltaloop.cache.reflector import Reflector
from deltaloop.cache.reflector_options import ReflectorOptions
from deltaloop.cache.store import Store
from deltaloop.client.verbs.resource_list import ResourceList
from tests.cache.fake_source import FakeSource, api_error, broken, expired, initial_events_end
from tests.cache.objects import pod
from tests.cache.test_informer import STILL
from tests.cache.test_metrics import Counts
from tests.cache.test_reflector import PAGED, Bench, settle

STREAMED = ReflectorOptions(detect_restore=False)


@asynccontextmanager
async def running(reflector: Reflector) -> AsyncGenerator[None, None]:
    task = asyncio.create_task(reflector.run())
    await asyncio.sleep(0.001)
    yield
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def levels(caplog: pytest.LogCaptureFixture) -> list[tuple[str, float]]:
    return [
        (record.levelname, record.__dict__["delay"])
        for record in caplog.records
        if record.getMessage() == "list or watch failed"
    ]


async def test_errors_with_delay_are_logged_as_warnings(caplog: pytest.LogCaptureFixture) -> None:
    source = FakeSource()
    reflector = Reflector(source, Store[Resource](), options=PAGED, random=lambda: 0.0)
    with caplog.at_level(logging.INFO, logger="deltaloop.cache"):
        async with running(reflector):
            await asyncio.sleep(5)
            source.break_watches(broken())  # the watch goes on at once
            await asyncio.sleep(5)
            source.break_watches(api_error(429, retry_after=1.0))  # and here later
            await asyncio.sleep(5)
            source.break_watches(expired())  # a list, later
            await asyncio.sleep(5)
    assert levels(caplog) == [("INFO", 0.0), ("WARNING", 1.0), ("WARNING", 1.6)]
    assert [record.getMessage() for record in caplog.records if record.levelno > logging.WARNING] == []


async def test_failing_error_handler_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    source = FakeSource()
    source.list_faults.append(api_error(500))

    def fails(reaction: Reaction) -> None:
        raise ValueError("the handler itself")

    reflector = Reflector(source, Store[Resource](), name="pods", options=PAGED, on_error=fails)
    async with running(reflector):
        pass
    (record,) = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert record.__dict__["reflector"] == "pods"
    assert "ValueError" in record.__dict__["raised"]


async def test_failed_probe_is_reported_and_watch_continues() -> None:
    source = FakeSource()
    bench = Bench(source, options=ReflectorOptions(watch_list=False))
    async with bench.running():
        await asyncio.sleep(5)
        source.list_faults.append(api_error(500))
        source.break_watches(broken())
        await asyncio.sleep(5)
        assert [reaction.operation for reaction in bench.reactions] == [Operation.STREAM, Operation.PROBE]
        assert [asked.verb for asked in source.asked] == ["list", "watch", "list", "watch"]


async def test_log_names_some_unreadable_objects_of_list(caplog: pytest.LogCaptureFixture) -> None:
    source = FakeSource()
    for number in range(12):
        source.put(f"p{number:02}")
    source.unreadable = {name: f"default/{name}" for name in source.objects}
    bench = Bench(source)
    async with bench.running():
        await settle()
    (record,) = caplog.records
    assert (record.__dict__["objects"], record.__dict__["of_unknown_name"]) == (12, False)
    assert record.__dict__["keys"] == [f"default/p{number:02}" for number in range(10)]
    assert "p00" in record.__dict__["error"]
    assert record.__dict__["reflector"] == "v1/Pod"


# Counting


class Told(Counts):
    """Keeps the seconds and numbers apart."""

    def __init__(self) -> None:
        super().__init__()
        self.lists: list[tuple[float, int, bool]] = []
        self.watches: list[tuple[float, int]] = []

    def listed(self, resource: str, *, seconds: float, items: int, streamed: bool) -> None:
        self.lists.append((round(seconds, 3), items, streamed))

    def watch_ended(self, resource: str, *, seconds: float, events: int) -> None:
        self.watches.append((round(seconds, 3), events))


async def test_list_duration_covers_all_pages() -> None:
    await asyncio.sleep(100)
    source = FakeSource(list_delay=2.0, serves_from_cache=False)
    for number in range(10):
        source.put(f"p{number}")
    told = Told()
    options = ReflectorOptions(page_size=4, watch_list=False, detect_restore=False)
    async with running(Reflector(source, Store[Resource](), options=options, metrics=told)):
        await asyncio.sleep(10)
    assert told.lists == [(6.0, 10, False)]


async def test_streamed_list_and_each_watch_have_own_durations() -> None:
    await asyncio.sleep(100)
    source = FakeSource(holds_back_after=1)
    source.put("a")
    told = Told()
    async with running(Reflector(source, Store[Resource](), options=STREAMED, metrics=told, random=lambda: 0.0)):
        await asyncio.sleep(3)
        source.holds_back_after = None
        source.send(WatchEvent(EventType.ADDED, pod("b", 12)))
        source.send(initial_events_end(12))
        await settle()
        source.put("c")
        source.put("d")
        await asyncio.sleep(5)
        source.break_watches(broken())
        await asyncio.sleep(5)
        source.put("e")
        await settle()
    assert told.lists == [(3.001, 2, True)]
    assert [events for _, events in told.watches] == [2, 1]
    assert told.watches[1][0] == pytest.approx(5.01)


# Stores and sources


class Plain:
    """A store that knows no more than it has to."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def replace(self, objects: tuple[Resource, ...], resource_version: str, unread: Unread) -> None:
        self.names.extend(obj.name for obj in objects)

    def add(self, obj: Resource) -> None:
        self.names.append(obj.name)

    def update(self, obj: Resource) -> None: ...
    def delete(self, obj: Resource) -> None: ...


async def test_store_without_version_methods_works() -> None:
    source = FakeSource()
    source.put("a")
    store = Plain()
    reactions: list[Reaction] = []
    reflector = Reflector(source, store, options=PAGED, on_error=reactions.append)
    async with running(reflector):
        source.bookmark()
        source.put("b")
        await settle()
        source.bookmark()
        source.put("c")
        await settle()
    assert (store.names, reactions) == (["a", "b", "c"], [])


async def test_store_receives_no_empty_versions() -> None:
    class Versions(Plain):
        def __init__(self) -> None:
            super().__init__()
            self.versions: list[str] = []

        def update_resource_version(self, resource_version: str) -> None:
            self.versions.append(resource_version)

    class Unversioned(FakeSource):
        async def list(self, options: ListOptions) -> ResourceList[Resource]:
            return ResourceList((), "")

    source, store = Unversioned(), Versions()
    async with running(Reflector(source, store, options=PAGED)):
        source.send(WatchEvent(EventType.ADDED, Resource.from_dict({"metadata": {"name": "a"}})))
        await settle()
        assert store.versions == []
        source.send(WatchEvent(EventType.MODIFIED, pod("a", 7)))
        await settle()
    assert store.versions == ["7"]


async def test_receive_function_is_called_for_objects_and_not_bookmarks() -> None:
    source = FakeSource()
    source.put("a")
    seen: list[str] = []

    def receive(obj: Resource) -> Resource:
        seen.append(obj.name)
        return obj

    for options in (STREAMED, PAGED):
        async with running(Reflector(source, Store[Resource](), options=options, receive=receive)):
            source.bookmark()
            source.put("a")
            await settle()
    assert seen == ["a"] * 4


class Page(Resource, frozen=True, eq=False, gc=False):
    """An object that says when it is let go."""

    alive = 0

    def __post_init__(self) -> None:
        Page.alive += 1

    def __del__(self) -> None:
        Page.alive -= 1


async def test_page_and_its_objects_are_not_both_in_memory() -> None:
    """What comes is let go object by object, while what is made of it is kept."""
    count, alive = 40, list[int]()

    class OnePage(FakeSource):
        async def list(self, options: ListOptions) -> ResourceList[Resource]:
            made = (pod(f"p{number}", number) for number in range(count))
            return ResourceList(tuple(Page(*msgspec.structs.astuple(obj)) for obj in made), "50")

    def receive(obj: Resource) -> Resource:
        alive.append(Page.alive)
        return Resource.from_json(obj.raw, POD)

    async with running(Reflector(OnePage(), Store[Resource](), options=PAGED, receive=receive)):
        await settle()
    assert alive == [*range(count, 0, -1)]
    assert Page.alive == 0


async def test_streamed_list_lets_other_tasks_run() -> None:
    source = FakeSource()
    for number in range(1000):
        source.put(f"p{number}")
    bench = Bench(source, options=STREAMED)
    async with bench.running():
        turns = 0
        while len(bench.store) < 1000:
            await asyncio.sleep(0)
            turns += 1
        assert turns >= 9
        assert asyncio.get_running_loop().time() == 0.0, "and takes no longer for it"


async def test_short_watch_timeout_does_not_end_streamed_lists() -> None:
    source = FakeSource(holds_back_after=0)
    bench = Bench(source, options=STREAMED)
    async with bench.running():
        await asyncio.sleep(5)
        source.break_watches(TimeoutError("the source's own"))
        await asyncio.sleep(5)
        assert [str(reaction.error) for reaction in bench.reactions] == ["the source's own"]
        source.holds_back_after = None
        source.break_watches(expired())
        await asyncio.sleep(5)
        assert source.asked[-1].options.send_initial_events


async def test_streamed_list_fails_half_minute_after_last_object() -> None:
    source = FakeSource(holds_back_after=0)
    bench = Bench(source, options=STREAMED)
    async with bench.running():
        for at in (0.5, 0.58):
            await asyncio.sleep(at - asyncio.get_running_loop().time())
            source.send(WatchEvent(EventType.ADDED, pod(f"at {at}", 12)))
        source.offers_watch_list = False
        await asyncio.sleep(60)
    assert [type(reaction.error) for reaction in bench.reactions] == [WatchListStalledError]
    (asked,) = source.times("list")
    assert asked == pytest.approx(30.58, abs=0.001)


async def test_all_log_lines_of_informer_have_same_name(caplog: pytest.LogCaptureFixture) -> None:
    """Also where its source has none: then it is called like its kind."""

    class Nameless(FakeSource):
        __str__ = object.__str__

    source = Nameless()
    source.put("a")
    source.list_faults.append(api_error(500))

    def broken_index(obj: Resource) -> list[str]:
        raise ValueError(obj.name)

    counts: Any = Counts()
    metrics: CacheMetrics = counts
    options = STILL.replace(metrics=metrics)
    informer = Informer(source, POD, indexers={"broken": broken_index}, options=options)
    assert not informer.started
    assert repr(informer) == "<Informer v1/Pod: 0 objects, not started, not synced>"
    task = asyncio.create_task(informer.run())
    await asyncio.sleep(5)
    assert informer.started
    assert repr(informer) == "<Informer v1/Pod: 1 objects, running, synced>"
    task.cancel()
    await asyncio.wait([task])
    told = {name: record.__dict__[name] for record in caplog.records for name in ("reflector", "store", "resource")
            if name in record.__dict__}  # fmt: skip
    assert told == {"reflector": "v1/Pod", "store": "v1/Pod"}
    assert {line.split()[0] for line in counts.told} == {"v1/Pod"}
