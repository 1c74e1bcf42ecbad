"""Profiles of our own client: ``make -C lab profile`` writes tables and folded stacks to ``build/bench/profiles``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

from lab.bench.cases import LIST, WATCH, case_name
from lab.bench.peers.catalogue import BUILD, OURS, PEERS
from lab.bench.replay.session import Load, measure, replay

ROOT: Final = Path(__file__).parent.parent.parent


def main() -> None:
    """Profile a list and a watch of each kind."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--objects", type=int, default=50_000)
    parser.add_argument("--events", type=int, default=50_000)
    options = parser.parse_args()
    ours = next(each for each in PEERS if each.name == OURS)
    for kind in ("pods", "widgets"):
        for objects, events, what in ((options.objects, 0, LIST), (1_000, options.events, WATCH)):
            load = Load(kind=kind, objects=objects, events=events)
            path = ROOT / BUILD / "profiles" / case_name(load, what)
            with replay(kind=kind, objects=objects, events=events, paced=0, root=ROOT, converter=None) as server:
                measure(server, load, ours.command, {"BENCH_OPTIONS": f"profile={path}"}, name=OURS, root=ROOT)
            print(f"{path.relative_to(ROOT)}.txt")
            print("\n".join(path.with_suffix(".txt").read_text().splitlines()[:12]), flush=True)


if __name__ == "__main__":
    main()
