"""Coordinated leases (KEP-4355), end to end in virtual time: candidates, pings, the choice, and a better one later."""

from __future__ import annotations

import asyncio
from typing import Any

from deltaloop.api.times import format_micro_time
from tests.apiserver.serving import Serving, loop_clock, serving

CANDIDATES = "/apis/coordination.k8s.io/v1beta1/namespaces/default/leasecandidates"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
ON = {"controllers": frozenset({"coordinated-leases"})}


def now() -> str:
    return format_micro_time(loop_clock())


async def stand(on: Serving, name: str, version: str, **spec: Any) -> None:
    wanted = {
        "leaseName": "job",
        "strategy": "OldestEmulationVersion",
        "binaryVersion": version,
        "emulationVersion": version,
        "renewTime": now(),
        **spec,
    }
    await on.call.created(CANDIDATES, {"metadata": {"name": name}, "spec": wanted})


async def renew(on: Serving, path: str) -> None:
    changed = await on.call.patch(path, {"spec": {"renewTime": now()}})
    assert changed.status == 200, changed.text


async def lease(on: Serving) -> dict[str, Any]:
    spec: dict[str, Any] = (await on.call.get(f"{LEASES}/job")).json["spec"]
    return spec


async def test_lease_candidates_are_not_served_by_default() -> None:
    async with serving() as on:
        assert (await on.call.get(CANDIDATES)).status == 404


async def test_live_candidate_with_oldest_version_is_elected() -> None:
    async with serving(**ON) as on:
        await stand(on, "new", "1.36.0")
        await asyncio.sleep(1)
        assert (await lease(on))["holderIdentity"] == "new"
        assert (await lease(on))["strategy"] == "OldestEmulationVersion"
        assert (await lease(on))["leaseDurationSeconds"] == 5
        await renew(on, f"{LEASES}/job")
        # A better one comes while the Lease is held: the holder is told who should have it.
        await stand(on, "old", "v1.35")
        await asyncio.sleep(1)
        spec = await lease(on)
        assert (spec["holderIdentity"], spec["preferredHolder"]) == ("new", "old")
        # The holder lets it run out; everybody is asked whether they live, and one does not answer.
        await stand(on, "dead", "1.20.0", renewTime=None)
        await asyncio.sleep(5)
        for _ in range(10):
            await asyncio.sleep(1)
            for name in ("new", "old"):
                await renew(on, f"{CANDIDATES}/{name}")
        spec = await lease(on)
        assert (spec["holderIdentity"], spec["leaseTransitions"]) == ("old", 1)
        assert "preferredHolder" not in spec
        assert (await on.call.get(f"{CANDIDATES}/dead")).json["spec"]["pingTime"]


async def test_candidates_without_renewal_for_30_minutes_are_deleted() -> None:
    async with serving(**ON) as on:
        await stand(on, "a", "1.36.0")
        await asyncio.sleep(30 * 60 + 10)
        assert (await on.call.get(CANDIDATES)).names == []


async def test_lease_with_unknown_strategy_gets_no_holder() -> None:
    async with serving(**ON) as on:
        await stand(on, "a", "1.36.0", strategy="example.com/Mine")
        await asyncio.sleep(1)
        assert await lease(on) == {"strategy": "example.com/Mine"}
