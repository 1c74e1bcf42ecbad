"""A long-lived client follows a CRD whose version, plural or scope changes."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import msgspec
import pytest

import deltaloop as dl
from deltaloop import wait
from deltaloop._internal.pacing import Backoff
from deltaloop.api import kinds
from deltaloop.api.errors import UnknownResourceError
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.api.status import NotFoundError
from deltaloop.apiserver import ApiServer, ServerOptions
from deltaloop.cache.factory import InformerFactory
from deltaloop.cache.informer import InformerOptions
from deltaloop.cache.reflector_options import ReflectorOptions
from deltaloop.client import Client, ClientConfig, HttpRequest, HttpResponse
from deltaloop.runtime.program.access import SELF_SUBJECT_ACCESS_REVIEW
from tests.client.fake_transport import FakeTransport, json_answer, text_answer
from tests.client.test_against_embedded import WIDGET_CRD
from tests.having import having

pytestmark = [pytest.mark.real_time]

CRD = kinds.CUSTOM_RESOURCE_DEFINITION


@dl.custom_resource(group="example.com", version="v1")
class Widget(msgspec.Struct):
    metadata: dl.ObjectMeta
    spec: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])


CONSTANT = ResourceType[dl.Resource]("example.com", "v1", "Widget", "widgets")
KIND_NAMES: list[Any] = ["Widget", "wd", "widget.example.com", "example.com/v1/Widget", CONSTANT, Widget]
"""Names that are the same after the plural or the scope has changed."""
OTHER_NAMES = ["widgets", "widgets.example.com", "widgets.v1.example.com"]


def crd(plural: str = "widgets", scope: str = "Namespaced", versions: tuple[str, ...] = ("v1",)) -> dict[str, Any]:
    fields = copy.deepcopy(WIDGET_CRD)
    fields["metadata"]["name"] = f"{plural}.example.com"
    fields["spec"]["scope"] = scope
    fields["spec"]["names"]["plural"] = plural
    [version] = fields["spec"]["versions"]
    fields["spec"]["versions"] = [{**version, "name": name, "storage": name == versions[-1]} for name in versions]
    return fields


async def define(client: Client, fields: dict[str, Any]) -> None:
    await client.create(CRD, fields)
    await client.wait_for(CRD, fields["metadata"]["name"], wait.established())


async def make_again(client: Client, fields: dict[str, Any]) -> None:
    await client.delete(CRD, "widgets.example.com")
    await client.wait_for(CRD, "widgets.example.com", wait.deleted())
    await define(client, fields)


def widget(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"size": 1}}


async def watches(client: Client, kind: Any) -> None:
    async with client.watch(kind) as events:
        async for event in events:
            assert event.object.kind == "Widget"
            return


VERBS: dict[str, Callable[[Client, Any], Awaitable[object]]] = {
    "get": lambda client, kind: client.get(kind, "a"),
    "list": lambda client, kind: client.list(kind, namespace="default"),
    "list_all": lambda client, kind: client.list_all(kind),
    "watch": watches,
    "create": lambda client, kind: client.create(kind, {"metadata": {"generateName": "b-"}}),
    "apply": lambda client, kind: client.apply(kind, widget("c")),
    "patch": lambda client, kind: client.patch(kind, "a", {"spec": {"size": 2}}),
    "patch status": lambda client, kind: client.patch(kind, "a", {"status": {"size": 2}}, subresource="status"),
    "update": lambda client, kind: client.create_or_update(kind, "a", lambda fields: fields["spec"].update(size=3)),
    "get_scale": lambda client, kind: client.get_scale(kind, "a"),
    "scale": lambda client, kind: client.scale(kind, "a", 4),
    "wait_for": lambda client, kind: client.wait_for(kind, "a", wait.created(), timeout=5.0),
    "delete": lambda client, kind: client.delete(kind, "d"),
}


@asynccontextmanager
async def serving(fields: dict[str, Any]) -> AsyncGenerator[tuple[Client, Callable[[], Client]], None]:
    """Serve a CRD; gives a client, and a function that makes more of them."""
    options = ServerOptions(insecure_http=True, controllers=frozenset())
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(ApiServer(options))
        config = ClientConfig(server=server.url)
        made: list[Client] = []

        def make() -> Client:
            made.append(Client(config))
            stack.push_async_callback(made[-1].close)
            return made[-1]

        client = make()
        await define(client, fields)
        yield client, make


@pytest.mark.parametrize("changed", [crd("gadgets"), crd(scope="Cluster")], ids=["plural", "scope"])
async def test_client_follows_a_kind_that_is_created_again(changed: dict[str, Any]) -> None:
    async with serving(crd()) as (client, make):
        pairs: list[tuple[Any, str]] = (
            [(kind, "get") for kind in KIND_NAMES] + [("Widget", verb) for verb in VERBS] + [(Widget, "create")]
        )
        clients = [(make(), kind, verb) for kind, verb in pairs]
        for each, kind, _ in clients:
            await each.list(kind)
        await make_again(client, changed)
        for name in ("a", "d"):
            await make().create("Widget", widget(name))
        for each, kind, verb in clients:
            await VERBS[verb](each, kind)
            await VERBS["get"](each, kind)  # and again


async def test_name_that_no_longer_exists_is_reported_as_unknown() -> None:
    async with serving(crd()) as (client, make):
        clients = [(make(), kind) for kind in OTHER_NAMES]
        for each, kind in clients:
            await each.list(kind)
        await make_again(client, crd("gadgets"))
        for each, kind in clients:
            with pytest.raises(UnknownResourceError):
                await each.get(kind, "a")


async def test_client_follows_the_removal_of_a_version() -> None:
    async with serving(crd(versions=("v1", "v2"))) as (client, make):
        await client.create("example.com/v2/Widget", widget("a"))
        await client.create("example.com/v2/Widget", widget("d"))
        preferred = [(make(), "widgets", verb) for verb in VERBS]
        for each, kind, _ in preferred:
            assert (await each.resource(kind)).version == "v2"
        kept: list[Any] = ["example.com/v1/Widget", CONSTANT, Widget]
        named = [make() for _ in kept]
        for each, kind in zip(named, kept, strict=True):
            await each.list(kind)
        # The preferred version goes away, then another one comes back.
        fields = await client.get(CRD, "widgets.example.com")
        changed = fields.edit()
        changed["spec"]["versions"] = crd(versions=("v2", "v3"))["spec"]["versions"]
        await client.update(CRD, changed)
        with pytest.raises(UnknownResourceError, check=having(name="example.com/v1/Widget")):
            await named[0].get("example.com/v1/Widget", "a")
        with pytest.raises(NotFoundError, match=r"/apis/example.com/v1/.*404"):
            await named[1].get(CONSTANT, "a")
        with pytest.raises(NotFoundError, match=r"/apis/example.com/v1/.*404"):
            await named[2].get(Widget, "a")
        only_v3 = {"spec": {"versions": crd(versions=("v3",))["spec"]["versions"]}}
        await client.patch(CRD, "widgets.example.com", {"status": {"storedVersions": ["v3"]}}, subresource="status")
        await client.patch(CRD, "widgets.example.com", only_v3)
        for each, kind, verb in preferred:
            found = await VERBS[verb](each, kind)
            if verb in ("get", "patch", "apply"):
                assert isinstance(found, dl.Resource)
                assert found.api_version == "example.com/v3"


async def test_informer_follows_a_kind_that_is_created_again() -> None:
    options = InformerOptions(reflector=ReflectorOptions(backoff=Backoff(initial=0.05, cap=0.1)))
    async with serving(crd()) as (client, make), InformerFactory(client, options=options) as factory:
        widgets = factory.informer(CONSTANT)
        await factory.wait_for_sync(timeout=5)
        await make_again(client, crd("gadgets"))
        await make().create("Widget", widget("a"))
        async with asyncio.timeout(8):
            while widgets.lister().find("default/a") is None:  # noqa: ASYNC110 - a store has no event
                await asyncio.sleep(0.01)


class Counting(FakeTransport):
    """Serve discovery of one CRD, and no path of its objects."""

    def _next(self, request: HttpRequest) -> HttpResponse:
        self.requests.append(request)
        match request.path:
            case "/api":
                return json_answer({"versions": []})
            case "/apis":
                version = {"groupVersion": "example.com/v1"}
                return json_answer({"groups": [{"name": "example.com", "versions": [version]}]})
            case "/apis/example.com/v1":
                return json_answer({"resources": [{"name": "widgets", "kind": "Widget", "namespaced": True}]})
            case _:
                return text_answer("404 page not found", status=404)


@pytest.mark.parametrize("kind", [Widget, CONSTANT, "widgets"])
async def test_discovery_for_missing_path_is_limited(kind: Any) -> None:
    transport = Counting()
    client = Client(ClientConfig(server="http://fake"), transport=transport)
    for _ in range(20):
        with pytest.raises(NotFoundError):
            await client.get(kind, "a")
    asked = [request.path for request in transport.requests]
    assert asked.count("/apis/example.com/v1/namespaces/default/widgets/a") == 20
    assert asked.count("/apis") <= 4


@pytest.mark.parametrize("details", [{"name": "a"}, {"name": "a", "group": "example.com", "kind": "widgets"}])
async def test_missing_object_does_not_cause_discovery(details: dict[str, str]) -> None:
    status = {"kind": "Status", "code": 404, "reason": "NotFound", "details": details}
    client = Client(ClientConfig(server="http://fake"), transport=FakeTransport(json_answer(status, status=404)))
    with pytest.raises(NotFoundError):
        await client.get(Widget, "a")


@pytest.mark.parametrize("kind", [kinds.POD, kinds.LEASE, SELF_SUBJECT_ACCESS_REVIEW], ids=str)
async def test_missing_path_of_built_in_kind_does_not_cause_discovery(kind: ResourceType[Resource]) -> None:
    transport = FakeTransport(text_answer("404 page not found", status=404))
    with pytest.raises(NotFoundError):
        await Client(ClientConfig(server="http://fake"), transport=transport).get(kind, "a")
