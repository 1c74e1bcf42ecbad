"""Informers: caches with handlers, from the server's events to what each handler sees."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from deltaloop.api.kinds import POD
from deltaloop.api.path import field_path
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.cache.core.real_fifo import BATCH_SIZE
from deltaloop.cache.errors import CacheSyncError, IndexerConflictError, InformerStoppedError
from deltaloop.cache.handlers import HandlerFuncs
from deltaloop.cache.informer import Informer, InformerOptions, new_indexer_informer, new_informer
from deltaloop.cache.interfaces import ResourceEventHandler
from deltaloop.cache.reflector_options import ReflectorOptions
from deltaloop.cache.store import NAMESPACE_INDEX
from tests.cache.fake_source import FakeSource, api_error, expired

PAGED = ReflectorOptions(watch_list=False, detect_restore=False)
STILL = InformerOptions(random=lambda: 0.0, reflector=PAGED)


class Recorder:
    """Writes down what it hears: +a@11! is an addition of the initial list, -a@12? a deletion that nobody saw."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def on_add(self, obj: Resource, *, is_in_initial_list: bool) -> None:
        self.heard.append(f"+{obj.name}@{obj.resource_version}{'!' if is_in_initial_list else ''}")

    def on_update(self, old: Resource, new: Resource) -> None:
        mark = "=" if old is new else "~"
        self.heard.append(f"{mark}{new.name}@{old.resource_version}>{new.resource_version}")

    def on_delete(self, obj: Resource, *, final_state_known: bool) -> None:
        self.heard.append(f"-{obj.name}@{obj.resource_version}{'' if final_state_known else '?'}")


@asynccontextmanager
async def running(informer: Informer[Any]) -> AsyncGenerator[None, None]:
    task = asyncio.create_task(informer.run())
    try:
        await informer.wait_for_sync(timeout=100)
        await settle()
        yield
    finally:
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


async def settle() -> None:
    await asyncio.sleep(0.001)


async def test_handler_receives_initial_list_then_changes() -> None:
    source = FakeSource()
    source.put("a")
    source.put("b")
    informer = Informer(source, POD, options=STILL)
    recorder = Recorder()
    registration = informer.add_event_handler(recorder)
    assert not registration.has_synced
    async with running(informer):
        assert registration.has_synced
        source.put("a")
        source.put("c")
        source.remove("b")
        await settle()
    assert recorder.heard == ["+a@11!", "+b@12!", "~a@11>13", "+c@14", "-b@15"]


async def test_relist_notifies_only_of_missed_changes() -> None:
    source = FakeSource()
    for name in ("same", "changed", "gone", "remade"):
        source.put(name)
    informer = Informer(source, POD, options=STILL)
    recorder = Recorder()
    informer.add_event_handler(recorder)
    async with running(informer):
        recorder.heard.clear()
        source.put("changed", silent=True)
        source.put("new", silent=True)
        source.remove("gone", silent=True)
        source.remove("remade", silent=True)
        source.put("remade", silent=True)
        source.break_watches(expired())
        await asyncio.sleep(5)
        old_uid = "remade-14"
        found = informer.lister().get("default/remade")
        assert found.uid != old_uid
    assert recorder.heard == ["-gone@13?", "~changed@12>15", "+new@16", "~remade@14>19"]


async def test_late_handler_receives_cached_objects_first() -> None:
    source = FakeSource()
    source.put("a")
    informer = Informer(source, POD, options=STILL)
    async with running(informer):
        source.put("b")
        await settle()
        late = Recorder()
        registration = informer.add_event_handler(late)
        assert not registration.has_synced
        assert registration.pending == 2
        source.put("a")
        await settle()
        assert registration.has_synced
        assert registration.pending == 0
    assert late.heard == ["+a@11!", "+b@12!", "~a@11>13"]


async def test_removed_handler_is_not_called_again() -> None:
    source = FakeSource()
    informer = Informer(source, POD, options=STILL)
    kept, removed = Recorder(), Recorder()
    informer.add_event_handler(kept)
    registration = informer.add_event_handler(removed)
    async with running(informer):
        source.put("a")
        await settle()
        source.put("b")
        informer.remove_event_handler(registration)
        await settle()
        informer.remove_event_handler(registration)
        other = Informer(source, POD)
        informer.remove_event_handler(other.add_event_handler(Recorder()))
        source.put("c")
        await settle()
    assert removed.heard == ["+a@11"]
    assert kept.heard == ["+a@11", "+b@12", "+c@13"]
    informer.remove_event_handler(registration)


async def test_handler_can_remove_itself() -> None:
    source = FakeSource()
    informer = Informer(source, POD, options=STILL)
    heard: list[str] = []

    def once(obj: Resource) -> None:
        heard.append(obj.name)
        informer.remove_event_handler(registration)

    registration = informer.add_event_handler(HandlerFuncs(on_add=once))
    async with running(informer):
        source.put("a")
        source.put("b")
        await settle()
    assert heard == ["a"]


async def test_the_same_handler_twice_is_two_registrations() -> None:
    source = FakeSource()
    informer = Informer(source, POD, options=STILL)
    recorder = Recorder()
    first, second = informer.add_event_handler(recorder), informer.add_event_handler(recorder)
    assert first is not second
    async with running(informer):
        source.put("a")
        await settle()
        informer.remove_event_handler(first)
        source.put("b")
        await settle()
    assert recorder.heard == ["+a@11", "+a@11", "+b@12"]


async def test_failing_handler_is_logged_and_its_item_counts_as_delivered(
    caplog: pytest.LogCaptureFixture,
) -> None:
    source = FakeSource()
    source.put("a")
    source.put("b")
    informer = Informer(source, POD, options=STILL)
    heard: list[str] = []

    def picky(obj: Resource) -> None:
        if obj.name == "a":
            raise ValueError("not this one")
        heard.append(obj.name)

    recorder = Recorder()
    registration = informer.add_event_handler(HandlerFuncs(on_add=picky), name="picky")
    informer.add_event_handler(recorder)
    with caplog.at_level(logging.ERROR, logger="deltaloop.cache"):
        async with running(informer):
            assert registration.has_synced
            assert registration.failures == 1
    assert heard == ["b"]
    assert recorder.heard == ["+a@11!", "+b@12!"]
    (record,) = caplog.records
    assert record.getMessage() == "handler raised an exception, dropping the notification"
    fields = {name: record.__dict__[name] for name in ("handler", "resource", "key", "notification")}
    assert fields == {
        "handler": "picky",
        "resource": "v1/Pod",
        "key": "default/a",
        "notification": "AddNotification",
    }


async def test_slow_handler_does_not_delay_other_handlers() -> None:
    source = FakeSource()
    source.put("a")
    source.put("b")
    informer = Informer(source, POD, options=STILL)
    slow_heard: list[tuple[float, str]] = []

    async def slow(obj: Resource) -> None:
        await asyncio.sleep(100)
        slow_heard.append((asyncio.get_running_loop().time(), obj.name))

    quick = Recorder()
    slow_registration = informer.add_event_handler(HandlerFuncs(on_add=slow))
    quick_registration = informer.add_event_handler(quick)
    async with running(informer):
        source.put("c")
        await settle()
        assert quick.heard == ["+a@11!", "+b@12!", "+c@13"]
        assert quick_registration.has_synced
        assert not slow_registration.has_synced
        assert slow_registration.pending == 2
        await asyncio.sleep(300)
        assert slow_registration.has_synced
    assert slow_heard == [(100.0, "a"), (200.0, "b"), (300.0, "c")]


async def test_stop_cancels_waiting_handler_and_drops_pending_notifications() -> None:
    source = FakeSource()
    informer = Informer(source, POD, options=STILL)
    ended: list[str] = []

    async def hangs(obj: Resource) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(obj.name)

    registration = informer.add_event_handler(HandlerFuncs(on_add=hangs))
    removed = informer.add_event_handler(HandlerFuncs(on_add=hangs))
    async with running(informer):
        source.put("a")
        source.put("b")
        await settle()
        informer.remove_event_handler(removed)
        assert not informer.stopped
    assert ended == ["a", "a"]
    assert informer.stopped
    assert registration.pending == 1
    assert informer.lister().find("default/b") is not None, "what is cached stays readable"


async def test_stopped_informer_rejects_handlers_and_second_run() -> None:
    informer = Informer(FakeSource(), POD, options=STILL)
    async with running(informer):
        with pytest.raises(InformerStoppedError):
            await informer.run()
    with pytest.raises(InformerStoppedError):
        informer.add_event_handler(Recorder())
    with pytest.raises(InformerStoppedError):
        await informer.run()


async def test_resync_notifies_all_cached_objects_again() -> None:
    source = FakeSource()
    source.put("a")
    source.put("b")
    informer = Informer(source, POD, options=InformerOptions(resync_period=30.0, random=lambda: 0.0, reflector=PAGED))
    recorder = Recorder()
    informer.add_event_handler(recorder)
    async with running(informer):
        recorder.heard.clear()
        await asyncio.sleep(29.9)
        assert recorder.heard == []
        await asyncio.sleep(30.2)
        assert recorder.heard == ["=a@11>11", "=b@12>12"] * 2
    assert len(source.asked) == 2, "a resync asks the server for nothing"


async def test_resync_period_starts_after_sync() -> None:
    source = FakeSource(list_delay=45.0)
    source.put("a")
    informer = Informer(source, POD, options=InformerOptions(resync_period=30.0, random=lambda: 0.0, reflector=PAGED))
    recorder = Recorder()
    informer.add_event_handler(recorder)
    async with running(informer):
        await asyncio.sleep(29.9)
        assert recorder.heard == ["+a@11!"]
        await asyncio.sleep(0.2)
        assert recorder.heard == ["+a@11!", "=a@11>11"]


async def test_long_buffer_lets_other_tasks_run() -> None:
    source = FakeSource()
    for number in range(1000):
        source.put(f"p{number}")
    informer = Informer(source, POD, options=STILL)
    async with running(informer):
        recorder = Recorder()
        informer.add_event_handler(recorder)
        turns = 0
        while len(recorder.heard) < 1000:
            await asyncio.sleep(0)
            turns += 1
        assert turns >= 10


async def test_zero_resync_period_disables_it_and_minimum_is_one_second() -> None:
    source = FakeSource()
    source.put("a")
    recorders: list[Recorder] = []
    for period in (0.0, 0.1):
        informer = Informer(
            source, POD, options=InformerOptions(resync_period=period, random=lambda: 0.0, reflector=PAGED)
        )
        recorders.append(Recorder())
        informer.add_event_handler(recorders[-1])
        async with running(informer):
            await asyncio.sleep(3.5)
    assert [len(recorder.heard) for recorder in recorders] == [1, 4]


async def test_wait_for_sync_error_names_kind_last_error_and_duration() -> None:
    source = FakeSource()
    source.list_faults.extend(api_error(500, message="pods are ill") for _ in range(100))
    errors: list[float] = []
    informer = Informer(
        source,
        POD,
        options=InformerOptions(
            random=lambda: 0.0, reflector=PAGED, on_error=lambda reaction: errors.append(reaction.delay)
        ),
    )
    task = asyncio.create_task(informer.run())
    with pytest.raises(CacheSyncError) as caught:
        await informer.wait_for_sync(timeout=10.0)
    assert asyncio.get_running_loop().time() == 10.0
    assert str(caught.value) == (
        "the cache of v1/Pod has not synced within 10 s: failing for 10.0 s, "
        "last error InternalServerError: pods are ill"
    )
    assert errors == pytest.approx([0.8, 1.6, 3.2, 6.4])
    waiting = asyncio.create_task(informer.wait_for_sync(timeout=None))
    await asyncio.sleep(1)
    task.cancel()
    with pytest.raises(CacheSyncError, match="v1/Pod has stopped"):
        await waiting
    assert not informer.has_synced


async def test_wait_for_sync_returns_as_soon_as_the_list_is_in_the_cache() -> None:
    source = FakeSource(list_delay=7.0)
    source.put("a")
    informer = Informer(source, POD, options=STILL)
    async with running(informer):
        assert asyncio.get_running_loop().time() == pytest.approx(7.001)
        assert len(informer.lister()) == 1
        assert informer.last_sync_resource_version == "11"
        await informer.wait_for_sync(timeout=0.0)
    assert repr(informer) == "<Informer v1/Pod: 1 objects, stopped, synced>"


async def test_indexes_can_be_added_at_any_time() -> None:
    source = FakeSource()
    source.put("a", node="n1")
    informer = Informer(source, POD, indexers={"node": field_path("spec.nodeName")}, options=STILL)
    with pytest.raises(IndexerConflictError):
        informer.add_indexers({NAMESPACE_INDEX: field_path("spec.nodeName")})
    async with running(informer):
        lister = informer.lister()
        assert [obj.name for obj in lister.by_index("node", "n1")] == ["a"]
        informer.add_indexers({"uid": field_path("metadata.uid")})
        assert [obj.name for obj in lister.by_index("uid", "a-11")] == ["a"]
        source.put("a", node="n2")
        await settle()
        assert lister.by_index("node", "n1") == []
        assert [obj.name for obj in lister.list(namespace="default")] == ["a"]


class PodSpec(msgspec.Struct, rename="camel"):
    node_name: str


class Metadata(msgspec.Struct):
    name: str


class TypedPod(msgspec.Struct):
    metadata: Metadata
    spec: PodSpec


TYPED = ResourceType("", "v1", "Pod", "pods", model=TypedPod)


async def test_typed_kind_returns_typed_objects(caplog: pytest.LogCaptureFixture) -> None:
    source = FakeSource()
    source.put("a", node="n1")
    source.put("mismatch")
    informer = Informer(source, TYPED, options=InformerOptions(resync_period=30.0, random=lambda: 0.0, reflector=PAGED))
    heard: list[str] = []
    updates: list[bool] = []
    handler = HandlerFuncs[TypedPod](
        on_add=lambda obj: heard.append(f"+{obj.spec.node_name}"),
        on_update=lambda old, new: updates.append(old is new),
        on_delete=lambda obj: heard.append(f"-{obj.spec.node_name}"),
    )
    registration = informer.add_event_handler(handler)
    with caplog.at_level(logging.ERROR, logger="deltaloop.cache"):
        async with running(informer):
            assert registration.has_synced
            assert registration.failures == 1
            lister = informer.lister()
            found = lister.get("default/a")
            assert found is not lister.get("default/a"), "nobody can change what others see"
            assert isinstance(informer.indexer.get_by_key("default/a"), Resource)
            await asyncio.sleep(31)
    assert found == TypedPod(Metadata("a"), PodSpec("n1"))
    assert (heard, updates) == (["+n1"], [True])
    assert "does not fit TypedPod" in caplog.records[0].__dict__["raised"]


async def test_program_of_informer_article() -> None:
    source = FakeSource()
    source.put("a", node="n1")
    heard: list[str] = []
    handler = HandlerFuncs[Resource](
        on_add=lambda obj: heard.append(f"add {obj.name}"),
        on_update=lambda old, new: heard.append(f"update {new.name}"),
        on_delete=lambda obj: heard.append(f"delete {obj.name}"),
    )
    indexer, controller = new_indexer_informer(
        source, POD, handler=handler, indexers={"node": field_path("spec.nodeName")}, resync_period=0
    )
    async with running(controller):
        source.put("a")
        source.remove("a")
        source.put("b", node="n2")
        await settle()
    assert heard == ["add a", "update a", "delete a", "add b"]
    assert indexer.list_index_func_values("node") == ["n2"]
    store, _ = new_informer(source, POD, handler=handler)
    assert len(store) == 0


async def test_handlers_added_and_removed_during_events_miss_none() -> None:
    source = FakeSource()
    informer = Informer(source, POD, options=STILL)
    steady = Recorder()
    informer.add_event_handler(steady)
    late: list[Recorder] = []
    async with running(informer):
        for number in range(100):
            source.put(f"p{number % 7}")
            recorder = Recorder()
            registration = informer.add_event_handler(recorder)
            if number % 3:
                late.append(recorder)
            else:
                informer.remove_event_handler(registration)
            if number % 5 == 0:
                await asyncio.sleep(0)
        await settle()
        final = {obj.name: obj.resource_version for obj in informer.lister().list()}
    for recorder in (steady, *late):
        state: dict[str, str] = {}
        for line in recorder.heard:
            name, _, versions = line[1:].rstrip("!").partition("@")
            old, _, new = versions.rpartition(">")
            assert state.get(name, "") == old, "nothing lost, nothing doubled"
            state[name] = new
        assert state == final


async def test_blocking_handler_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    source = FakeSource()
    source.put("a")
    informer = Informer(source, POD, options=STILL)
    loop = asyncio.get_running_loop()

    source.put("b")

    class Blocks:
        """Stands for a handler that computes for long: it moves the loop's clock."""

        def on_add(self, obj: Resource, *, is_in_initial_list: bool) -> None:
            loop._virtual_selector.now += 0.11 if obj.name == "a" else 0.09  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue,reportUnknownMemberType]

        def on_update(self, old: Resource, new: Resource) -> None: ...

        def on_delete(self, obj: Resource, *, final_state_known: bool) -> None: ...

    handler: ResourceEventHandler[Resource] = Blocks()
    informer.add_event_handler(handler)
    with caplog.at_level(logging.WARNING, logger="deltaloop.cache"):
        async with running(informer):
            pass
    (record,) = [record for record in caplog.records if record.name == "deltaloop.cache"]
    assert record.getMessage() == "handler blocked the event loop: use asyncio.to_thread or an async library"
    assert record.__dict__["handler"].endswith("Blocks")
    assert (record.__dict__["seconds"], record.__dict__["key"]) == (0.11, "default/a")


async def test_new_informer_has_zero_relists_and_restarts() -> None:
    seen = Informer(FakeSource(), POD, options=STILL).freshness()
    assert (seen.relists, seen.restarts, seen.waiting, seen.resource_version) == (0, 0, 0, "")


async def test_long_list_of_known_objects_notifies_only_of_new_objects() -> None:
    source = FakeSource()
    for number in range(BATCH_SIZE + 5):
        source.put(f"p{number}")
    informer = Informer(source, POD, options=STILL)
    recorder = Recorder()
    informer.add_event_handler(recorder)
    async with running(informer):
        recorder.heard.clear()
        source.put("new", silent=True)
        source.put("p3", silent=True)
        source.break_watches(expired())
        await asyncio.sleep(10)
        assert sorted(recorder.heard) == [f"+new@{source.version - 1}", f"~p3@14>{source.version}"]
