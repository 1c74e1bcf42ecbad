"""Informers: transforms, handlers' own resyncs and buffers, freshness, refusals, and what objects are handed out as."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from deltaloop.api.kinds import POD
from deltaloop.api.path import field_path
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.cache.core.notification_buffer import BufferPolicy
from deltaloop.cache.core.reflector.reactions import Reaction
from deltaloop.cache.errors import CacheSyncError, InformerStoppedError, NotFreshError, TransformError
from deltaloop.cache.handlers import FilteringResourceEventHandler, HandlerFuncs, HandlerOptions
from deltaloop.cache.informer import Informer, InformerOptions
from deltaloop.cache.queue import QueueKind
from deltaloop.cache.reflector_options import ReflectorOptions
from tests.cache.fake_source import FakeSource, api_error, expired
from tests.cache.test_informer import PAGED, STILL, Recorder, running, settle
from tests.having import having

QUEUES = pytest.mark.parametrize("queue", [*QueueKind])


def mark(obj: Resource) -> Resource:
    """Count how often this was called with an object, in the object; far from idempotent."""
    fields = obj.to_dict()
    fields["marks"] = fields.get("marks", 0) + 1
    return Resource.from_dict(fields, obj.resource_type)


@QUEUES
@pytest.mark.parametrize("watch_list", [False, True])
async def test_a_transform_is_called_once_for_each_object_on_every_path(queue: QueueKind, watch_list: bool) -> None:
    source = FakeSource()
    source.put("a")
    source.put("gone")
    options = STILL.replace(
        queue=queue,
        transform=mark,
        resync_period=10.0,
        reflector=ReflectorOptions(watch_list=watch_list, detect_restore=False),
    )
    informer = Informer(source, POD, indexers={"marks": lambda obj: [str(obj["marks"])]}, options=options)
    seen: list[int] = []
    handler = HandlerFuncs[Resource](
        on_add=lambda obj: seen.append(obj["marks"]),
        on_update=lambda old, new: seen.extend([old["marks"], new["marks"]]),
        on_delete=lambda obj: seen.append(obj["marks"]),
    )
    informer.add_event_handler(handler)
    async with running(informer):
        source.put("a")
        source.put("b")
        source.remove("b")
        await asyncio.sleep(25)  # two resyncs
        source.remove("gone", silent=True)
        source.break_watches(expired())
        await asyncio.sleep(3)
        assert len(seen) == 2 + 2 + 2 + 8 + 1
        assert set(seen) == {1}
        assert informer.indexer.list_index_func_values("marks") == ["1"]


@QUEUES
async def test_failing_transform_is_logged_and_list_is_retried(queue: QueueKind) -> None:
    source = FakeSource()
    source.put("a")
    broken = True

    def picky(obj: Resource) -> Resource:
        if broken and obj.name == "b":
            raise ValueError("not this one")
        return obj

    reactions: list[Reaction] = []
    options = STILL.replace(queue=queue, transform=picky, on_error=reactions.append)
    informer = Informer(source, POD, options=options)
    async with running(informer):
        source.put("b")
        await settle()
        await asyncio.sleep(3)
        error = reactions[0].error
        assert isinstance(error, TransformError)
        assert (error.key, str(error)) == ("default/b", "the transform of 'default/b' raised")
        assert isinstance(error.__cause__, ValueError)
        assert [obj.name for obj in informer.lister().list()] == ["a"]
        broken = False
        await asyncio.sleep(10)
        assert sorted(obj.name for obj in informer.lister().list()) == ["a", "b"]


async def test_transform_must_not_change_key() -> None:
    source = FakeSource()
    source.put("a")
    reactions: list[Reaction] = []

    def rename(obj: Resource) -> Resource:
        return Resource.from_dict({"metadata": {"name": "b"}})

    informer = Informer(source, POD, options=STILL.replace(transform=rename, on_error=reactions.append))
    task = asyncio.create_task(informer.run())
    await settle()
    assert str(reactions[0].error) == "the transform of 'default/a' returned an object with another key: 'b'"
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_filter_converts_updates_to_additions_and_deletions() -> None:
    source = FakeSource()
    source.put("in", node="n1")
    source.put("out", node="n2")
    informer = Informer(source, POD, options=STILL)
    recorder = Recorder()
    handler = FilteringResourceEventHandler(lambda obj: obj["spec"].get("nodeName") == "n1", recorder)
    registration = informer.add_event_handler(handler)
    assert registration.name.endswith("Recorder")
    async with running(informer):
        assert registration.has_synced
        source.put("in", node="n1")
        source.put("in", node="n3")
        source.put("in", node="n4")
        source.put("out", node="n1")
        source.remove("in")
        source.put("out", node="n2")
        await settle()
    assert recorder.heard == ["+in@11!", "~in@11>13", "-in@13", "+out@16", "-out@16"]
    assert "Recorder" in repr(handler)


async def test_each_handler_has_its_own_resync_period() -> None:
    source = FakeSource()
    source.put("a")
    informer = Informer(source, POD, options=STILL.replace(resync_period=10.0))
    recorders = {period: Recorder() for period in (None, 0.0, 4.0)}
    faults: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: faults.append(context))
    for period, recorder in recorders.items():
        informer.add_event_handler(recorder, options=HandlerOptions(resync_period=period))
    async with running(informer):
        await asyncio.sleep(5)
        late = Recorder()
        registration = informer.add_event_handler(late, options=HandlerOptions(resync_period=4.0))
        await asyncio.sleep(16)
        informer.remove_event_handler(registration)
        await asyncio.sleep(5)
    resyncs = {period: recorder.heard.count("=a@11>11") for period, recorder in recorders.items()}
    assert resyncs == {None: 2, 0.0: 0, 4.0: 6}
    assert late.heard == ["+a@11!"] + ["=a@11>11"] * 4
    assert not faults, "the period of a removed handler has ended"
    assert len(source.asked) == 2, "a resync asks the server for nothing"


class Slow:
    """Takes ten seconds for each item."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    async def on_add(self, obj: Resource, *, is_in_initial_list: bool) -> None:
        await asyncio.sleep(10)
        self.heard.append(f"+{obj.name}@{obj.resource_version}")

    async def on_update(self, old: Resource, new: Resource) -> None:
        await asyncio.sleep(10)
        self.heard.append(f"~{new.name}@{old.resource_version}>{new.resource_version}")

    async def on_delete(self, obj: Resource, *, final_state_known: bool) -> None:
        await asyncio.sleep(10)
        self.heard.append(f"-{obj.name}@{obj.resource_version}")


async def test_resyncs_do_not_accumulate_for_slow_handler() -> None:
    source = FakeSource()
    source.put("a")
    source.put("b")
    informer = Informer(source, POD, options=STILL)
    registration = informer.add_event_handler(Slow(), options=HandlerOptions(resync_period=1.0))
    async with running(informer):
        await asyncio.sleep(100)
        assert registration.pending <= 2


async def test_coalescing_handler_receives_newest_state() -> None:
    source = FakeSource()
    source.put("a")
    informer = Informer(source, POD, options=STILL)
    slow = Slow()
    registration = informer.add_event_handler(slow, options=HandlerOptions(buffer=BufferPolicy.COALESCING))
    async with running(informer):
        for _ in range(50):
            source.put("a")
        source.put("short-lived")
        source.remove("short-lived")
        await settle()
        assert registration.pending == 1
        await asyncio.sleep(25)
        assert registration.has_synced
    assert slow.heard == ["+a@11", "~a@11>61"]


async def test_full_bounded_handler_pauses_informer_and_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    source = FakeSource()
    source.put("a")
    informer = Informer(source, POD, options=STILL)
    slow, quick = Slow(), Recorder()
    options = HandlerOptions(buffer=BufferPolicy.BOUNDED, buffer_size=2)
    registration = informer.add_event_handler(slow, name="slow", options=options)
    informer.add_event_handler(quick)
    with caplog.at_level(logging.INFO, logger="deltaloop.cache"):
        async with running(informer):
            for number in range(300):
                source.put(f"p{number}")
            await settle()
            assert informer.freshness().stalled_by == ("slow",)
            assert registration.pending == 2
            assert quick.heard == ["+a@11!", "+p0@12", "+p1@13"]
            (stream,) = source.streams
            assert stream.qsize() >= 200, "what is not read waits at the server"
            await asyncio.sleep(3100)
            assert not informer.stalled_by
            assert len(quick.heard) == len(slow.heard) == 301
    stalls = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert stalls[0].getMessage() == "pausing informer until a handler has caught up"
    assert stalls[0].__dict__["handlers"] == ["slow"]


async def test_removing_full_bounded_handler_resumes_informer() -> None:
    source = FakeSource()
    informer = Informer(source, POD, options=STILL)
    options = HandlerOptions(buffer=BufferPolicy.BOUNDED, buffer_size=1)
    quick = Recorder()
    informer.add_event_handler(quick)
    registration = informer.add_event_handler(Slow(), options=options)
    async with running(informer):
        for number in range(5):
            source.put(f"p{number}")
        await settle()
        assert informer.stalled_by
        informer.remove_event_handler(registration)
        await settle()
        assert len(quick.heard) == 5


@QUEUES
async def test_wait_for_resource_version_waits_for_version(queue: QueueKind) -> None:
    source = FakeSource()
    source.put("a")
    informer = Informer(source, POD, options=STILL.replace(queue=queue))
    async with running(informer):
        await informer.wait_for_resource_version("11", timeout=0.0)
        waiting = [asyncio.create_task(informer.wait_for_resource_version(version)) for version in ("12", "13")]
        await settle()
        source.put("b")
        await settle()
        assert [wait.done() for wait in waiting] == [True, False]
        assert informer.lister().find("default/b") is not None
        source.version += 1
        source.bookmark()
        await settle()
        assert waiting[1].done(), "a bookmark tells it, too"
        assert informer.resource_version == informer.indexer.last_sync_resource_version == "13"
        with pytest.raises(NotFreshError, check=having(wanted="99", reached="13")) as caught:
            await informer.wait_for_resource_version("99", timeout=5.0)
        assert (caught.value.wanted, caught.value.reached) == ("99", "13")
        with pytest.raises(NotFreshError):
            await informer.wait_for_resource_version("not-a-number", timeout=1.0)
        late = asyncio.create_task(informer.wait_for_resource_version("99", timeout=None))
        await settle()
    with pytest.raises(InformerStoppedError):
        await late


@QUEUES
async def test_wait_for_resource_version_ignores_queued_changes(queue: QueueKind) -> None:
    source = FakeSource()
    informer = Informer(source, POD, options=STILL.replace(queue=queue))
    informer.add_event_handler(Slow(), options=HandlerOptions(buffer=BufferPolicy.BOUNDED, buffer_size=1))
    async with running(informer):
        for number in range(5):
            source.put(f"p{number}")
        await settle()
        seen = informer.freshness()
        assert seen.waiting == 15 - int(seen.resource_version)
        assert len(informer.lister()) == int(seen.resource_version) - 10
        await informer.wait_for_resource_version("15", timeout=100)
        assert len(informer.lister()) == 5


async def test_freshness_counts_relists_and_restarts() -> None:
    source = FakeSource()
    source.put("a")
    informer = Informer(source, POD, options=STILL)
    async with running(informer):
        await asyncio.sleep(10)
        source.put("b")
        await asyncio.sleep(10)
        source.bookmark()
        await asyncio.sleep(10)
        source.end_watches()
        await asyncio.sleep(10)
        source.break_watches(expired())
        await asyncio.sleep(10)
        seen = informer.freshness()
    assert seen.last_event_at == pytest.approx(10.0, abs=0.1)
    assert seen.last_bookmark_at == pytest.approx(20.0, abs=0.1)
    assert seen.last_confirmed_at == pytest.approx(40.8, abs=0.1)  # the relist after 410
    assert (seen.relists, seen.restarts, seen.waiting, seen.resource_version) == (1, 2, 0, "12")


async def test_informer_continues_after_kind_is_removed_and_added_again() -> None:
    """A CRD deleted and made again: its objects go, the watch ends, lists are 404 for a while."""
    source = FakeSource()
    source.put("a")
    source.put("b")
    informer = Informer(source, POD, options=STILL)
    recorder = Recorder()
    informer.add_event_handler(recorder)
    async with running(informer):
        source.remove("a")
        source.remove("b", silent=True)  # the stream ended before that was told
        source.watch_faults.extend(api_error(404) for _ in range(100))
        source.list_faults.extend(api_error(404) for _ in range(100))
        source.end_watches()
        await asyncio.sleep(300)
        assert informer.statistics().failing_since is not None
        source.list_faults.clear()
        source.watch_faults.clear()
        source.put("b")
        await asyncio.sleep(60)
        assert informer.statistics().last_error is None
        source.put("c")
        await settle()
        assert {obj.name: obj for obj in informer.lister().list()} == source.objects
    assert recorder.heard == ["+a@11!", "+b@12!", "-a@13", "~b@12>15", "+c@16"]


async def test_earlier_forbidden_error_is_cleared() -> None:
    source = FakeSource()
    source.list_faults.extend([api_error(403), api_error(500), api_error(500)])
    informer = Informer(source, POD, options=STILL)
    task = asyncio.create_task(informer.run())
    with pytest.raises(CacheSyncError) as caught:
        await informer.wait_for_sync()
    assert caught.value.failures[0].refused
    await asyncio.sleep(1)  # now it is 500: not refused, only ill
    await informer.wait_for_sync()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


@pytest.mark.parametrize(
    ("model", "expected"),
    [(Resource, Resource), (dict, dict), (dict[str, Any], dict), (bytes, bytes)],
)
async def test_objects_have_model_of_kind(model: type[Any], expected: type) -> None:
    source = FakeSource()
    source.put("a", node="n1")
    informer = Informer(source, ResourceType("", "v1", "Pod", "pods", model=model), options=STILL)
    heard: list[Any] = []
    informer.add_event_handler(HandlerFuncs[Any](on_add=heard.append))
    async with running(informer):
        found = informer.lister().get("default/a")
    assert isinstance(found, expected)
    assert isinstance(heard[0], expected)
    if isinstance(found, dict):
        assert found["kind"] == "Pod"
        found["spec"]["nodeName"] = "mine"
        again: Any = informer.lister().get("default/a")
        assert again["spec"]["nodeName"] == "n1", "nobody can change what others see"


def test_options_are_checked() -> None:
    with pytest.raises(ValueError, check=having(argument="InformerOptions.resync_period")):
        InformerOptions(resync_period=-1.0, reflector=PAGED)
    with pytest.raises(ValueError, check=having(argument="HandlerOptions.resync_period")):
        HandlerOptions(resync_period=-1.0)
    with pytest.raises(ValueError, check=having(argument="HandlerOptions.buffer_size")):
        HandlerOptions(buffer_size=0)


async def test_index_uses_transformed_objects() -> None:
    source = FakeSource()
    source.put("a", node="n1")

    def drop_spec(obj: Resource) -> Resource:
        return Resource.from_dict({"metadata": obj.to_dict()["metadata"]}, obj.resource_type)

    informer = Informer(
        source,
        POD,
        indexers={"node": field_path("spec.nodeName")},
        options=STILL.replace(transform=drop_spec),
    )
    async with running(informer):
        assert informer.indexer.list_index_func_values("node") == []
