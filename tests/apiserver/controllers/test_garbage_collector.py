"""Garbage collection over HTTP: background, foreground, orphaning, several owners."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.apiserver.serving import (
    CONFIG_MAPS,
    CRDS,
    PODS,
    WIDGETS,
    Answer,
    Caller,
    Serving,
    config_map,
    serving,
    widget,
    widget_crd,
)

GC = frozenset({"gc"})
OLD = "example.com/v1beta1"
RCS = "/api/v1/namespaces/default/replicationcontrollers"
CONTAINER = {"name": "c", "image": "web:1"}


def owner(made: Answer, **extra: Any) -> dict[str, Any]:
    obj = made.json
    metadata = obj["metadata"]
    return {
        "apiVersion": obj["apiVersion"],
        "kind": obj["kind"],
        "name": metadata["name"],
        "uid": metadata["uid"],
        **extra,
    }


async def names(call: Caller) -> list[str]:
    await asyncio.sleep(0.01)
    return (await call.get(CONFIG_MAPS)).names


async def test_deleting_an_owner_deletes_direct_and_indirect_dependents() -> None:
    async with serving(controllers=GC) as on:
        a = await on.call.created(CONFIG_MAPS, config_map("a"))
        b = await on.call.created(CONFIG_MAPS, config_map("b", ownerReferences=[owner(a)]))
        await on.call.created(CONFIG_MAPS, config_map("c", ownerReferences=[owner(b)]))
        await on.call.created(CONFIG_MAPS, config_map("free"))
        assert await names(on.call) == ["a", "b", "c", "free"]
        await on.call.delete(f"{CONFIG_MAPS}/a")
        assert await names(on.call) == ["free"]


async def test_dependents_are_kept_without_the_controller() -> None:
    async with serving() as on:
        a = await on.call.created(CONFIG_MAPS, config_map("a"))
        await on.call.created(CONFIG_MAPS, config_map("b", ownerReferences=[owner(a)]))
        await on.call.delete(f"{CONFIG_MAPS}/a")
        assert await names(on.call) == ["b"]


async def test_dependent_with_another_owner_loses_only_the_reference() -> None:
    async with serving(controllers=GC) as on:
        a = await on.call.created(CONFIG_MAPS, config_map("a"))
        b = await on.call.created(CONFIG_MAPS, config_map("b"))
        await on.call.created(CONFIG_MAPS, config_map("c", ownerReferences=[owner(a), owner(b)]))
        await on.call.delete(f"{CONFIG_MAPS}/a")
        assert await names(on.call) == ["b", "c"]
        assert (await on.call.get(f"{CONFIG_MAPS}/c")).json["metadata"]["ownerReferences"] == [owner(b)]


async def test_missing_owner_is_absent_but_owner_of_unknown_kind_is_not() -> None:
    async with serving(controllers=GC) as on:
        await on.call.created("/api/v1/namespaces", {"metadata": {"name": "other"}})
        far = await on.call.created("/api/v1/namespaces/other/configmaps", config_map("far"))
        ghost = {**owner(far), "uid": "never"}
        await on.call.created(CONFIG_MAPS, config_map("a", ownerReferences=[owner(far)]))
        await on.call.created(CONFIG_MAPS, config_map("b", ownerReferences=[ghost]))
        unknown = {"apiVersion": "x.example/v1", "kind": "What", "name": "x", "uid": "u"}
        await on.call.created(CONFIG_MAPS, config_map("c", ownerReferences=[unknown]))
        assert await names(on.call) == ["c"]


async def test_recreated_object_with_the_same_name_is_not_the_owner() -> None:
    async with serving(controllers=GC) as on:
        a = await on.call.created(CONFIG_MAPS, config_map("a"))
        await on.call.delete(f"{CONFIG_MAPS}/a")
        await on.call.created(CONFIG_MAPS, config_map("a"))
        await on.call.created(CONFIG_MAPS, config_map("b", ownerReferences=[owner(a)]))
        assert await names(on.call) == ["a"]


async def test_foreground_deletion_waits_for_blocking_dependents() -> None:
    async with serving(controllers=GC) as on:
        a = await on.call.created(CONFIG_MAPS, config_map("a"))
        held = config_map("b", ownerReferences=[owner(a, blockOwnerDeletion=True)], finalizers=["example.com/hold"])
        await on.call.created(CONFIG_MAPS, held)
        await on.call.created(CONFIG_MAPS, config_map("c", ownerReferences=[owner(a)]))
        deleted = await on.call.delete(f"{CONFIG_MAPS}/a", {"propagationPolicy": "Foreground"})
        assert deleted.json["metadata"]["finalizers"] == ["foregroundDeletion"]
        assert await names(on.call) == ["a", "b"]
        await on.call.patch(f"{CONFIG_MAPS}/b", {"metadata": {"finalizers": []}})
        assert await names(on.call) == []


async def test_orphan_policy_keeps_dependents_without_owner_reference() -> None:
    async with serving(controllers=GC) as on:
        a = await on.call.created(CONFIG_MAPS, config_map("a"))
        await on.call.created(CONFIG_MAPS, config_map("b", ownerReferences=[owner(a)]))
        await on.call.delete(f"{CONFIG_MAPS}/a", {"propagationPolicy": "Orphan"})
        assert await names(on.call) == ["b"]
        assert "ownerReferences" not in (await on.call.get(f"{CONFIG_MAPS}/b")).json["metadata"]


async def test_deleting_a_crd_deletes_dependents_of_its_objects() -> None:
    async with serving(controllers=GC) as on:
        await on.call.created(CRDS, widget_crd())
        w = await on.call.created(WIDGETS, widget("w"))
        await on.call.created(CONFIG_MAPS, config_map("a", ownerReferences=[owner(w)]))
        assert await names(on.call) == ["a"]
        await on.call.delete(f"{CRDS}/widgets.example.com")
        assert await names(on.call) == []


async def test_collector_that_fell_behind_lists_all_objects() -> None:
    async with serving(controllers=GC, window=1) as on:
        a = await on.call.created(CONFIG_MAPS, config_map("a"))
        for number in range(5):
            await on.call.created(CONFIG_MAPS, config_map(f"b{number}", ownerReferences=[owner(a)]))
        await on.call.delete(f"{CONFIG_MAPS}/a")
        assert await names(on.call) == []


async def with_old_owner(on: Serving) -> Answer:
    """Create a widget, and a dependent whose owner reference names a version that the server then stops to serve."""
    await on.call.created(CRDS, widget_crd())
    w = await on.call.created(WIDGETS, widget("w"))
    await on.call.created(CONFIG_MAPS, config_map("old", ownerReferences=[{**owner(w), "apiVersion": OLD}]))
    await on.call.created(CONFIG_MAPS, config_map("new", ownerReferences=[owner(w)]))
    await on.call.patch(f"{CRDS}/widgets.example.com", {"spec": {"versions": widget_crd()["spec"]["versions"][:1]}})
    return w


async def test_dependent_is_kept_if_owner_version_is_not_served() -> None:
    async with serving(controllers=GC) as on:
        await with_old_owner(on)
        assert await names(on.call) == ["new", "old"]
        await on.call.delete(f"{WIDGETS}/w")
        assert await names(on.call) == ["old"]


async def test_dependent_is_deleted_once_owner_version_is_served_again() -> None:
    async with serving(controllers=GC) as on:
        await with_old_owner(on)
        await on.call.delete(f"{WIDGETS}/w")
        await on.call.patch(f"{CRDS}/widgets.example.com", {"spec": widget_crd()["spec"]})
        assert await names(on.call) == []


async def test_dependent_is_unchanged_while_one_owner_kind_is_unknown() -> None:
    async with serving(controllers=GC) as on:
        w = await with_old_owner(on)
        a = await on.call.created(CONFIG_MAPS, config_map("a"))
        owners = [owner(a), {**owner(w), "apiVersion": OLD}]
        await on.call.created(CONFIG_MAPS, config_map("both", ownerReferences=owners))
        await on.call.delete(f"{CONFIG_MAPS}/a")
        assert await names(on.call) == ["both", "new", "old"]
        assert (await on.call.get(f"{CONFIG_MAPS}/both")).json["metadata"]["ownerReferences"] == owners


async def test_owner_reference_can_use_another_served_version() -> None:
    async with serving(controllers=GC) as on:
        await on.call.created(CRDS, widget_crd())
        w = await on.call.created(WIDGETS, widget("w"))
        await on.call.created(CONFIG_MAPS, config_map("a", ownerReferences=[{**owner(w), "apiVersion": OLD}]))
        assert await names(on.call) == ["a"]
        await on.call.delete(f"{WIDGETS}/w")
        assert await names(on.call) == []


@pytest.mark.parametrize(
    ("changed", "left"),
    [
        ({"name": "another"}, ["a"]),
        ({"kind": "Secret"}, ["a"]),
        ({"apiVersion": "apps/v1", "kind": "Deployment"}, ["a"]),
        ({"apiVersion": "v2"}, ["a", "b"]),
        ({"kind": "Unheard"}, ["a", "b"]),
    ],
)
async def test_owner_lookup_uses_version_kind_and_name(changed: dict[str, str], left: list[str]) -> None:
    async with serving(controllers=GC) as on:
        a = await on.call.created(CONFIG_MAPS, config_map("a"))
        await on.call.created(CONFIG_MAPS, config_map("b", ownerReferences=[{**owner(a), **changed}]))
        assert await names(on.call) == left


async def test_cluster_scoped_object_with_namespaced_owner_is_kept() -> None:
    async with serving(controllers=GC) as on:
        a = await on.call.created(CONFIG_MAPS, config_map("a"))
        for name, reference in (("one", owner(a)), ("two", {**owner(a), "uid": "never"})):
            role = {"metadata": {"name": name, "ownerReferences": [reference]}}
            await on.call.created("/apis/rbac.authorization.k8s.io/v1/clusterroles", role)
        await on.call.delete(f"{CONFIG_MAPS}/a")
        await asyncio.sleep(0.01)
        assert (await on.call.get("/apis/rbac.authorization.k8s.io/v1/clusterroles")).names == ["one", "two"]


async def test_events_are_not_collected() -> None:
    async with serving(controllers=GC) as on:
        a = await on.call.created(CONFIG_MAPS, config_map("a"))
        events = "/api/v1/namespaces/default/events"
        about = {"kind": "ConfigMap", "name": "a", "namespace": "default"}
        await on.call.created(
            events, {"metadata": {"name": "e", "ownerReferences": [owner(a)]}, "involvedObject": about}
        )
        await on.call.delete(f"{CONFIG_MAPS}/a")
        await asyncio.sleep(0.01)
        assert (await on.call.get(events)).names == ["e"]


async def test_foreground_deletion_of_circular_owners_completes() -> None:
    async with serving(controllers=GC) as on:
        a = await on.call.created(CONFIG_MAPS, config_map("a"))
        b = await on.call.created(CONFIG_MAPS, config_map("b", ownerReferences=[owner(a, blockOwnerDeletion=True)]))
        circle = {"metadata": {"ownerReferences": [owner(b, blockOwnerDeletion=True)]}}
        await on.call.patch(f"{CONFIG_MAPS}/a", circle)
        await on.call.delete(f"{CONFIG_MAPS}/a", {"propagationPolicy": "Foreground"})
        assert await names(on.call) == []


@pytest.mark.parametrize(
    ("options", "left"),
    [(None, ["pod"]), ({"propagationPolicy": "Background"}, []), ({"orphanDependents": False}, [])],
)
@pytest.mark.parametrize("kind", ["Job", "ReplicationController"])
async def test_pods_of_deleted_job_are_orphaned_by_default(
    kind: str, options: dict[str, Any] | None, left: list[str]
) -> None:
    async with serving(controllers=GC) as on:
        path = "/apis/batch/v1/namespaces/default/jobs" if kind == "Job" else RCS
        template = {"metadata": {"labels": {"a": "b"}}, "spec": {"restartPolicy": "Always", "containers": [CONTAINER]}}
        if kind == "Job":
            template["spec"] = {"restartPolicy": "Never", "containers": [CONTAINER]}
        made = await on.call.created(path, {"metadata": {"name": "a"}, "spec": {"template": template}})
        child = {"metadata": {"name": "pod", "ownerReferences": [owner(made)]}, "spec": {"containers": [CONTAINER]}}
        await on.call.created(PODS, child)
        await on.call.delete(f"{path}/a", options)
        await asyncio.sleep(0.01)
        assert (await on.call.get(path)).names == []
        assert (await on.call.get(PODS)).names == left
