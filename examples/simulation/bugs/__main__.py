"""Looks for all bugs by the default search, and for alarms on what is mended: ``make -C lab simulate-bugs``.

    python -m examples.simulation.bugs [--seconds 60] [--runs NUMBER] [NAME ...]

Prints a table: bug, pattern, how many runs and CPU seconds until it was found, by how many faults; then how many runs
of the mended version raised no alarm in so many seconds. Exit code 1 if a bug is not found, or something mended is.
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


def look(bug: Bug, seconds: float, runs: int) -> bool:
    """Print a line about a bug, and tell whether it was found, and nothing in the mended version."""
    began = time.process_time()
    options = SimulationOptions(runs=runs, seconds=seconds, max_failures=1)
    found = Simulation(bug.scenario(mended=False), options).explore()
    cpu = time.process_time() - began
    clean = Simulation(bug.scenario(mended=True), options).explore()
    first = found.failures[0] if found.failures else None
    told = f"{len(first.schedule)} fault: {first.replay}" if first is not None else "NOT FOUND"
    alarm = f"ALARM: {clean.failures[0].replay}" if clean.failures else "no alarm"
    print(
        f"{bug.name:<16} {bug.pattern:<13} {found.runs:>5} {cpu:>6.1f}   {told:<42} {clean.runs:>6} {alarm}", flush=True
    )
    return first is not None and not clean.failures


def main() -> int:
    """Look for those that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--seconds", type=float, default=60.0, help="for each search")
    parser.add_argument("--runs", type=int, default=_MOST, help="of each search at most")
    asked = parser.parse_args()
    unknown = sorted({*asked.names} - {bug.name for bug in BUGS})
    if unknown:
        parser.error(f"there is no bug {', '.join(unknown)}; known are {', '.join(bug.name for bug in BUGS)}")
    print(f"{'bug':<16} {'pattern':<13} {'runs':>5} {'CPU s':>6}   {'found by':<42} {'runs':>6} mended")
    wanted = [bug for bug in BUGS if not asked.names or bug.name in asked.names]
    right = [look(bug, asked.seconds, asked.runs) for bug in wanted]
    return 0 if all(right) else 1


if __name__ == "__main__":
    sys.exit(main())
