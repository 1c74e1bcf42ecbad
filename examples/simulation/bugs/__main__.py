"""Search for all bugs, and check that the fixed reconcilers have no failures: ``make -C lab simulate-bugs``.

    python -m examples.simulation.bugs [--seconds 60] [--runs NUMBER] [NAME ...]

Prints a table with each bug, its pattern, the runs and CPU seconds until it was found, its faults, and the number of
runs of the fixed version. The exit code is 1 if a bug is not found, or if a fixed version fails.
"""

from __future__ import annotations

import argparse
import sys
import time

from deltaloop.simulation import Simulation, SimulationOptions
from examples.simulation.bugs import intermediate, stale, unobserved
from examples.simulation.bugs.parts import Bug

BUGS = (*intermediate.BUGS, *stale.BUGS, *unobserved.BUGS)
_MOST = 1_000_000


def search(bug: Bug, seconds: float, runs: int) -> bool:
    """Print the line of a bug, and return whether it was found and the fixed version has no failures."""
    began = time.process_time()
    options = SimulationOptions(runs=runs, seconds=seconds, max_failures=1)
    found = Simulation(bug.scenario(fixed=False), options).explore()
    cpu = time.process_time() - began
    clean = Simulation(bug.scenario(fixed=True), options).explore()
    first = found.failures[0] if found.failures else None
    result = f"{len(first.schedule)} fault: {first.replay}" if first is not None else "NOT FOUND"
    alarm = f"ALARM: {clean.failures[0].replay}" if clean.failures else "no alarm"
    print(
        f"{bug.name:<16} {bug.pattern:<13} {found.runs:>5} {cpu:>6.1f}   {result:<42} {clean.runs:>6} {alarm}",
        flush=True,
    )
    return first is not None and not clean.failures


def main() -> int:
    """Search for the specified bugs, or for all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--seconds", type=float, default=60.0, help="time limit of each search in seconds")
    parser.add_argument("--runs", type=int, default=_MOST, help="limit of runs of each search")
    arguments = parser.parse_args()
    unknown = sorted({*arguments.names} - {bug.name for bug in BUGS})
    if unknown:
        parser.error(f"unknown bug {', '.join(unknown)}. Use {', '.join(bug.name for bug in BUGS)}.")
    print(f"{'bug':<16} {'pattern':<13} {'runs':>5} {'CPU s':>6}   {'found by':<42} {'runs':>6} fixed")
    selected = [bug for bug in BUGS if not arguments.names or bug.name in arguments.names]
    passed = [search(bug, arguments.seconds, arguments.runs) for bug in selected]
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())
