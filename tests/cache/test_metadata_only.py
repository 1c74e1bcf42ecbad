"""Informers of metadata: an informer of its own, from the server's bytes to listers, indexes and handlers.

Source: client-go metadata/metadatainformer, metadata/metadatalister.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, assert_type

import pytest

from deltaloop.api.kinds import CONFIG_MAP, POD
from deltaloop.api.list_options import ListOptions
from deltaloop.api.path import field_path
from deltaloop.api.references import reference_to
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.apiserver import ApiServer, ServerOptions
from deltaloop.cache.factory import InformerFactory
from deltaloop.cache.handlers import HandlerFuncs
from deltaloop.cache.informer import Informer, InformerOptions
from deltaloop.cache.listwatch import ListWatch
from deltaloop.cache.multi_namespace import MultiNamespaceInformer
from deltaloop.cache.reflector_options import ReflectorOptions
from deltaloop.client import Client, ClientConfig
from tests.cache.fake_client import FakeClient
from tests.cache.test_informer import STILL

KEYS = {"kind", "apiVersion", "metadata"}


@dataclass
class Typed:
    metadata: dict[str, Any]
    spec: dict[str, Any]


async def test_metadata_informer_is_separate_from_full_informer() -> None:
    client = FakeClient()
    typed = ResourceType("", "v1", "Pod", "pods", model=Typed)
    async with InformerFactory(client, options=STILL) as factory:
        assert_type(factory.informer(typed, namespace="a"), Informer[Typed])
        assert_type(factory.informer(typed, namespace="a", metadata_only=True), Informer[Resource])
        assert_type(factory.informer("v1/Pod", namespace="a"), Informer[Resource])
        assert_type(factory.multi_namespace_informer(typed, ["a"]), MultiNamespaceInformer[Typed])
        assert_type(
            factory.multi_namespace_informer(typed, ["a"], metadata_only=True), MultiNamespaceInformer[Resource]
        )
        whole = factory.informer(POD)
        only = factory.informer(POD, metadata_only=True)
        assert only is not whole
        assert factory.informer("v1/Pod", metadata_only=True) is only
        assert factory.informer(typed, metadata_only=True) is only, "a class wants more than the metadata"
        assert only.resource_type.model is None
        assert (whole.name, only.name) == ("v1/Pod", "metadata of v1/Pod")
        await factory.wait_for_sync(timeout=5)
    # Four informers of namespace a (typed, raw, metadata) and of all, a list and a watch each.
    assert sorted(client.asked_for_metadata) == [False] * 6 + [True] * 4


async def test_metadata_only_works_temporarily_and_for_several_namespaces() -> None:
    client = FakeClient()
    async with InformerFactory(client, options=STILL) as factory:
        async with (
            factory.use(POD, metadata_only=True, namespace="a") as first,
            factory.use("v1/Pod", metadata_only=True, namespace="a") as second,
            factory.use(POD, namespace="a") as whole,
        ):
            assert first is second
            assert first is not whole
            await first.wait_for_sync()
        assert first.stopped
        assert factory.informer(POD, metadata_only=True, namespace="a") is not first
        several = factory.multi_namespace_informer(POD, ["a", "b"], metadata_only=True)
        await several.wait_for_sync()
        assert [informer.name for informer in several.informers.values()] == [
            "metadata of v1/Pod in namespace a",
            "metadata of v1/Pod in namespace b",
        ]


async def test_lists_and_watches_request_metadata_only() -> None:
    client = FakeClient()
    source = client.source("v1/Pod")
    source.put("a")
    list_watch = ListWatch(client, POD, metadata_only=True)
    assert len(await list_watch.list(ListOptions())) == 1
    async with list_watch.watch(ListOptions(timeout_seconds=1)):
        pass
    assert client.asked_for_metadata == [True, True]


@pytest.mark.real_time
@pytest.mark.parametrize("watch_list", [True, False], ids=["streamed", "paged"])
async def test_against_the_embedded_server(watch_list: bool) -> None:
    heard: list[str] = []
    arrived = asyncio.Event()

    def gone(obj: Resource) -> None:
        heard.append(f"-{obj.name} {sorted(obj)}")
        arrived.set()

    options = InformerOptions(reflector=ReflectorOptions(watch_list=watch_list))
    async with (
        ApiServer(ServerOptions(insecure_http=True, controllers=frozenset())) as server,
        Client(ClientConfig(server=server.url, namespace="default")) as client,
        InformerFactory(client, namespace="default", options=options) as factory,
    ):

        async def make(name: str) -> Resource:
            metadata: dict[str, Any] = {"name": name, "labels": {"app": "web"}, "annotations": {"note": name}}
            return await client.create(CONFIG_MAP, {"metadata": metadata, "data": {"k": "v" * 10000}})

        await make("a")
        only = factory.informer(CONFIG_MAP, metadata_only=True, indexers={"app": field_path("metadata.labels.app")})
        whole = factory.informer(CONFIG_MAP)
        only.add_event_handler(
            HandlerFuncs(
                on_add=lambda obj: heard.append(f"+{obj.name} {sorted(obj)}"),
                on_update=lambda _, new: heard.append(f"~{new.name} {sorted(new)}"),
                on_delete=gone,
            )
        )
        await factory.wait_for_sync(timeout=5)
        made = await make("b")
        await client.patch(CONFIG_MAP, "a", {"data": {"k": "w"}})
        await client.delete(CONFIG_MAP, "a")
        last = await make("c")
        for informer in (only, whole):
            await informer.wait_for_resource_version(last.resource_version, timeout=5)
        await asyncio.wait_for(arrived.wait(), 5)
        kept = only.lister().get("default/b")
        assert set(kept) == KEYS
        assert (kept.metadata, kept.annotations) == (made.metadata, {"note": "b"})
        assert reference_to(kept).kind == "ConfigMap"
        assert [obj.name for obj in only.lister().by_index("app", "web")] == ["b", "c"]
        assert [obj.name for obj in only.lister().list("app=web", namespace="default")] == ["b", "c"]
        assert whole.lister().get("default/b")["data"]["k"] == "v" * 10000
        assert only.bytes_held() * 5 < whole.bytes_held()
        assert (await only.check_consistency(timeout=5)).is_consistent
        assert (only.statistics().streamed_lists, only.statistics().errors) == (int(watch_list), 0)
    keys = sorted(KEYS)
    assert [line for line in heard if line[1:].startswith("a ")] == [f"{how}a {keys}" for how in "+~-"]
