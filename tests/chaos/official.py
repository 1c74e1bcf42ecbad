"""The same changes of leadership by force, on the official Python client's elector: what happens there, for comparison.

``python -m tests.chaos.official --python PATH``, where PATH is a Python that has the package ``kubernetes``. It never
fails: what it finds is printed.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path

from deltaloop.leaderelection import ElectionTiming
from tests.chaos.election import FAULTS, Program, run


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", required=True)
    parser.add_argument("--changes", type=int, default=24)
    arguments = parser.parse_args()
    program = Program(
        command=(str(Path(arguments.python).absolute()), str(Path(__file__).with_name("candidate_official.py"))),
        # Its durations are whole seconds.
        timing=ElectionTiming(lease_duration=4.0, renew_deadline=3.0, retry_period=1.0),
        faults=tuple(fault for fault in FAULTS if fault != "pause between check and send"),
        ends_by_itself=True,
        settle=2.0,
    )
    with tempfile.TemporaryDirectory() as folder:
        outcome = asyncio.run(run(arguments.changes, 1, Path(folder), program))
    print("the official Python client's elector:")
    # The first few of a great many say it.
    print("\n".join(outcome.lines(violations=3)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
