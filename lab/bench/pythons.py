"""Runs the tests and a short benchmark on each Python that is here, and writes the table of ``lab/bench/PYTHONS.md``.

    python -m lab.bench.pythons [--pythons python3.12,/opt/python/bin/python3.14t] [--runs 5] [--only-figures]

Each interpreter gets an environment of its own, with the versions that ``constraints.txt`` pins. The load of the
benchmark is that of ``make -C lab bench``: a list of 10 000 Pods, and 50 000 changes of them. Interpreters take turns,
in another order each round. ``lab/bench/results/pythons.json`` keeps what was found.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from lab.bench.page import fill, table
from lab.bench.replay.session import Load, Sample, measure, replay
from lab.bench.samples import commit, machine

ROOT: Final = Path(__file__).parent.parent.parent
RESULTS: Final = ROOT / "lab/bench/results/pythons.json"
PAGE: Final = ROOT / "lab/bench/PYTHONS.md"
NAMES: Final = ("3.11", "3.12", "3.13", "3.13t", "3.14", "3.14t")
LOAD: Final = Load(objects=10_000, events=50_000)
_ASK: Final = """
import json, platform, sys, sysconfig
free = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
name = ".".join(map(str, sys.version_info[:2])) + ("t" if free else "")
print(json.dumps({"name": name, "version": platform.python_version()}))
"""
_COUNT: Final = re.compile(r"(\d+) (passed|failed|error|errors|skipped|xfailed)\b")


def facts(python: str) -> dict[str, str] | None:
    """Return the name and the version of an interpreter; None where there is none."""
    try:
        done = subprocess.run([python, "-c", _ASK], capture_output=True, text=True, timeout=30, check=False)
    except OSError:
        return None
    found: dict[str, str] | None = json.loads(done.stdout) if done.returncode == 0 else None
    return found


def environment(python: str, name: str) -> Path:
    """Make an environment for an interpreter, with the package and its test tools, and return its Python.

    Raises:
        subprocess.CalledProcessError: Something cannot be installed there.
    """
    folder = ROOT / "build" / f"python-{name}"
    inner = folder / "bin" / "python"
    subprocess.run([python, "-m", "venv", str(folder)], timeout=120, check=True)
    pip = [str(inner), "-m", "pip", "--disable-pip-version-check", "--quiet", "install"]
    subprocess.run([*pip, "--upgrade", "pip>=25.1"], timeout=300, check=True)
    wanted = ["-m", "tools.install", "cli", "server", "metrics", "otel", "zstd", "--group", "test"]
    subprocess.run([str(inner), *wanted], cwd=ROOT, timeout=1200, check=True)
    return inner


def run_tests(python: Path) -> dict[str, int]:
    """Run the tests, and return how many passed, failed and were skipped."""
    command = [str(python), "-m", "pytest", "--quiet", "--no-header", "--numprocesses", "2", "--dist", "worksteal"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=3600, check=False)
    found = counts(done.stdout)
    if not found or found.get("failed") or found.get("error"):
        print(done.stdout[-4000:], done.stderr[-2000:], sep="\n")
    return found


def counts(printed: str) -> dict[str, int]:
    """Read pytest's last line."""
    last = printed.rstrip().rpartition("\n")[2]
    return {what.removesuffix("s"): int(number) for number, what in _COUNT.findall(last)}


def figures(pythons: Mapping[str, Path], runs: int) -> dict[str, dict[str, float]]:
    """Measure each interpreter, and return its medians: microseconds for each object and event, and bytes."""
    samples: dict[str, list[Sample]] = {name: [] for name in pythons}
    with replay(kind=LOAD.kind, objects=LOAD.objects, events=LOAD.events, paced=0, root=ROOT, converter=None) as server:
        for number in range(runs):
            order = list(pythons.items())
            for name, python in order if number % 2 == 0 else order[::-1]:
                command = (str(python), "-m", "lab.bench.peers.deltaloop_peer")
                samples[name].append(measure(server, LOAD, command, {"BENCH_OPTIONS": ""}, name=name, root=ROOT))
                print(f"  {number + 1}/{runs} {name}", flush=True)
    return {
        name: {
            "list": statistics.median(each.list_cpu / each.objects * 1e6 for each in own),
            "event": statistics.median(each.watch_cpu / each.events * 1e6 for each in own),
            "bytes": statistics.median(each.retained / each.objects for each in own),
        }
        for name, own in samples.items()
    }


def rows(results: Mapping[str, Any]) -> str:
    """Return the table."""
    found: Mapping[str, Mapping[str, Any]] = results["pythons"]
    lines: list[Sequence[str]] = []
    for name in NAMES:
        each = found.get(name)
        if each is None:
            lines.append([name, "not tried: none was to be had", "", "", ""])
            continue
        tests: Mapping[str, int] = each.get("tests", {})
        passed, wrong = tests.get("passed", 0), tests.get("failed", 0) + tests.get("error", 0)
        said = f"{wrong} of {wrong + passed:,} tests fail" if wrong else f"{passed:,} tests pass"
        said = said if tests else "not in this run"
        own: Mapping[str, float] = each["figures"]
        lines.append([each["version"], said, f"{own['list']:.1f} µs", f"{own['event']:.1f} µs", f"{own['bytes']:,.0f}"])
    head = ["Python", "what works", "list, CPU for each object", "watch, CPU for each event", "bytes for each object"]
    where: Mapping[str, Any] = results["machine"]
    measured = f"{where['cpu']}, {where['cpus']} CPUs, {where['system']}; medians of {results['runs']} runs"
    return f"{table(head, lines)}\n\nCommit {results['commit']}; {measured}. {results.get('note', '')}".rstrip()


def main() -> None:
    """Run all, and write the table."""
    parser = argparse.ArgumentParser(prog="python -m lab.bench.pythons", description=__doc__)
    parser.add_argument("--pythons", default=",".join(f"python{name}" for name in NAMES), help="programs, by commas")
    parser.add_argument("--runs", type=int, default=5, help="rounds of the benchmark")
    parser.add_argument("--only-figures", action="store_true", help="keep what is known of the tests")
    asked = parser.parse_args()
    known: dict[str, Any] = json.loads(RESULTS.read_text())["pythons"] if RESULTS.exists() else {}
    pythons: dict[str, Path] = {}
    for program in str(asked.pythons).split(","):
        fact = facts(program)
        if fact is None:
            print(f"{program}: none here")
            continue
        name = fact["name"]
        print(f"{name}: {fact['version']}", flush=True)
        pythons[name] = environment(program, name)
        known[name] = {**known.get(name, {}), **fact}
        if not asked.only_figures:
            known[name]["tests"] = run_tests(pythons[name])
            print(f"  {known[name]['tests']}", flush=True)
    for name, found in figures(pythons, asked.runs).items():
        known[name]["figures"] = {what: round(value, 1) for what, value in found.items()}
    known = {name: each for name, each in known.items() if "figures" in each}
    results = {"commit": commit(ROOT), "machine": machine(), "runs": asked.runs, "pythons": known}
    scratch = RESULTS.with_suffix(".new")
    scratch.write_text(json.dumps(results, indent=1, sort_keys=True) + os.linesep)
    scratch.replace(RESULTS)
    PAGE.write_text(fill(PAGE.read_text(), {"pythons": rows(results)}))


if __name__ == "__main__":
    main()
