"""Send a corpus to the embedded and to the real API server and compare what they answer: ``make -C lab corpus``.

A corpus is a folder with a file of JSON lines for each project: ``{"from": ..., "object": ...}``, CRDs and objects.
``build/corpus.json`` has the figures and each class of difference with one reproduction; ``build/corpus.txt`` has the
classes for reading. It fails if a bound of ``counting.py`` is not met. Without a real server (``make -C lab kube``)
what the embedded one answers is only counted. The objects of built-in kinds (``tests/conformance/shapes.yaml``) are
sent after the projects; their figures are in ``build/corpus-builtin.json``.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from deltaloop.testing.servers.control_plane import ControlPlaneAssets, ControlPlaneError, find_assets
from lab.corpus.builtin.explained import builtin_reason
from lab.corpus.builtin.run import BOUNDS, BuiltinPlan, run_builtin
from lab.corpus.counting import GROUPS, Counts, readable
from lab.corpus.page import PAGE, write_page
from lab.corpus.projects import OWN_PLAN, Plan, ProjectRun
from lab.corpus.reading import Project, read_folder
from lab.corpus.recording import Recorder, Recording
from lab.corpus.sending import Sender
from lab.corpus.servers import Running, embedded, real

ROOT = Path(__file__).resolve().parents[2]
OUTPUT = ROOT / "build" / "corpus.json"
MISSING = "no kube-apiserver was found: `make -C lab kube` builds one, or KUBEBUILDER_ASSETS names a folder with one"
LOG = ROOT / "build" / "corpus-server.log"
OWN = Path(__file__).parent / "own"
ANSWERS = OWN / "answers.gz"


def main() -> None:
    options = parse()
    folder = OWN if options.own or options.record else options.corpus
    projects = list[Project]()
    if not options.builtin:
        try:
            projects = read_folder(folder)
        except FileNotFoundError:
            print(f"no corpus at {folder}; CORPUS names the folder of another one")
    wanted = [project for project in projects if not options.project or project.name in options.project]
    if projects and not wanted:
        sys.exit(f"the projects are {', '.join(project.name for project in projects)}")
    plan = Plan(mutations=options.mutations, seed=options.seed, only=options.only)
    if folder == OWN:
        plan = replace(OWN_PLAN, only=options.only)
    with_builtin = options.builtin or not (options.project or folder == OWN)
    builtin = BuiltinPlan(options.mutations, options.seed, options.only) if with_builtin else None
    OUTPUT.parent.mkdir(exist_ok=True)
    counts, of_builtin = asyncio.run(run(wanted, plan, builtin, own=folder == OWN, record=options.record))
    output: Path = options.output or (OUTPUT.with_name("corpus-own.json") if folder == OWN else OUTPUT)
    figures, builtin_figures = _write(counts, output), _write(of_builtin, output.with_stem(f"{output.stem}-builtin"))
    if wanted and len(wanted) == len(projects) and builtin and not options.only and output == OUTPUT:
        write_page(ROOT / PAGE, figures, builtin_figures)
    short = [*counts.shortcomings(), *of_builtin.shortcomings()]
    for line in short:
        print(f"NOT MET: {line}")
    sys.exit(int(bool(short)))


def _write(counts: Counts, output: Path) -> dict[str, Any]:
    """Write and print what was counted, if anything was."""
    figures = counts.as_json()
    if counts.projects:
        output.parent.mkdir(exist_ok=True)
        output.write_text(json.dumps(figures, indent=1) + "\n")
        output.with_suffix(".txt").write_text(readable(counts.in_order()))
        show(counts)
    return figures


def parse() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m lab.corpus", description=__doc__)
    parser.add_argument("--corpus", type=Path, default=ROOT.parent / "shared" / "corpus", help="the folder")
    parser.add_argument("--project", action="append", default=[], help="only this project; may be given several times")
    parser.add_argument("--only", default="", help="only chains whose name holds this, such as sample-3")
    parser.add_argument("--mutations", type=int, default=Plan.mutations, help="at most so many of each kind")
    parser.add_argument("--seed", type=int, default=Plan.seed, help="chooses the mutations")
    parser.add_argument("--output", type=Path, default=None, help="the file of figures; classes go beside it")
    parser.add_argument(
        "--own", action="store_true", help="our own corpus, and what the real server is known to answer"
    )
    parser.add_argument("--builtin", action="store_true", help="only the objects of built-in kinds")
    parser.add_argument("--record", action="store_true", help="write down anew what a real server answers to it")
    return parser.parse_args()


async def run(
    projects: Sequence[Project], plan: Plan, builtin: BuiltinPlan | None, *, own: bool, record: bool
) -> tuple[Counts, Counts]:
    """Send the projects, one after the other, and the built-in kinds."""
    of_builtin = Counts(bounds=BOUNDS, explain=builtin_reason)
    async with contextlib.AsyncExitStack() as stack:
        running = list[Running]()
        if record:
            # What is sent next depends on the answers: here on the real server's alone.
            two = await stack.enter_async_context(real(_assets() or sys.exit(MISSING)))
            recorder = Recorder(two.server)
            sender, lives = Sender(recorder, recorder), [two.server]
        elif own:
            one = await stack.enter_async_context(embedded(LOG))
            sender, lives = Sender(one.server, Recording.read(ANSWERS)), [one.server]
        elif (assets := _assets()) is None:
            print(f"{MISSING}; what the embedded server answers is compared with nothing")
            one = await stack.enter_async_context(embedded(LOG))
            recorder = Recorder(one.server)
            sender, lives = Sender(recorder, recorder), [one.server]
        else:
            two = await stack.enter_async_context(real(assets))
            one = await stack.enter_async_context(embedded(LOG))
            sender, lives, running = Sender(one.server, two.server), [one.server, two.server], [one, two]
        for project in projects:
            began = time.monotonic()
            await ProjectRun(sender, project, plan, lives=lives, running=running).run()
            count = sender.counts.projects[project.name]["all"]
            took = time.monotonic() - began
            print(f"{project.name:26} {count.requests:6} requests, {count.alike:.2%} alike, {took:.0f} s", flush=True)
        if builtin is not None:
            await run_builtin(replace(sender, counts=of_builtin), lives, builtin)
        if isinstance(sender.real, Recorder):
            outcomes = sender.real.recording.outcomes
            if record:
                sender.real.recording.write(ANSWERS)
            failed = sum(outcome.status == 500 for outcome in outcomes.values())
            print(f"{len(outcomes)} requests, {failed} of them answered with 500")
            sys.exit(0)
    return sender.counts, of_builtin


def _assets() -> ControlPlaneAssets | None:
    try:
        return find_assets()
    except ControlPlaneError as error:
        sys.exit(str(error))


def show(counts: Counts) -> None:
    """Print the figures."""
    print(f"\n{'':26}{'requests':>10}{'equal':>10}{'verdict':>10}")
    for group in GROUPS:
        count = counts.total(group)
        equal = count.equal / count.requests if count.requests else 1.0
        print(f"{group:26}{count.requests:>10}{equal:>10.2%}{count.alike:>10.2%}")


if __name__ == "__main__":
    main()
