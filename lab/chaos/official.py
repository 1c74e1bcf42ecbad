"""The same changes of leadership by force, on the official Python client's elector: what happens there, for comparison.

``python -m lab.chaos.official --python PATH``, where PATH is a Python that has the package ``kubernetes``. It never
fails: what it finds is printed.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path

from deltaloop.leaderelection import ElectionTiming
from deltaloop.leaderelection.clock import boot_time
from lab.chaos.election import FAULTS, Program, run_at_once


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", required=True)
    parser.add_argument("--changes", type=int, default=200)
    parser.add_argument("--elections", type=int, default=5, help="how many elections at once share the changes")
    arguments = parser.parse_args()
    program = Program(
        command=(str(Path(arguments.python).absolute()), str(Path(__file__).with_name("candidate_official.py"))),
        # The shortest that it takes: its durations are whole seconds.
        timing=ElectionTiming(lease_duration=3.0, renew_deadline=2.0, retry_period=1.0),
        faults=tuple(fault for fault in FAULTS if fault != "pause between check and send"),
        ends_by_itself=True,
        settle=2.0,
    )
    began = boot_time()
    outcome = asyncio.run(run_at_once(arguments.changes, arguments.elections, 1, program))
    print("the official Python client's elector:")
    # The first few of a great many say it.
    print("\n".join(outcome.lines(violations=3)))
    print(f"took {boot_time() - began:.0f} s, {arguments.elections} elections at once")
    return 0


if __name__ == "__main__":
    sys.exit(main())
