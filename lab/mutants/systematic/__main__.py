"""``python -m lab.mutants.systematic --room cache``: seeds mistakes, lists those that tests let pass."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

from lab.mutants.systematic import equivalent, rooms
from lab.mutants.systematic.instrument import Room
from lab.mutants.systematic.report import as_json, as_text
from lab.mutants.systematic.run import Plan, run


def main() -> int:
    """Run, write the result as JSON, print it; 1 if one survives that is in no list."""
    parser = argparse.ArgumentParser(prog="python -m lab.mutants.systematic", description=__doc__)
    parser.add_argument("--room", choices=sorted(rooms.OWN), required=True)
    parser.add_argument("--module", action="append", default=[], help="part of a module's file; all by default")
    parser.add_argument("--function", default="", help="part of a function's name")
    parser.add_argument("--tests", action="append", default=[], help="instead of the room's own tests")
    parser.add_argument("--wide", action="store_true", help="the tests of the rooms that stand on it, too")
    parser.add_argument("--sample", type=int, help="this many mutants of the room, shared out among its modules")
    parser.add_argument("--seed", type=int, default=1, help="of the sample")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--seconds", type=float, help="begin no further mutant after them")
    parser.add_argument("--budget", type=float, help="seconds of computing for the tests of one mutant")
    parser.add_argument("--again", type=Path, help="only the survivors of this earlier result")
    parser.add_argument("--json", type=Path, default=rooms.ROOT / "build" / "mutants.json")
    flags = parser.parse_args()
    modules = [each for each in rooms.modules(flags.room) if not flags.module or any(m in each for m in flags.module)]
    tests = flags.tests or [*rooms.OWN[flags.room], *(rooms.WIDE[flags.room] if flags.wide else ())]
    keys = None
    if flags.again:
        earlier = json.loads(flags.again.read_text())["survivors"]
        keys = {(each["module"], each["function"], each["change"], each["nth"]) for each in earlier}
    plan = Plan(
        Room(rooms.SOURCE, rooms.PACKAGE, modules),
        tests,
        sample=flags.sample,
        seed=flags.seed,
        workers=flags.workers,
        seconds=flags.seconds,
        budget=flags.budget,
        wanted=lambda mutant: flags.function in mutant.function and (keys is None or mutant.key in keys),
        say=lambda line: print(line, file=sys.stderr, flush=True),
    )
    result = run(plan)
    found = as_json(result, equivalent.read())
    found = {
        "room": flags.room,
        "tests_asked": tests,
        "sample": flags.sample,
        "seed": flags.seed,
        "budget": flags.budget,
        **found,
    }
    flags.json.parent.mkdir(parents=True, exist_ok=True)
    flags.json.write_text(json.dumps(found, indent=1))
    print(as_text(found))
    return 1 if found["survivors"] or found["killed_after_all"] or found["broken"] else 0


if __name__ == "__main__":
    os.chdir(rooms.ROOT)
    sys.exit(main())
