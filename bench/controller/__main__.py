"""Measures whole controllers.

    python -m bench.controller [--server replayed,real] [--rounds 7] [--peer deltaloop,controller-runtime]
        [--phases start,change] [--objects 3000] [--fresh]

Operators run in turn, in another order each round, each on a server of its own that was just started.
"""

from __future__ import annotations

import argparse
import signal
import sys

from bench.cases import order
from bench.controller.operators import available
from bench.controller.phases import PHASES, Measured, Sizes, measure
from bench.controller.servers import REPLAYED, ROOT, SERVERS


def _words(text: str) -> list[str]:
    return [word for word in text.split(",") if word]


def _line(phase: str, found: Measured) -> str:
    requests = ", ".join(f"{number} {what}" for what, number in found.requests.items())
    latencies = "".join(f" {name} {value:.2f} ms" for name, value in found.latencies.items())
    memory = f"RSS {found.rss:5.1f} peak {found.peak:5.1f} MiB"
    times = f"cpu {found.cpu:6.2f} s wall {found.wall:6.2f} s{latencies} server {found.server_cpu:6.2f} s"
    return f"    {phase:<8} {times} {memory}; {requests}"


def _end(*_: object) -> None:
    sys.exit(1)  # in order, so that nothing that was started is left behind


def main() -> int:
    """Run what the arguments say."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--server", default=REPLAYED, help=f"of {', '.join(SERVERS)}, with commas between them")
    parser.add_argument("--peer", default="", help="operators, with commas between them; all by default")
    parser.add_argument("--phases", default=",".join(PHASES), help="the first is always run")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--objects", type=int, default=3000)
    parser.add_argument("--singles", type=int, default=300)
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, _end)
    operators, skipped = available(ROOT, set(_words(arguments.peer)))
    for name in skipped:
        print(f"skipped: {name} was not built (make bench-setup)")
    sizes = Sizes(objects=arguments.objects, singles=arguments.singles)
    for round_number in range(arguments.rounds):
        for server_name in _words(arguments.server):
            for operator in order(operators, round_number):
                print(f"{round_number + 1}/{arguments.rounds} {server_name} {operator.name}", flush=True)
                with SERVERS[server_name]() as server:
                    found = measure(operator, server, sizes, frozenset(_words(arguments.phases)))
                for phase, measured in found.items():
                    print(_line(phase, measured), flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
