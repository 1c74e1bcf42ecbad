"""Verbs of ``ctx.client`` without a namespace use that of the request."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

import deltaloop as dl
from deltaloop.api import kinds
from deltaloop.api.errors import InvalidArgumentError
from deltaloop.cache import InformerFactory
from deltaloop.client import Client
from deltaloop.runtime import Context, ReconcileClient, Request, controller
from deltaloop.runtime.objects.cached_views import CacheView, Views
from tests.having import having
from tests.runtime.worlds import CM, World, client_of_reconcile, now, world

POD, DEPLOYMENT, NODE = kinds.POD, kinds.DEPLOYMENT, kinds.NODE
SPEC: dict[str, Any] = {"containers": [{"name": "c", "image": "i"}]}
DEPLOYED: dict[str, Any] = {
    "selector": {"matchLabels": {"a": "b"}},
    "template": {"metadata": {"labels": {"a": "b"}}, "spec": SPEC},
}
OBJECTS: list[tuple[Any, dict[str, Any]]] = [
    (CM, {"metadata": {"name": "a"}, "data": {"k": "v"}}),
    (POD, {"metadata": {"name": "a"}, "spec": SPEC}),
    (DEPLOYMENT, {"metadata": {"name": "a"}, "spec": DEPLOYED}),
    (kinds.SERVICE_ACCOUNT, {"metadata": {"name": "a"}}),
]
READY: dict[str, Any] = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
TOKEN: dict[str, Any] = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}

Call = Callable[[Any], Awaitable[Any]]


@asynccontextmanager
async def reconciling(namespace: str, *, cached: bool) -> AsyncGenerator[tuple[World, ReconcileClient]]:
    """Yield the client of a reconcile, with or without a cache of ConfigMaps; ``team`` has one object of each kind."""
    async with world() as w, InformerFactory(w.client) as factory:
        await w.client.create(kinds.NAMESPACE, {"metadata": {"name": "team"}})
        for kind, obj in OBJECTS:
            await w.client.create(kind, obj, namespace="team")
        views = Views()
        if cached:
            for kind in (CM, NODE):
                view = CacheView(factory.informer(kind), namespace=None, transform=None, clock=now)
                views.add(kind, view)
            await factory.wait_for_sync()
        yield (
            w,
            client_of_reconcile(w.client, views, "maps", namespace=namespace),
        )


async def logs(client: Client) -> None:
    async with client.logs("a"):
        pass


async def add_finalizer(client: Client) -> Any:
    return await client.add_finalizer(CM, dl.Resource.from_dict({"metadata": {"name": "a"}}, CM), "x.dev/y")


async def remove_finalizer(client: Client) -> Any:
    await add_finalizer(client)
    return await client.remove_finalizer(CM, dl.Resource.from_dict({"metadata": {"name": "a"}}, CM), "x.dev/y")


async def edit(client: Client) -> Any:
    typed = dl.ResourceType[dict[str, Any]](CM.group, CM.version, CM.kind, CM.plural, model=dict)
    with pytest.raises(InvalidArgumentError, check=having(argument="kind")):
        await client.edit(typed, "a", lambda fields: fields)
    return await client.get(CM, "a")


async def create_or_update(client: Client) -> Any:
    _, made = await client.create_or_update(CM, "new", lambda fields: fields.update(data={"x": "y"}))
    what, _ = await client.create_or_update(CM, "new", lambda fields: fields.update(data={"x": "y"}))
    assert what is dl.OperationResult.UNCHANGED
    return made


VERBS: dict[str, Call] = {
    "get": lambda client: client.get(CM, "a"),
    "get by text": lambda client: client.get("v1/ConfigMap", "a"),
    "get status": lambda client: client.get(POD, "a", subresource="status"),
    "find": lambda client: client.find(CM, "a"),
    "find uncached": lambda client: client.find(POD, "a"),
    "get_scale": lambda client: client.get_scale(DEPLOYMENT, "a"),
    "scale": lambda client: client.scale(DEPLOYMENT, "a", 2),
    "wait_for": lambda client: client.wait_for(CM, "a", dl.wait.created()),
    "create": lambda client: client.create(CM, {"metadata": {"name": "b"}}),
    "create generated": lambda client: client.create(CM, {"metadata": {"generateName": "b-"}}),
    "update": lambda client: client.update(CM, {"metadata": {"name": "a"}}),
    "update_status": lambda client: client.update_status(POD, {"metadata": {"name": "a"}, "spec": SPEC, **READY}),
    "apply": lambda client: client.apply(CM, {"metadata": {"name": "c"}}),
    "patch": lambda client: client.patch(CM, "a", {"data": {"x": "y"}}),
    "patch status": lambda client: client.patch(POD, "a", READY, subresource="status"),
    "create_or_update": create_or_update,
    "edit": edit,
    "add_finalizer": add_finalizer,
    "remove_finalizer": remove_finalizer,
    "create_subresource": lambda client: client.create_subresource(kinds.SERVICE_ACCOUNT, "a", "token", TOKEN),
    "logs": logs,
    "evict": lambda client: client.evict("a"),
    "delete": lambda client: client.delete(CM, "a"),
}
NOTHING = ("delete", "evict", "logs", "create_subresource")
"""Verbs whose result has no namespace."""


async def test_every_verb_uses_the_namespace_of_the_request() -> None:
    async with reconciling("team", cached=True) as (w, client):
        for each in (client, client.live):
            for verb, call in VERBS.items():
                found = await call(each)
                if verb not in NOTHING:
                    made = found if isinstance(found, dl.Resource) else dl.Resource.from_dict(found)
                    assert made.namespace == "team", verb
            for kind, obj in OBJECTS:
                if await w.client.find(kind, "a", namespace="team") is None:
                    await w.client.create(kind, obj, namespace="team")
            for name in ("b", "new"):
                await w.client.delete(CM, name, namespace="team")
            await asyncio.sleep(1.0)
        assert not [*await w.client.list(CM, namespace="default")]


async def test_every_verb_needs_a_namespace_if_the_request_has_none() -> None:
    async with reconciling("", cached=True) as (_, client):
        for each in (client, client.live):
            for call in VERBS.values():
                with pytest.raises(InvalidArgumentError, check=having(argument="namespace")):
                    await call(each)


async def test_specified_namespace_takes_precedence() -> None:
    async with reconciling("team", cached=True) as (w, client):
        await w.put("b")
        await asyncio.sleep(1.0)
        for each in (client, client.live):
            assert (await each.get(CM, "b", namespace="default")).namespace == "default"
            made = await each.apply(CM, {"metadata": {"name": "own", "namespace": "default"}})
            assert made.namespace == "default"
        marked = await client.add_finalizer(CM, await client.get(CM, "b", namespace="default"), "x.dev/y")
        assert marked.namespace == "default"


async def test_list_includes_all_namespaces() -> None:
    async with reconciling("team", cached=True) as (w, client):
        await w.put("b")
        await asyncio.sleep(1.0)
        for each in (client, client.live):
            found = {obj.key for obj in await each.list(CM)}
            assert {"team/a", "default/b"} <= found
            assert [obj.key for obj in await each.list(CM, namespace="team") if obj.name == "a"] == ["team/a"]
        with pytest.raises(InvalidArgumentError, check=having(argument="namespace")):
            await client.delete_collection(CM)


@pytest.mark.parametrize("cached", [True, False], ids=["cached", "uncached"])
async def test_cluster_scoped_kind_accepts_no_namespace(cached: bool) -> None:
    async with reconciling("team", cached=cached) as (w, client):
        await w.client.create(NODE, {"metadata": {"name": "n"}})
        await asyncio.sleep(1.0)
        assert (await client.get(NODE, "n")).name == "n"
        for verb in (client.find, client.get, client.delete):
            with pytest.raises(InvalidArgumentError, check=having(argument="namespace")):
                await verb(NODE, "n", namespace="team")
        with pytest.raises(InvalidArgumentError, check=having(argument="namespace")):
            await client.list(NODE, namespace="team")


async def in_both(
    make: Callable[[list[str]], dl.Controller], then: Callable[[World], Awaitable[object]] | None = None
) -> list[str]:
    """Run a controller while ConfigMaps ``own`` and ``other`` are in ``team`` only; return what it noted."""
    seen: list[str] = []
    async with world() as w:
        await w.client.create(kinds.NAMESPACE, {"metadata": {"name": "team"}})
        async with w.running(make(seen)):
            for name in ("other", "own"):
                await w.client.create(CM, {"metadata": {"name": name}}, namespace="team")
            await asyncio.sleep(2.0)
            if then is not None:
                await then(w)
                await asyncio.sleep(2.0)
    return seen


async def test_reconcile_cleanup_and_deadline_use_the_namespace_of_the_request() -> None:
    def make(seen: list[str]) -> dl.Controller:
        async def look(place: str, ctx: Context) -> None:
            for client in (ctx.client, ctx.client.live, ctx.client.with_max_staleness(0.0)):
                found = await client.find(CM, "other")
                seen.append(f"{place} {found.key if found else None}")

        async def give_up(request: Request, ctx: Context) -> bool:
            await look("deadline", ctx)
            return True

        @controller(CM, finalizer="x.dev/y", predicates=[dl.predicates.Where(lambda obj: obj.name == "own")])
        async def reconcile(request: Request, ctx: Context) -> None:
            await look("reconcile", ctx)

        @reconcile.cleanup(deadline=0.001, on_deadline=give_up)
        async def clean_up(request: Request, ctx: Context) -> None:
            await look("cleanup", ctx)
            raise ValueError

        return reconcile

    seen = await in_both(make, lambda w: w.client.delete(CM, "own", namespace="team"))
    assert set(seen) == {f"{place} team/other" for place in ("reconcile", "cleanup", "deadline")}


async def test_plain_function_and_tracked_object_use_the_namespace_of_the_request() -> None:
    def make(seen: list[str]) -> dl.Controller:
        @controller(CM, tracks=[POD])
        async def reconcile(request: Request, ctx: Context) -> None:
            if request.name == "own":
                await ctx.track(POD, "p")
                seen.append(str(await ctx.client.find(POD, "p")))

        return reconcile

    async def pod(w: World) -> None:
        await w.client.create(POD, {"metadata": {"name": "p"}, "spec": SPEC}, namespace="team")

    seen = await in_both(make, pod)
    assert seen[0] == "None"
    assert "team/p" in seen[-1]


async def test_status_of_object_without_namespace_uses_namespace_of_request() -> None:
    def make(seen: list[str]) -> dl.Controller:
        @controller(CM)
        async def reconcile(request: Request, ctx: Context) -> None:
            if request.name == "own":
                pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}
                async with ctx.status(pod) as status:
                    status["phase"] = "Running"
                seen.append("written")

        return reconcile

    async with world() as w:
        await w.client.create(kinds.NAMESPACE, {"metadata": {"name": "team"}})
        await w.client.create(POD, {"metadata": {"name": "p"}, "spec": SPEC}, namespace="team")
        async with w.running(make([])):
            await w.client.create(CM, {"metadata": {"name": "own"}}, namespace="team")
            await asyncio.sleep(2.0)
        assert (await w.client.get(POD, "p", namespace="team"))["status"]["phase"] == "Running"
