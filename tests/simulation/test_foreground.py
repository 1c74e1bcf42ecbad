"""Deletions in the foreground, and what lives as long as a program, in simulated worlds."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

import deltaloop as dl
from deltaloop.client.transport.protocol import HttpRequest
from deltaloop.simulation import Simulation, SimulationOptions, parse_schedule
from deltaloop.simulation.core.schedules import systematic
from deltaloop.testing import Harness
from deltaloop.testing.injected_faults.core.program_writes import FaultKind, WriteName
from deltaloop.testing.programs.noting_transport import in_foreground

MAP, SECRET = dl.kinds.CONFIG_MAP, dl.kinds.SECRET
FOREGROUND = SimulationOptions(combinations=False, faults=(FaultKind.FOREGROUND,))


def operator(lost: list[str], *, garbage_collected: bool) -> dl.Controller:
    @dl.controller(MAP, name="app", children=[SECRET], finalizer="example.com/app")
    async def reconcile(request: dl.Request, ctx: dl.Context) -> None:
        if request.name == "a":
            child = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}}
            await ctx.children.apply(child, garbage_collected=garbage_collected)

    @reconcile.cleanup
    async def clean_up(request: dl.Request, ctx: dl.Context) -> dl.Result | None:
        if request.name == "a":
            if not ctx.memo:
                ctx.memo["seen"] = True
                return dl.Result(requeue_after=60.0)
            if await ctx.client.live.find(SECRET, "a") is None:
                lost.append("a")
            await ctx.children.apply(prune_all=True)
        return None

    return reconcile


@pytest.mark.parametrize("garbage_collected", [True, False])
def test_simulated_user_deletes_in_the_foreground(garbage_collected: bool) -> None:
    lost: list[str] = []

    async def scenario(world: Harness) -> None:
        await world.start(operator(lost, garbage_collected=garbage_collected))
        await world.client.create(MAP, {"metadata": {"name": "a"}})
        await world.settled(timeout=600)
        await world.client.delete(MAP, "a")
        await world.settled(timeout=600)
        assert await world.client.find(SECRET, "a") is None

    simulation = Simulation(scenario, FOREGROUND)
    simulation.run(())
    assert not lost
    simulation.run(parse_schedule("foreground:patch:configmaps:1"))
    assert lost == (["a"] if garbage_collected else [])


def test_foreground_deletion_is_tried_once() -> None:
    names = (WriteName("create", "secrets", "", 1), WriteName("create", "secrets", "", 2))
    assert [str(fault) for schedule in systematic(names, (FaultKind.FOREGROUND,)) for fault in schedule] == [
        "foreground:create:secrets:1"
    ]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (None, b'{"propagationPolicy":"Foreground"}'),
        (b'{"gracePeriodSeconds":0}', b'{"gracePeriodSeconds":0,"propagationPolicy":"Foreground"}'),
        (b'{"propagationPolicy":"Orphan"}', b'{"propagationPolicy":"Orphan"}'),
        (b'{"orphanDependents":true}', b'{"orphanDependents":true}'),
    ],
)
def test_explicit_propagation_policy_is_preserved(body: bytes | None, expected: bytes) -> None:
    request = HttpRequest(method="DELETE", path="/api/v1/namespaces/a/configmaps/b", body=body)
    assert in_foreground(request).body == expected


def test_each_simulated_world_has_own_lifespan() -> None:
    notes: list[str] = []

    @dl.lifespan
    async def pool() -> AsyncIterator[list[str]]:
        notes.append("open")
        yield notes
        notes.append("closed")

    @dl.controller(MAP, lifespan=pool)
    async def reconcile(request: dl.Request, ctx: dl.Context) -> None:
        ctx.lifespan(pool).append(request.name)

    async def scenario(world: Harness) -> None:
        await world.start(reconcile)
        await world.client.create(MAP, {"metadata": {"name": "a"}})
        await world.settled()

    simulation = Simulation(scenario, FOREGROUND)
    for _ in range(2):
        notes.clear()
        simulation.run(())
        assert [note for note in notes if note != "kube-root-ca.crt"] == ["open", "a", "closed"]
