"""Informers of kinds known by name only, of whole objects or metadata alone, with lists streamed or in pages."""

from __future__ import annotations

import asyncio

import pytest

from deltaloop.api.list_options import ListOptions
from deltaloop.api.resource import Resource
from deltaloop.cache.factory import InformerFactory
from deltaloop.cache.handlers import HandlerFuncs
from deltaloop.cache.informer import Informer, InformerOptions
from tests.cache.fake_client import FakeClient

KIND = "apps/v1/Deployment"
STILL = InformerOptions(random=lambda: 0.0)


def listen(informer: Informer[Resource]) -> list[str]:
    heard: list[str] = []
    informer.add_event_handler(
        HandlerFuncs(
            on_add=lambda obj: heard.append(f"+{obj.name}"),
            on_update=lambda old, new: heard.append(f"~{new.name}@{old.resource_version}>{new.resource_version}"),
            on_delete=lambda obj: heard.append(f"-{obj.name}"),
        )
    )
    return heard


FORMS = pytest.mark.parametrize("metadata_only", [False, True], ids=["whole", "metadata"])


@pytest.mark.parametrize("offered", [True, False], ids=["streamed", "paged"])
@FORMS
async def test_list_is_streamed_if_supported_else_paged(metadata_only: bool, offered: bool) -> None:
    client = FakeClient()
    server = client.source(KIND)
    server.offers_watch_list = offered
    server.put("a")
    async with InformerFactory(client, options=STILL) as factory:
        heard = listen(factory.informer(KIND, metadata_only=metadata_only))
        await factory.wait_for_sync(timeout=5)
        server.put("b")
        await asyncio.sleep(1)
    asked = [(each.verb, each.options.send_initial_events) for each in server.asked]
    assert asked == [("watch", True)] if offered else [("watch", True), ("list", None), ("watch", None)]
    assert heard == ["+a", "+b"]
    assert set(client.asked_for_metadata) == {metadata_only}


@FORMS
async def test_handler_receives_additions_changes_and_deletions(metadata_only: bool) -> None:
    client = FakeClient()
    server = client.source(KIND)
    async with InformerFactory(client, options=STILL) as factory:
        heard = listen(factory.informer(KIND, metadata_only=metadata_only))
        await factory.wait_for_sync(timeout=5)
        server.put("a")
        server.put("a")
        server.remove("a")
        await asyncio.sleep(1)
    assert heard == ["+a", "~a@11>12", "-a"]


async def test_namespace_and_tweak_select_objects() -> None:
    client = FakeClient()
    client.source(KIND, namespace="one", labels="app=web").put("chosen")
    client.source(KIND, namespace="one").put("of the namespace")
    client.source(KIND).put("of all")

    def choose(options: ListOptions) -> ListOptions:
        return options.replace(label_selector="app=web")

    for namespace, tweak, expected in (
        ("one", choose, ["+chosen"]),
        ("one", None, ["+of the namespace"]),
        (None, None, ["+of all"]),
    ):
        async with InformerFactory(client, namespace=namespace, tweak=tweak, options=STILL) as factory:
            heard = listen(factory.informer(KIND))
            await factory.wait_for_sync(timeout=5)
            await asyncio.sleep(0)
            await asyncio.sleep(1)
        assert heard == expected
