"""What a running controller imports, and what of it is ours: CPU time and memory on top of its dependencies alone.

    python -m lab.bench.imports [--runs 21] [--names] [--write]

The operator of the bench runs in a process of its own, against the server that answers at once, until it has done its
first objects; then it says what it has imported. In fresh processes that is imported again, in its order, in three
steps, each of which is read off: what others have made (with what that needs of the standard library), what else there
is of the standard library, and ours. ``--write`` puts this part into the committed summary and writes the page.
"""

from __future__ import annotations

import argparse
import asyncio
import compileall
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from lab.bench import page
from lab.bench.controller.load import connect
from lab.bench.controller.operators import Operator
from lab.bench.controller.phases import running
from lab.bench.controller.programs.deltaloop_imports import FILE
from lab.bench.controller.servers import ROOT, Server, replayed
from lab.bench.summary import SUMMARY, write_summary

OURS: Final = "deltaloop"
DEPENDENCIES, STANDARD_LIBRARY, FACADE = "dependencies", "standard library", "facade"
_PROGRAM: Final = "lab.bench.controller.programs.deltaloop_imports"
_OBJECTS: Final = 2
_LIMIT: Final = 60.0
_TURNS: Final = 20_000_000
# Nothing is imported for what is read off; memory is given in pages.
_PROBE: Final = """
import sys, time
def now():
    with open("/proc/self/statm") as file:
        return time.process_time(), int(file.read().split()[1])
seen = [now()]
for names in sys.stdin.readlines():
    for name in names.split():
        if name not in sys.modules:
            __import__(name)
    seen.append(now())
for before, after in zip(seen, seen[1:]):
    print(after[0] - before[0], after[1] - before[1])
"""


def modules_of_a_controller() -> list[str]:
    """Run the operator until it has done its first objects; return the names of its modules, as they were imported.

    Raises:
        RuntimeError: If it does not do its work.
    """
    with tempfile.TemporaryDirectory() as folder, replayed() as server:
        file = Path(folder) / "modules"
        operator = Operator(
            name=OURS,
            built=Path(),
            command=(sys.executable, "-m", _PROGRAM),
            environment={FILE: str(file)},
        )
        asyncio.run(_first_objects(operator, server))
        return file.read_text().split()


async def _first_objects(operator: Operator, server: Server) -> None:
    async with connect(server) as load:
        await load.seed(_OBJECTS, "first")
        with running(operator, server) as process:
            try:
                await load.done(_LIMIT)
            finally:
                process.check()


def steps(names: Sequence[str]) -> dict[str, list[str]]:
    """Sort modules by whose they are; what begins a process, and the bench's own, are nobody's."""
    found: dict[str, list[str]] = {DEPENDENCIES: [], STANDARD_LIBRARY: [], OURS: []}
    for name in names:
        top = name.partition(".")[0]
        if top == OURS:
            found[OURS].append(name)
        elif top in sys.stdlib_module_names:
            found[STANDARD_LIBRARY].append(name)
        elif top not in {"lab", "__main__"}:
            found[DEPENDENCIES].append(name)
    return found


def measured(names: Mapping[str, Sequence[str]], *, runs: int) -> dict[str, dict[str, float]]:
    """Import modules in fresh processes; return the medians of CPU seconds and resident bytes of each step.

    Args:
        names: What is imported in each step.
        runs: How many processes; one more is not counted.

    Raises:
        RuntimeError: If something cannot be imported.
    """
    compileall.compile_dir(ROOT / "src", quiet=1)  # as installed: compiled once
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    asked, page_size = "".join(" ".join(each) + "\n" for each in names.values()), os.sysconf("SC_PAGE_SIZE")
    rounds: list[list[list[float]]] = []
    for _ in range(runs + 1):
        done = subprocess.run(
            [sys.executable, "-c", _PROBE],
            cwd=ROOT,
            env=environment,
            input=asked,
            capture_output=True,
            text=True,
            timeout=_LIMIT,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"what a controller imports cannot be imported: {done.stderr[-400:]}")
        rounds.append([[float(word) for word in line.split()] for line in done.stdout.splitlines()])
    return {
        name: {
            "modules": len(modules),
            "cpu": statistics.median(each[step][0] for each in rounds[1:]),
            "bytes": statistics.median(each[step][1] for each in rounds[1:]) * page_size,
        }
        for step, (name, modules) in enumerate(names.items())
    }


def imports(*, runs: int) -> dict[str, Any]:
    """Return what importing the façade takes, and what a running controller's modules take, step by step.

    With them is the CPU time of a loop that does nothing, which tells how fast the machine was.
    """
    found = measured(steps(modules_of_a_controller()), runs=runs)
    began = time.process_time()
    for _ in range(_TURNS):
        pass
    loop = time.process_time() - began
    return {"loop": loop, FACADE: measured({FACADE: [OURS]}, runs=runs)[FACADE], "controller": found}


def main() -> None:
    """Print what is measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=21)
    parser.add_argument("--names", action="store_true", help="print the names of the modules as well")
    parser.add_argument("--write", action="store_true", help="put it into the committed summary and the page")
    arguments = parser.parse_args()
    if arguments.write:
        found = imports(runs=arguments.runs)
        write_summary(SUMMARY, {**json.loads(SUMMARY.read_text()), "import": found})
        page.write(ROOT, json.loads(SUMMARY.read_text()))
        print(json.dumps(found, indent=2))
        return
    names = steps(modules_of_a_controller())
    for name, each in measured(names, runs=arguments.runs).items():
        size = f"{each['bytes'] / 2**20:6.2f} MiB"
        print(f"{name:<17} {each['modules']:4.0f} modules {each['cpu'] * 1e3:6.1f} ms {size}")
        if arguments.names:
            print("   ", *names[name])


if __name__ == "__main__":
    main()
