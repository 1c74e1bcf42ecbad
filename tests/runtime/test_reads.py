"""The reads of reconciles: when the cache answers, when the server does, and what it is asked then."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from deltaloop.api import kinds
from deltaloop.api.path import Path
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.api.selectors import LabelSelector
from deltaloop.api.status import NotFoundError
from deltaloop.cache import Informer
from deltaloop.cache.listwatch import ListWatch
from deltaloop.client import Client, ClientConfig
from deltaloop.client.options import ClientOptions
from deltaloop.errors import UnknownIndexError
from deltaloop.runtime import ReconcileClient
from deltaloop.runtime.objects.cached_views import CacheView, Views
from tests.client.fake_transport import FakeTransport, json_answer
from tests.having import having
from tests.runtime.worlds import CM, Held, client_of_reconcile, cm, held, now


@asynccontextmanager
async def asking(**options: Any) -> AsyncGenerator[tuple[Held, list[str]]]:
    """Caches, and the reads that the server is asked for beside them."""
    asked: list[str] = []

    def note(method: str, path: str, *_: object) -> None:
        asked.append(path.removeprefix("/api/v1"))

    clients: list[Client] = []

    def noted(client: Client) -> Client:
        clients.append(Client(client.config, options=ClientOptions(on_request=note)))
        return clients[0]

    async with held(noted, **options) as h, clients[0]:
        yield h, asked


def lose_sight(view: CacheView, key: str) -> None:
    view.lost_sight(key, "create", uid="", version="")


# -- what the server is asked


def without_caches(*answers: Any) -> tuple[ReconcileClient, FakeTransport]:
    transport = FakeTransport(*answers)
    client = Client(ClientConfig(server="http://fake", namespace="mine"), transport=transport)
    return client_of_reconcile(client, Views(), "maps"), transport


def answer(name: str = "a", namespace: str = "n") -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}}


def answered_list(*items: dict[str, Any]) -> Any:
    return json_answer(
        {"kind": "ConfigMapList", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": [*items]}
    )


async def test_uncached_reads_are_requests_for_specified_objects() -> None:
    nowhere = json_answer({"kind": "Status", "status": "Failure", "code": 404, "reason": "NotFound"}, status=404)
    client, transport = without_caches(
        json_answer(answer()), nowhere, json_answer(answer()), answered_list(answer()), answered_list()
    )
    assert (client.namespace, client.live) == ("mine", client.live)
    assert (await client.get(CM, "a", namespace="n")).name == "a"
    assert await client.find(CM, "a") is None
    await client.get(kinds.NODE, "a")
    assert [obj.name for obj in await client.list(CM, namespace="n", selector="app=web")] == ["a"]
    assert len(await client.list(CM, selector=LabelSelector.parse("app"))) == 0
    assert [(request.path, request.query.get("labelSelector")) for request in transport.requests] == [
        ("/api/v1/namespaces/n/configmaps/a", None),
        ("/api/v1/namespaces/mine/configmaps/a", None),
        ("/api/v1/nodes/a", None),
        ("/api/v1/namespaces/n/configmaps", "app=web"),
        ("/api/v1/configmaps", "app"),
    ]


async def test_not_found_error_of_cache_equals_error_of_server() -> None:
    async with held() as h:
        with pytest.raises(NotFoundError) as caught:
            await h.client.get(CM, "none")
        with pytest.raises(NotFoundError) as live:
            await h.client.live.get(CM, "none")
        assert caught.value.status == live.value.status
        with pytest.raises(NotFoundError, match=r'deployments.apps "none" not found') as caught:
            await h.client.get(kinds.DEPLOYMENT, "none")
        details = caught.value.status.details
        assert details is not None
        assert (details.name, details.group, details.kind) == ("none", "apps", "deployments")


async def test_kind_can_be_short_name() -> None:
    async with asking() as (h, asked):
        await h.w.put("a")
        await h.catch_up()
        assert (await h.client.get("cm", "a")).name == "a"
        assert "/namespaces/default/configmaps/a" not in asked, "it is the kind of the cache"


async def test_unsynced_cache_is_not_read() -> None:
    async with asking() as (h, asked):
        await h.w.put("a")
        empty = Informer(ListWatch(h.w.client, CM), CM)
        views = Views()
        views.add(CM, CacheView(empty, namespace=None, transform=None, clock=now))
        client = client_of_reconcile(h.client.live, views, "maps")
        assert (await client.get(CM, "a")).name == "a"
        assert [obj.name for obj in await client.list(CM)] == ["a"]
        assert asked == ["/namespaces/default/configmaps/a", "/configmaps"]


# -- the cache, and what is uncertain in it


async def test_synced_cache_serves_reads() -> None:
    async with asking() as (h, asked):
        await h.w.put("a", team="red")
        await h.catch_up()
        assert (await h.client.get(CM, "a")).name == "a"
        assert [obj.name for obj in await h.client.list(CM)] == ["a"]
        assert [obj.name for obj in await h.client.by_index(CM, "team", "red")] == ["a"]
        assert await h.client.find(CM, "none") is None
        assert asked == []


async def test_uncertain_object_is_read_once() -> None:
    async with asking() as (h, asked):
        await h.w.put("a")
        lose_sight(h.view, "default/a")
        assert (await h.client.get(CM, "a")).name == "a"
        assert (await h.client.get(CM, "a")).name == "a"
        assert asked == ["/namespaces/default/configmaps/a"]
        assert not h.view.is_uncertain("default/a")


async def test_list_reads_uncertain_objects() -> None:
    async with asking() as (h, asked):
        await h.freeze()
        await h.w.put("a", team="red")
        await h.w.client.create(CM, {"metadata": {"name": "b", "namespace": "kube-system"}, "data": {"team": "red"}})
        for key in ("default/a", "kube-system/b", "default/none"):
            lose_sight(h.view, key)
        paths = [
            "/namespaces/default/configmaps/a",
            "/namespaces/kube-system/configmaps/b",
            "/namespaces/default/configmaps/none",
        ]
        assert [obj.name for obj in await h.client.list(CM, namespace="kube-system")] == ["b"]
        assert asked == [paths[1]]
        assert sorted(obj.name for obj in await h.client.list(CM)) == ["a", "b"]
        assert asked == [paths[1], paths[0], paths[2]]
        indexed = await h.client.by_index(CM, "team", "red", namespace="default")
        assert sorted(obj.name for obj in indexed) == ["a", "b"]
        assert asked[3:] == [paths[2]]  # a create that may still be carried out


async def test_cache_with_index_is_used() -> None:
    async with asking(namespaces=(None, "default")) as (h, _):
        await h.w.put("a", team="red")
        await h.catch_up()
        h.caches[1].informer.add_indexers({"colour": Path("data.team")})
        assert [obj.name for obj in await h.client.by_index(CM, "colour", "red")] == ["a"]
        assert [obj.name for obj in await h.client.by_index(CM, "colour", "red", namespace="default")] == ["a"]
        with pytest.raises(UnknownIndexError, check=having(name="nothing")):
            await h.client.by_index(CM, "nothing", "red")


async def test_list_reads_uncertain_cluster_scoped_object() -> None:
    async with asking(kind=kinds.NAMESPACE) as (h, asked):
        await h.freeze()
        await h.w.client.create(kinds.NAMESPACE, {"metadata": {"name": "fresh"}})
        lose_sight(h.view, "fresh")
        assert "fresh" in [obj.name for obj in await h.client.list(kinds.NAMESPACE)]
        assert asked == ["/namespaces/fresh"]


async def test_read_of_still_uncertain_object_is_visible() -> None:
    async with asking() as (h, asked):
        await h.freeze()
        await h.w.put("a")
        h.view.lost_sight("default/a", "patch", uid="", version="")
        for _ in range(2):
            assert [obj.name for obj in await h.client.list(CM)] == ["a"]
        assert asked == ["/namespaces/default/configmaps/a"] * 2


@pytest.mark.parametrize(("uncertain", "at_once"), [(19, False), (20, True)])
async def test_many_uncertain_objects_are_read_with_one_list(uncertain: int, at_once: bool) -> None:
    async with asking() as (h, asked):
        for number in range(uncertain):
            lose_sight(h.view, f"default/n{number}")
        assert len(await h.client.list(CM, namespace="default")) == 0
        paths = [f"/namespaces/default/configmaps/n{number}" for number in range(uncertain)]
        assert asked == (["/namespaces/default/configmaps"] if at_once else paths)


async def test_stale_cache_is_not_read_with_max_staleness() -> None:
    async with asking() as (h, asked):
        await h.freeze()
        await h.w.put("a", team="red")
        await h.catch_up()
        assert len(await h.client.list(CM)) == 0
        assert [obj.name for obj in await h.client.with_max_staleness(0.5).list(CM)] == ["a"]
        assert [obj.name for obj in await h.client.with_max_staleness(0.5).by_index(CM, "team", "red")] == ["a"]
        assert await h.client.with_max_staleness(0.5).by_index(CM, "team", "blue") == []
        with pytest.raises(UnknownIndexError, check=having(name="nothing")):
            await h.client.with_max_staleness(0.5).by_index(CM, "nothing", "red")
        assert await h.client.find(CM, "a") is None
        assert await h.client.with_max_staleness(0.5).find(CM, "a") is not None
        assert asked == ["/configmaps"] * 4 + ["/namespaces/default/configmaps/a"]


async def test_confirmation_is_fresh_for_exact_duration() -> None:
    async with held() as h:
        await h.catch_up()
        await h.w.put("a")
        await h.catch_up()
        confirmed_at = h.informer.freshness().last_confirmed_at
        assert confirmed_at is not None
        assert confirmed_at >= 1.0
        instant = [confirmed_at + 10.0]
        view = CacheView(h.informer, namespace=None, transform=None, clock=lambda: instant[0])
        assert view.is_fresh(10.0)
        instant[0] += 0.001
        assert not view.is_fresh(10.0)
        assert view.is_fresh(None)


# -- what a cache holds


@pytest.mark.parametrize("seen", [False, True], ids=["overlay", "cache"])
async def test_selectors_apply_to_own_writes(seen: bool) -> None:
    def labelled(name: str, namespace: str, app: str) -> dict[str, Any]:
        return {"metadata": {"name": name, "namespace": namespace, "labels": {"app": app}}}

    async with asking() as (h, asked):
        for obj in (
            labelled("a", "default", "web"),
            labelled("b", "default", "db"),
            labelled("c", "kube-system", "web"),
        ):
            await h.w.client.create(CM, obj)
        await h.catch_up()
        if not seen:
            await h.freeze()
        for obj in (
            labelled("d", "default", "web"),
            labelled("e", "default", "db"),
            labelled("f", "kube-system", "web"),
        ):
            await h.client.create(CM, obj)

        async def names(kind: ResourceType[Resource] = CM, **options: Any) -> list[str]:
            return sorted(obj.name for obj in await h.client.list(kind, **options))

        await h.catch_up()
        asked.clear()
        assert len(h.view.overlay) == 3
        assert await names(namespace="default", selector="app=web") == ["a", "d"]
        assert await names(selector="app=web") == ["a", "c", "d", "f"]
        assert await names(namespace="default") == ["a", "b", "d", "e"]
        assert await names(namespace="kube-system") == ["c", "f"]
        assert await names() == ["a", "b", "c", "d", "e", "f"]
        assert len(h.view.overlay) == (0 if seen else 3)
        assert asked == []


async def test_uncached_namespaces_are_read_from_server() -> None:
    async with asking(namespaces=("default", "kube-system")) as (h, asked):
        await h.w.put("a", team="red")
        await h.w.client.create(CM, {"metadata": {"name": "b", "namespace": "kube-system"}, "data": {"team": "red"}})
        await h.catch_up()
        assert (await h.client.get(CM, "b", namespace="kube-system")).name == "b"
        assert [obj.name for obj in await h.client.list(CM, namespace="default")] == ["a"]
        assert [obj.name for obj in await h.client.by_index(CM, "team", "red", namespace="kube-system")] == ["b"]
        assert [obj.name for obj in await h.client.by_index(CM, "team", "red")] == ["a"]
        assert asked == []
        assert await h.client.find(CM, "a", namespace="kube-public") is None
        assert sorted(obj.name for obj in await h.client.list(CM)) == ["a", "b"]
        assert asked == ["/namespaces/kube-public/configmaps/a", "/configmaps"]


async def test_stale_namespaced_cache_is_replaced_by_namespaced_list() -> None:
    async with asking(namespaces=("kube-system",)) as (h, asked):
        await h.freeze()
        await h.w.put("a", team="red")
        await h.w.client.create(CM, {"metadata": {"name": "b", "namespace": "kube-system"}, "data": {"team": "red"}})
        await h.catch_up()
        assert [obj.name for obj in await h.client.with_max_staleness(0.0).by_index(CM, "team", "red")] == ["b"]
        assert asked == ["/namespaces/kube-system/configmaps"]


async def test_an_informer_has_one_view() -> None:
    async with held(namespaces=("default", "kube-system")) as h:
        views = Views()
        for view in h.caches:
            views.add(CM, view)
            views.add(CM, CacheView(view.informer, namespace=view.namespace, transform=None, clock=now))
        assert views.of(CM).views == h.caches
        assert views.of(kinds.SECRET).views == []
        assert views.of(CM).find("kube-system") is h.caches[1]
        assert views.of(CM).find(None) is None
        assert views.of(kinds.SECRET).find(None) is None


async def test_own_writes_are_pruned_without_reads() -> None:
    async with held() as h:
        next_version = str(int(h.informer.resource_version) + 1)

        def write(name: str, version: str) -> None:
            fields = {**cm(name)["metadata"], "uid": name, "resourceVersion": version}
            h.view.wrote(Resource.from_dict({"metadata": fields}, CM))

        for number in range(63):
            write(f"a{number}", next_version)
        await h.w.put("b")
        await h.catch_up()
        assert len(h.view.overlay) == 63
        write("c", "90000")
        assert len(h.view.overlay) == 1


async def test_read_of_uncertain_object_is_transformed() -> None:
    def marked(obj: Resource) -> Resource:
        return Resource.from_dict({**obj.to_dict(), "data": {"seen": "yes"}}, CM)

    async with held() as h:
        view = CacheView(h.informer, namespace=None, transform=marked, clock=now)
        lose_sight(view, "default/a")
        view.settle("default/a", Resource.from_dict({**answer("a", "default"), "data": {"seen": "no"}}, CM))
        shown = view.get("default/a")
        assert shown is not None
        assert shown["data"] == {"seen": "yes"}
        lose_sight(view, "default/b")
        view.settle("default/b", None)
        assert view.get("default/b") is None
