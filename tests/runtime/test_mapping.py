"""From a watched object to the objects that a controller reconciles: by an index, and by a function of the caches."""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

import deltaloop as dl
from deltaloop.api import kinds
from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.resource import Resource
from deltaloop.apiserver.core.fault_rules import Fault
from deltaloop.cache.errors import UnknownIndexError
from deltaloop.errors import InvalidControllerError
from deltaloop.runtime import Caches, Context, Controller, Request, controller
from deltaloop.sources import Watch
from tests.having import having
from tests.runtime.worlds import CM, World, cm, until, world

ACCOUNT = kinds.SERVICE_ACCOUNT
BY_CONFIG = {"config": dl.field_path("metadata.annotations.config")}


class Seen:
    """A reconciler that notes whom a watch has it called for."""

    def __init__(self, **options: Any) -> None:
        self.keys: list[str] = []
        self.caches: Caches | None = None
        given: dict[str, Any] = {"name": "accounts", "indexers": BY_CONFIG, **options}
        self.controller: Controller = controller(given.pop("resource", ACCOUNT), **given)(self.reconcile)

    async def reconcile(self, request: Request, ctx: Context) -> None:
        self.keys += [request.key for trigger in ctx.triggers if trigger.source == "watch"]

    async def taken(self) -> list[str]:
        """Return whom it was called for since the last time."""
        await asyncio.sleep(1.0)
        taken, self.keys = sorted(self.keys), []
        return taken


def referring(name: str, config: str, namespace: str | None = "default") -> dict[str, Any]:
    place = {} if namespace is None else {"namespace": namespace}
    return {"metadata": {"name": name, "annotations": {"config": config}, **place}}


# -- by an index


async def test_objects_are_reconciled_by_index_value() -> None:
    seen = Seen(watches=[Watch("v1/ConfigMap", by_index="config")])
    async with world() as w, w.running(seen.controller):
        await w.client.create(ACCOUNT, referring("bare", "settings"))
        await w.client.create(ACCOUNT, referring("far", "default/settings", "kube-system"))
        await w.client.create(ACCOUNT, referring("elsewhere", "settings", "kube-system"))
        await w.client.create(ACCOUNT, referring("other", "more"))
        assert await seen.taken() == []
        await w.put("settings", colour="red")
        assert await seen.taken() == ["default/bare", "kube-system/far"]
        await w.client.patch(CM, "settings", {"data": {"colour": "blue"}})
        assert await seen.taken() == ["default/bare", "kube-system/far"]
        await w.client.patch(ACCOUNT, "bare", {"metadata": {"annotations": {"config": "more"}}})
        await w.client.delete(CM, "settings")
        assert await seen.taken() == ["kube-system/far"], "the index is that of now"


async def test_cluster_scoped_kinds_are_indexed_by_name() -> None:
    to_maps = Seen(resource=kinds.NAMESPACE, name="a", watches=[Watch(CM, by_index="config")])
    to_nodes = Seen(name="b", watches=[Watch(kinds.NODE, by_index="config")])
    async with world() as w, w.running(to_maps.controller, to_nodes.controller):
        await w.client.create(kinds.NAMESPACE, referring("bare", "settings", None))
        await w.client.create(kinds.NAMESPACE, referring("exact", "default/settings", None))
        await w.client.create(kinds.NAMESPACE, referring("other", "kube-system/settings", None))
        await w.client.create(ACCOUNT, referring("near", "node-1"))
        await w.client.create(ACCOUNT, referring("far", "node-1", "kube-system"))
        await w.put("settings")
        await w.client.create(kinds.NODE, {"metadata": {"name": "node-1"}})
        assert await to_maps.taken() == ["bare", "exact"]
        assert await to_nodes.taken() == ["default/near", "kube-system/far"]


@pytest.mark.parametrize("late", ["serviceaccounts", "configmaps"])
async def test_order_of_cache_sync_misses_no_reconcile(late: str) -> None:
    """What came before the controller's own objects is read when those are reconciled, which all of them are."""
    read: dict[str, str] = {}

    @controller(ACCOUNT, watches=[Watch(CM, by_index="config")], indexers=BY_CONFIG)
    async def reconcile(request: Request, ctx: Context) -> None:
        found = await ctx.client.find(CM, "settings", namespace=request.namespace)
        read[request.name] = "" if found is None else found["data"]["colour"]

    async with world() as w:
        await w.client.create(ACCOUNT, referring("early", "settings"))
        if late == "serviceaccounts":
            await w.put("settings", colour="red")
        for verb in ("list", "watch"):
            w.server.faults.add(Fault(do="delay", verbs=(verb,), resources=(late,), seconds=20.0, count=1))
        async with w.running(reconcile):
            if late == "configmaps":
                await w.put("settings", colour="red")
            await until(lambda: read == {"early": "red"})
            # Each of the two is the later one once.
            await w.client.create(ACCOUNT, referring("late", "settings"))
            await until(lambda: read == {"early": "red", "late": "red"})
            await w.client.patch(CM, "settings", {"data": {"colour": "blue"}})
            await until(lambda: read == {"early": "blue", "late": "blue"})


async def test_own_writes_are_mapped_before_watch_event() -> None:
    found: list[list[str]] = []

    def note(obj: Resource, caches: Caches) -> list[Resource]:
        found.append([each.name for each in caches.by_index(ACCOUNT, "config", obj.name)])
        return []

    started, go = asyncio.Event(), asyncio.Event()

    @controller(ACCOUNT, name="maker", writes=[ACCOUNT], watches=[Watch(CM, to=note)], indexers=BY_CONFIG)
    async def reconcile(request: Request, ctx: Context) -> None:
        started.set()
        await go.wait()
        await ctx.client.patch(ACCOUNT, "first", referring("first", "settings"), namespace="default")

    reader = Seen(resource=kinds.NODE, name="reader", reads=[ACCOUNT], watches=[Watch(CM, to=note)])
    async with world() as w:
        await w.client.create(ACCOUNT, referring("first", "none"))
        async with w.running(reconcile, reader.controller):
            await started.wait()
            assert w.server.faults.strike_watches(Fault(do="stall", resources=("serviceaccounts",))) == 1
            go.set()
            await asyncio.sleep(0.5)
            await w.put("settings")
            await until(lambda: found == [["first"], ["first"]])  # by the other controller as well
            w.server.faults.clear()


# -- by a function


async def test_mapper_can_read_caches_of_controller() -> None:
    def to_accounts(obj: Resource, caches: Caches) -> list[Resource]:
        seen.caches = caches
        return [each for each in caches.list("v1/ServiceAccount", namespace=obj.namespace) if each.name != "other"]

    seen = Seen(watches=[Watch("v1/ConfigMap", to=to_accounts)])
    async with world() as w, w.running(seen.controller):
        for name in ("one", "two", "other"):
            await w.client.create(ACCOUNT, referring(name, "settings"))
        await w.put("settings")
        assert await seen.taken() == ["default/one", "default/two"]


async def caches_of(w: World, **options: Any) -> Caches:
    """Return what the mapping of a controller is given."""
    given: list[Caches] = []

    def note(obj: Resource, caches: Caches) -> list[str]:
        given.append(caches)
        return []

    seen = Seen(watches=[Watch(kinds.NODE, to=note)], **options)
    async with w.running(seen.controller):
        await w.client.create(kinds.NODE, {"metadata": {"name": "node-1"}})
        await until(lambda: given)
    return given[0]


async def test_mapper_caches_contain_declared_kinds_and_reject_others() -> None:
    team = {"team": dl.field_path("metadata.labels.team")}
    async with world() as w:
        await w.client.create(ACCOUNT, referring("a", "settings"))
        await w.client.create(ACCOUNT, referring("b", "more", "kube-system"))
        await w.client.create(CM, {"metadata": {"name": "m", "labels": {"team": "blue"}}})
        await w.client.create(CM, {"metadata": {"name": "m", "namespace": "kube-system", "labels": {"team": "blue"}}})
        as_dict: dl.ResourceType[dict[str, Any]] = dl.ResourceType(
            "", "v1", "ConfigMap", "configmaps", model=dict[str, Any]
        )
        caches = await caches_of(
            w,
            owns=["v1/Secret"],
            reads=[
                Watch("cm", namespace="kube-system"),
                Watch(ACCOUNT, namespace="kube-system"),
                Watch(CM, namespace="default", indexers=team),
                Watch("v1/Service", label_selector="a=b"),
            ],
        )
        found = caches.find(ACCOUNT, "a", namespace="default")
        assert found is not None
        assert found.name == "a"
        assert caches.find("v1/ServiceAccount", "a", namespace="kube-system") is None
        there = [caches.find("cm", "m", namespace=namespace) for namespace in ("default", "kube-system", "other")]
        assert [each and each.namespace for each in there] == ["default", "kube-system", None]
        assert [each.name for each in caches.list(ACCOUNT)] == ["a", "b"]
        assert [each.name for each in caches.list(ACCOUNT, namespace="kube-system")] == ["b"]
        assert [each.key for each in caches.list("cm", selector="team=blue")] == ["kube-system/m", "default/m"]
        assert caches.list("v1/ConfigMap", selector="team=red") == []
        assert [each["metadata"]["namespace"] for each in caches.list(as_dict, namespace="default")] == ["default"]
        assert [each.key for each in caches.by_index(CM, "team", "blue")] == ["default/m"]
        assert [each.name for each in caches.by_index(ACCOUNT, "config", "more")] == ["b"]
        assert caches.list("v1/Secret") == []
        assert repr(caches) == "<Caches of accounts: v1/ServiceAccount, v1/Secret, v1/Node, v1/ConfigMap>"
        with pytest.raises(UnknownIndexError, check=having(name="team")):
            caches.by_index(ACCOUNT, "team", "blue")
        with pytest.raises(InvalidArgumentError, check=having(argument="namespace")):
            caches.find(ACCOUNT, "a")
        for missing in ("v1/Pod", kinds.POD, "v1/Service"):
            with pytest.raises(InvalidControllerError, check=having(argument="watches")):
                caches.list(missing)


async def test_failed_mapping_is_logged_with_controller_watch_and_object(
    caplog: pytest.LogCaptureFixture,
) -> None:
    ready = False

    def to_accounts(obj: Resource, caches: Caches) -> list[str]:
        if not ready:
            caches.list("v1/Pod")
        return ["default/one"]

    seen = Seen(watches=[Watch("v1/ConfigMap", to=to_accounts)])
    async with world() as w, w.running(seen.controller):
        await w.put("settings")
        assert await seen.taken() == []
        said = vars(caplog.records[-1])
        assert (said["queue"], said["key"]) == ("failed mappings of accounts: watch v1/ConfigMap", "default/settings")
        assert "v1/Pod without selectors" in said["raised"]
        ready = True
        await until(lambda: seen.keys == ["default/one"])


@pytest.mark.parametrize("returned", [None, "default/one", 7, [None], [("default", "one")], {"a": 1}.values()])
async def test_invalid_result_of_mapper_is_logged_and_change_dropped(
    returned: Any, caplog: pytest.LogCaptureFixture
) -> None:
    def to_accounts(obj: Resource) -> Any:
        return returned if obj.name == "bad" else ["default/one"]

    seen = Seen(watches=[Watch("v1/ConfigMap", to=to_accounts)])
    async with world() as w, w.running(seen.controller):
        await w.put("bad")
        assert await seen.taken() == []
        [said] = [record for record in caplog.records if record.levelno >= logging.WARNING]
        assert vars(said)["queue"] == "failed mappings of accounts: watch v1/ConfigMap"
        assert "must return a list of keys" in vars(said)["raised"]
        await w.put("good")
        assert await seen.taken() == ["default/one"]


async def test_different_indexes_with_equal_names_are_rejected() -> None:
    first = Seen(watches=[Watch(CM, by_index="config")])
    same = Seen(name="same", watches=[Watch(CM, by_index="config")], indexers={"config": BY_CONFIG["config"]})
    other = Seen(name="other", watches=[Watch(CM, by_index="config")], indexers={"config": of_an_object})
    async with world() as w:
        async with w.running(first.controller, same.controller):
            await w.client.create(ACCOUNT, referring("a", "settings"))
            await w.put("settings")
            assert await first.taken() == ["default/a"]
            assert same.keys == ["default/a"]
        with pytest.raises(InvalidControllerError, check=having(argument="indexers")):
            await w.manager(first.controller, other.controller).run()


# -- what is refused where it is declared


async def waits(obj: Resource) -> list[str]:
    return []


async def waits_and_yields(obj: Resource, caches: Caches) -> AsyncIterator[str]:
    yield obj.name


class Waits:
    async def __call__(self, obj: Resource) -> list[str]:
        return []


def of_nothing() -> list[str]:
    return []


def of_three(obj: Resource, caches: Caches, more: int) -> list[str]:
    return []


def of_an_object(obj: Resource) -> list[str]:
    return [obj.name]


def by_keyword(obj: Resource, *, caches: Caches) -> list[str]:
    return []


def has_more(obj: Resource, *more: object) -> list[str]:
    return [f"{len(more)} more"]


def has_a_default(obj: Resource, name: str = "mine") -> list[str]:
    return [name]


def is_bound(name: str, obj: Resource, caches: Caches) -> list[str]:
    return [repr(caches)]


ASYNC, TAKES = "must be a plain function, got `async`", "must take an object, or .*an object and caches, got "


@pytest.mark.parametrize(
    ("to", "problem"),
    [
        (waits, ASYNC),
        (waits_and_yields, ASYNC),
        (Waits(), ASYNC),
        (functools.partial(waits), ASYNC),
        (of_nothing, TAKES),
        (of_three, TAKES),
        (by_keyword, TAKES),
        ("spec.config", "must be a function"),
    ],
)
def test_invalid_mapper_is_rejected_in_declaration(to: Any, problem: str) -> None:
    with pytest.raises(InvalidControllerError, match=f"v1/ConfigMap {problem}"):
        Seen(watches=[Watch("v1/ConfigMap", to=to)])


@pytest.mark.parametrize(
    ("watched", "argument"),
    [
        ({"watches": [Watch(CM, by_index="team")]}, "by_index"),
        (
            {"watches": [Watch(CM, by_index="config", to=of_an_object)]},
            "to",
        ),
        (
            {"owns": [Watch(CM, by_index="config")]},
            "owns",
        ),
        ({"reads": [Watch(CM, to=of_an_object)]}, "reads"),
        ({"indexers": {"by": waits}}, "indexers['by']"),
        ({"rate_limiter": Waits.__call__}, "rate_limiter"),
    ],
)
def test_watch_without_effect_is_rejected_in_declaration(watched: Any, argument: str) -> None:
    with pytest.raises(InvalidControllerError, check=having(argument=argument, controller="accounts")):
        Seen(**watched)


class Mapping:
    def bound(self, obj: Resource, caches: Caches) -> list[str]:
        return [repr(caches)]

    def __call__(self, obj: Resource) -> list[str]:
        return [obj.name]


def yields(obj: Resource, caches: Caches) -> Iterator[str]:
    yield repr(caches)


@pytest.mark.parametrize(
    ("to", "mapped"),
    [
        (Mapping().bound, "caches"),
        (yields, "caches"),
        (has_more, "0 more"),
        (functools.partial(is_bound, "x"), "caches"),
        (Mapping(), "web"),
        (has_a_default, "mine"),
    ],
)
async def test_all_plain_callables_are_mappers(to: Any, mapped: str) -> None:
    from deltaloop.runtime.mapping import with_caches

    Seen(watches=[Watch(CM, to=to)])
    [found] = with_caches(to, Caches("accounts"))(Resource.from_dict(cm("web")))
    assert found == {"caches": "<Caches of accounts: >"}.get(mapped, mapped)
