"""Streamed lists and probes, from a scripted server and from the embedded one to the cache."""

from __future__ import annotations

import asyncio
import logging
from typing import Self

import pytest

from deltaloop.api.kinds import CONFIG_MAP
from deltaloop.api.resource import Resource
from deltaloop.api.watch_event import EventType, WatchEvent
from deltaloop.apiserver import ApiServer, ServerOptions
from deltaloop.cache.core.deltas import Unread
from deltaloop.cache.core.reflector.errors import ServerRestoredError, WatchListEndedError, WatchListStalledError
from deltaloop.cache.core.reflector.reactions import Reaction, Recovery
from deltaloop.cache.factory import InformerFactory
from deltaloop.cache.informer import InformerOptions
from deltaloop.cache.reflector import Reflector
from deltaloop.cache.reflector_options import ReflectorOptions
from deltaloop.cache.store import Store
from deltaloop.client import Client, ClientConfig
from tests.cache.fake_source import FakeSource, broken, expired, initial_events_end
from tests.cache.objects import nameless, pod


class Bench:
    """A reflector that fills a store, with all defaults."""

    def __init__(self, source: FakeSource, options: ReflectorOptions | None = None) -> None:
        self.source = source
        self.store = Store[Resource]()
        self.reactions: list[Reaction] = []
        self.reflector = Reflector(
            source, self.store, options=options, on_error=self.reactions.append, random=lambda: 0.0
        )
        self.task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self.task = asyncio.create_task(self.reflector.run())
        await asyncio.sleep(0.001)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self.task is not None
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)
        assert self.source.opened == self.source.closed, "a watch was left open"

    def names(self) -> list[str]:
        return sorted(obj.name for obj in self.store.list())

    def asked(self) -> list[tuple[str, str]]:
        return [
            ("stream" if asked.options.send_initial_events else asked.verb, asked.version)
            for asked in self.source.asked
        ]


async def test_one_stream_delivers_initial_state_and_changes() -> None:
    source = FakeSource()
    for name in "abc":
        source.put(name)
    async with Bench(source) as bench:
        assert bench.names() == ["a", "b", "c"]
        assert bench.store.last_sync_resource_version == "13"
        source.put("d")
        source.remove("a")
        await asyncio.sleep(0.001)
        assert bench.names() == ["b", "c", "d"]
        assert bench.store.last_sync_resource_version == "15"
        assert bench.asked() == [("stream", "")]
        assert "streaming at 15" in repr(bench.reflector)
        source.put("e", silent=True)
        source.break_watches(expired())
        await asyncio.sleep(5)
        assert bench.names() == ["b", "c", "d", "e"]
        assert bench.asked() == [("stream", ""), ("stream", "15")]


async def test_server_without_streamed_lists_is_listed_immediately() -> None:
    source = FakeSource(offers_watch_list=False)
    source.put("a")
    async with Bench(source) as bench:
        assert bench.names() == ["a"]
        assert bench.asked() == [("stream", ""), ("list", "0"), ("watch", "11")]
        assert [reaction.recovery for reaction in bench.reactions] == [Recovery.LIST_IN_PAGES_NOW]
        source.break_watches(expired())
        await asyncio.sleep(5)
        assert bench.asked()[3:] == [("list", "11"), ("watch", "11")]


NOW_AND_THEN = [
    WatchEvent(EventType.MODIFIED, pod("a", 20)),
    WatchEvent(EventType.DELETED, pod("b", 21)),
    WatchEvent(EventType.ADDED, pod("a", 11)),
    WatchEvent(EventType.BOOKMARK, nameless(22)),
    WatchEvent(EventType.ADDED, nameless(23)),
]


@pytest.mark.parametrize("event", NOW_AND_THEN, ids=["changed", "deleted", "again", "bookmark", "nameless"])
async def test_streamed_list_without_end_but_with_changes_fails(event: WatchEvent) -> None:
    source = FakeSource(holds_back_after=2)  # as one that does not know the request: a watch that never ends the list
    for name in "abc":
        source.put(name)
    async with Bench(source) as bench:
        for _ in range(4):
            await asyncio.sleep(9)
            source.send(event)
        assert bench.names() == ["a", "b", "c"], "pages were asked for 30 s after the last object of the list"
        assert [type(reaction.error) for reaction in bench.reactions] == [WatchListStalledError]
        assert bench.asked() == [("stream", ""), ("list", ""), ("list", "0"), ("watch", "13")]
        assert source.times("list") == [pytest.approx(5.0, abs=0.01), pytest.approx(30.0, abs=0.01)]


async def test_new_objects_are_no_progress_of_a_streamed_list() -> None:
    source = FakeSource(holds_back_after=3)
    for name in "abc":
        source.put(name)
    async with Bench(source) as bench:
        for number in range(4):
            await asyncio.sleep(9)
            source.put(f"new{number}")
        await asyncio.sleep(0.001)
        assert bench.names() == ["a", "b", "c", "new0", "new1", "new2", "new3"]
        assert source.times("list")[1] == pytest.approx(30.0, abs=0.01)


@pytest.mark.parametrize("fault", [None, broken()])
async def test_slow_streamed_list_with_progress_does_not_fail(fault: Exception | None) -> None:
    source = FakeSource(holds_back_after=0)
    for number in range(20):
        source.put(f"p{number}")
    objects = [*source.objects.values()]
    source.list_faults.append(fault)
    async with Bench(source) as bench:
        for obj in objects:
            await asyncio.sleep(9)
            source.send(WatchEvent(EventType.ADDED, obj))
        source.send(initial_events_end(source.version))
        await asyncio.sleep(0.001)
        assert len(bench.names()) == 20
        assert (bench.reactions, bench.asked()) == ([], [("stream", ""), ("list", "")])


async def test_stalled_streamed_list_fails_after_thirty_seconds() -> None:
    source = FakeSource(holds_back_after=2)
    for name in "abc":
        source.put(name)
    async with Bench(source) as bench:
        for number in range(10):  # slow, but not stalled: never is the total time measured
            await asyncio.sleep(25)
            source.send(WatchEvent(EventType.ADDED, pod(f"slow{number}")))
        assert bench.names() == []
        await asyncio.sleep(29.9)
        assert bench.reactions == []
        await asyncio.sleep(0.2)
        assert bench.names() == ["a", "b", "c"]
        assert isinstance(bench.reactions[0].error, WatchListStalledError)
        assert bench.asked() == [("stream", ""), ("list", ""), ("list", "0"), ("watch", "13")]
        source.holds_back_after = None
        source.break_watches(expired())
        await asyncio.sleep(1795)
        source.break_watches(expired())
        await asyncio.sleep(10)
        kinds = [kind for kind, _ in bench.asked()]
        assert kinds.count("stream") == 1
        source.break_watches(expired())
        await asyncio.sleep(10)
        assert bench.asked()[-1][0] == "stream", "half an hour later it is tried again"
        assert bench.names() == ["a", "b", "c"]


async def test_watch_that_ends_before_end_of_list_is_reported() -> None:
    """No bookmark at all, and the server ends the watch in order."""
    source = FakeSource(holds_back_after=0)
    source.put("a")
    async with Bench(source) as bench:
        source.end_watches()
        await asyncio.sleep(0.001)
        assert bench.names() == ["a"]
        assert isinstance(bench.reactions[0].error, WatchListEndedError)


async def test_broken_streamed_list_leaves_no_partial_state(caplog: pytest.LogCaptureFixture) -> None:
    source = FakeSource(holds_back_after=1)
    source.put("a")
    source.put("b")
    with caplog.at_level(logging.WARNING, logger="deltaloop.cache"):
        async with Bench(source) as bench:
            source.send(WatchEvent(EventType.ADDED, nameless(1)))
            source.remove("a", silent=True)
            source.break_watches(broken())
            await asyncio.sleep(0.001)
            assert bench.names() == ["b"]
    assert "ignoring a watch event" in caplog.text


async def test_streamed_list_rejected_by_store_is_requested_again() -> None:
    class Refuses:
        def __init__(self) -> None:
            self.lists: list[str] = []

        def replace(self, objects: tuple[Resource, ...], resource_version: str, unread: Unread) -> None:
            self.lists.append(resource_version)
            if len(self.lists) == 1:
                raise ValueError("not yet")

        def add(self, obj: Resource) -> None: ...
        def update(self, obj: Resource) -> None: ...
        def delete(self, obj: Resource) -> None: ...

    source, store = FakeSource(), Refuses()
    reflector = Reflector(source, store, random=lambda: 0.0)
    task = asyncio.create_task(reflector.run())
    await asyncio.sleep(5)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert store.lists == ["10", "10"]


async def test_restored_server_is_found_after_broken_stream() -> None:
    source = FakeSource(version=1000)
    source.put("a")
    source.put("lost")
    async with Bench(source) as bench:
        await asyncio.sleep(5)
        source.version = 500  # restored from a backup
        source.objects.clear()
        source.events.clear()
        source.put("b", silent=True)
        source.break_watches(broken())
        await asyncio.sleep(0.001)
        assert bench.names() == ["b"]
        assert isinstance(bench.reactions[1].error, ServerRestoredError)
        assert bench.store.last_sync_resource_version == "501"
        source.put("c")
        await asyncio.sleep(0.001)
        assert bench.names() == ["b", "c"]


async def test_restored_server_is_found_on_quiet_stream() -> None:
    source = FakeSource(version=1000)
    source.put("a")
    async with Bench(source) as bench:
        source.version = 500
        source.objects.clear()
        source.events.clear()
        await asyncio.sleep(299)
        assert bench.names() == ["a"], "nothing tells it"
        await asyncio.sleep(2)
        assert bench.names() == []


async def test_restored_server_is_found_in_first_minute_of_watch() -> None:
    source = FakeSource(version=1000)
    source.put("a")
    async with Bench(source) as bench:
        await asyncio.sleep(30)
        source.version = 500
        source.objects.clear()
        source.events.clear()
        source.put("b", silent=True)
        source.end_watches()
        await asyncio.sleep(59.9)
        assert bench.names() == ["a"]
        await asyncio.sleep(0.2)
        assert bench.names() == ["b"]
        assert bench.asked() == [("stream", ""), ("watch", "1001"), ("list", ""), ("stream", "")]
        assert [type(reaction.error) for reaction in bench.reactions] == [ServerRestoredError]
        source.put("c")
        await asyncio.sleep(0.001)
        assert bench.names() == ["b", "c"]


@pytest.mark.parametrize("fault", [None, broken()])
async def test_watch_continues_after_version_probe(fault: Exception | None) -> None:
    source = FakeSource()
    source.put("a")
    async with Bench(source) as bench:
        await asyncio.sleep(30)
        source.end_watches()
        source.list_faults.append(fault)
        await asyncio.sleep(200)
        source.put("b")
        await asyncio.sleep(0.001)
        assert bench.names() == ["a", "b"]
        assert bench.reactions == []
        assert bench.asked() == [("stream", ""), ("watch", "11"), ("list", "")]


async def test_stream_can_end_during_version_probe() -> None:
    source = FakeSource()
    source.put("a")
    async with Bench(source) as bench:
        await asyncio.sleep(30)
        source.end_watches()
        source.list_delay = 3600.0
        await asyncio.sleep(65)
        source.list_delay = 0.0
        source.end_watches()
        await asyncio.sleep(0.001)
        assert bench.asked() == [("stream", ""), ("watch", "11"), ("list", ""), ("list", ""), ("watch", "11")]


async def test_without_restore_detection_only_watch_is_repeated() -> None:
    source = FakeSource()
    async with Bench(source, ReflectorOptions(detect_restore=False)) as bench:
        await asyncio.sleep(5)
        source.break_watches(broken())
        await asyncio.sleep(5)
        assert bench.asked() == [("stream", ""), ("watch", "10")]
    async with Bench(source) as bench:
        source.asked.clear()
        await asyncio.sleep(5)
        source.break_watches(broken())
        await asyncio.sleep(5)
        assert bench.asked() == [("list", ""), ("watch", "10")]
        assert source.asked[0].options.limit == 1


def connect_to(server: ApiServer) -> Client:
    return Client(ClientConfig(server=server.url, namespace="default"))


@pytest.mark.real_time
@pytest.mark.parametrize("watch_list", [True, False])
async def test_against_the_embedded_server(watch_list: bool) -> None:
    heard: list[str] = []
    async with ApiServer(ServerOptions(insecure_http=True)) as server, connect_to(server) as client:
        for name in ("a", "b"):
            await client.create(CONFIG_MAP, {"metadata": {"name": name}}, namespace="default")
        options = InformerOptions(reflector=ReflectorOptions(watch_list=watch_list))
        async with InformerFactory(client, namespace="default", options=options) as factory:
            maps = factory.informer(CONFIG_MAP)
            await factory.wait_for_sync(timeout=5)
            assert {obj.name for obj in maps.lister().list()} >= {"a", "b"}
            made = await client.create(CONFIG_MAP, {"metadata": {"name": "c"}}, namespace="default")
            await maps.wait_for_resource_version(made.resource_version, timeout=5)
            assert maps.lister().get("default/c") == made
            await client.delete(CONFIG_MAP, "a", namespace="default")
            made = await client.create(CONFIG_MAP, {"metadata": {"name": "d"}}, namespace="default")
            await maps.wait_for_resource_version(made.resource_version, timeout=5)
            assert maps.lister().find("default/a") is None
            assert (await maps.check_consistency(timeout=5)).is_consistent
            seen = maps.statistics()
            heard.append(f"{seen.streamed_lists} streamed, {seen.list_requests} pages")
    assert heard == ["1 streamed, 0 pages" if watch_list else "0 streamed, 1 pages"]
