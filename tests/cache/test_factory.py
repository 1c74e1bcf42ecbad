"""The factory: one informer for each kind, started and stopped together."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import pytest

from deltaloop.api.errors import UnknownResourceError
from deltaloop.api.kinds import DEPLOYMENT, NODE, POD
from deltaloop.api.path import path
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.cache.errors import CacheSyncError, IndexerConflictError, InformerStoppedError
from deltaloop.cache.factory import InformerFactory
from deltaloop.cache.handlers import HandlerFuncs
from deltaloop.cache.informer import InformerOptions
from tests.cache.fake_client import FakeClient
from tests.cache.fake_source import api_error

STILL = InformerOptions(chance=lambda: 0.0)


async def test_informers_run_inside_the_factory_and_end_with_it() -> None:
    client = FakeClient()
    client.source("v1/Pod").put("a")
    heard: list[str] = []
    factory = InformerFactory(client, options=STILL)
    before = factory.informer(POD)
    before.add_event_handler(HandlerFuncs(on_add=lambda obj: heard.append(obj.name)))
    await asyncio.sleep(1)
    assert not before.started
    async with factory:
        late = factory.informer("apps/v1/Deployment")
        await factory.wait_for_sync(timeout=5)
        assert before.has_synced
        assert late.has_synced
        client.source("v1/Pod").put("b")
        await asyncio.sleep(1)
    assert heard == ["a", "b"]
    assert before.stopped
    assert late.stopped
    assert client.source("v1/Pod").closed == 1
    await factory.shutdown()
    for call in (lambda: factory.informer(POD), factory.start):
        with pytest.raises(InformerStoppedError):
            call()


async def test_an_informer_asked_for_inside_starts_at_once() -> None:
    client = FakeClient()
    client.source("v1/Pod").put("a")
    async with InformerFactory(client, options=STILL) as factory:
        pods = factory.informer(POD)
        await asyncio.sleep(1)
        assert pods.has_synced


async def test_wait_for_sync_starts_what_does_not_run() -> None:
    factory = InformerFactory(FakeClient(), options=STILL)
    pods = factory.informer(POD)
    await factory.wait_for_sync(timeout=5)
    assert pods.has_synced
    await factory.shutdown()
    assert pods.stopped


@dataclass
class Typed:
    metadata: dict[str, object]


async def test_one_informer_for_each_kind_class_and_selector() -> None:
    client = FakeClient()
    async with InformerFactory(client, options=STILL) as factory:
        pods = factory.informer(POD)
        assert factory.informer("v1/Pod") is pods
        assert factory.informer(POD, label_selector="app=web") is not pods
        assert factory.informer(POD, field_selector="spec.nodeName=a") is not pods
        typed = factory.informer(ResourceType("", "v1", "Pod", "pods", model=Typed))
        assert typed.resource_type.model is Typed
        assert factory.informer(DEPLOYMENT).name == "apps/v1/Deployment"
        await factory.wait_for_sync(timeout=5)
    assert {(key[2], key[3]) for key in client.sources if key[0] == "v1/Pod"} == {
        ("", ""),
        ("app=web", ""),
        ("", "spec.nodeName=a"),
    }


async def test_a_namespace_is_for_kinds_that_have_one() -> None:
    client = FakeClient()
    async with InformerFactory(client, namespace="team", options=STILL) as factory:
        assert factory.informer(POD).name == "v1/Pod in namespace team"
        factory.informer(NODE)
        await factory.wait_for_sync(timeout=5)
    assert {key[:2] for key in client.sources} == {("v1/Pod", "team"), ("v1/Node", None)}


async def test_indexers_are_added_to_those_that_are_there() -> None:
    factory = InformerFactory(FakeClient(), options=STILL)
    pods = factory.informer(POD, indexers={"node": path("spec.nodeName")})
    factory.informer(POD, indexers={"node": path("spec.nodeName"), "app": path("metadata.labels.app")})
    assert sorted(pods.indexer.get_indexers()) == ["app", "namespace", "node"]
    with pytest.raises(IndexerConflictError):
        factory.informer(POD, indexers={"node": path("spec.hostname")})
    with pytest.raises(UnknownResourceError):
        factory.informer("v1/Pot")


async def test_wait_for_sync_names_every_kind_that_is_behind() -> None:
    client = FakeClient()
    client.source("v1/Pod").list_faults.extend(api_error(403, message="pods is forbidden") for _ in range(9))
    client.source("v1/Node").list_delay = 1000.0
    async with InformerFactory(client, options=STILL) as factory:
        for kind in (POD, NODE, DEPLOYMENT):
            factory.informer(kind)
        with pytest.raises(CacheSyncError) as caught:
            await factory.wait_for_sync(timeout=5)
        assert asyncio.get_running_loop().time() == 5.0
    assert [failure.resource for failure in caught.value.failures] == ["v1/Pod", "v1/Node"]
    assert "ForbiddenError: pods is forbidden" in str(caught.value)


async def test_a_failing_block_still_stops_everything() -> None:
    client = FakeClient()
    factory = InformerFactory(client, options=STILL)
    pods = factory.informer(POD)

    async def program() -> None:
        async with factory:
            await factory.wait_for_sync(timeout=5)
            raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        await program()
    assert pods.stopped
    assert repr(factory) == "<InformerFactory <Informer v1/Pod: 0 objects, stopped, synced>>"


async def test_cancelled_while_waiting_the_factory_stops_everything() -> None:
    client = FakeClient()
    client.source("v1/Pod").list_delay = 1000.0

    async def program() -> None:
        async with InformerFactory(client, options=STILL) as factory:
            factory.informer(POD)
            await factory.wait_for_sync(timeout=None)

    task = asyncio.create_task(program())
    await asyncio.sleep(5)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def test_a_raw_kind_hands_out_resources() -> None:
    factory = InformerFactory(FakeClient())
    informer = factory.informer(POD)
    found: Resource | None = informer.lister().find("default/a")
    assert found is None
