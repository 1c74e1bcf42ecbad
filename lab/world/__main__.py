"""Run other people's programs on the embedded server and on the real one, and compare: ``make -C lab world``.

kube-controller-manager, kube-scheduler, KWOK, kubectl, Helm and sample-controller are built from their Go modules if
they are not there yet, and go through one scenario on both servers. A table is printed, ``build/world.json`` written,
and the logs of all programs are in ``build/world``. It fails if a step does, or if something differs that
``differences.py`` does not list.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from deltaloop.testing.servers.control_plane import ControlPlaneError
from lab.kube.build import go_command
from lab.world import build
from lab.world.compare import Difference, KnownDifference, differences, split
from lab.world.differences import KNOWN
from lab.world.programs import SERVERS
from lab.world.scenario import NAMES, run

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "build" / "world"
RESULT = ROOT / "build" / "world.json"
RUN_SECONDS = 1500.0


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m lab.world", description=__doc__)
    parser.add_argument("steps", nargs="*", help="steps to run; all by default", metavar="STEP")
    parser.add_argument("--server", choices=SERVERS, help="run on one server only, and compare nothing")
    arguments = parser.parse_args()
    if unknown := set(arguments.steps) - set(NAMES):
        parser.error(f"no steps: {', '.join(sorted(unknown))}; there are {', '.join(NAMES)}")
    if go_command() is None and build.missing():
        print(f"skipped: Go is missing, and {', '.join(build.missing())} would have to be built")
        return
    started_at = time.monotonic()
    try:
        assets = build.everything()
    except ControlPlaneError as error:
        sys.exit(str(error))
    built = time.monotonic() - started_at
    FOLDER.mkdir(parents=True, exist_ok=True)
    if arguments.server:
        result = run(arguments.server, assets, FOLDER, arguments.steps or NAMES)
        (FOLDER / f"{arguments.server}.json").write_text(json.dumps(result, indent=1) + "\n")
        sys.exit(any(step["error"] for step in result.values()))
    found = run_both(arguments.steps)
    seconds = time.monotonic() - started_at
    sys.exit(report(found, KNOWN, RESULT, whole=not arguments.steps, built=built, seconds=seconds))


def run_both(steps: list[str]) -> dict[str, dict[str, Any]]:
    """Run the scenario on both servers at the same time: most of it is waiting."""
    files = {server: FOLDER / f"{server}.json" for server in SERVERS}
    with ExitStack() as stack:
        processes: list[subprocess.Popen[bytes]] = []
        for server, file in files.items():
            file.unlink(missing_ok=True)
            process = subprocess.Popen([sys.executable, "-m", "lab.world", "--server", server, *steps], cwd=ROOT)
            stack.callback(process.kill)
            processes.append(process)
        until = time.monotonic() + RUN_SECONDS
        for process in processes:
            process.wait(max(0.0, until - time.monotonic()))
    return {server: json.loads(file.read_text()) for server, file in files.items()}


def report(
    found: Mapping[str, Mapping[str, Any]],
    known: Sequence[KnownDifference],
    file: Path,
    *,
    whole: bool,
    built: float,
    seconds: float,
) -> int:
    """Print and write what came of both runs; return the exit code: 0 if nothing failed and nothing is unexplained."""
    embedded, real = (found[server] for server in SERVERS)
    rows: list[dict[str, Any]] = []
    unexplained: list[Difference] = []
    used: dict[str, int] = {}
    print(f"\n{'step':24}{'embedded':>10}{'real':>10}{'records':>9}{'unlike':>8}{'known':>7}")
    for name in embedded:
        records = [side[name]["records"] for side in (embedded, real)]
        left, explained = split(differences(records[0], records[1], name), known)
        unexplained += left
        for each, those in explained.items():
            used[each.path] = used.get(each.path, 0) + len(those)
        row: dict[str, Any] = {
            "step": name,
            "seconds": {server: found[server][name]["seconds"] for server in SERVERS},
            "errors": {server: found[server][name]["error"] for server in SERVERS},
            "records": len(records[1]),
            "unlike": [vars(each) for each in left],
            "known": sum(map(len, explained.values())),
        }
        rows.append(row)
        times = "".join(
            f"{'failed' if row['errors'][server] else format(row['seconds'][server], '.1f') + ' s':>10}"
            for server in SERVERS
        )
        print(f"{name:24}{times}{row['records']:9}{len(left):8}{row['known']:7}")
    unused = [each.path for each in known if whole and not used.get(each.path)]
    file.write_text(
        json.dumps({"build_seconds": round(built), "seconds": round(seconds), "steps": rows}, indent=1) + "\n"
    )
    for row in rows:
        for server, error in row["errors"].items():
            if error:
                print(f"\n{row['step']} failed on the {server} server: {error}")
    for difference in unexplained:
        print(f"\n{difference}")
    for path in unused:
        print(f"\nno difference needs this line any more: {path}")
    failed = any(error for row in rows for error in row["errors"].values())
    print(f"\n{seconds:.0f} s, of which {built:.0f} s to build; {file} has it all")
    return int(failed or bool(unexplained) or bool(unused))


if __name__ == "__main__":
    main()
