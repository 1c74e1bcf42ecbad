"""Fuzz the embedded server against the real one: ``make -C lab fuzz-apiserver``.

It ends after ``--seconds``, or sooner with the shortest sequence that the two answer differently, and then fails.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import time

from tests.conformance.target import EmbeddedTarget, RealTarget

from deltaloop.testing.servers.control_plane import ControlPlane, ControlPlaneError, find_assets
from lab.conformance.fuzz.differential import both
from lab.conformance.fuzz.resources import UNCACHED
from lab.conformance.fuzz.search import Search
from lab.conformance.fuzz.sequences import FUZZED

SHORTENING = 60.0
ENOUGH = 10**6


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m lab.conformance.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="how long to look")
    parser.add_argument("--seed", type=int, default=None, help="chance by default; printed")
    parser.add_argument("--kinds", default="", help="only these kinds, with commas between them")
    options = parser.parse_args()
    kinds = options.kinds.split(",") if options.kinds else [resource.kind for resource in FUZZED]
    resources = [resource for resource in FUZZED if resource.kind in kinds]
    if len(resources) < len(kinds):
        parser.error(f"the kinds are {', '.join(resource.kind for resource in FUZZED)}")
    seed = random.SystemRandom().randrange(2**32) if options.seed is None else options.seed
    try:
        assets = find_assets()
    except ControlPlaneError as error:
        sys.exit(str(error))
    if assets is None:
        sys.exit(
            "no kube-apiserver was found: `make -C lab kube` builds one, or KUBEBUILDER_ASSETS names a folder with one"
        )
    print(f"seed {seed}, {options.seconds:g} s, against kube-apiserver {assets.version}", flush=True)
    plural = next(resource.plural for resource in FUZZED if resource.kind == UNCACHED)
    flags = [f"--watch-cache-sizes={plural}#0"]
    with ControlPlane(assets, extra_arguments=flags) as server, asyncio.Runner() as runner:
        servers = both(EmbeddedTarget(), RealTarget(server))
        until: list[float] = [time.monotonic() + options.seconds]

        def over(found: bool) -> bool:
            if found and len(until) == 1:
                until.append(time.monotonic() + SHORTENING)
            return time.monotonic() > until[-1]

        search = Search(runner.run(servers.__aenter__()), runner, over, resources)
        try:
            search.run(examples=ENOUGH, seed=seed)
        finally:
            runner.run(servers.__aexit__(None, None, None))
    print(f"{search.tried[0]} sequences, {search.tried[1]} requests")
    if search.shortest is None:
        print("both servers answered alike")
        return
    steps, difference = search.shortest
    print("the two servers differ (embedded first):")
    for number, step in enumerate(steps, 1):
        print(f"  {number}. {step}")
    sys.exit(f"  {difference}")


if __name__ == "__main__":
    main()
