"""managedFields are not cached, unless that is asked for: the server leaves them out, or they are taken off."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from deltaloop.api.kinds import POD
from deltaloop.api.list_options import ListOptions
from deltaloop.api.managed_fields import strip_managed_fields
from deltaloop.api.resource import Resource, with_stored
from deltaloop.api.watch_event import EventType, WatchEvent
from deltaloop.cache.factory import InformerFactory
from deltaloop.cache.handlers import HandlerFuncs
from deltaloop.cache.informer import Informer, InformerOptions
from deltaloop.cache.listwatch import ListWatch
from deltaloop.cache.queue import QueueKind
from deltaloop.cache.reflector import Reflector
from deltaloop.cache.reflector_options import ReflectorOptions
from deltaloop.cache.store import Indexer
from tests.cache.fake_client import FakeClient
from tests.cache.fake_source import FakeSource
from tests.cache.objects import pod
from tests.cache.test_informer import STILL, running, settle

MANAGED: list[Any] = [{"manager": "kubelet", "fieldsV1": {'k:{"type":"Ready"}': {}}}]


def managed(name: str, version: int) -> Resource:
    fields = pod(name, version).to_dict()
    fields["metadata"]["managedFields"] = MANAGED
    return Resource.from_dict(fields, POD)


def source_of(*names: str) -> FakeSource:
    source = FakeSource()
    for name in names:
        source.objects[name] = managed(name, source.version)
    return source


def event(source: FakeSource, event_type: EventType, name: str) -> None:
    source.version += 1
    source.send(WatchEvent(event_type, managed(name, source.version)))


@pytest.mark.parametrize("queue", [*QueueKind])
@pytest.mark.parametrize("watch_list", [False, True])
@pytest.mark.parametrize("keep", [False, True])
async def test_managed_fields_option_applies_to_cache_and_handlers(
    queue: QueueKind, watch_list: bool, keep: bool
) -> None:
    source = source_of("a", "b")
    seen: list[tuple[str, bool]] = []

    def saw(obj: Resource) -> None:
        seen.append((obj.name, "managedFields" in obj["metadata"]))

    options = STILL.replace(
        queue=queue,
        reflector=ReflectorOptions(watch_list=watch_list, detect_restore=False),
        keep_managed_fields=keep,
    )
    informer = Informer(source, POD, options=options)
    informer.add_event_handler(HandlerFuncs[Resource](on_add=saw, on_update=lambda _, new: saw(new), on_delete=saw))
    async with running(informer):
        event(source, EventType.MODIFIED, "a")
        event(source, EventType.ADDED, "c")
        event(source, EventType.DELETED, "b")
        await settle()
        assert seen == [(name, keep) for name in "abacb"]
        for obj in informer.lister().list():
            wanted = managed(obj.name, int(obj.resource_version)).to_dict()
            if not keep:
                del wanted["metadata"]["managedFields"]
            assert obj.to_dict() == wanted


async def test_transform_receives_managed_fields_only_if_kept() -> None:
    for keep in (False, True):
        seen: list[bool] = []

        def transform(obj: Resource, seen: list[bool] = seen) -> Resource:
            seen.append(b"managedFields" in obj.raw)
            return obj

        options = STILL.replace(transform=transform, keep_managed_fields=keep)
        async with running(Informer(source_of("a"), POD, options=options)):
            assert seen == [keep]


async def test_objects_of_the_source_are_not_changed() -> None:
    source = source_of("a")
    async with running(Informer(source, POD, options=STILL)):
        assert source.objects["a"]["metadata"]["managedFields"] == MANAGED


async def test_object_with_unreadable_managed_fields_is_cached_unchanged() -> None:
    source = FakeSource()
    broken = b'{"metadata":{"name":"a","managedFields"'  # no client gives such an object
    source.objects["a"] = with_stored(pod("a", 1), broken)
    informer = Informer(source, POD, options=STILL)
    async with running(informer):
        (obj,) = informer.indexer.list()
        assert obj.raw == broken


async def test_dropping_managed_fields_of_long_list_lets_other_tasks_run() -> None:
    source = source_of(*(f"p{number}" for number in range(1000)))
    reflector = Reflector(source, Indexer[Resource](), receive=strip_managed_fields)
    receiving = asyncio.create_task(reflector._received(await source.list(ListOptions())))
    turns = 0
    while not receiving.done():
        turns += 1
        await asyncio.sleep(0)
    assert turns > 4
    page = receiving.result()
    assert not any(b"managedFields" in obj.raw for obj in page.items)
    assert [obj.name for obj in page.items] == [*source.objects]


@pytest.mark.parametrize(
    ("options", "selection", "drops"),
    [
        (InformerOptions(), {}, True),
        (InformerOptions(), {"keep_managed_fields": True}, False),
        (InformerOptions(keep_managed_fields=True), {}, False),
        (InformerOptions(keep_managed_fields=True), {"keep_managed_fields": False}, True),
    ],
)
async def test_factory_requests_lists_without_managed_fields(
    options: InformerOptions, selection: dict[str, bool], drops: bool
) -> None:
    client = FakeClient()
    client.source("v1/Pod").objects["a"] = managed("a", 11)
    async with InformerFactory(client, options=options.replace(random=lambda: 0.0)) as factory:
        informer = factory.informer(POD, keep_managed_fields=selection.get("keep_managed_fields"))
        await factory.wait_for_sync()
        assert informer is factory.informer(POD, keep_managed_fields=not drops)
        assert informer is not factory.informer(POD, keep_managed_fields=drops)
        assert (b"managedFields" in informer.lister().get("default/a").raw) is not drops
    asked = client.source("v1/Pod").asked
    assert asked[0].options.drop_managed_fields == drops


@pytest.mark.parametrize("drops", [True, False])
async def test_source_that_drops_managed_fields_is_not_processed_again(drops: bool) -> None:
    class Says(FakeSource):
        drops_managed_fields = drops

    source = Says()
    source.objects["a"] = managed("a", 11)
    informer = Informer(source, POD, options=STILL)
    async with running(informer):
        (obj,) = informer.indexer.list()
    assert (obj is source.objects["a"]) is drops, "nothing is taken off, and no object is made anew"
    assert (b"managedFields" in obj.raw) is drops


async def test_tweak_overrides_managed_fields_option() -> None:
    client = FakeClient()
    list_watch = ListWatch(
        client, POD, drop_managed_fields=True, tweak=lambda asked: asked.replace(drop_managed_fields=False)
    )
    await list_watch.list(ListOptions())
    assert not client.source("v1/Pod").asked[0].options.drop_managed_fields


def test_drop_managed_fields_is_not_query_parameter() -> None:
    assert json.dumps(ListOptions(drop_managed_fields=True).to_query()) == "{}"
