"""What is seen of a program in memory is what is seen of it over sockets."""

from __future__ import annotations

from typing import Any

import pytest
from examples.simulation.ordinary import SCENARIOS

from deltaloop.simulation import Simulation, SimulationRun, simulator
from deltaloop.simulation.core.end_states import differences
from tests.mutants.edited import edited_module
from tests.nightly import by_day

OVER_SOCKETS: Any = edited_module(
    simulator, ("network=MemoryNetwork()", "network=None"), ("direct=True", "direct=False")
)["Simulation"]
OWN_PORT = frozenset({("v1/Service", "default/kubernetes", "spec", "ports")})
"""The port of the server itself: the machine's choice over sockets."""


@pytest.mark.parametrize("name", by_day(SCENARIOS, ["provisioner"]))
def test_a_run_has_the_same_trace_and_the_same_end(name: str) -> None:
    in_memory = Simulation(SCENARIOS[name]).run()
    over_sockets: SimulationRun = OVER_SOCKETS(SCENARIOS[name]).run()
    assert len(in_memory.trace) > 1
    assert over_sockets.trace == in_memory.trace
    assert in_memory.end is not None
    assert over_sockets.end is not None
    assert not [*differences(in_memory.end, over_sockets.end, ignored=OWN_PORT)]
