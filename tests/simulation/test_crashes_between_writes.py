"""Crashes between writes: each goes as one that has a name, and those that only others' changes tell apart have one."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Sequence

import pytest

import deltaloop as dl
from deltaloop.simulation import Simulation, SimulationOptions, parse_schedule
from deltaloop.simulation.core.end_states import EndState
from deltaloop.simulation.core.oracles import SimulationRun
from deltaloop.testing import Harness, VirtualLoop
from deltaloop.testing.injected_faults.core.program_writes import FaultKind

CONFIG_MAP = dl.kinds.CONFIG_MAP
CRASHES = (FaultKind.CRASH_BEFORE, FaultKind.CRASH_AFTER, FaultKind.CRASH_LATER)


async def has(ctx: dl.Context, name: str) -> bool:
    return await ctx.client.find(CONFIG_MAP, name) is not None


async def make(ctx: dl.Context, name: str) -> None:
    if not await has(ctx, name):
        await ctx.client.create(CONFIG_MAP, {"metadata": {"name": name}})


@dl.controller(CONFIG_MAP, name="guests", writes=[CONFIG_MAP])
async def guests(request: dl.Request, ctx: dl.Context) -> None:
    """Takes a guest that is there when it begins for one from before, and makes a bed that nobody takes away."""
    if request.name == "house":
        await make(ctx, "door")
    if request.name == "guest" and await has(ctx, "guest") and any(each.verb == "initial" for each in ctx.triggers):
        await make(ctx, "bed")
    if request.name == "night":
        for name in ("lock", "lamp"):
            await make(ctx, name)


async def a_guest_comes_and_goes(world: Harness) -> None:
    await world.client.create(CONFIG_MAP, {"metadata": {"name": "house"}})
    await world.start(guests)
    await world.settled()
    await world.client.create(CONFIG_MAP, {"metadata": {"name": "guest"}})
    await world.settled()
    await world.client.delete(CONFIG_MAP, "guest")
    await world.settled()
    await world.client.create(CONFIG_MAP, {"metadata": {"name": "night"}})
    await world.settled()


def test_crash_between_foreign_changes_is_found() -> None:
    """Nothing is written while the guest is there: before and after the writes around it, a crash does no harm."""
    report = Simulation(a_guest_comes_and_goes, SimulationOptions(faults=CRASHES, combinations=False)).explore()
    assert [failure.replay for failure in report.failures] == ["crash-later:create:configmaps:1:1"]
    assert "at change number 1 of other clients after the 1st create of configmaps" in str(report)
    assert report.runs == 3 + 2 * 3 + 2
    assert not report.unused_faults


def test_unused_crash_is_reported() -> None:
    run = Simulation(a_guest_comes_and_goes).run(parse_schedule("crash-later:create:configmaps:3:1"))
    assert [str(name) for name in run.unused_faults] == ["3rd create of configmaps"]


class CrashAtTurn:
    """Steps in the usual order, and a crash before those of one turn of the event loop."""

    def __init__(self, turn: int, world: Harness) -> None:
        self._left = turn
        self._world = world

    def turn(self, tasks: Sequence[object]) -> Sequence[int]:
        self._left -= 1
        if self._left == 0:
            crash = self._world.replicas[0].crash_and_restart
            asyncio.get_running_loop().call_later(0, crash, context=contextvars.Context())
        return range(len(tasks))


def after_the_crash(run: SimulationRun) -> tuple[EndState | None, list[str]]:
    """Return where a run ends, and what its program wrote in its second life."""
    return run.end, [str(write) for write in run.writes if write.at >= 1]


async def stays_open(world: Harness) -> None:
    """The house alone: three writes, between which nobody else changes anything."""
    await world.client.create(CONFIG_MAP, {"metadata": {"name": "night"}})
    await world.client.create(CONFIG_MAP, {"metadata": {"name": "house"}})
    await world.start(guests)
    await world.settled()


@pytest.mark.nightly
def test_crash_at_any_await_matches_crash_at_write() -> None:
    named = Simulation(stays_open)
    writes = [f"{side}:create:configmaps:{number}" for number in (1, 2, 3) for side in ("crash-before", "crash-after")]
    known = [after_the_crash(named.run(parse_schedule(schedule))) for schedule in writes]
    seen: list[tuple[EndState | None, list[str]]] = []

    def crashing(turn: int) -> Simulation:
        async def scenario(world: Harness) -> None:
            loop = asyncio.get_running_loop()
            assert isinstance(loop, VirtualLoop)
            loop.order = CrashAtTurn(turn, world)
            await stays_open(world)

        return Simulation(scenario)

    for turn in range(1, 26):
        seen.append(after_the_crash(crashing(turn).run()))
        assert seen[-1] in known
    assert all(each in seen for each in known)
