"""A run comes again step by step."""

from __future__ import annotations

import asyncio
import random
import time
import uuid

import pytest
from examples.simulation.ordinary import SCENARIOS

import deltaloop as dl
from deltaloop.simulation import Simulation, parse_schedule
from deltaloop.testing import Harness
from lab.simulation.same_again import SameAgain


@pytest.mark.parametrize(
    ("name", "faults"),
    [
        ("replicator", ""),
        ("provisioner", "crash-before:create:persistentvolumes:2"),
        ("sample_controller", "stale:update:deployments.apps:1:5"),
        ("database", "partition:apply:secrets:1"),
    ],
)
def test_example_is_deterministic(name: str, faults: str) -> None:
    assert not SameAgain(SCENARIOS[name]).difference(parse_schedule(faults))


@pytest.mark.nightly
def test_plain_functions_are_deterministic() -> None:
    kind = dl.kinds.CONFIG_MAP

    @dl.controller(kind, name="plain", writes=[kind], workers=4)
    def plain(request: dl.Request, ctx: dl.Context) -> None:
        """Works for a while, asks, writes, and makes a note beside."""
        found = ctx.wait(ctx.client.find(kind, request.name))
        if found is None or "by" in found.get("data", {}):
            return
        sum(range(len(request.name) * 1000))
        time.sleep(random.random())  # noqa: TID251 - as an operator may have it
        ctx.wait(ctx.client.patch(kind, request.name, {"data": {"by": str(uuid.uuid4()), "at": str(time.time())}}))

    async def scenario(world: Harness) -> None:
        for number in range(8):
            await world.client.create(kind, {"metadata": {"name": f"a-{number}"}})
        await world.start(plain)
        await world.settled()

    again = SameAgain(scenario)
    assert len(Simulation(scenario).run().writes) == 8
    for faults in ("", "", "crash-after:patch:configmaps:3", "pause:patch:configmaps:4", "order:random:3"):
        assert not again.difference(parse_schedule(faults))


def test_iteration_over_set_of_events_is_nondeterministic() -> None:
    async def scenario(world: Harness) -> None:
        events = {asyncio.Event() for _ in range(20)}
        for number, event in enumerate(sorted(events, key=id, reverse=True)):
            asyncio.get_running_loop().create_task(event.wait(), name=f"waiter {number}")
        await world.advance(0)
        for event in events:
            event.set()
        await world.advance(0)

    again = SameAgain(scenario)
    assert any(again.difference(()) for _ in range(20))
