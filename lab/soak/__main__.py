"""The command line: ``python -m lab.soak --hours 2``, or ``--days 365`` in virtual time."""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import logging
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from deltaloop.testing import run_virtual
from lab.soak.report import table, write
from lab.soak.run import REPLICAS, Course, soak
from lab.soak.slope import BOUNDS, SHORT_BOUNDS, Trend, trends
from lab.soak.work import LEAKS
from lab.soak.year import DAY, MONTH, Calendar, virtual_soak

_SHORT = 0.5
"""In less than so many hours caches are not full yet: memory has no bound then."""


def main() -> None:
    """Run from the command line; 1 if something grows or did not happen."""
    parser = argparse.ArgumentParser(description="Soak a manager and a server, and fit what they hold.")
    parser.add_argument("--hours", type=float, default=2.0)
    parser.add_argument("--days", type=float, default=0.0, help="so many in virtual time, instead of the hours")
    parser.add_argument("--round", type=float, default=30.0, help="seconds; shortened where there are not 40 of them")
    parser.add_argument("--leak", choices=LEAKS, default="", help="what is left behind on purpose")
    parser.add_argument("--folder", help="a new one, for all that the processes keep; a temporary one by default")
    parser.add_argument("--report", type=Path, default=Path("build/soak"))
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.CRITICAL)
    with TemporaryDirectory() as temporary:
        folder = Path(arguments.folder or temporary)
        if arguments.days:
            report, found = in_virtual_time(arguments.days, folder, leak=arguments.leak)
        else:
            report, found = in_real_time(arguments.hours, arguments.round, folder, leak=arguments.leak)
    write(arguments.report, report, trends=found)
    print(table(found), *report["missing"], sep="\n")
    raise SystemExit(1 if report["missing"] or not all(each.holds for each in found) else 0)


def in_real_time(hours: float, seconds: float, folder: Path, *, leak: str) -> tuple[dict[str, Any], list[Trend]]:
    """Run for hours, and fit each process."""
    course = Course(seconds=hours * 3600, round=max(3.0, min(seconds, hours * 90)), leak=leak)
    outcome = asyncio.run(soak(course, folder))
    both = [together(sample) for sample in outcome.samples]
    found = trends(both, outcome.times, BOUNDS if hours >= _SHORT else SHORT_BOUNDS)
    log = (folder / "log").read_text()[-20_000:]
    return {"course": dataclasses.asdict(course), **dataclasses.asdict(outcome), "log": log, **_shown(found)}, found


def together(sample: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, float]]:
    """Add the replicas up: which of them leads, and so holds more, changes."""
    added = {quantity: sum(sample[name][quantity] for name in REPLICAS) for quantity in sample[REPLICAS[0]]}
    return {"server": {**sample["server"]}, "replicas": added}


def in_virtual_time(days: float, folder: Path, *, leak: str) -> tuple[dict[str, Any], list[Trend]]:
    """Run for days of virtual time, and fit all in one."""
    calendar = Calendar(length=days * DAY, month=min(MONTH, days / 12 * DAY), leak=leak)
    outcome = run_virtual(virtual_soak(calendar, folder))
    found = trends(outcome.samples, outcome.times)
    print(*(f"{what}: {number:,.0f}" for what, number in outcome.happened.items()), sep="\n")
    print(f"CPU: {outcome.cpu_seconds:.0f} s\n")
    return {"calendar": dataclasses.asdict(calendar), **dataclasses.asdict(outcome), **_shown(found)}, found


def _shown(found: list[Trend]) -> dict[str, Any]:
    return {"trends": [{**dataclasses.asdict(each), "holds": each.holds} for each in found]}


if __name__ == "__main__":
    main()
