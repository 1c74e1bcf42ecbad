"""A storm of objects with children and a status: nothing is lost, and hardly a request is sent that changes nothing.

Two replicas of the Database example contend for a lease, in virtual time, while specs and settings change, leaders
crash or are parted from the server, and the server goes away. Somebody else says that StatefulSets are ready.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from examples.database.controller import reconcile

import deltaloop as dl
from deltaloop.apiserver import ApiServer
from deltaloop.testing import Harness, ProgramWrite

DATABASE = "example.com/v1/Database"
CRD = Path(__file__).parents[2] / "examples/database/crd.yaml"
SET, MAP = dl.kinds.STATEFUL_SET, dl.kinds.CONFIG_MAP
OBJECTS = 20
ROUNDS = 6
MOST_REQUESTS = 1.05


class Cluster:
    """Those who write beside the controller, and the versions that they have made."""

    def __init__(self, client: dl.Client, seed: int) -> None:
        self.client = client
        self.random = random.Random(seed)
        self.versions: set[str] = set()

    async def change(self) -> None:
        """Change a third of all specs, and some settings."""
        for number in self.random.sample(range(OBJECTS), OBJECTS // 3):
            spec: dict[str, Any] = {"replicas": self.random.randint(0, 9)}
            if self.random.random() < 0.3:
                spec["configRef"] = {"name": f"settings-{number % 3}"}
            await self._patch(DATABASE, f"d-{number}", {"spec": spec})
        data = {"data": {"max_connections": str(self.random.randint(1, 999))}}
        await self._patch(MAP, f"settings-{self.random.randint(0, 2)}", data)

    async def run_servers(self) -> None:
        """Say that all servers are up that are wanted."""
        for found in await self.client.list_all(SET):
            counts = {f"{name}eplicas": found["spec"]["replicas"] for name in ("r", "readyR", "availableR", "updatedR")}
            await self._patch(SET, found.name, {"status": {**counts, "observedGeneration": found.generation}}, "status")

    async def _patch(self, kind: Any, name: str, patch: Mapping[str, Any], subresource: str = "") -> None:
        before = await self.client.get(kind, name)
        stored = await self.client.patch(kind, name, dict(patch), subresource=subresource or None)
        if stored.resource_version != before.resource_version:
            self.versions.add(stored.resource_version)


def without_effect(writes: list[ProgramWrite], known: set[str]) -> list[str]:
    """Return the writes that the server has answered, and that made no new version."""
    seen, idle = set(known), list[str]()
    for write in writes:
        if write.code and (not write.carried_out or write.version in seen):
            idle.append(f"{write.code} {write}")
        seen.add(write.version)
    return idle


async def storm(harness: Harness, server: ApiServer, seed: int) -> Cluster:
    cluster = Cluster(harness.client, seed)
    await harness.install(CRD)
    for number in range(3):
        settings: dict[str, Any] = {"metadata": {"name": f"settings-{number}"}, "data": {"max_connections": "100"}}
        await harness.client.create(MAP, settings)
    for _ in range(2):
        await harness.start(reconcile, leader_election=True)
    for number in range(OBJECTS):
        await harness.client.create(DATABASE, {"metadata": {"name": f"d-{number}"}, "spec": {}})
    for turn in range(ROUNDS):
        await cluster.change()
        leader = harness.leader
        match turn % 3:
            case 0 if leader is not None:
                await leader.crash()
                await leader.restart()
            case 1 if leader is not None:
                with leader.partition():
                    await harness.advance(20)
            case _:
                await server.faults.restart(0.5)
        await cluster.change()
        await harness.settled(timeout=600)
        await cluster.run_servers()
    await harness.settled(timeout=600)
    return cluster


@pytest.mark.nightly
@pytest.mark.slow
async def test_storm_of_children_converges_with_few_redundant_requests(
    deltaloop_harness: Harness, deltaloop_server: ApiServer
) -> None:
    harness = deltaloop_harness
    cluster = await storm(harness, deltaloop_server, seed=1)
    maps = [await harness.client.get(MAP, f"settings-{number}") for number in range(3)]
    settings = {found.name: found["data"]["max_connections"] for found in maps}
    sets = {found.name: found for found in await harness.client.list_all(SET)}
    for found in await harness.client.list_all(DATABASE):
        spec, status, servers = found["spec"], found["status"], sets[found.name]["spec"]
        assert servers["replicas"] == spec["replicas"]
        wanted = [f"max_connections={settings[spec['configRef']['name']]}"] if "configRef" in spec else []
        assert list(servers["template"]["spec"]["containers"][0].get("args", ())[1:]) == wanted
        assert status["observedGeneration"] == found.generation
        assert (status["readyReplicas"], status["conditions"][0]["status"]) == (spec["replicas"], "True")
    idle = without_effect(harness.writes, cluster.versions)
    answered = sum(write.code > 0 for write in harness.writes)
    assert not [text for text in idle if text.startswith("2")]  # no status and no child is written without a change
    assert answered > OBJECTS * 8
    assert answered <= MOST_REQUESTS * (answered - len(idle)), idle
