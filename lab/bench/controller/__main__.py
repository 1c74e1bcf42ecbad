"""Measures whole controllers: ``make -C lab bench-controller``; ``CONTROLLER=short`` takes a minute.

    python -m lab.bench.controller [--server replayed,real] [--rounds 7] [--peer deltaloop,controller-runtime]
        [--phases start,change] [--objects 3000] [--fresh] [--write]
    python -m lab.bench.controller --short

Operators run in turn, in another order each round, each on a server of its own that was just started. What each has
taken is kept in a file below ``build/bench/controllers`` at once, by a digest of the sources: a run that was
interrupted goes on where it was. ``--write`` puts the rows into the committed summary and writes the page; the short
form writes nothing, and fails if ours asks for more than the least, or meets a conflict.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
from collections.abc import Iterator, Sequence

from deltaloop.testing.servers.control_plane import find_assets
from lab.bench import page
from lab.bench.bounds import by_key
from lab.bench.cases import order
from lab.bench.controller.figures import BOUNDS, FORMS, Row, as_documents, word
from lab.bench.controller.operators import Operator, available
from lab.bench.controller.phases import CHANGE, PHASES, START, Measured, Sizes, measure
from lab.bench.controller.results import Results, facts, joined
from lab.bench.controller.servers import EMBEDDED, REAL, REPLAYED, ROOT, SERVERS
from lab.bench.summary import SUMMARY, write_summary

_SHORT = Sizes(objects=300, singles=50, idle=1.0, limit=60.0)


def _words(text: str) -> list[str]:
    return [word for word in text.split(",") if word]


def _show(phase: str, found: Measured) -> None:
    requests = ", ".join(f"{number} {what}" for what, number in found.requests.items())
    latencies = "".join(f" {name} {value:.2f} ms" for name, value in found.latencies.items())
    memory = f"RSS {found.rss:5.1f} peak {found.peak:5.1f} MiB"
    times = f"cpu {found.cpu:6.2f} s wall {found.wall:6.2f} s{latencies} server {found.server_cpu:6.2f} s"
    print(f"    {phase:<8} {times} {memory}; {requests}", flush=True)


def _rows(rows: Sequence[Row]) -> Iterator[str]:
    for row in rows:
        if row.metric in {"cpu", "rss", "requests", "p50", "p99"} and row.ratio is not None:
            ends = f" ({row.low:.3f} to {row.high:.3f})" if row.low is not None else ""
            numbers = f"{row.ours:9.2f} / {row.theirs:9.2f} = {row.ratio:.3f}{ends}"
            yield f"{row.case:<28} {row.peer:<32} {row.metric:<9} {numbers}"
    found = by_key(as_documents(rows))
    for bound in BOUNDS:
        for case in bound.cases:
            for peer in bound.peers:
                verdict = found.get((case, peer, bound.metric))
                if verdict is not None:
                    limit = f"at most {bound.limit:.2f}: {word(verdict, bound.limit)}"
                    yield f"{case:<28} {peer:<32} {bound.metric:<9} {limit}"


def too_much(found: dict[str, Measured], objects: int) -> list[str]:
    """Return what ours has asked for beyond the least: two writes for each object to do, and none in vain."""
    least = {
        START: {"create configmaps": objects, "patch greetings/status": objects},
        CHANGE: {"update configmaps": objects, "patch greetings/status": objects},
    }
    wrong = list[str]()
    for phase, wanted in least.items():
        if phase in found:
            writes = {
                what: number for what, number in found[phase].requests.items() if what.split(" ")[0] not in _READS
            }
            if writes != wanted:
                wrong.append(f"{phase}: ours has asked for {writes}, the least is {wanted}")
    return wrong


_READS = ("list", "watch", "discovery")


class Bench:
    """One run."""

    def __init__(self, operators: Sequence[Operator], servers: Sequence[str], sizes: Sizes, results: Results) -> None:
        """Measure nothing yet."""
        self._operators, self._servers, self._sizes, self._results = operators, servers, sizes, results
        self._began = time.monotonic()
        self.failed: dict[str, str] = {}

    def rounds(self, number: int, phases: frozenset[str], *, fresh: bool) -> None:
        """Measure what is missing; what fails once is named, and left out of the rounds that follow."""
        for round_number in range(number):
            for server in self._servers:
                for operator in order(self._operators, round_number):
                    what = f"{server} {operator.name}"
                    if what not in self.failed and (
                        fresh or not self._results.has(server, operator.name, round_number)
                    ):
                        self._one(server, operator, round_number, phases, f"{round_number + 1}/{number} {what}")

    def _one(self, server: str, operator: Operator, round_number: int, phases: frozenset[str], title: str) -> None:
        print(f"[{time.monotonic() - self._began:5.0f} s] {title}", flush=True)
        try:
            with SERVERS[server]() as running:
                found = measure(operator, running, self._sizes, phases, _show)
        except RuntimeError as error:
            self.failed[f"{server} {operator.name}"] = str(error)
            print(f"    FAILED: {error}", flush=True)
            return
        if phases >= set(PHASES):  # what is kept is whole
            self._results.write(server, operator.name, round_number, found)
        if operator.name in FORMS and server != EMBEDDED:
            for wrong in too_much(found, self._sizes.objects):
                self.failed[f"{server} requests"] = wrong


def _servers(wanted: str) -> list[str]:
    servers = _words(wanted)
    if REAL in servers and find_assets() is None:
        print(
            "no kube-apiserver is here (make -C lab kube builds one): the embedded server takes its place, "
            "and counts nothing"
        )
        servers = [EMBEDDED if each == REAL else each for each in servers]
    return servers


def _end(*_: object) -> None:
    sys.exit(1)  # in order, so that nothing that was started is left behind


def main() -> int:
    """Run what the arguments say."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--server", default=REPLAYED, help=f"of {', '.join(SERVERS)}, with commas between them")
    parser.add_argument("--peer", default="", help="operators, with commas between them; the usual ones by default")
    parser.add_argument("--phases", default=",".join(PHASES), help="the first is always run")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--objects", type=int, default=3000)
    parser.add_argument("--singles", type=int, default=300)
    parser.add_argument("--fresh", action="store_true", help="measure anew what was measured already")
    parser.add_argument("--write", action="store_true", help="write summary and page")
    parser.add_argument("--short", action="store_true", help="what continuous integration runs")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, _end)
    operators, skipped = available(ROOT, set(_words(arguments.peer)))
    for name in skipped:
        print(f"skipped: {name} was not built (make -C lab bench-setup)")
    sizes = _SHORT if arguments.short else Sizes(objects=arguments.objects, singles=arguments.singles)
    results = Results(ROOT, sizes)
    bench = Bench(operators, _servers(arguments.server), sizes, results)
    phases = frozenset(_words(arguments.phases))
    bench.rounds(arguments.rounds, phases, fresh=arguments.fresh or arguments.short or not phases >= set(PHASES))
    rows = results.rows()
    for line in _rows(rows):
        print(line)
    if arguments.write:
        summary = joined(json.loads(SUMMARY.read_text()), rows, facts(ROOT, results, skipped))
        write_summary(SUMMARY, summary)
        page.write(ROOT, summary)
    for what, error in bench.failed.items():
        print(f"FAILED: {what}: {error}")
    return 1 if bench.failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
