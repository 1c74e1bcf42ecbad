"""What a run of the simulator takes: ``make -C lab bench-simulation``.

Two programs: a small one, which keeps three children of one object, and the Database example. For each: how many runs a
CPU second a search makes, by the defaults; how long a run without faults takes; and how many calls of functions that
is, which no other work on the machine changes. And what a world takes before a program begins: its server, and a
definition that is installed. Times are CPU times.
"""

from __future__ import annotations

import argparse
import gc
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import deltaloop as dl
from deltaloop.simulation import Simulation, SimulationOptions
from deltaloop.simulation.simulator import Scenario
from deltaloop.testing import Harness

_PARENT: Final = dl.kinds.CONFIG_MAP
_ROOT: Final = Path(__file__).parent.parent.parent
_YOUNGEST: Final = 0
_WARM: Final = 3


def small() -> Scenario:
    """Return a scenario: an object with three children is made and changed."""

    @dl.controller(
        _PARENT,
        name="three",
        predicates=[dl.predicates.HasLabels("three")],
        owns=[_PARENT],
        writes=[_PARENT],
    )
    async def three(request: dl.Request, ctx: dl.Context) -> None:
        parent = await ctx.client.find(_PARENT, request.name, namespace=request.namespace)
        if parent is None:
            return

        def change(child: dict[str, Any]) -> None:
            dl.set_controller_reference(child, parent)
            child["data"] = parent["data"]

        for number in range(3):
            name = f"{request.name}-{number}"
            await ctx.client.create_or_update(_PARENT, name, change, namespace=request.namespace)

    async def grows(world: Harness) -> None:
        await world.start(three)
        parent: dict[str, Any] = {"metadata": {"name": "a", "labels": {"three": "yes"}}, "data": {"x": "1"}}
        await world.client.create(_PARENT, parent)
        await world.settled()
        await world.client.patch(_PARENT, "a", {"data": {"x": "2"}})
        await world.settled()

    return grows


def database() -> Scenario:
    """Return that of the Database example."""
    from examples.simulation.ordinary import SCENARIOS

    return SCENARIOS["database"]


def searched(scenario: Scenario, *, runs: int) -> float:
    """Return how many runs a CPU second a search makes; alarms are none of its business."""
    began = time.process_time()
    report = Simulation(scenario, SimulationOptions(runs=runs)).explore()
    return report.runs / (time.process_time() - began)


def alone(scenario: Scenario, *, runs: int) -> tuple[float, float, int]:
    """Return the shortest run without faults, the median, both in seconds, and how many calls one is."""
    simulation = Simulation(scenario)
    times = [_timed(simulation) for _ in range(_WARM + runs)][_WARM:]
    return min(times), statistics.median(times), _calls(simulation.run)


def worlds(*, runs: int) -> tuple[float, float]:
    """Return medians in seconds: from the begin of a run until its scenario begins, and of installing a definition."""
    begins, parts = [0.0], list[tuple[float, float]]()

    async def installs(world: Harness) -> None:
        entered = time.process_time()
        await world.install(_ROOT / "examples" / "database" / "crd.yaml")
        parts.append((entered - begins[0], time.process_time() - entered))

    simulation = Simulation(installs)
    for _ in range(_WARM + runs):
        begins[0] = time.process_time()
        _timed(simulation)
    return statistics.median(part[0] for part in parts[_WARM:]), statistics.median(part[1] for part in parts[_WARM:])


def _timed(simulation: Simulation) -> float:
    began = time.process_time()
    simulation.run()
    gc.collect(_YOUNGEST)
    return time.process_time() - began


def _calls(run: Callable[[], object]) -> int:
    number = 0

    def count(_: object, event: str, __: object) -> None:
        nonlocal number
        number += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        run()
    finally:
        sys.setprofile(None)
    return number


def main() -> None:
    """Print what is measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=300, help="of each search; a fifth of them without faults")
    runs = parser.parse_args().runs
    if os.environ.get("PYTHONHASHSEED", "random") == "random":  # it decides in which order sets are walked
        os.execve(sys.executable, sys.orig_argv, {**os.environ, "PYTHONHASHSEED": "0"})
    print(f"{'program':<10} {'runs a CPU s':>12} {'shortest ms':>12} {'median ms':>10} {'calls':>9}", flush=True)
    for name, scenario in (("small", small()), ("database", database())):
        shortest, median, calls = alone(scenario, runs=max(1, runs // 5))
        found = searched(scenario, runs=runs)
        print(f"{name:<10} {found:>12.1f} {shortest * 1e3:>12.1f} {median * 1e3:>10.1f} {calls:>9}", flush=True)
    server, definition = worlds(runs=max(1, runs // 5))
    print(f"a world: server and harness {server * 1e3:.1f} ms, a definition {definition * 1e3:.1f} ms")


if __name__ == "__main__":
    main()
