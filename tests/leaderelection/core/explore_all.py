"""Visits every state of every setting, in two processes: ``make -C lab explore-election``."""

from __future__ import annotations

import resource
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from typing import Final

from tests.leaderelection.core.explorer import Result, explore
from tests.leaderelection.core.frozen import Member
from tests.leaderelection.core.settings import HALVES, SLOW, THREE, TWO, USUAL
from tests.leaderelection.core.worlds import Settings

QUICK: Final = replace(THREE, slow_answers=False)

# The shortest first, so that there is something to read soon.
BEYOND: Final[dict[str, Settings]] = {
    "two, clocks 1 and 0.6": replace(TWO, members=(USUAL, replace(USUAL, rate=0.6))),
    "three, clocks 1, 1 and 0.6; quick answers": replace(
        QUICK, members=(USUAL, USUAL, replace(USUAL, rate=0.6)), crashes=False, restarts=False
    ),
}
SAFE: Final[dict[str, Settings]] = {
    "two: crashes, new names": TWO,
    "two, one slow clock, half ticks: crashes, new names": replace(
        TWO, members=(Member(HALVES), Member(HALVES, rate=11 / 16))
    ),
    "two: crashes, new names, giving up": replace(TWO, releases=True),
    "two, one slow clock: crashes, new names, giving up": replace(TWO, members=(USUAL, SLOW), releases=True),
    "two, different durations: crashes, new names, giving up": replace(
        TWO, members=(USUAL, Member(HALVES)), releases=True
    ),
    "three, two slow clocks; quick answers": replace(QUICK, members=(USUAL, SLOW, SLOW), crashes=False, restarts=False),
    "three, one slow clock: crashes, new names; quick answers": replace(QUICK, members=(USUAL, USUAL, SLOW)),
    "three: crashes, new names": THREE,
}


def main() -> int:
    """Explore everything; the exit code is 1 if anything is not as it should be."""
    began = time.monotonic()
    failed = False
    with ProcessPoolExecutor(max_workers=2) as processes:
        results = {processes.submit(explore, settings): name for name, settings in {**BEYOND, **SAFE}.items()}
        for finished in as_completed(results):
            name, result = results[finished], finished.result()
            print(f"{name}\n    {result}", flush=True)
            failed |= _judge(name, result)
    most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024**2
    print(f"all of it took {time.monotonic() - began:.0f} s, and at most {most:.1f} GB for each of two processes")
    return 1 if failed else 0


def _judge(name: str, result: Result) -> bool:
    if name in BEYOND:
        print("    two leaders are found, as they must be:" if result.violation else "    NOT FOUND")
        print("\n".join(f"    {number:2} {step}" for number, step in enumerate(result.violation, start=1)))
        return not result.violation
    for what, steps in (("two leaders", result.violation), ("nobody comes to lead", result.stuck)):
        if steps:
            print(f"    {what}:", *steps, sep="\n      ")
    return bool(result.violation or result.stuck or not result.complete)


if __name__ == "__main__":
    sys.exit(main())
