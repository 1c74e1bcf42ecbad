"""What a declared controller watches, reads and needs, and how it is connected with caches."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import deltaloop as dl
from deltaloop.api import kinds
from deltaloop.api.errors import UnknownResourceError
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.cache import Informer, InformerFactory, InformerOptions
from deltaloop.predicates import Where
from deltaloop.runtime import Context, Controller, Permission, Request, controller
from deltaloop.runtime.core.attribution import Attribution
from deltaloop.runtime.core.children import APPLIED_BY, OWNER, OWNER_INDEX, OWNER_UID, owner_uids
from deltaloop.runtime.core.history import History
from deltaloop.runtime.core.requests import own_key
from deltaloop.runtime.enqueue import Enqueue
from deltaloop.runtime.objects.cached_views import Views
from deltaloop.runtime.program.wiring import CACHE_VERBS, cached_form, connect_caches, kinds_named, look_up, wires_of
from deltaloop.runtime.reconcile.loop import ReconcileLoop
from deltaloop.runtime.reconcile.tracing import Tracing
from deltaloop.sources import Watch
from tests.runtime.worlds import CM, World, world

WIDGET: ResourceType[Resource] = ResourceType("example.com", "v1", "Widget", "widgets")
KNOWN: dict[str, ResourceType[Any]] = {
    "v1/ConfigMap": CM,
    "v1/Secret": kinds.SECRET,
    "v1/Node": kinds.NODE,
    "v1/Service": kinds.SERVICE,
}


def nothing(request: Request, ctx: Context) -> None: ...


def declared(**options: Any) -> Controller:
    return controller("v1/ConfigMap", name="maps", **options)(nothing)


# -- what it watches


def test_wires_have_namespace_and_source_of_each_kind() -> None:
    only = [Where(lambda obj: True)]
    index = {"team": dl.field_path("data.team")}

    def to(obj: Resource) -> list[str]:
        return [obj.name]

    wires = wires_of(
        declared(
            namespace="team",
            predicates=only,
            indexers=index,
            owns=["v1/Secret", Watch("v1/Service", namespace="other", source="svc")],
            watches=["v1/Secret", Watch("v1/Node", to=to, source="nodes", predicates=only)],
            reads=["v1/Node", Watch("v1/Secret", label_selector="a=b")],
        ),
        KNOWN,
    )
    assert [(wire.kind, wire.watch.namespace, wire.source, wire.mapper is not None) for wire in wires.wires] == [
        (CM, "team", "informer", True),
        (kinds.SECRET, "team", "owner", True),
        (kinds.SERVICE, "other", "svc", True),
        (kinds.SECRET, None, "watch", True),
        (kinds.NODE, None, "nodes", True),
        (kinds.NODE, None, "", False),
        (kinds.SECRET, None, "", False),
    ]
    own, _, _, same, mapped, _, selected = wires.wires
    assert (own.watch.predicates, own.watch.indexers) == (only, index)
    assert (own.mapper, same.mapper, mapped.mapper) == (own_key, own_key, to)
    assert mapped.watch.predicates == only
    assert selected.watch.label_selector == "a=b"
    assert (wires.kind, wires.owned) == (CM, (kinds.SECRET, kinds.SERVICE))


def rules(text: str) -> set[str]:
    return {line.strip() for line in text.splitlines()} - {""}


def test_rules_have_namespaces_of_declared_kinds() -> None:
    wires = wires_of(
        declared(
            watches=[Watch("v1/Secret", namespace="vault"), "v1/Node"],
            writes=[
                "v1/Secret",
                Permission(WIDGET, verbs=("create",)),
                Permission("v1/Service", namespace="own", verbs=("get",)),
            ],
        ),
        KNOWN,
    )
    writes = """
        get secrets in namespace {0}
        create secrets in namespace {0}
        update secrets in namespace {0}
        patch secrets in namespace {0}
        delete secrets in namespace {0}
        create widgets.example.com in namespace {0}
        get services in namespace own
    """
    watched = """
        list configmaps in namespace managed
        watch configmaps in namespace managed
        list secrets in namespace vault
        watch secrets in namespace vault
        list nodes
        watch nodes
    """
    assert {str(rule) for rule in wires.rules("managed", read_verbs=CACHE_VERBS)} == rules(
        watched + writes.format("managed")
    )
    assert {str(rule) for rule in wires.rules(None, read_verbs=())} == rules(
        writes.format("X").replace("in namespace X", "in all namespaces")
    )
    assert {rule.verb for rule in wires.rules(None)} >= {"get", "list", "watch"}


def test_rules_of_namespaced_controller_have_its_namespace() -> None:
    wires = wires_of(declared(namespace="team", owns=["v1/Secret"], writes=["v1/Secret"]), KNOWN)
    for managed in ("managed", None):
        assert {rule.namespace for rule in wires.rules(managed)} == {"team"}
        assert {str(rule) for rule in wires.implied_rules(managed)} == {
            "update configmaps/finalizers in namespace team"
        }
    wires = wires_of(declared(owns=["v1/Secret"], writes=["v1/Secret"]), KNOWN)
    assert [rule.namespace for rule in wires.implied_rules("managed")] == ["managed"]


def test_unknown_written_kinds_are_omitted() -> None:
    wires = wires_of(declared(writes=["v1/Secret", "example.com/v1/Later", Permission(WIDGET)]), KNOWN)
    assert [kind for kind, _ in wires.writes] == [kinds.SECRET, WIDGET]


def test_children_are_watched_indexed_by_owner_and_writable() -> None:
    wires = wires_of(declared(namespace="team", children=["v1/Secret", Watch("v1/Service", source="svc")]), KNOWN)
    narrow = wires_of(declared(children=[Watch("v1/Secret", namespace="vault")]), KNOWN)
    assert {rule.namespace for rule in narrow.rules(None) if rule.resource == "secrets"} == {"vault"}
    assert [(wire.kind, wire.watch.namespace, wire.source) for wire in wires.wires[1:]] == [
        (kinds.SECRET, "team", "owner"),
        (kinds.SERVICE, "team", "svc"),
    ]
    assert all(wire.watch.indexers == {OWNER_INDEX: owner_uids} for wire in wires.wires[1:])
    marks = {"labels": {OWNER_UID: "1"}, "annotations": {APPLIED_BY: "maps", OWNER: "team/a"}}
    elsewhere = Resource.from_dict({"metadata": {"name": "s", "namespace": "other", **marks}})
    mappers: list[Any] = [wire.mapper for wire in wires.wires[1:]]
    assert [[*mapper(elsewhere)] for mapper in mappers] == [["team/a"]] * 2
    assert [child.kind for child in wires.children] == [kinds.SECRET, kinds.SERVICE]
    verbs = [rule.verb for rule in wires.rules(None) if rule.resource == "secrets"]
    assert verbs == ["get", "list", "watch", "create", "patch", "delete"]
    assert "update configmaps/finalizers in namespace team" in {str(rule) for rule in wires.implied_rules(None)}
    assert kinds_named(wires.controller, writes=False) == {"v1/ConfigMap", "v1/Secret", "v1/Service"}


# -- kinds by name


def test_only_kinds_declared_by_name_are_resolved() -> None:
    made = declared(owns=[WIDGET], watches=["v1/Node"], reads=[Watch("v1/Secret")], writes=["v1/Pod", Permission(CM)])
    assert kinds_named(made, writes=False) == {"v1/ConfigMap", "v1/Node", "v1/Secret"}
    assert kinds_named(made, writes=True) == {"v1/ConfigMap", "v1/Node", "v1/Secret", "v1/Pod"}


async def test_only_written_kinds_can_be_missing() -> None:
    async with world() as w:
        found = await look_up(w.client, [declared(reads=["deploy"], writes=["v1/Secret", "example.com/v1/Later"])])
        assert {name: kind.plural for name, kind in found.items()} == {
            "v1/ConfigMap": "configmaps",
            "deploy": "deployments",
            "v1/Secret": "secrets",
        }
        with pytest.raises(UnknownResourceError):
            await look_up(w.client, [declared(reads=["example.com/v1/Later"], writes=["example.com/v1/Later"])])


# -- caches


async def connected(w: World, factory: InformerFactory, made: Controller, namespace: str | None) -> tuple[Any, Views]:
    views = Views()
    loop = ReconcileLoop(
        made,
        views,
        attribution=Attribution(),
        history=History(),
        tracing=Tracing(),
        recorder=None,
        metrics=None,
        clock=lambda: 7.0,
    )
    wires = wires_of(made, await look_up(w.client, [made]))
    options = InformerOptions()
    informers = connect_caches(loop, wires, factory, views, namespace=namespace, options=options, clock=lambda: 7.0)
    assert len(informers) == len(wires.wires)
    return loop, views


def labelled(name: str, namespace: str, **labels: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": namespace, "labels": labels}}


async def test_only_watched_objects_are_queued_with_source_and_time() -> None:
    made = declared(
        namespace="kube-system",
        watches=[
            Watch("v1/Secret", label_selector="app=web", source="by-label"),
            Watch("v1/Service", field_selector="metadata.name=b", source="by-field"),
        ],
        reads=["v1/Node"],
    )
    async with world() as w, InformerFactory(w.client) as factory:
        loop, _ = await connected(w, factory, made, None)
        await factory.wait_for_sync()
        for namespace in ("default", "kube-system"):
            for name in ("a", "b"):
                await w.client.create(CM, labelled(name, namespace))
                await w.client.create(
                    kinds.SECRET, labelled(f"s-{name}", namespace, app="web" if name == "a" else "db")
                )
        written: dict[str, Any] = labelled("a", "default") | {"spec": {"ports": [{"port": 80}]}}
        await w.client.create(kinds.SERVICE, written)
        body: dict[str, Any] = labelled("b", "default") | {"spec": {"ports": [{"port": 80}]}}
        await w.client.create(kinds.SERVICE, body)
        await w.client.create(kinds.NODE, {"metadata": {"name": "n"}})
        await asyncio.sleep(1.0)
        queued: list[str] = []
        while len(loop.queue):
            with await loop.queue.get_work() as work:
                queued += [f"{work.key}: {reason.source} {reason.verb} at {reason.at}" for reason in work.triggers]
        assert sorted(queued) == [
            "default/b: by-field add at 7.0",
            "default/s-a: by-label add at 7.0",
            "kube-system/a: informer add at 7.0",
            "kube-system/b: informer add at 7.0",
            "kube-system/s-a: by-label add at 7.0",
        ]


async def test_handlers_are_named_after_controller_and_source(monkeypatch: pytest.MonkeyPatch) -> None:
    named: list[tuple[str, str]] = []
    add = Informer[Any].add_event_handler

    def noted(informer: Informer[Any], handler: Enqueue, *, name: str = "") -> object:
        named.append((name, handler._name))
        return add(informer, handler, name=name)

    monkeypatch.setattr(Informer, "add_event_handler", noted)
    async with world() as w, InformerFactory(w.client) as factory:
        await connected(w, factory, declared(watches=["v1/Secret"]), None)
    assert [name for name, _ in named] == ["maps: informer v1/ConfigMap", "maps: watch v1/Secret"]
    assert all(handler == name for name, handler in named)


@pytest.mark.parametrize("managed", [None, "default"])
async def test_views_contain_caches_without_selectors(managed: str | None) -> None:
    made = declared(
        indexers={"team": dl.field_path("data.team")},
        owns=[Watch("v1/Secret", namespace="kube-system")],
        reads=[
            "v1/Node",
            Watch("v1/Node", source="again"),
            Watch("v1/Service", label_selector="a=b"),
            Watch("v1/ServiceAccount", field_selector="metadata.name=b"),
        ],
    )
    async with world() as w, InformerFactory(w.client, namespace=managed) as factory:
        _, views = await connected(w, factory, made, managed)
        held = {kind: [view.namespace for view in views.of(kind).views] for kind in (CM, kinds.SECRET, kinds.NODE)}
        assert held == {CM: [managed], kinds.SECRET: ["kube-system"], kinds.NODE: [None]}
        assert views.of(kinds.SERVICE).views == views.of(kinds.SERVICE_ACCOUNT).views == []
        assert "team" in views.of(CM).views[0].informer.indexer.get_indexers()
        assert views.of(CM).views[0].informer.indexer.index_keys("namespace", "x") == []


async def test_closed_controller_loop_stops_mapping() -> None:
    def broken(obj: Resource) -> list[str]:
        raise ValueError("not yet")

    async with world() as w, InformerFactory(w.client) as factory:
        loop, _ = await connected(w, factory, declared(watches=[Watch("v1/Secret", to=broken)]), None)
        await factory.wait_for_sync()
        await w.client.create(kinds.SECRET, labelled("s", "default"))
        await asyncio.sleep(1.0)
        assert [task for task in asyncio.all_tasks() if "failed mappings" in task.get_name()]
        loop.close()
        await asyncio.sleep(0.1)
        assert not [task for task in asyncio.all_tasks() if "failed mappings" in task.get_name()]


def test_transforms_follow_informer_options() -> None:
    obj = Resource.from_dict({"metadata": {"name": "a", "managedFields": [{"manager": "m"}]}}, CM)

    def named(given: Resource) -> Resource:
        return Resource.from_dict({**given.to_dict(), "data": {"seen": str("managedFields" in given["metadata"])}}, CM)

    assert cached_form(InformerOptions(keep_managed_fields=True)) is None
    assert cached_form(InformerOptions(keep_managed_fields=True, transform=named)) is named
    stripped = cached_form(InformerOptions())
    both = cached_form(InformerOptions(transform=named))
    assert stripped is not None
    assert both is not None
    assert "managedFields" not in stripped(obj)["metadata"]
    assert both(obj)["data"] == {"seen": "False"}
