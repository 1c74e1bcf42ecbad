"""A custom resource whose definition is deleted and made again under a running informer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from deltaloop import wait
from deltaloop._internal.pacing import Backoff
from deltaloop.api.kinds import parse_resource_type
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.api.status import NotFoundError
from deltaloop.apiserver import ApiServer, ServerOptions
from deltaloop.cache.core.reflector.reactions import Operation, Reaction
from deltaloop.cache.errors import CacheSyncError
from deltaloop.cache.factory import InformerFactory
from deltaloop.cache.informer import InformerOptions
from deltaloop.cache.reflector_options import ReflectorOptions
from deltaloop.client import Client, ClientConfig

CRDS = parse_resource_type("apiextensions.k8s.io/v1/CustomResourceDefinition")
WIDGET = ResourceType[Resource]("example.com", "v1", "Widget", "widgets")
CRD: dict[str, Any] = {
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}
QUICK = Backoff(initial=0.05, cap=0.1)


class Heard:
    """What a handler heard of each object: its uid with + for an addition, ~ for an update, - for a deletion."""

    def __init__(self) -> None:
        self.told: dict[str, list[str]] = {}
        self.reactions: list[Reaction] = []

    def on_add(self, obj: Resource, *, is_in_initial_list: bool) -> None:
        self.told.setdefault(obj.name, []).append(f"+{obj.uid}")

    def on_update(self, old: Resource, new: Resource) -> None:
        self.told.setdefault(new.name, []).append(f"~{new.uid}")

    def on_delete(self, obj: Resource, *, final_state_known: bool) -> None:
        self.told.setdefault(obj.name, []).append(f"-{obj.uid}")

    def on_error(self, reaction: Reaction) -> None:
        self.reactions.append(reaction)

    def lists_refused(self) -> int:
        return sum(
            reaction.operation is Operation.LIST and isinstance(reaction.error, NotFoundError)
            for reaction in self.reactions
        )


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(8):
        while not condition():  # noqa: ASYNC110 - what is looked at has no event
            await asyncio.sleep(0.01)


async def define(client: Client) -> None:
    await client.create(CRDS, CRD)
    await client.wait_for(CRDS, "widgets.example.com", wait.established(), timeout=5)


async def withdraw(client: Client) -> None:
    await client.delete(CRDS, "widgets.example.com")
    await client.wait_for(CRDS, "widgets.example.com", wait.deleted(), timeout=5)


async def make(client: Client, name: str) -> Resource:
    return await client.create(WIDGET, {"metadata": {"name": name}})


@pytest.mark.real_time
@pytest.mark.parametrize("watch_list", [True, False], ids=["streamed", "paged"])
@pytest.mark.parametrize("back_at_once", [False, True], ids=["404 in between", "back at once"])
async def test_informer_follows_deleted_and_recreated_crd(watch_list: bool, back_at_once: bool) -> None:
    heard = Heard()
    reflector = ReflectorOptions(backoff=QUICK, watch_list=watch_list)
    options = InformerOptions(reflector=reflector, on_error=heard.on_error)
    async with (
        ApiServer(ServerOptions(insecure_http=True)) as server,
        Client(ClientConfig(server=server.url, namespace="default")) as client,
    ):
        await define(client)
        old = {name: await make(client, name) for name in ("stays", "goes")}
        async with InformerFactory(client, options=options) as factory:
            widgets = factory.informer(WIDGET)
            widgets.add_event_handler(heard)
            await factory.wait_for_sync(timeout=5)
            await until(lambda: len(heard.told) == 2)

            async def remake() -> None:
                await withdraw(client)
                if not back_at_once:
                    await until(lambda: heard.lists_refused() > 1)
                await define(client)

            await remake()
            new = await make(client, "stays")
            extra = await make(client, "comes")
            await until(lambda: widgets.lister().find("default/comes") is not None)
            await until(lambda: widgets.lister().find("default/goes") is None)
            assert widgets.lister().get("default/stays").uid == new.uid != old["stays"].uid
            late = await make(client, "later")
            await widgets.wait_for_resource_version(late.resource_version, timeout=8)
            assert (await widgets.check_consistency(timeout=5)).is_consistent
            await until(lambda: "later" in heard.told)
    assert heard.told["goes"] == [f"+{old['goes'].uid}", f"-{old['goes'].uid}"]
    stays = heard.told["stays"]
    assert stays[0] == f"+{old['stays'].uid}"
    assert stays[1:] in ([f"-{old['stays'].uid}", f"+{new.uid}"], [f"~{new.uid}"]), "gone and back, or another uid"
    assert (heard.told["comes"], heard.told["later"]) == ([f"+{extra.uid}"], [f"+{late.uid}"])


@pytest.mark.real_time
async def test_informer_started_before_crd_fills_after_creation() -> None:
    options = InformerOptions(reflector=ReflectorOptions(backoff=QUICK))
    async with (
        ApiServer(ServerOptions(insecure_http=True)) as server,
        Client(ClientConfig(server=server.url, namespace="default")) as client,
        InformerFactory(client, options=options) as factory,
    ):
        widgets = factory.informer(WIDGET)
        with pytest.raises(CacheSyncError) as caught:
            await factory.wait_for_sync(timeout=5)
        (failure,) = caught.value.failures
        assert failure.refused
        assert isinstance(failure.last_error, NotFoundError)
        waiting: Awaitable[None] = asyncio.ensure_future(factory.wait_for_sync(timeout=8, fail_fast=False))
        await define(client)
        await make(client, "a")
        await waiting
        await until(lambda: widgets.lister().find("default/a") is not None)
