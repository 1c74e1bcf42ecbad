"""A cache that is behind the others, and a server that is restored from a backup."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

import deltaloop as dl
from deltaloop.apiserver import ApiServer, ServerOptions
from deltaloop.errors import InvalidArgumentError
from deltaloop.simulation import Oracle, Simulation, SimulationOptions, parse_schedule
from deltaloop.simulation.core.schedules import ALL_KINDS, ON_REQUEST
from deltaloop.testing import Cluster, Harness
from deltaloop.testing.harness import state_of
from deltaloop.testing.injected_faults.core.program_writes import FaultKind
from tests.having import having

MAP, SECRET = dl.kinds.CONFIG_MAP, dl.kinds.SECRET
Reconcile = Callable[[dl.Request, dl.Context], Awaitable[None]]


def app(make: Callable[[], Reconcile]) -> Callable[[Harness], Awaitable[None]]:
    """An app is asked for, and has a Secret and a ConfigMap of its own."""

    async def scenario(world: Harness) -> None:
        reconcile = make()

        @dl.controller(MAP, name="app", writes=[MAP, SECRET], children=[SECRET])
        async def controller(request: dl.Request, ctx: dl.Context) -> None:
            if request.name == "app":
                await reconcile(request, ctx)

        await world.client.create(MAP, {"metadata": {"name": "app"}})
        await world.start(controller)
        await world.settled()

    return scenario


async def child(ctx: dl.Context, kind: Any, name: str, **fields: Any) -> None:
    owner = await ctx.client.get(MAP, "app")

    def wanted(obj: dict[str, Any]) -> None:
        obj.update(fields)
        ref = {"apiVersion": "v1", "kind": "ConfigMap", "name": "app", "uid": owner.uid, "controller": True}
        obj["metadata"]["ownerReferences"] = [ref]

    await ctx.client.create_or_update(kind, name, wanted)


def remembers() -> Reconcile:
    """Makes a Secret once, and believes for as long as it lives that it is there."""
    made: set[str] = set()

    async def reconcile(_: dl.Request, ctx: dl.Context) -> None:
        if not made:
            await child(ctx, SECRET, "key", data={"a": "eA=="})
            made.add("key")
        await child(ctx, MAP, "settings", data={"key": "key"})

    return reconcile


def looks() -> Reconcile:
    """The same, fixed."""

    async def reconcile(_: dl.Request, ctx: dl.Context) -> None:
        await child(ctx, SECRET, "key", data={"a": "eA=="})
        await child(ctx, MAP, "settings", data={"key": "key"})

    return reconcile


RESTORED = parse_schedule("restored:create:configmaps:1")


def test_program_with_stale_memory_fails_after_restore() -> None:
    failure = Simulation(app(remembers)).replay(RESTORED)
    assert failure is not None
    assert [str(problem) for problem in failure.problems] == ["v1/Secret default/key is missing"]
    told = str(failure)
    assert "after the 1st create of configmaps, the server is restored from a backup made after the" in told
    assert "create secrets default/key -> 201, undone by the restore" in told
    assert [write.undone for write in failure.run.writes] == [True, True, False]
    assert Simulation(app(looks)).replay(RESTORED) is None, "what was made anew is no alarm"


def test_user_changes_survive_restore_and_environment_continues() -> None:
    async def scenario(world: Harness) -> None:
        await world.environment("jobs")
        await app(looks)(world)
        await world.client.patch(MAP, "app", {"data": {"more": "yes"}})
        spec: dict[str, Any] = {
            "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "a"}]}}
        }
        await world.client.create(dl.kinds.JOB, {"metadata": {"name": "by-hand"}, "spec": spec})
        await world.settled()

    simulation = Simulation(scenario)
    assert simulation.replay(RESTORED) is None
    assert not simulation.run(RESTORED).unused_faults


@pytest.mark.nightly
def test_restore_is_tried_only_on_request() -> None:
    assert FaultKind.RESTORED in ON_REQUEST
    assert FaultKind.RESTORED not in ALL_KINDS
    kinds = (FaultKind.RESTORED, FaultKind.LOST_RESPONSE)
    report = Simulation(app(remembers), SimulationOptions(runs=12, faults=kinds)).explore()
    assert {problem.oracle for failure in report.failures for problem in failure.problems} == {Oracle.END_STATE}
    assert all(failure.replay.startswith("restored:") for failure in report.failures), "reduced to what it needs"
    assert not Simulation(app(looks), SimulationOptions(runs=20, faults=kinds)).explore().failures


async def test_restore_needs_own_embedded_server() -> None:
    async with ApiServer(ServerOptions(insecure_http=True)) as server:
        cluster = Cluster(server.kubeconfig(), embedded=True, shared=False)
        async with dl.connect(kubeconfig=cluster.kubeconfig) as client, Harness(cluster, client) as harness:
            with pytest.raises(InvalidArgumentError, check=having(argument="restore_backup()")):
                state_of(harness).restore_backup()
            server.compact()
            with pytest.raises(InvalidArgumentError, check=having(argument="revision")):
                server.faults.restore_backup(2)


def seen_at(schedule: str, simulation: type[Simulation] = Simulation) -> dict[str, float]:
    """Return when a program has seen an object of each of two kinds, and its own change of the first one."""
    times: dict[str, float] = {}

    def see(name: str) -> None:
        times.setdefault(name, asyncio.get_running_loop().time())

    async def scenario(world: Harness) -> None:
        @dl.controller(MAP, name="maps", writes=[MAP, SECRET])
        async def maps(request: dl.Request, ctx: dl.Context) -> None:
            see(request.name)
            if request.name == "app":
                await ctx.client.create_or_update(SECRET, "key", lambda fields: fields.update(data={"a": "eA=="}))
                await ctx.client.create_or_update(MAP, "settings", lambda fields: fields.update(data={"a": "b"}))

        @dl.controller(SECRET, name="secrets")
        async def secrets(request: dl.Request, _: dl.Context) -> None:
            see(request.name)

        await world.client.create(MAP, {"metadata": {"name": "app"}})
        await world.start(maps, secrets)
        await world.settled()

    assert not simulation(scenario).run(parse_schedule(schedule)).unused_faults
    return times


def test_one_kind_can_be_delayed() -> None:
    assert max(seen_at("").values()) < 1
    for_secrets = seen_at("delayed-kind:create:secrets:1")
    assert 30 <= for_secrets["key"] < 40
    assert for_secrets["settings"] < 1, "the other kind is seen as ever"
    for_all = seen_at("delayed-watch:create:secrets:1")
    assert min(for_all["key"], for_all["settings"]) >= 30
    assert "watches of secrets deliver no events" in parse_schedule("delayed-kind:create:secrets:1")[0].story
