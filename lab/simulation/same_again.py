"""Whether a run comes again step by step: ``make -C lab same-again RUNS=1000`` tries so many schedules of each example.

What the event loop runs is compared, and not only what was written: two steps that change places do no harm today, and
another order of writes tomorrow. Between the two runs objects move to other places in memory, since what is walked in
the order of addresses (a set of tasks) comes in the same order again and again in a process that does nothing else.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import random
import re
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any, cast

from examples.simulation.ordinary import SCENARIOS

from deltaloop.simulation import Simulation, SimulationRun
from deltaloop.simulation.core.schedules import Schedule, combined, names_of, schedule_text, systematic
from deltaloop.simulation.simulator import Scenario

_MOST_MOVED = 3000
_CONTEXT = 3
_RUN, _CALLBACK = "_run", "_callback"  # of asyncio's handles


class SameAgain:
    """Makes runs of a scenario twice."""

    def __init__(self, scenario: Scenario) -> None:
        self._simulation = Simulation(scenario)
        self._draw = random.Random(0).random
        self._held: list[object] = []

    def difference(self, schedule: Schedule) -> str:
        """Make a run twice, and return where the second goes another way; empty if nowhere."""
        (steps, run), (others, other) = self._steps_of(schedule), self._steps_of(schedule)
        if steps == others and run.trace == other.trace:
            return ""
        place = next((place for place, (a, b) in enumerate(zip(steps, others, strict=False)) if a != b), len(steps))
        once, again = (", ".join(each[max(0, place - 1) : place + _CONTEXT]) for each in (steps, others))
        return f"{schedule_text(schedule) or 'without faults'}: step {place} of {len(steps)}: {once}; and then: {again}"

    def schedules(self, number: int) -> Iterator[Schedule]:
        """Give no faults, then others: some of those with one, and some with several."""
        names = names_of(self._simulation.run().writes)
        single = [*systematic(names)]
        yield ()
        for _ in range(number - 1):
            yield single[int(self._draw() * len(single))] if self._draw() < 0.5 else combined(names, self._draw)

    def _steps_of(self, schedule: Schedule) -> tuple[list[str], SimulationRun]:
        self._held = [[None] * int(self._draw() * 40) for _ in range(int(self._draw() * _MOST_MOVED))]
        del self._held[::2]
        with _noted() as steps:
            run = self._simulation.run(schedule)
        return steps, run


@contextmanager
def _noted() -> Generator[list[str], None, None]:
    """Write down what event loops run in this block."""
    steps: list[str] = []
    before = getattr(asyncio.Handle, _RUN)

    def run(handle: asyncio.Handle) -> Any:
        steps.append(_name_of(getattr(handle, _CALLBACK)))
        return before(handle)

    setattr(asyncio.Handle, _RUN, run)
    try:
        yield steps
    finally:
        setattr(asyncio.Handle, _RUN, before)


def _name_of(callback: object) -> str:
    task = getattr(callback, "__self__", None)
    if not isinstance(task, asyncio.Task):
        return str(getattr(callback, "__qualname__", type(callback).__name__))
    frames = cast("asyncio.Task[object]", task).get_stack(limit=1)
    place = f" at {frames[0].f_code.co_name}:{frames[0].f_lineno}" if frames else ""
    return (
        re.sub(r"^Task-\d+$", str(getattr(cast("object", task.get_coro()), "__qualname__", "")), task.get_name())
        + place
    )


def main() -> int:
    """Look at all examples."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=100, help="of each example, each made twice")
    runs = parser.parse_args().runs
    logging.disable(logging.CRITICAL)  # under faults programs complain, as they should
    found = 0
    for name, scenario in SCENARIOS.items():
        again = SameAgain(scenario)
        told = [text for text in map(again.difference, again.schedules(runs)) if text]
        print(f"{name:<18} {runs:>6} runs, {len(told)} of them another way the second time", flush=True)
        found += len(told)
        for text in told[:_CONTEXT]:
            print(f"    {text}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
