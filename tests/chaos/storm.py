"""A storm of reconciles: ``python -m tests.chaos.storm --objects 10000``.

Two replicas with twenty workers each contend for one lease of an embedded server and bring ConfigMaps into the shape
that they ask for, while reconciles fail at random, the objects change, the server goes away and comes back, and leaders
are stopped and started again. At the end: has every object converged, did a key ever run twice at once (in either
replica), and does the memory return to where it was. Then the same among processes, whose leaders are killed
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
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

from deltaloop.apiserver import ApiServer, ServerOptions
from deltaloop.client import Client, ClientConfig
from deltaloop.leaderelection import LeaderElectionConfig, LeaderElector, LeaseLock
from deltaloop.runtime import Manager, ManagerOptions
from tests.chaos.storm_load import Report, Storm, change, converged, create, for_each

BLOCKS_ALLOWED = 1.10
"""The memory may be so many times what it was; what is compared are blocks of Python's own allocator."""


@asynccontextmanager
async def replica(storm: Storm, url: str, name: str) -> AsyncGenerator[Manager, None]:
    """Run one replica."""
    async with Client(ClientConfig(server=url, namespace="default")) as client:
        lock = LeaseLock(client, namespace="default", name="storm", identity=name)
        config = LeaderElectionConfig(lease_duration=6.0, renew_deadline=4.0, retry_period=0.1, own_thread=False)
        elector = LeaderElector(lock, config, client=client)
        options = ManagerOptions(namespace="default", preflight=False)
        manager = Manager(client, [storm.controller()], elector=elector, options=options)
        task = asyncio.create_task(manager.run())
        try:
            yield manager
        finally:
            manager.stop()
            await task


async def until(condition: Callable[[], object], *, timeout: float) -> bool:
    end = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > end:
            return False
        await asyncio.sleep(0.05)
    return True


async def storm_once(report: Report, *, seed: int, restarts: int, limit: float) -> None:
    """Run a storm and clean up after it."""
    storm = Storm(report, seed=seed)
    names = [f"o-{number}" for number in range(report.objects)]
    options = ServerOptions(insecure_http=True, controllers=frozenset())
    async with ApiServer(options) as server, Client(ClientConfig(server=server.url, namespace="default")) as client:
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
                    await server._restart(0.3)
                    report.server_restarts += 1
                await restart_a_leader()

        replicas: dict[str, tuple[Any, Manager]] = {}

        async def start(name: str) -> None:
            entered = replica(storm, server.url, name)
            replicas[name] = (entered, await entered.__aenter__())

        async def restart_a_leader() -> None:
            await until(
                lambda: any(manager.leadership.value == "leading" for _, manager in replicas.values()), timeout=20.0
            )
            for name, (entered, manager) in [*replicas.items()]:
                if manager.leadership.value == "leading":
                    await entered.__aexit__(None, None, None)
                    report.leader_restarts += 1
                    await start(name)
                    return

        for name in ("one", "two"):
            await start(name)
        try:
            async with asyncio.timeout(limit):
                async with asyncio.TaskGroup() as group:
                    group.create_task(changes())
                    group.create_task(trouble())
                await converged(client, report, storm)
            report.seconds = time.monotonic() - began_at
        except TimeoutError:
            report.seconds = time.monotonic() - began_at
            report.missing.append(f"not everything had converged after {limit:g} s")
        finally:
            for entered, _ in replicas.values():
                await entered.__aexit__(None, None, None)
    if storm.twice:
        report.missing.append(f"{len(storm.twice)} keys ran twice at once")
    if storm.running:
        report.missing.append(f"{len(storm.running)} reconciles never ended")


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
    from tests.chaos.storm_processes import storm_of_processes

    kills = arguments.__dict__.pop("kills")
    reports = [asyncio.run(run(**vars(arguments)))]
    print("in one process:", *reports[0].lines(), sep="\n  ", flush=True)
    if kills:
        more = {"objects": arguments.objects, "limit": arguments.limit, "seed": arguments.seed}
        ends = [signal.SIGKILL, signal.SIGTERM] * kills
        reports.append(asyncio.run(storm_of_processes(ends=ends, **more)))
        print("among processes:", *reports[1].lines(), sep="\n  ", flush=True)
    raise SystemExit(1 if any(report.missing for report in reports) else 0)


if __name__ == "__main__":
    main()
