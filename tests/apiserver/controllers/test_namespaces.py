"""Clean-up of namespaces over HTTP."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest

from deltaloop.apiserver import Manifest
from tests.apiserver.serving import config_map, serving

X = "/api/v1/namespaces/x"
CLEAN = frozenset({"namespace"})


async def test_deleting_a_namespace_deletes_its_objects() -> None:
    async with serving(controllers=CLEAN) as on:
        await on.call.created("/api/v1/namespaces", {"metadata": {"name": "x"}})
        await on.call.created(f"{X}/configmaps", config_map("a"))
        await on.call.created(f"{X}/secrets", {"metadata": {"name": "s"}})
        await on.call.created("/api/v1/namespaces/default/configmaps", config_map("a"))
        assert (await on.call.delete(X)).json["status"]["phase"] == "Terminating"
        await asyncio.sleep(0.01)
        assert (await on.call.get(X)).status == 404
        assert (await on.call.get(f"{X}/configmaps")).names == []
        assert (await on.call.get("/api/v1/configmaps")).names == ["a"]
        await on.call.created("/api/v1/namespaces", {"metadata": {"name": "x"}})


async def test_finalizer_of_an_object_delays_namespace_deletion() -> None:
    async with serving(controllers=CLEAN) as on:
        await on.call.created("/api/v1/namespaces", {"metadata": {"name": "x"}})
        await on.call.created(f"{X}/configmaps", config_map("a", finalizers=["example.com/hold"]))
        await on.call.delete(X)
        await asyncio.sleep(0.01)
        assert (await on.call.get(X)).json["spec"]["finalizers"] == ["kubernetes"]
        revision = on.server.revision
        await asyncio.sleep(10)
        assert on.server.revision == revision  # it waits and does not write meanwhile
        await on.call.patch(f"{X}/configmaps/a", {"metadata": {"finalizers": None}})
        await asyncio.sleep(0.01)
        assert (await on.call.get(X)).status == 404


async def test_namespace_remains_terminating_without_the_controller() -> None:
    async with serving() as on:
        await on.call.created("/api/v1/namespaces", {"metadata": {"name": "x"}})
        await on.call.delete(X)
        await asyncio.sleep(10)
        assert (await on.call.get(X)).json["status"]["phase"] == "Terminating"


@pytest.mark.parametrize(("count", "size", "most"), [(50, 10, 40), (20, 50_000, 4)], ids=["many", "large"])
async def test_deletions_per_event_loop_iteration_are_bounded(count: int, size: int, most: int) -> None:
    async with serving(controllers=CLEAN) as on:
        for name in ("x", "y"):
            await on.call.created("/api/v1/namespaces", {"metadata": {"name": name}})
            metadata = {"finalizers": ["example.com/hold"], "namespace": name}
            made = (config_map(f"a{number}", {"a": "b" * size}, **metadata) for number in range(count))
            on.server.load(Manifest("a", number, each) for number, each in enumerate(made))
        revisions = [on.server.revision]
        deletions = [asyncio.create_task(on.call.delete(f"/api/v1/namespaces/{name}")) for name in ("x", "y")]
        while on.server.revision < revisions[0] + 2 * count + 2:
            await asyncio.sleep(0)
            revisions.append(on.server.revision)
        await asyncio.gather(*deletions)
    assert max(after - before for before, after in pairwise(revisions)) <= most
