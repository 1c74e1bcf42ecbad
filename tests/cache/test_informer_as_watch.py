"""An informer used as an ordered watch, or as a store that hands on its whole list: a handler is all it takes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from deltaloop.api.kinds import POD
from deltaloop.api.resource import Resource
from deltaloop.api.watch_event import EventType, WatchEvent
from deltaloop.cache.handlers import HandlerFuncs
from deltaloop.cache.informer import Informer, InformerOptions
from deltaloop.cache.reflector_options import ReflectorOptions
from tests.cache.fake_source import FakeSource, expired

STILL = InformerOptions(random=lambda: 0.0, reflector=ReflectorOptions(watch_list=False, detect_restore=False))


class AsEvents:
    """Turns what a handler hears into the events of a watch."""

    def __init__(self) -> None:
        self.events: asyncio.Queue[WatchEvent] = asyncio.Queue()

    def on_add(self, obj: Resource, *, is_in_initial_list: bool) -> None:
        self.events.put_nowait(WatchEvent(EventType.ADDED, obj))

    def on_update(self, old: Resource, new: Resource) -> None:
        self.events.put_nowait(WatchEvent(EventType.MODIFIED, new))

    def on_delete(self, obj: Resource, *, final_state_known: bool) -> None:
        self.events.put_nowait(WatchEvent(EventType.DELETED, obj))

    async def read(self, count: int, *, seconds: float = 0.0) -> list[tuple[EventType, str, str]]:
        found: list[tuple[EventType, str, str]] = []
        for _ in range(count):
            event = await self.events.get()
            found.append((event.type, event.object.name, event.object.resource_version))
            await asyncio.sleep(seconds)
        return found


@asynccontextmanager
async def running(informer: Informer[Resource]) -> AsyncGenerator[None, None]:
    task = asyncio.create_task(informer.run())
    try:
        await informer.wait_for_sync(timeout=100)
        await asyncio.sleep(0.001)
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


async def test_slow_reader_receives_all_events_in_order() -> None:
    source = FakeSource()
    source.put("a")
    watch = AsEvents()
    informer = Informer(source, POD, options=STILL)
    informer.add_event_handler(watch)
    async with running(informer):
        for _ in range(300):
            source.put("a")
        source.remove("a")
        source.put("a")
        events = await watch.read(303, seconds=0.01)
    assert [version for _, _, version in events] == [str(version) for version in range(11, 314)]
    kinds = [kind for kind, _, _ in events]
    assert kinds == [EventType.ADDED, *[EventType.MODIFIED] * 300, EventType.DELETED, EventType.ADDED]


async def test_missed_deletion_is_delivered_with_last_known_state() -> None:
    source = FakeSource()
    source.put("a")
    source.put("b")
    watch = AsEvents()
    informer = Informer(source, POD, options=STILL)
    informer.add_event_handler(watch)
    async with running(informer):
        await watch.read(2)
        source.remove("a", silent=True)
        source.compact()
        source.break_watches(expired())
        assert await watch.read(1) == [(EventType.DELETED, "a", "11")]


async def test_informer_stops_while_reader_has_unread_events() -> None:
    source = FakeSource()
    watch = AsEvents()
    informer = Informer(source, POD, options=STILL)
    informer.add_event_handler(watch)
    async with running(informer):
        for number in range(1000):
            source.put(f"p{number}")
        await watch.read(1)
    assert informer.stopped
    assert source.opened == source.closed


async def test_list_is_pushed_after_changes_and_not_for_reads() -> None:
    source = FakeSource()
    source.put("a")
    pushed: list[str] = []
    informer = Informer(source, POD, options=STILL)
    lister = informer.lister()

    def push(*_: object) -> None:
        pushed.append(" ".join(obj.name + "@" + obj.resource_version for obj in lister.list()))

    informer.add_event_handler(HandlerFuncs(on_add=push, on_update=push, on_delete=push))
    async with running(informer):
        assert pushed == ["a@11"]
        for change, now in (
            (lambda: source.put("b"), "a@11 b@12"),
            (lambda: source.put("a"), "a@13 b@12"),
            (lambda: source.remove("b"), "a@13"),
        ):
            change()
            await asyncio.sleep(0.001)
            assert pushed.pop() == now
        count = len(pushed)
        assert lister.get("default/a").resource_version == "13"
        assert lister.find("default/b") is None
        await asyncio.sleep(0.001)
        assert len(pushed) == count
        source.put("c", silent=True)
        source.compact()
        source.break_watches(expired())
        await asyncio.sleep(2)
        assert pushed[-1] == "a@13 c@15"
