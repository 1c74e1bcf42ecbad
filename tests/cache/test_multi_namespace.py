"""Several namespaces as one informer, and client-go's names for informers."""

from __future__ import annotations

import asyncio

import pytest

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.kinds import NODE, POD
from deltaloop.api.path import field_path
from deltaloop.api.resource import Resource
from deltaloop.api.status import NotFoundError
from deltaloop.cache.errors import CacheSyncError, InformerStoppedError, SyncFailure
from deltaloop.cache.factory import InformerFactory
from deltaloop.cache.handlers import HandlerFuncs, HandlerOptions
from deltaloop.cache.multi_namespace import MultiNamespaceInformer, raise_sync_failures
from deltaloop.cache.shared_informer import (
    SharedIndexInformer,
    SharedInformer,
    new_shared_index_informer,
    new_shared_informer,
)
from tests.cache.fake_client import FakeClient
from tests.cache.fake_source import FakeSource, api_error
from tests.cache.objects import pod
from tests.cache.test_factory import STILL
from tests.cache.test_informer import Recorder, settle
from tests.having import having


def fill(client: FakeClient, namespace: str, *names: str) -> FakeSource:
    source = client.source("v1/Pod", namespace=namespace)
    for name in names:
        source.version += 1
        source.objects[name] = pod(name, source.version, namespace=namespace, node="n1")
    return source


async def test_informer_of_several_namespaces_behaves_like_one() -> None:
    client = FakeClient()
    fill(client, "red", "a", "b")
    fill(client, "blue", "a").list_delay = 2.0
    async with InformerFactory(client, options=STILL) as factory:
        pods = factory.multi_namespace_informer(
            POD, ["red", "blue", "red"], indexers={"node": field_path("spec.nodeName")}
        )
        recorder = Recorder()
        registration = pods.add_event_handler(recorder, name="mine")
        assert not registration.has_synced
        await asyncio.sleep(1)
        assert pods.informers["red"].has_synced
        assert not pods.has_synced
        assert not registration.has_synced
        await pods.wait_for_sync()
        await settle()
        assert pods.has_synced
        assert (registration.name, registration.has_synced, registration.pending, registration.failures) == (
            "mine",
            True,
            0,
            0,
        )
        assert sorted(recorder.heard) == ["+a@11!", "+a@11!", "+b@12!"]
        lister = pods.lister()
        assert len(lister) == 3
        assert lister.get("blue/a").namespace == "blue"
        assert lister.find("green/a") is None
        with pytest.raises(NotFoundError):
            lister.get("green/a")
        assert [obj.key for obj in lister.list(namespace="red")] == ["red/a", "red/b"]
        assert len(lister.by_index("node", "n1")) == len(lister.list()) == 3
        pods.add_indexers({"uid": field_path("metadata.uid")})
        assert len(lister.by_index("uid", "a")) == 2
        pods.remove_event_handler(registration)
        pods.remove_event_handler(registration)
        client.source("v1/Pod", namespace="red").put("c")
        await settle()
        assert len(recorder.heard) == 3
        assert repr(pods) == "<MultiNamespaceInformer v1/Pod in namespaces blue, red: synced>"
        assert not pods.stopped
    assert pods.stopped
    with pytest.raises(InformerStoppedError):
        pods.add_event_handler(Recorder())


async def test_forbidden_namespace_is_named_in_sync_error() -> None:
    client = FakeClient()
    client.source("v1/Pod", namespace="red").list_faults.extend(api_error(403) for _ in range(9))
    async with InformerFactory(client, options=STILL) as factory:
        pods = factory.multi_namespace_informer(POD, ["red", "blue"])
        with pytest.raises(CacheSyncError) as caught:
            await pods.wait_for_sync(timeout=5)
        assert [failure.resource for failure in caught.value.failures] == ["v1/Pod in namespace red"]
        assert asyncio.get_running_loop().time() == 0.0, "it was not waited for"


async def test_all_forbidden_namespaces_are_named_in_sync_error() -> None:
    client = FakeClient()
    for namespace in ("red", "blue"):
        client.source("v1/Pod", namespace=namespace).list_faults.extend(api_error(403) for _ in range(9))
    async with InformerFactory(client, options=STILL) as factory:
        pods = factory.multi_namespace_informer(POD, ["red", "blue"])
        with pytest.raises(CacheSyncError) as caught:
            await pods.wait_for_sync(timeout=5)
        assert [failure.resource for failure in caught.value.failures] == [
            "v1/Pod in namespace red",
            "v1/Pod in namespace blue",
        ]


async def test_handler_options_apply_to_all_namespaces() -> None:
    client = FakeClient()
    for namespace in ("red", "blue"):
        fill(client, namespace, "a")
    async with InformerFactory(client, options=STILL) as factory:
        pods = factory.multi_namespace_informer(POD, ["red", "blue"])
        recorder = Recorder()
        pods.add_event_handler(recorder, options=HandlerOptions(resync_period=5.0))
        await asyncio.sleep(6)
        assert sorted(recorder.heard) == ["+a@11!", "+a@11!", "=a@11>11", "=a@11>11"]


def test_namespaces_are_needed() -> None:
    factory = InformerFactory(FakeClient())
    with pytest.raises(InvalidArgumentError, check=having(argument="namespaces")):
        factory.multi_namespace_informer(POD, [])
    with pytest.raises(InvalidArgumentError, check=having(argument="namespaces")):
        factory.multi_namespace_informer(NODE, ["a"])


async def test_informers_by_client_gos_names() -> None:
    source = FakeSource()
    source.put("a")
    plain = new_shared_informer(source, POD)
    indexed = new_shared_index_informer(source, POD, indexers={"uid": field_path("metadata.uid")}, resync_period=5.0)
    shared: list[SharedInformer[Resource]] = [plain, indexed, MultiNamespaceInformer(POD, {"default": indexed})]
    with_indexes: list[SharedIndexInformer[Resource]] = [indexed, MultiNamespaceInformer(POD, {"default": indexed})]
    recorder = Recorder()
    indexed.add_event_handler(recorder)
    tasks = [asyncio.create_task(plain.run()), asyncio.create_task(indexed.run())]
    for informer in shared:
        await informer.wait_for_sync()
        assert informer.lister().find("default/a") is not None
    for informer in with_indexes:
        informer.add_indexers({"node": field_path("spec.nodeName")})
    await asyncio.sleep(6)
    assert recorder.heard == ["+a@11!", "=a@11>11"]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_a_handler_is_added_to_all_or_to_none() -> None:
    client = FakeClient()
    fill(client, "red", "a")
    fill(client, "blue", "b")
    async with InformerFactory(client, options=STILL) as factory:
        pods = factory.multi_namespace_informer(POD, ["red", "blue"])
        await factory.wait_for_sync(timeout=5)
        recorder = Recorder()
        gone = InformerStoppedError("gone")

        def refuses(*arguments: object, **options: object) -> None:
            raise gone

        pods.informers["blue"].add_event_handler = refuses  # type: ignore[method-assign, assignment]  # pyright: ignore[reportAttributeAccessIssue]
        with pytest.raises(InformerStoppedError) as caught:
            pods.add_event_handler(recorder)
        assert caught.value is gone
        recorder.heard.clear()
        client.source("v1/Pod", namespace="red").put("later")
        await settle()
        assert recorder.heard == []


def test_new_shared_index_informer_accepts_indexers() -> None:
    informer = new_shared_index_informer(FakeSource(), POD, indexers={"node": field_path("spec.nodeName")})
    assert informer.indexer.by_index("node", "n1") == []


async def test_pending_and_failures_of_several_namespaces_are_added() -> None:
    client = FakeClient()
    fill(client, "red", "a", "b", "c")
    fill(client, "blue", "d", "e")

    async def fails(obj: Resource) -> None:
        await asyncio.sleep(10)
        raise ValueError(obj.name)

    async with InformerFactory(client, options=STILL) as factory:
        pods = factory.multi_namespace_informer(POD, ["red", "blue"])
        registration = pods.add_event_handler(HandlerFuncs(on_add=fails), name="mine")
        await pods.wait_for_sync(timeout=5)
        await settle()
        assert (registration.pending, registration.failures) == (3, 0)
        await asyncio.sleep(20)
        assert (registration.pending, registration.failures, registration.has_synced) == (0, 4, False)
        await asyncio.sleep(10)
        assert (registration.failures, registration.has_synced) == (5, True)
        freshness = pods.freshness()
        assert {namespace: seen.resource_version for namespace, seen in freshness.items()} == {
            "red": "13",
            "blue": "12",
        }


async def test_handler_of_other_informer_is_not_removed() -> None:
    client = FakeClient()
    for namespace in ("red", "blue", "green"):
        fill(client, namespace)
    async with InformerFactory(client, options=STILL) as factory:
        pods = factory.multi_namespace_informer(POD, ["red", "blue"])
        others = factory.multi_namespace_informer(POD, ["green"])
        mine, theirs, single = Recorder(), Recorder(), Recorder()
        pods.add_event_handler(mine)
        registration = others.add_event_handler(theirs)
        of_one = factory.informer(POD, namespace="red").add_event_handler(single)
        await factory.wait_for_sync(timeout=5)
        pods.remove_event_handler(registration)
        pods.remove_event_handler(of_one)
        for namespace in ("red", "green"):
            client.source("v1/Pod", namespace=namespace).put("new")
        await settle()
        assert [len(each.heard) for each in (mine, theirs, single)] == [1, 1, 1]


async def test_stopped_and_unsynced_namespace_determine_state_of_all() -> None:
    client = FakeClient()
    fill(client, "red")
    fill(client, "blue").list_delay = 1000.0
    informers = {name: InformerFactory(client, namespace=name, options=STILL) for name in ("red", "blue")}
    pods = MultiNamespaceInformer(POD, {name: factory.informer(POD) for name, factory in informers.items()})
    for factory in informers.values():
        factory.start()
    await settle()
    assert (pods.has_synced, pods.stopped) == (False, False)
    with pytest.raises(CacheSyncError) as caught:
        await pods.wait_for_sync(timeout=5)
    assert [(failure.resource, failure.stopped) for failure in caught.value.failures] == [
        ("v1/Pod in namespace blue", False)
    ]
    assert repr(pods) == "<MultiNamespaceInformer v1/Pod in namespaces blue, red: not synced>"
    await informers["blue"].shutdown()
    assert pods.stopped
    with pytest.raises(CacheSyncError, match="in namespace blue has stopped"):
        await pods.wait_for_sync(timeout=5)
    await informers["red"].shutdown()


async def test_wait_without_fail_fast_waits_for_forbidden_namespace() -> None:
    client = FakeClient()
    fill(client, "red", "a").list_faults.append(api_error(403))
    async with InformerFactory(client, options=STILL) as factory:
        pods = factory.multi_namespace_informer(POD, ["red"])
        await pods.wait_for_sync(timeout=5, fail_fast=False)
        assert pods.has_synced


def test_other_errors_than_sync_errors_are_raised_unchanged() -> None:
    ill = CacheSyncError([SyncFailure("a", 1.0)]), CacheSyncError([SyncFailure("b", 1.0), SyncFailure("c", 2.0)])
    with pytest.raises(CacheSyncError) as caught:
        raise_sync_failures([None, *ill])
    assert [failure.resource for failure in caught.value.failures] == ["a", "b", "c"]
    with pytest.raises(asyncio.CancelledError):
        raise_sync_failures([ill[0], asyncio.CancelledError()])
    raise_sync_failures([None, None])
