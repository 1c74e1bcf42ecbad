"""The factory: one informer for each kind, started and stopped together."""

from __future__ import annotations

import asyncio
import gc
import logging
import weakref
from dataclasses import dataclass

import pytest

from deltaloop.api.errors import UnknownResourceError
from deltaloop.api.kinds import DEPLOYMENT, NODE, POD
from deltaloop.api.list_options import ListOptions
from deltaloop.api.path import field_path
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.cache.errors import CacheSyncError, IndexerConflictError, InformerStoppedError
from deltaloop.cache.factory import InformerFactory
from deltaloop.cache.handlers import HandlerFuncs
from deltaloop.cache.informer import Informer, InformerOptions
from deltaloop.cache.reflector_options import ReflectorOptions
from tests.cache.fake_client import FakeClient
from tests.cache.fake_source import api_error

PAGED = ReflectorOptions(watch_list=False, detect_restore=False)
STILL = InformerOptions(random=lambda: 0.0, reflector=PAGED)


async def test_informers_run_only_while_factory_is_entered() -> None:
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


async def test_informer_requested_in_running_factory_starts_immediately() -> None:
    client = FakeClient()
    client.source("v1/Pod").put("a")
    async with InformerFactory(client, options=STILL) as factory:
        pods = factory.informer(POD)
        await asyncio.sleep(1)
        assert pods.has_synced


async def test_wait_for_sync_starts_informers() -> None:
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


async def test_namespace_of_factory_applies_only_to_namespaced_kinds() -> None:
    client = FakeClient()
    async with InformerFactory(client, namespace="team", options=STILL) as factory:
        assert factory.informer(POD).name == "v1/Pod in namespace team"
        factory.informer(NODE)
        await factory.wait_for_sync(timeout=5)
    assert {key[:2] for key in client.sources} == {("v1/Pod", "team"), ("v1/Node", None)}


async def test_indexers_are_added_to_existing_informer() -> None:
    factory = InformerFactory(FakeClient(), options=STILL)
    pods = factory.informer(POD, indexers={"node": field_path("spec.nodeName")})
    factory.informer(POD, indexers={"node": field_path("spec.nodeName"), "app": field_path("metadata.labels.app")})
    assert sorted(pods.indexer.get_indexers()) == ["app", "namespace", "node"]
    with pytest.raises(IndexerConflictError):
        factory.informer(POD, indexers={"node": field_path("spec.hostname")})
    with pytest.raises(UnknownResourceError):
        factory.informer("v1/Pot")


async def test_wait_for_sync_names_all_unsynced_kinds() -> None:
    client = FakeClient()
    client.source("v1/Pod").list_faults.extend(api_error(500, message="pods are ill") for _ in range(9))
    client.source("v1/Node").list_delay = 1000.0
    async with InformerFactory(client, options=STILL) as factory:
        for kind in (POD, NODE, DEPLOYMENT):
            factory.informer(kind)
        with pytest.raises(CacheSyncError) as caught:
            await factory.wait_for_sync(timeout=5)
        assert asyncio.get_running_loop().time() == 5.0
    assert [failure.resource for failure in caught.value.failures] == ["v1/Pod", "v1/Node"]
    assert "InternalServerError: pods are ill" in str(caught.value)


@pytest.mark.parametrize("code", [401, 403, 404])
async def test_wait_for_sync_does_not_wait_for_rejected_kinds(code: int) -> None:
    client = FakeClient()
    pods, nodes = client.source("v1/Pod"), client.source("v1/Node")
    pods.list_faults.extend(api_error(code) for _ in range(4))
    nodes.list_delay = 3.0
    async with InformerFactory(client, options=STILL) as factory:
        factory.informer(POD)
        factory.informer(NODE)
        with pytest.raises(CacheSyncError, match="v1/Pod") as caught:
            await factory.wait_for_sync(timeout=30)
        assert asyncio.get_running_loop().time() == 0.0
        assert [(failure.resource, failure.refused) for failure in caught.value.failures] == [("v1/Pod", True)]
        with pytest.raises(CacheSyncError):  # it is still refused: at once again
            await factory.wait_for_sync(timeout=30)
        assert asyncio.get_running_loop().time() == 0.0
        await factory.wait_for_sync(timeout=30, fail_fast=False)
        assert asyncio.get_running_loop().time() == pytest.approx(12.0)  # four waits, then it was mended


async def test_an_informer_in_use_stops_when_its_last_user_leaves() -> None:
    client = FakeClient()
    source = client.source("v1/Pod")
    source.put("a")
    async with InformerFactory(client, options=STILL) as factory:
        async with factory.use(POD) as first:
            await first.wait_for_sync()
            async with factory.use(POD) as second:
                assert second is first
            assert not first.stopped
            assert first.lister().find("default/a") is not None
        assert first.stopped
        assert source.opened == source.closed == 1
        async with factory.use(POD) as again:
            assert again is not first
            await again.wait_for_sync()
            assert factory.informer(POD) is again, "kept from now on"
        assert not again.stopped
    assert again.stopped
    with pytest.raises(InformerStoppedError):
        async with factory.use(POD):
            pass


async def test_leaving_informer_that_cannot_list_removes_it() -> None:
    client = FakeClient()
    client.source("v1/Pod").list_delay = 1000.0
    async with InformerFactory(client, options=STILL) as factory:
        seen: list[Informer[Resource]] = []

        async def use() -> None:
            async with factory.use(POD) as pods:
                seen.append(pods)
                await pods.wait_for_sync(timeout=3)

        with pytest.raises(CacheSyncError):
            await use()
        assert seen[0].stopped
        assert repr(factory) == "<InformerFactory empty>"


def rename_node(obj: Resource) -> Resource:
    fields = obj.to_dict()
    fields["spec"]["nodeName"] = "elsewhere"
    return Resource.from_dict(fields, obj.resource_type)


def only_new(options: ListOptions) -> ListOptions:
    return options.replace(label_selector="tweaked=yes")


async def test_informers_differ_by_namespace_transform_and_tweak() -> None:
    client = FakeClient()
    source = client.source("v1/Pod", namespace="team", labels="tweaked=yes")
    source.put("a", node="n1")
    async with InformerFactory(client, namespace="team", options=STILL, tweak=only_new) as factory:
        plain = factory.informer(POD)
        renamed = factory.informer(POD, transform=rename_node)
        assert renamed is not plain
        assert factory.informer(POD, transform=rename_node) is renamed
        assert factory.informer(POD, namespace="team") is plain
        other = factory.informer(POD, namespace="other")
        await factory.wait_for_sync(timeout=5)
        assert plain.lister().get("default/a")["spec"]["nodeName"] == "n1"
        assert renamed.lister().get("default/a")["spec"]["nodeName"] == "elsewhere"
        assert other.lister().list() == []
    assert {key[1:3] for key in client.sources} == {("team", "tweaked=yes"), ("other", "tweaked=yes")}


async def test_failing_block_stops_all_informers() -> None:
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


async def test_factory_canceled_while_waiting_stops_all_informers() -> None:
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


def test_untyped_kind_returns_resources() -> None:
    factory = InformerFactory(FakeClient())
    informer = factory.informer(POD)
    found: Resource | None = informer.lister().find("default/a")
    assert found is None


async def test_factory_waits_for_informer_of_user_canceled_while_leaving() -> None:
    class Reluctant:
        async def on_add(self, obj: Resource, *, is_in_initial_list: bool) -> None:
            try:
                await asyncio.sleep(3600)
            finally:
                await asyncio.sleep(5)

        def on_update(self, old: Resource, new: Resource) -> None: ...

        def on_delete(self, obj: Resource, *, final_state_known: bool) -> None: ...

    client = FakeClient()
    client.source("v1/Pod").put("a")
    factory = InformerFactory(client, options=STILL)

    async def user() -> None:
        async with factory.use(POD) as pods:
            pods.add_event_handler(Reluctant())
            await asyncio.sleep(3600)

    using = asyncio.create_task(user())
    await asyncio.sleep(1)
    using.cancel()
    await asyncio.sleep(1)
    using.cancel()
    with pytest.raises(asyncio.CancelledError):
        await using
    assert [task.get_name() for task in asyncio.all_tasks() if task.get_name().startswith("informer of")]
    async with asyncio.timeout(10):
        await factory.shutdown()
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_temporarily_used_informer_has_its_indexes() -> None:
    client = FakeClient()
    client.source("v1/Pod").put("a", node="n1")
    async with InformerFactory(client, options=STILL) as factory:
        async with factory.use(POD, indexers={"node": field_path("spec.nodeName")}) as pods:
            await pods.wait_for_sync(timeout=5)
            found = pods.indexer.by_index("node", "n1")
        assert [obj.name for obj in found] == ["a"]


async def test_entering_factory_starts_informers_requested_before() -> None:
    factory = InformerFactory(FakeClient(), options=STILL)
    pods = factory.informer(POD)
    async with factory:
        await asyncio.sleep(1)
        assert pods.has_synced


async def test_factory_does_not_start_running_informer_again(caplog: pytest.LogCaptureFixture) -> None:
    factory = InformerFactory(FakeClient(), options=STILL)
    pods = factory.informer(POD)
    mine = asyncio.create_task(pods.run())
    await asyncio.sleep(1)
    with caplog.at_level(logging.ERROR, logger="deltaloop.cache"):
        async with factory:
            await factory.wait_for_sync(timeout=5)
    assert not caplog.records
    assert not pods.stopped
    mine.cancel()
    await asyncio.wait([mine])


async def test_factory_transform_applies_to_informers_without_own() -> None:
    client = FakeClient()
    client.source("v1/Pod").put("a", node="n1")

    def rename_again(obj: Resource) -> Resource:
        fields = obj.to_dict()
        fields["spec"]["nodeName"] = "nowhere"
        return Resource.from_dict(fields, obj.resource_type)

    options = STILL.replace(transform=rename_node)
    async with InformerFactory(client, options=options) as factory:
        renamed, again = factory.informer(POD), factory.informer(POD, transform=rename_again)
        await factory.wait_for_sync(timeout=5)
        nodes = [pods.lister().get("default/a")["spec"]["nodeName"] for pods in (renamed, again)]
    assert nodes == ["elsewhere", "nowhere"]


async def test_temporarily_used_informer_is_released() -> None:
    async with InformerFactory(FakeClient(), options=STILL) as factory:

        def as_it_is(obj: Resource) -> Resource:
            return obj

        gone = weakref.ref(as_it_is)
        async with factory.use(POD, transform=as_it_is) as pods, factory.use(POD, transform=as_it_is):
            await pods.wait_for_sync(timeout=5)
        del as_it_is, pods
        gc.collect()
        assert gone() is None


async def test_several_namespaces_accept_same_options() -> None:
    client = FakeClient()
    for namespace in ("red", "blue"):
        client.source("v1/Pod", namespace=namespace, labels="app=web", fields="spec.nodeName=n1").put("a", node="n1")
    typed = ResourceType("", "v1", "Pod", "pods", model=Typed)
    async with InformerFactory(client, options=STILL) as factory:
        whole = factory.multi_namespace_informer(
            typed, ["red", "blue"], label_selector="app=web", field_selector="spec.nodeName=n1", transform=rename_node
        )
        metadata = factory.multi_namespace_informer(
            typed, ["red"], label_selector="app=web", field_selector="spec.nodeName=n1", metadata_only=True
        )
        await whole.wait_for_sync(timeout=5)
        await metadata.wait_for_sync(timeout=5)
        assert (whole.resource_type.model, metadata.resource_type.model) == (Typed, None)
        assert [type(obj) for obj in whole.lister().list()] == [Typed] * 2
        assert [type(obj) for obj in metadata.lister().list()] == [Resource]
        assert {obj["spec"]["nodeName"] for obj in whole.informers["red"].indexer.list()} == {"elsewhere"}


async def test_unexpected_error_of_informer_is_raised_by_factory_wait() -> None:
    async def broken(timeout: float | None = 30.0, *, fail_fast: bool = True) -> None:
        raise ZeroDivisionError

    async with InformerFactory(FakeClient(), options=STILL) as factory:
        pods = factory.informer(POD)
        pods.wait_for_sync = broken  # type: ignore[method-assign]
        with pytest.raises(ZeroDivisionError):
            await factory.wait_for_sync(timeout=5)
