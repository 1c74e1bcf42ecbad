"""Garbage collection over HTTP: background, foreground, orphaning, several owners."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.apiserver.serving import CONFIG_MAPS, CRDS, WIDGETS, Answer, Caller, config_map, serving, widget, widget_crd

GC = frozenset({"gc"})


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


async def test_dependents_go_with_their_owner_and_theirs_with_them() -> None:
    async with serving(controllers=GC) as on:
        a = await on.call.created(CONFIG_MAPS, config_map("a"))
        b = await on.call.created(CONFIG_MAPS, config_map("b", ownerReferences=[owner(a)]))
        await on.call.created(CONFIG_MAPS, config_map("c", ownerReferences=[owner(b)]))
        await on.call.created(CONFIG_MAPS, config_map("free"))
        assert await names(on.call) == ["a", "b", "c", "free"]
        await on.call.delete(f"{CONFIG_MAPS}/a")
        assert await names(on.call) == ["free"]


async def test_without_the_controller_dependents_stay_as_on_the_real_server() -> None:
    async with serving() as on:
        a = await on.call.created(CONFIG_MAPS, config_map("a"))
        await on.call.created(CONFIG_MAPS, config_map("b", ownerReferences=[owner(a)]))
        await on.call.delete(f"{CONFIG_MAPS}/a")
        assert await names(on.call) == ["b"]


async def test_an_object_with_another_owner_only_loses_the_reference() -> None:
    async with serving(controllers=GC) as on:
        a = await on.call.created(CONFIG_MAPS, config_map("a"))
        b = await on.call.created(CONFIG_MAPS, config_map("b"))
        await on.call.created(CONFIG_MAPS, config_map("c", ownerReferences=[owner(a), owner(b)]))
        await on.call.delete(f"{CONFIG_MAPS}/a")
        assert await names(on.call) == ["b", "c"]
        assert (await on.call.get(f"{CONFIG_MAPS}/c")).json["metadata"]["ownerReferences"] == [owner(b)]


async def test_an_owner_that_never_was_or_is_elsewhere_is_absent_but_not_of_an_unknown_kind() -> None:
    async with serving(controllers=GC) as on:
        await on.call.created("/api/v1/namespaces", {"metadata": {"name": "other"}})
        far = await on.call.created("/api/v1/namespaces/other/configmaps", config_map("far"))
        ghost = {**owner(far), "uid": "never"}
        await on.call.created(CONFIG_MAPS, config_map("a", ownerReferences=[owner(far)]))
        await on.call.created(CONFIG_MAPS, config_map("b", ownerReferences=[ghost]))
        unknown = {"apiVersion": "x.example/v1", "kind": "What", "name": "x", "uid": "u"}
        await on.call.created(CONFIG_MAPS, config_map("c", ownerReferences=[unknown]))
        assert await names(on.call) == ["c"]


async def test_a_successor_of_the_same_name_is_not_the_owner() -> None:
    async with serving(controllers=GC) as on:
        a = await on.call.created(CONFIG_MAPS, config_map("a"))
        await on.call.delete(f"{CONFIG_MAPS}/a")
        await on.call.created(CONFIG_MAPS, config_map("a"))
        await on.call.created(CONFIG_MAPS, config_map("b", ownerReferences=[owner(a)]))
        assert await names(on.call) == ["a"]


async def test_foreground_waits_for_dependents_that_block() -> None:
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


async def test_orphans_stay_without_their_reference() -> None:
    async with serving(controllers=GC) as on:
        a = await on.call.created(CONFIG_MAPS, config_map("a"))
        await on.call.created(CONFIG_MAPS, config_map("b", ownerReferences=[owner(a)]))
        await on.call.delete(f"{CONFIG_MAPS}/a", {"propagationPolicy": "Orphan"})
        assert await names(on.call) == ["b"]
        assert "ownerReferences" not in (await on.call.get(f"{CONFIG_MAPS}/b")).json["metadata"]


async def test_dependents_of_custom_resources_go_with_the_crd() -> None:
    async with serving(controllers=GC) as on:
        await on.call.created(CRDS, widget_crd())
        w = await on.call.created(WIDGETS, widget("w"))
        await on.call.created(CONFIG_MAPS, config_map("a", ownerReferences=[owner(w)]))
        assert await names(on.call) == ["a"]
        await on.call.delete(f"{CRDS}/widgets.example.com")
        assert await names(on.call) == []


async def test_a_collector_that_fell_behind_looks_at_everything() -> None:
    async with serving(controllers=GC, window=1) as on:
        a = await on.call.created(CONFIG_MAPS, config_map("a"))
        for number in range(5):
            await on.call.created(CONFIG_MAPS, config_map(f"b{number}", ownerReferences=[owner(a)]))
        await on.call.delete(f"{CONFIG_MAPS}/a")
        assert await names(on.call) == []
