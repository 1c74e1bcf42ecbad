"""A run comes again step by step."""

from __future__ import annotations

import asyncio

import pytest
from examples.simulation.ordinary import SCENARIOS

from deltaloop.simulation import parse_schedule
from deltaloop.testing import Harness
from tests.simulation.same_again import SameAgain


@pytest.mark.parametrize(
    ("name", "faults"),
    [
        ("replicator", ""),
        ("provisioner", "crash-before:create:persistentvolumes:2"),
        ("sample_controller", "stale:update:deployments.apps:1:5"),
        ("database", "parted:apply:secrets:1"),
    ],
)
def test_an_example_goes_the_same_way_again(name: str, faults: str) -> None:
    assert not SameAgain(SCENARIOS[name]).difference(parse_schedule(faults))


def test_a_set_of_events_that_is_walked_goes_another_way() -> None:
    async def scenario(world: Harness) -> None:
        events = {asyncio.Event() for _ in range(20)}
        for number, event in enumerate(sorted(events, key=id, reverse=True)):
            asyncio.get_running_loop().create_task(event.wait(), name=f"waiter {number}")
        await world.idle()
        for event in events:
            event.set()
        await world.idle()

    again = SameAgain(scenario)
    assert any(again.difference(()) for _ in range(20))
