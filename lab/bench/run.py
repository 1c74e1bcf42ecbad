"""The benchmark: ``make -C lab bench`` runs everything, ``make -C lab bench BENCH=short`` what continuous integration
can run.

    python -m lab.bench.run full [--runs 5] [--events 50000] [--cases list-10k,watch-50k] [--peers official] [--fresh]
    python -m lab.bench.run short
    python -m lab.bench.run row --cases list-10k --peers client-go-dynamic
    python -m lab.bench.run check          against the committed ratios
    python -m lab.bench.run page           the page and its pictures from the committed summary

Peers run in turn, each in a process of its own, ours among them; the order changes from round to round. Each sample is
kept in a file below ``build/bench/samples`` as it is made, by a digest of all sources that it depends on: a run that
was interrupted goes on, and samples of other sources are never mixed in.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, final

from lab.bench import cases, extras, page
from lab.bench.cases import Scenario
from lab.bench.controller.results import kept
from lab.bench.peers.catalogue import BUILD, FLOOR, GO_PEER, OURS, Peer, available
from lab.bench.replay.session import Load, Replay, measure, replay
from lab.bench.rows import Row, as_documents, growth_rows, rows_of
from lab.bench.samples import SampleFiles, commit, identity, machine, versions
from lab.bench.summary import SUMMARY, write_summary

ROOT: Final = Path(__file__).parent.parent.parent
SHORT_SUMMARY: Final = ROOT / BUILD / "short-summary.json"
TOLERANCE: Final = 1.5  # of a ratio: medians of three on a busy machine differ by as much as 1.3
MORE_ROUNDS: Final = (3, 9, 21)  # what looks worse is measured further: other work on the machine passes, a cause stays


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a run measures.

    Attributes:
        scenarios: Loads.
        peers: Those that were built.
        runs: Rounds of each scenario.
        full: Whether the long forms of what is measured beside the peers are taken.
    """

    scenarios: Sequence[Scenario]
    peers: Sequence[Peer]
    runs: int
    full: bool = True
    failed: dict[str, str] = field(default_factory=dict[str, str])


@final
class Run:
    """One run, or what is left of it."""

    def __init__(self, plan: Plan, files: SampleFiles) -> None:
        """Measure nothing yet."""
        self._plan = plan
        self._files = files
        self._began = time.monotonic()

    def _print(self, text: str) -> None:
        print(f"[{time.monotonic() - self._began:7.0f} s] {text}", flush=True)

    def measure_peers(self) -> None:
        """Make the samples that are missing."""
        for number, scenario in enumerate(self._plan.scenarios, 1):
            self._print(f"scenario {number} of {len(self._plan.scenarios)}: {scenario.name}")
            self._measure(scenario)

    def _measure(self, scenario: Scenario) -> None:
        peers = [each for each in self._plan.peers if scenario.takes(each)]
        missing = {
            (peer.name, round_number)
            for peer in peers
            for round_number in range(self._plan.runs)
            if not self._files.has(scenario.name, peer.name, round_number)
        }
        with contextlib.ExitStack() as servers:
            open_servers: dict[int, Replay] = {}
            for round_number in range(self._plan.runs):
                for peer in cases.order(peers, round_number):
                    failure = f"{scenario.name} {peer.name}"
                    if (peer.name, round_number) not in missing or failure in self._plan.failed:
                        continue
                    load = scenario.load_of(peer)
                    if load.objects not in open_servers:
                        open_servers[load.objects] = servers.enter_context(self._server(scenario, load))
                    try:
                        self._sample(scenario, peer, round_number, open_servers[load.objects])
                    except RuntimeError as error:
                        self._plan.failed[failure] = str(error)
                        self._print(f"  {peer.name} FAILED and is left out of this scenario: {error}")

    def _server(self, scenario: Scenario, load: Load) -> contextlib.AbstractContextManager[Replay]:
        typed = any(peer.wire == "protobuf" and scenario.takes(peer) for peer in self._plan.peers)
        return replay(
            kind=load.kind,
            objects=load.objects,
            events=scenario.load.events,
            paced=load.paced,
            root=ROOT,
            converter=GO_PEER if typed and load.kind == "pods" else None,
        )

    def _sample(self, scenario: Scenario, peer: Peer, round_number: int, server: Replay) -> None:
        load = scenario.load_of(peer)
        sample = measure(server, load, peer.command, peer.environment, name=peer.name, root=ROOT)
        self._files.write(scenario.name, peer.name, round_number, sample)
        text = f"  {round_number + 1}/{self._plan.runs} {peer.name:<20}"
        text += f" list {sample.list_cpu / sample.objects * 1e6:8.1f} us {sample.retained / sample.objects:8.0f} B"
        if sample.events:
            text += f"  event {sample.watch_cpu / sample.events * 1e6:8.1f} us"
        self._print(text)

    def measure_the_rest(self) -> dict[str, Any]:
        """Return what is measured beside the peers; one that fails is named instead."""
        found: dict[str, Any] = {}
        for name, run in extras.all_of(ROOT, full=self._plan.full, runs=self._plan.runs).items():
            noted = self._files.noted(name)
            if noted is None:
                self._print(name)
                try:
                    noted = run()
                except (RuntimeError, OSError) as error:
                    self._plan.failed[name] = str(error)
                    self._print(f"  {name} FAILED: {error}")
                    continue
                self._files.note(name, noted)
            found[name] = noted
        return found

    def self_test(self) -> dict[str, Any]:
        """Return how fast the server is, in bytes a second, read by the plainest client."""
        noted = self._files.noted("self-test")
        if noted is None:
            sizes = {"objects": 10_000, "events": 10_000} if self._plan.full else {"objects": 1_000, "events": 1_000}
            with replay(kind="pods", **sizes, paced=0, root=ROOT, converter=None, self_test=True) as server:
                noted = dict(server.facts)
            self._files.note("self-test", noted)
        speeds = noted["bytes_per_second"]
        text = ", ".join(
            f"{name} {what} {speeds[name][what] / 1e6:.0f} MB/s" for name in speeds for what in speeds[name]
        )
        self._print(f"the replay server's own speed: {text}")
        return noted

    def rows(self) -> list[Row]:
        """Return the rows of all samples."""
        found = list[Row]()
        for scenario in self._plan.scenarios:
            found += rows_of(scenario, self._plan.peers, self.samples(scenario))
        return [*found, *growth_rows(found)]

    def samples(self, scenario: Scenario) -> dict[str, dict[int, Any]]:
        """Return the samples of a scenario by peer and round."""
        by_peer = {each.name: self._files.read(scenario.name, each.name) for each in self._plan.peers}
        return {name: samples for name, samples in by_peer.items() if samples}


def summary_of(run: Run, plan: Plan, rest: dict[str, Any], skipped: Sequence[str]) -> dict[str, Any]:
    """Return everything that is committed."""
    raw = {
        scenario.name: {
            peer: [_plain(sample) for _, sample in sorted(samples.items())]
            for peer, samples in run.samples(scenario).items()
        }
        for scenario in plan.scenarios
    }
    raw = {name: samples for name, samples in raw.items() if samples}
    return {
        "commit": commit(ROOT),
        "machine": machine(),
        "versions": versions(ROOT),
        "runs": plan.runs,
        "skipped": list(skipped),
        "failed": plan.failed,
        "rows": as_documents(run.rows()),
        **rest,
        "samples": raw,
    }


def _plain(sample: Any) -> dict[str, Any]:
    return {name: getattr(sample, name) for name in sample.__slots__}


def check_ratios(expected: Sequence[dict[str, Any]], found: Sequence[Row], tolerance: float) -> list[str]:
    """Return what has become worse than the committed ratios allow: CPU of ours against the floor's."""
    now = {row.case: row.ratio for row in found if row.peer == FLOOR and row.metric == "cpu"}
    worse = list[str]()
    for row in expected:
        if row["metric"] == "cpu" and row["peer"] == FLOOR and row["case"] in now:
            limit = row["ratio"] * tolerance
            if now[row["case"]] > limit:
                worse.append(f"{row['case']}: {now[row['case']]:.2f} times the floor, not more than {limit:.2f}")
    return worse


def confirmed(
    expected: Sequence[dict[str, Any]],
    measured: Callable[[int], Sequence[Row]],
    rounds: Sequence[int],
    tolerance: float,
) -> list[str]:
    """Return what is worse than the committed ratios allow, after as many rounds as it takes to be sure of it.

    Args:
        expected: The committed rows.
        measured: Gives the rows of so many rounds, those that are measured already among them.
        rounds: How many to judge by, one after the other, as long as something is worse.
        tolerance: How many times its committed ratio one may have.

    """
    worse = list[str]()
    for count in rounds:
        worse = check_ratios(expected, measured(count), tolerance)
        if not worse:
            break
        for line in worse:
            print(f"after {count} rounds: {line}", flush=True)
    return worse


def _check(arguments: argparse.Namespace) -> int:
    if not SUMMARY.exists():
        print("no summary is committed: nothing to compare with")
        return 0
    peers, _ = available(ROOT, {OURS, FLOOR})
    scenarios = cases.check()
    files = SampleFiles(ROOT / BUILD / "check")
    for scenario in scenarios:
        files.forget(scenario.name, [OURS, FLOOR])

    def measured(count: int) -> list[Row]:
        run = Run(Plan(scenarios=scenarios, peers=peers, runs=count), files)
        run.measure_peers()
        rows = [row for row in run.rows() if row.metric == "cpu"]
        for row in rows:
            print(f"{row.case}: {row.ratio:.2f} times the floor")
        return rows

    expected: list[dict[str, Any]] = json.loads(SUMMARY.read_text())["check"]
    rounds = [arguments.runs] if arguments.runs else MORE_ROUNDS
    worse = confirmed(expected, measured, rounds, TOLERANCE)
    for line in worse:
        print(f"WORSE: {line}")
    return 1 if worse else 0


def _baseline(files: SampleFiles, runs: int) -> list[dict[str, Any]]:
    """Return the rows that ``check`` compares with, measured in the same run as the rest."""
    peers, _ = available(ROOT, {OURS, FLOOR})
    run = Run(Plan(scenarios=cases.check(), peers=peers, runs=runs), files)
    run.measure_peers()
    return as_documents([row for row in run.rows() if row.metric == "cpu"])


def _names(text: str) -> set[str]:
    return {word for word in text.split(",") if word}


def _chosen(scenarios: Sequence[Scenario], names: set[str]) -> list[Scenario]:
    return [each for each in scenarios if not names or names & set(each.cases())]


def _report(rows: Sequence[Row]) -> Iterator[str]:
    for row in rows:
        if row.metric in {"cpu", "bytes-per-object"}:
            numbers = f"{row.ours:10.1f} / {row.theirs:10.1f} = {row.ratio:.3f}"
            yield f"{row.case:<28} {row.peer:<20} {row.wire:<8} {row.metric:<18} {numbers}"


def _full(arguments: argparse.Namespace) -> int:
    names = _names(arguments.cases)
    wanted = _names(arguments.peers)
    row_only, is_short = arguments.what == "row", arguments.what == "short"
    scenarios = cases.brief() if is_short else _chosen(cases.full(events=arguments.events), names)
    if not scenarios:
        print(f"no such case; there are {', '.join(each for one in cases.full() for each in one.cases())}")
        return 2
    peers, skipped = available(ROOT, wanted | {FLOOR} if row_only else wanted)
    for name in skipped:
        print(f"skipped: {name} was not built (make -C lab bench-setup)")
    plan = Plan(scenarios=scenarios, peers=peers, runs=arguments.runs or (1 if is_short else 5), full=not is_short)
    folder = ROOT / BUILD / ("short" if is_short else f"samples/{identity(ROOT)}")
    files = SampleFiles(folder)
    if row_only or is_short or arguments.fresh:
        for scenario in scenarios:
            files.forget(scenario.name, [each.name for each in peers])
    run = Run(plan, files)
    tested: Callable[[], dict[str, Any]] = run.self_test
    rest: dict[str, Any] = {} if row_only else {"replay": tested()}
    run.measure_peers()
    for line in _report(run.rows()):
        print(line)
    if row_only or is_short:
        if is_short:
            write_summary(SHORT_SUMMARY, summary_of(run, plan, rest, skipped))
        return 1 if plan.failed else 0
    rest |= run.measure_the_rest()
    rest["check"] = _baseline(files, plan.runs)
    whole = replace(plan, scenarios=cases.full(events=arguments.events))  # with what earlier runs have measured
    before: dict[str, Any] = json.loads(SUMMARY.read_text()) if SUMMARY.exists() else {}
    write_summary(SUMMARY, kept(summary_of(Run(whole, files), whole, rest, skipped), before))
    page.write(ROOT, json.loads(SUMMARY.read_text()))
    for what, error in plan.failed.items():
        print(f"FAILED: {what}: {error}")
    return 1 if plan.failed else 0


def main() -> int:
    """Run what the first argument says."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("what", choices=["full", "short", "row", "check", "page"])
    parser.add_argument(
        "--runs",
        type=int,
        default=0,
        help="rounds: 5, in the short form 1, in the check 3, then more while something is worse",
    )
    parser.add_argument("--events", type=int, default=50_000, help="changes that a fast peer gets")
    parser.add_argument("--cases", default="", help="their names, with commas between them; all by default")
    parser.add_argument("--peers", default="", help="likewise")
    parser.add_argument("--fresh", action="store_true", help="make all samples anew")
    arguments = parser.parse_args()
    if arguments.what == "page":
        page.write(ROOT, json.loads(SUMMARY.read_text()))
        return 0
    return _check(arguments) if arguments.what == "check" else _full(arguments)


if __name__ == "__main__":
    raise SystemExit(main())
