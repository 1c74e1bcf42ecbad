"""The reflector against a scripted server: what it asks, when, and what is in the store then."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import asynccontextmanager

import pytest

from deltaloop.api.list_options import ListOptions
from deltaloop.api.resource import Resource
from deltaloop.api.watch_event import EventType, MalformedEventError, WatchEvent
from deltaloop.cache.core.deltas import NOTHING_UNREAD, Change, Unread
from deltaloop.cache.core.reflector.errors import RepeatedContinueError, VeryShortWatchError
from deltaloop.cache.core.reflector.reactions import Operation, Reaction, Recovery
from deltaloop.cache.interfaces import ReflectorStore
from deltaloop.cache.listwatch import ListerWatcher
from deltaloop.cache.reflector import Reflector
from deltaloop.cache.reflector_options import ReflectorOptions
from deltaloop.cache.store import Store
from deltaloop.client.verbs.resource_list import ResourceList
from tests.cache.fake_source import Asked, FakeSource, api_error, broken, expired, refused
from tests.cache.objects import nameless

PAGED = ReflectorOptions(watch_list=False, detect_restore=False)


class Bench:
    """A reflector that fills a store, and everything that it reported."""

    def __init__(
        self,
        source: FakeSource,
        *,
        options: ReflectorOptions | None = None,
        store: ReflectorStore | None = None,
        random: float = 0.0,
    ) -> None:
        self.source = source
        self.store = Store[Resource]()
        self.reactions: list[Reaction] = []
        self.reflector = Reflector(
            source,
            self.store if store is None else store,
            options=options or PAGED,
            on_error=self.reactions.append,
            random=lambda: random,
        )

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None, None]:
        task = asyncio.create_task(self.reflector.run())
        try:
            yield
        finally:
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert self.source.opened == self.source.closed, "a watch was left open"

    def names(self) -> list[str]:
        return sorted(obj.name for obj in self.store.list())

    @property
    def equal(self) -> bool:
        return {obj.name: obj for obj in self.store.list()} == self.source.objects


async def settle() -> None:
    await asyncio.sleep(0.01)


async def test_list_then_watch() -> None:
    source = FakeSource()
    source.put("a")
    bench = Bench(source)
    async with bench.running():
        await settle()
        assert bench.names() == ["a"]
        source.put("b")
        source.put("a")
        await settle()
        assert bench.equal
        source.remove("a")
        await settle()
        assert bench.names() == ["b"]
        assert bench.reflector.last_sync_resource_version == "14"
        assert repr(bench.reflector) == "<Reflector v1/Pod streaming at 14>"
    assert source.versions("list") == ["0"]
    assert source.versions("watch") == ["11"]
    assert bench.reactions == []


async def test_reflector_canceled_before_start_sends_no_request() -> None:
    bench = Bench(FakeSource())
    task = asyncio.create_task(bench.reflector.run())
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert bench.source.asked == []


async def test_watch_that_ends_normally_continues_from_last_version() -> None:
    source = FakeSource()
    bench = Bench(source)
    async with bench.running():
        await asyncio.sleep(100)
        source.put("a")
        source.put("b")
        source.bookmark()
        await asyncio.sleep(900)
        assert source.times("watch") == [0.0, 300.0, 600.0, 900.0]
        assert source.versions("watch") == ["10", "12", "12", "12"]
    assert len(source.times("list")) == 1
    assert bench.equal


async def test_missed_events_are_received_without_list() -> None:
    source = FakeSource()
    bench = Bench(source)
    async with bench.running():
        await asyncio.sleep(5)
        source.watch_faults.extend([refused(), refused(), api_error(429)])
        source.break_watches(broken())
        await settle()
        source.put("a")
        source.put("b")
        source.remove("a")
        await asyncio.sleep(10)
        assert bench.names() == ["b"]
    assert source.times("watch") == pytest.approx([0.0, 5.0, 5.8, 7.4, 10.6])
    assert source.versions("list") == ["0"]
    assert [reaction.recovery for reaction in bench.reactions] == [Recovery.WATCH_NOW, *[Recovery.WATCH_LATER] * 3]


async def test_refused_connections_are_retried_with_growing_delay() -> None:
    source = FakeSource(list_faults=deque(refused() for _ in range(6)))
    bench = Bench(source)
    source.put("a")
    async with bench.running():
        await asyncio.sleep(60)
        assert bench.equal
    assert source.times("list") == pytest.approx([0.0, 0.8, 2.4, 5.6, 12.0, 24.8, 50.4])


async def test_waits_are_spread_by_chance() -> None:
    source = FakeSource()
    source.list_faults.extend([api_error(500), api_error(500)])
    bench = Bench(source, random=0.5)
    async with bench.running():
        await asyncio.sleep(10)
    assert source.times("list") == pytest.approx([0.0, 1.2, 3.6])
    assert source.asked[-1].options.timeout_seconds == 450


@pytest.mark.parametrize("at_start", [True, False])
async def test_expired_version_is_followed_by_list(at_start: bool) -> None:
    source = FakeSource(expires_at_start=at_start)
    source.put("a")
    bench = Bench(source)
    async with bench.running():
        await asyncio.sleep(5)
        source.put("b", silent=True)
        source.remove("a", silent=True)
        source.compact()
        source.end_watches()
        await asyncio.sleep(5)
        assert bench.names() == ["b"]
    assert source.versions("list") == ["0", "11"]
    assert source.times("list") == pytest.approx([0.0, 5.8])


async def test_expired_list_version_is_followed_by_immediate_newest_list() -> None:
    source = FakeSource()
    bench = Bench(source)
    async with bench.running():
        await asyncio.sleep(5)
        source.put("b", silent=True)
        source.list_faults.append(expired())
        source.break_watches(expired())
        await asyncio.sleep(5)
        assert bench.equal
    assert source.versions("list") == ["0", "10", ""]
    assert source.times("list") == pytest.approx([0.0, 5.8, 5.8])


async def test_restored_server_is_listed_again() -> None:
    source = FakeSource(version=100)
    source.put("a")
    bench = Bench(source)
    async with bench.running():
        await asyncio.sleep(5)
        source.version = 3
        source.objects.clear()
        source.events.clear()
        source.put("b", silent=True)
        source.break_watches(api_error(500))
        await asyncio.sleep(5)
        assert bench.names() == ["b"]
    assert source.versions("list") == ["0", "101", ""]
    assert source.versions("watch") == ["101", "4"]


async def test_pages_are_joined_and_expired_page_requests_full_list() -> None:
    source = FakeSource(serves_from_cache=False)
    for number in range(10):
        source.put(f"p{number}")
    bench = Bench(source, options=ReflectorOptions(page_size=4, watch_list=False, detect_restore=False))
    async with bench.running():
        await settle()
        assert bench.equal
        assert source.versions("list") == ["0", "continue", "continue"]
        await asyncio.sleep(5)
        pages = 0

        def expire(_: object) -> None:
            nonlocal pages
            pages += 1
            if pages == 2:
                source.put("late", silent=True)
                source.compact()

        source.before_page = expire
        source.break_watches(expired())
        await asyncio.sleep(5)
        assert bench.equal
        assert "late" in bench.names()
    assert source.versions("list")[3:] == ["20", "continue", "20"]
    assert [asked.options.limit for asked in source.asked if asked.verb == "list"][3:] == [4, 4, 0]


async def test_watches_without_progress_are_retried_with_delay() -> None:
    source = FakeSource()
    bench = Bench(source)
    async with bench.running():
        for _ in range(40):
            source.end_watches()
            await asyncio.sleep(0.1)
        assert {type(reaction.error) for reaction in bench.reactions} == {VeryShortWatchError}
        assert len(source.asked) <= 8


async def test_watches_with_one_event_each_are_retried_with_delay() -> None:
    source = FakeSource()
    source.put("a")

    bench = Bench(source)
    async with bench.running():
        began = asyncio.get_running_loop().time()
        while asyncio.get_running_loop().time() < began + 60:
            if source.streams:
                source.put("a")
                source.end_watches()
            await asyncio.sleep(0.2)
        assert len(source.times("watch")) <= 9
        assert source.versions("list") == ["0"]


async def test_malformed_line_is_reported_and_followed_by_list() -> None:
    source = FakeSource()
    bench = Bench(source)
    async with bench.running():
        for _ in range(3):
            await asyncio.sleep(5)
            source.put("a", silent=True)
            source.break_watches(MalformedEventError("a watch line of 7 bytes is not a watch event"))
        await asyncio.sleep(10)
        assert bench.equal
    assert [reaction.operation for reaction in bench.reactions] == [Operation.STREAM] * 3
    assert bench.reflector.statistics().errors == 3
    assert len(source.times("list")) == 4


async def test_objects_without_name_are_logged_and_skipped(caplog: pytest.LogCaptureFixture) -> None:
    source = FakeSource()
    source.objects["odd"] = nameless()
    bench = Bench(source)
    with caplog.at_level(logging.WARNING, logger="deltaloop.cache"):
        async with bench.running():
            await settle()
            source.send(WatchEvent(EventType.MODIFIED, nameless(99)))
            source.put("b")
            await settle()
            assert bench.names() == ["b"]
            assert bench.reflector.last_sync_resource_version == "11"
    assert bench.reflector.statistics().skipped == 2
    assert [record.getMessage() for record in caplog.records] == [
        "list contains unreadable objects, keeping their cached state",
        "ignoring a watch event with an object without a name",
    ]


async def test_objects_without_name_in_streamed_list_are_logged_and_skipped(
    caplog: pytest.LogCaptureFixture,
) -> None:
    source = FakeSource()
    source.put("a")
    source.put("b")
    source.objects["odd"] = nameless()
    bench = Bench(source, options=ReflectorOptions(detect_restore=False))
    async with bench.running():
        await settle()
        assert bench.names() == ["a", "b"]
    assert [record.getMessage() for record in caplog.records] == [
        "ignoring a watch event with an object without a name",
        "list contains unreadable objects, keeping their cached state",
    ]


async def test_endless_list_is_reported() -> None:
    class Endless(FakeSource):
        async def list(self, options: ListOptions) -> ResourceList[Resource]:
            self.asked.append(Asked(0.0, "list", options))
            return ResourceList((), "10", "again")

    bench = Bench(Endless())
    async with bench.running():
        await settle()
    assert [type(reaction.error) for reaction in bench.reactions] == [RepeatedContinueError]


class Choosy(Store[Resource]):
    """Refuses some objects, and the first list."""

    def __init__(self) -> None:
        super().__init__()
        self.refuse_lists = 1
        self.refuse_names = {"b"}

    def replace(self, objects: object, resource_version: str = "", unread: Unread = NOTHING_UNREAD) -> None:
        if self.refuse_lists:
            self.refuse_lists -= 1
            raise ValueError("not now")
        super().replace(objects, resource_version, unread)  # type: ignore[arg-type]

    def add(self, obj: Resource) -> None:
        if obj.name in self.refuse_names:
            self.refuse_names.clear()
            raise ValueError("not this one")
        super().add(obj)


class ChoosyAtOnce(Choosy):
    """Takes changes that came together."""

    def __init__(self) -> None:
        super().__init__()
        self.took: list[int] = []

    def write_all(self, changes: Iterable[Change[Resource]]) -> None:
        made = [*changes]
        self.took.append(len(made))
        for _, obj, version in made:
            self.add(obj)
            self.update_resource_version(version)


async def test_events_of_one_batch_are_stored_together() -> None:
    source, store = FakeSource(), ChoosyAtOnce()
    store.refuse_lists, store.refuse_names = 0, set()
    reflector = Reflector(source, store, options=PAGED, room=lambda: None)
    task = asyncio.create_task(reflector.run())
    await settle()
    for number in range(250):
        source.put(f"p{number}")
    await settle()
    assert store.took == [1, 99, 100, 50], "the first of them goes alone, before there is known to be room"
    assert {obj.name: obj for obj in store.list()} == source.objects
    assert (reflector.statistics().events, store.last_sync_resource_version) == (250, str(source.version))
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


@pytest.mark.parametrize("kind", [Choosy, ChoosyAtOnce])
async def test_changes_rejected_by_the_store_are_listed_again(kind: type[Choosy]) -> None:
    source = FakeSource()
    store = kind()
    bench = Bench(source, store=store)
    async with bench.running():
        await asyncio.sleep(2)
        source.put("b")
        source.put("c")
        await asyncio.sleep(5)
        assert {obj.name: obj for obj in store.list()} == source.objects
    assert [reaction.operation for reaction in bench.reactions] == [Operation.STORE, Operation.STORE]
    assert source.times("list") == pytest.approx([0.0, 0.8, 3.6])


async def test_errors_are_logged_with_operation_and_recovery(caplog: pytest.LogCaptureFixture) -> None:
    source = FakeSource()
    source.list_faults.append(api_error(403, message="forbidden: token=abcdef"))

    def fails(reaction: Reaction) -> None:
        raise ValueError("the handler itself")

    reflector = Reflector(source, Store[Resource](), name="pods", options=PAGED, on_error=fails, random=lambda: 0.0)
    with caplog.at_level(logging.WARNING, logger="deltaloop.cache"):
        task = asyncio.create_task(reflector.run())
        await asyncio.sleep(2)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    first, second = caplog.records
    assert first.getMessage() == "list or watch failed"
    fields = {name: first.__dict__[name] for name in ("reflector", "operation", "error", "recovery", "delay")}
    assert fields == {
        "reflector": "pods",
        "operation": "list",
        "error": "ForbiddenError: forbidden: token=<redacted>",
        "recovery": "list after a wait",
        "delay": 0.8,
    }
    assert second.getMessage() == "error handler of a reflector raised an exception"


async def test_reflector_statistics_have_time_of_last_confirmation() -> None:
    source = FakeSource()
    bench = Bench(source)
    async with bench.running():
        await asyncio.sleep(100)
        assert bench.reflector.statistics().last_confirmed_at == 0.0
        source.bookmark()
        await settle()
        assert bench.reflector.statistics().last_confirmed_at == 100.0
        await asyncio.sleep(250)
        assert bench.reflector.statistics().last_confirmed_at == 300.0


async def test_busy_stream_lets_other_tasks_run() -> None:
    source = FakeSource()
    bench = Bench(source)
    async with bench.running():
        await settle()
        for number in range(1000):
            source.put(f"p{number}")
        turns = 0
        while len(bench.store) < 1000:
            await asyncio.sleep(0)
            turns += 1
        assert turns >= 9
        assert asyncio.get_running_loop().time() == 0.01, "and takes no longer for it"


class Leaky(FakeSource):
    """Its watches cannot be closed in order."""

    @asynccontextmanager
    async def _watch(self, options: ListOptions) -> AsyncGenerator[AsyncIterator[WatchEvent], None]:
        async with super()._watch(options) as events:
            yield events
        raise OSError("closing failed")


async def test_store_error_is_reported_before_error_of_closing_watch() -> None:
    source = Leaky()
    store = Choosy()
    bench = Bench(source, store=store)
    task = asyncio.create_task(bench.reflector.run())
    await asyncio.sleep(2)
    source.put("b")
    await settle()
    assert [reaction.operation for reaction in bench.reactions] == [Operation.STORE, Operation.STORE]
    assert [str(reaction.error) for reaction in bench.reactions] == ["not now", "not this one"]
    await asyncio.sleep(5)
    assert {obj.name: obj for obj in store.list()} == source.objects
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_watch_that_fails_while_closing_is_reported() -> None:
    source = Leaky()
    bench = Bench(source)
    task = asyncio.create_task(bench.reflector.run())
    await asyncio.sleep(5)
    source.end_watches()
    await asyncio.sleep(2)
    assert [type(reaction.error) for reaction in bench.reactions] == [OSError]
    source.put("a")
    await settle()
    assert bench.equal
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


class Unversioned(ListerWatcher):
    """A resource as metrics.k8s.io serves it: no versions. Watches are refused, or bring the state and end."""

    def __init__(self, *, offers_watch: bool) -> None:
        self.offers_watch = offers_watch
        self.requests = 0

    async def list(self, options: ListOptions) -> ResourceList[Resource]:
        self.requests += 1
        return ResourceList(items=(Resource.from_dict({"metadata": {"name": "a"}}),), resource_version="")

    @asynccontextmanager
    async def watch(self, options: ListOptions) -> AsyncGenerator[AsyncIterator[WatchEvent], None]:
        self.requests += 1
        if not self.offers_watch or options.send_initial_events:
            raise api_error(405, "MethodNotAllowed")

        async def events() -> AsyncGenerator[WatchEvent, None]:
            yield WatchEvent(EventType.ADDED, Resource.from_dict({"metadata": {"name": "a"}}))

        yield events()


@pytest.mark.parametrize("offers_watch", [False, True])
async def test_resource_without_versions_is_requested_with_delay(offers_watch: bool) -> None:
    source = Unversioned(offers_watch=offers_watch)
    store = Store[Resource]()
    task = asyncio.create_task(Reflector(source, store, random=lambda: 0.0).run())
    await asyncio.sleep(300)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [obj.name for obj in store.list()] == ["a"]
    assert 10 <= source.requests <= 60, "first quickly, later every half minute"


async def test_long_retry_after_is_limited_to_one_minute_and_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    source = FakeSource(list_faults=deque([api_error(503, retry_after=86_400.0)] * 3))
    source.put("a")
    bench = Bench(source)
    async with bench.running():
        await asyncio.sleep(200.0)
        assert source.times("list") == [0.0, 60.0, 120.0, 180.0]
        assert bench.store.list_keys() == ["default/a"]
    told = [(record.__dict__["delay"], record.__dict__["retry_after"]) for record in caplog.records]
    assert told == [(60.0, 86_400.0)] * 3
