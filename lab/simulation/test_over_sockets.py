"""A program in memory and the same program over sockets have the same trace and the same end."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import Any

import pytest
from examples.simulation.ordinary import MAY_DIFFER, SCENARIOS
from tests.nightly import by_day

from deltaloop.simulation import Simulation, SimulationRun, simulator
from deltaloop.simulation.core.end_states import differences
from lab.mutants.edited import edited_module

OVER_SOCKETS: Any = edited_module(
    simulator, ("network=MemoryNetwork()", "network=None"), ("direct=True", "direct=False")
)["Simulation"]


# Over sockets its reconcile can begin before the event of its own status patch arrives, so it sends the patch again.
REPEATS = {"sample_controller"}
# Programs and workers that run at the same time have no order.
PARALLEL = {"database_shards"}
OWN_PORT = frozenset({("v1/Service", "default/kubernetes", "spec", "ports")})


@pytest.mark.parametrize("name", by_day(SCENARIOS, ["provisioner"]))
def test_run_over_sockets_has_same_trace_and_final_state(name: str) -> None:
    in_memory = Simulation(SCENARIOS[name]).run()
    over_sockets: SimulationRun = OVER_SOCKETS(SCENARIOS[name]).run()
    assert len(in_memory.trace) > 1
    if name in REPEATS:
        assert without_repeats(over_sockets.trace) == without_repeats(in_memory.trace)
    elif name in PARALLEL:
        assert sorted(requests(over_sockets.trace)) == sorted(requests(in_memory.trace))
    else:
        assert over_sockets.trace == in_memory.trace
    assert in_memory.end is not None
    assert over_sockets.end is not None
    assert not [*differences(in_memory.end, over_sockets.end, ignored=OWN_PORT.union(MAY_DIFFER))]


def requests(trace: Iterable[str]) -> list[str]:
    """Return the requests without the digests of objects, which contain versions and uids.

    Another order, or the Event of a repeated reconcile, changes both.
    """
    return [line.rpartition(" ")[0] for line in trace]


def without_repeats(trace: Iterable[str]) -> list[str]:
    """Return the requests, but equal ones in a row only once."""
    return [request for request, _ in groupby(requests(trace))]
