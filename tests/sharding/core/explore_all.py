"""Search larger settings than the test suite: ``make -C lab explore-shards``."""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from typing import Final

from tests.sharding.core.explorer import DURATION, Rules, Search, start

QUIET: Final = Rules(steps=3, losses=0, crashes=0, coordinators=1)
SETTINGS: Final[dict[str, tuple[tuple[int, ...], int, Rules]]] = {
    "two members: hand-over and eviction": ((1,), 2, QUIET),
    "two members, two coordinators": ((1,), 2, replace(QUIET, steps=1, coordinators=2)),
    "two members: a lost answer": ((1,), 2, replace(QUIET, steps=2, losses=1)),
    "two members: a crash": ((1,), 2, replace(QUIET, crashes=1, plans=1)),
    "two members: a deleted Lease": ((1,), 2, replace(QUIET, losses=1, plans=1, administrators=True)),
    "two members: slow clocks": ((1,), 2, replace(QUIET, steps=4, plans=1, slow_clocks=DURATION)),
    "two members: slow clocks and a crash": ((1,), 2, replace(QUIET, plans=1, crashes=1, slow_clocks=DURATION)),
    "two members, two ranges": ((1, 0), 2, replace(QUIET, steps=2)),
    "three members": ((1,), 3, replace(QUIET, steps=1)),
    "two members: all faults": ((1,), 2, Rules(steps=2, coordinators=2)),
}


def main() -> int:
    """Print the number of states of each setting, and return 1 if a range has two owners."""
    most = int(sys.argv[1]) if len(sys.argv) > 1 else 2_000_000
    for name, (owners, programs, rules) in SETTINGS.items():
        began = time.process_time()
        search = Search(rules)
        trace = search.run(start(owners, programs), most=most)
        states = len(search.parents)
        whole = "all" if states < most else "the first"
        print(f"{name}: {whole} {states} states, {time.process_time() - began:.0f} s of CPU", flush=True)
        if trace is not None:
            print("\n".join(["two owners:", *trace]))
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
