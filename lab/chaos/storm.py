"""A storm of reconciles: ``python -m lab.chaos.storm --objects 10000``.

Two replicas with twenty workers each contend for one lease of an embedded server and bring ConfigMaps into the shape
that they ask for, while reconciles fail at random, the objects change, the server goes away and comes back, and leaders
are stopped, or crash, and are started again. At the end: has every object converged, did a key ever run twice at once
(in either replica), and does the memory return to where it was. Then the same among processes, whose leaders are killed
(``storm_processes.py``).
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import logging
import signal
import sys
import time

from deltaloop.apiserver import ApiServer, ServerOptions
from deltaloop.client import Client, ClientConfig
from deltaloop.leaderelection import LeaderElectionConfig
from deltaloop.runtime import ManagerOptions
from deltaloop.testing import Cluster, Harness, eventually
from deltaloop.testing.deterministic_loop.processes import ProcessLoop
from lab.chaos.storm_load import Report, Storm, change, converged, create, for_each

BLOCKS_ALLOWED = 1.10
"""The memory may be so many times what it was; what is compared are blocks of Python's own allocator."""


async def storm_once(report: Report, *, seed: int, restarts: int, limit: float) -> None:
    """Run a storm and clean up after it."""
    storm = Storm(report, seed=seed)
    names = [f"o-{number}" for number in range(report.objects)]
    options = ServerOptions(insecure_http=True, controllers=frozenset())
    lease = LeaderElectionConfig(lease_duration=2.0, renew_deadline=1.4, retry_period=0.1)
    async with (
        ApiServer(options) as server,
        Client(ClientConfig(server=server.url, namespace="default")) as client,
        Harness(Cluster(server.kubeconfig(), embedded=True, shared=False), client) as harness,
    ):
        began_at = time.monotonic()

        async def changes() -> None:
            await for_each(names, lambda name: create(client, name))
            for _ in range(max(1, restarts)):
                some = storm.random.sample(names, max(1, len(names) // 4))
                await for_each(some, lambda name: change(client, name, storm.random))

        async def trouble() -> None:
            for turn in range(restarts):
                await asyncio.sleep(0.3 + 0.2 * storm.random.random() + report.objects / 2500)
                if turn % 2 == 0:
                    await server.faults.restart(0.3)
                    report.server_restarts += 1
                leader = await eventually(lambda: harness.leader, within=20)
                assert leader is not None
                if turn % 2:
                    await leader.crash()
                    storm.running.clear()  # they do not run any more, and nothing of them says so
                    report.leader_crashes += 1
                await leader.restart()
                report.leader_restarts += 1

        for _ in range(2):
            options_of_each = ManagerOptions(namespace="default", preflight=False)
            await harness.start(storm.controller(), options=options_of_each, leader_election=lease)
        try:
            async with asyncio.timeout(limit):
                async with asyncio.TaskGroup() as group:
                    group.create_task(changes())
                    group.create_task(trouble())
                await converged(client, report, storm)
        except TimeoutError:
            report.missing.append(f"not everything had converged after {limit:g} s")
        report.seconds = time.monotonic() - began_at
        if storm.running:
            report.missing.append(f"{len(storm.running)} reconciles never ended")
    if storm.twice:
        report.missing.append(f"{len(storm.twice)} keys ran twice at once")


async def run(*, objects: int, restarts: int, limit: float, seed: int = 1) -> Report:
    """Run a small storm to warm up, and then the real one."""
    await storm_once(Report(min(50, objects)), seed=seed, restarts=0, limit=limit)
    gc.collect()
    before = sys.getallocatedblocks()
    report = Report(objects)
    await storm_once(report, seed=seed, restarts=restarts, limit=limit)
    gc.collect()
    # The report itself holds a number for each reconcile.
    after = sys.getallocatedblocks() - len(report.waits)
    report.blocks = (before, after)
    if after > before * BLOCKS_ALLOWED:
        report.missing.append("the memory did not return to its level")
    return report


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description="Run a storm of reconciles.")
    parser.add_argument("--objects", type=int, default=10_000)
    parser.add_argument("--restarts", type=int, default=6, help="of leaders; half as many of the server")
    parser.add_argument("--limit", type=float, default=600.0, help="seconds until all must have converged")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--kills", type=int, default=6, help="of leaders among processes, in a second storm; as many SIGTERMs"
    )
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.CRITICAL)
    from lab.chaos.storm_processes import storm_of_processes

    kills = arguments.__dict__.pop("kills")
    with asyncio.Runner(loop_factory=ProcessLoop) as runner:
        reports = [runner.run(run(**vars(arguments)))]
    print("in one process:", *reports[0].lines(), sep="\n  ", flush=True)
    if kills:
        more = {"objects": arguments.objects, "limit": arguments.limit, "seed": arguments.seed}
        ends = [signal.SIGKILL, signal.SIGTERM] * kills
        reports.append(asyncio.run(storm_of_processes(ends=ends, **more)))
        print("among processes:", *reports[1].lines(), sep="\n  ", flush=True)
    raise SystemExit(1 if any(report.missing for report in reports) else 0)


if __name__ == "__main__":
    main()
