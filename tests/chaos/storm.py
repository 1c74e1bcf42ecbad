"""A storm of reconciles: ``python -m tests.chaos.storm --objects 10000``.

Two replicas with twenty workers each contend for one lease of an embedded server and bring ConfigMaps into the shape
that they ask for, while reconciles fail at random, the objects change, the server goes away and comes back, and leaders
are stopped and started again. At the end: has every object converged, did a key ever run twice at once (in either
replica), and does the memory return to where it was.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import logging
import random
import sys
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from deltaloop.api import kinds
from deltaloop.apiserver import ApiServer, ServerOptions
from deltaloop.client import Client, ClientConfig
from deltaloop.errors import DeltaloopError
from deltaloop.leaderelection import LeaderElectionConfig, LeaderElector, LeaseLock
from deltaloop.runtime import Context, Controller, Manager, ManagerOptions, Request, Where, controller
from deltaloop.workqueue import ItemExponentialFailureRateLimiter

CM = kinds.CONFIG_MAP
LABEL = "storm"
WORKERS = 20
FAILURES = 0.1
BLOCKS_ALLOWED = 1.10
"""The memory may be so many times what it was; what is compared are blocks of Python's own allocator."""


@dataclass(slots=True)
class Report:
    """What happened.

    Attributes:
        objects: How many there were.
        missing: What did not happen.
        reconciles: How many ran.
        seconds: From the first object until all had converged.
        waits: Seconds from the first event that a reconcile serves to its begin, retries left out.
        tries: How many tries the successful reconciles took.
        server_restarts: How often the server went away.
        leader_restarts: How often a leader was stopped and started again.
        blocks: Blocks of memory before and after.
    """

    objects: int
    missing: list[str] = field(default_factory=list[str])
    reconciles: int = 0
    seconds: float = 0.0
    waits: list[float] = field(default_factory=list[float])
    tries: Counter[int] = field(default_factory=Counter[int])
    server_restarts: int = 0
    leader_restarts: int = 0
    blocks: tuple[int, int] = (0, 0)

    def quantile(self, share: float) -> float:
        """Return a quantile of the waits in seconds."""
        ordered = sorted(self.waits)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0

    def lines(self) -> list[str]:
        """Say it for people."""
        histogram = ", ".join(f"{tries}: {number}" for tries, number in sorted(self.tries.items()))
        return [
            (
                f"objects {self.objects}, reconciles {self.reconciles} in {self.seconds:.1f} s:"
                f" {self.reconciles / max(self.seconds, 1e-9):.0f} a second"
            ),
            f"event to reconcile: p50 {self.quantile(0.5):.3f} s, p99 {self.quantile(0.99):.3f} s",
            f"tries until success: {histogram}",
            f"restarts: server {self.server_restarts}, leader {self.leader_restarts}",
            (
                f"memory: {self.blocks[0]} blocks before, {self.blocks[1]} after"
                f" ({self.blocks[1] / max(1, self.blocks[0]):.2f} times)"
            ),
            f"did not happen: {'; '.join(self.missing)}" if self.missing else "everything happened",
        ]


class Storm:
    """One storm."""

    def __init__(self, report: Report, *, seed: int) -> None:
        self.report = report
        self.random = random.Random(seed)
        self.failures = FAILURES
        self.running: Counter[str] = Counter()
        self.twice: set[str] = set()

    def controller(self) -> Controller:
        """Make the controller of one replica."""

        @controller(
            CM,
            name="storm",
            workers=WORKERS,
            predicates=[Where(lambda obj: LABEL in obj.labels)],
            rate_limiter=lambda: ItemExponentialFailureRateLimiter(base_delay=0.01, max_delay=0.5),
        )
        async def reconcile(request: Request, ctx: Context) -> None:
            report = self.report
            report.reconciles += 1
            if ctx.attempts == 1 and ctx.triggers:
                report.waits.append(asyncio.get_running_loop().time() - ctx.triggers[0].at)
            self.running[request.key] += 1
            if self.running[request.key] > 1:
                self.twice.add(request.key)
            try:
                await self.bring_about(request, ctx)
                report.tries[ctx.attempts] += 1
            finally:
                self.running[request.key] -= 1
                if not self.running[request.key]:
                    del self.running[request.key]

        return reconcile

    async def bring_about(self, request: Request, ctx: Context) -> None:
        if self.random.random() < self.failures / 2:
            raise OSError("a failure before the write")
        found = await ctx.client.find(CM, request.name, namespace=request.namespace)
        if found is None:
            return
        data = found["data"]
        if data.get("have") != data["want"]:
            await ctx.client.patch(CM, request.name, {"data": {"have": data["want"]}}, namespace=request.namespace)
        if self.random.random() < self.failures / 2:
            raise OSError("a failure after the write")


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


async def persistently(send: Callable[[], Any]) -> None:
    """Send something although the server comes and goes; a second carrying out does no harm."""
    while True:
        try:
            await send()
        except DeltaloopError:
            await asyncio.sleep(0.05)
        else:
            return


async def for_each(names: list[str], send: Callable[[str], Any]) -> None:
    """Send something for each name, sixteen at a time."""
    left = iter(names)

    async def work() -> None:
        for name in left:
            await persistently(lambda name=name: send(name))  # type: ignore[misc]  # the default binds the name

    async with asyncio.TaskGroup() as group:
        for _ in range(16):
            group.create_task(work())


async def storm_once(report: Report, *, seed: int, restarts: int, limit: float) -> None:
    """Run a storm and clean up after it."""
    storm = Storm(report, seed=seed)
    names = [f"o-{number}" for number in range(report.objects)]
    options = ServerOptions(insecure_http=True, controllers=frozenset())
    async with ApiServer(options) as server, Client(ClientConfig(server=server.url, namespace="default")) as client:
        began_at = time.monotonic()

        async def create(name: str) -> None:
            with suppress(Exception):
                await client.get(CM, name)
                return
            await client.create(CM, {"metadata": {"name": name, "labels": {LABEL: ""}}, "data": {"want": "0"}})

        async def change(name: str) -> None:
            await client.patch(CM, name, {"data": {"want": str(storm.random.randrange(1, 1000))}})

        async def changes() -> None:
            await for_each(names, create)
            for _ in range(max(1, restarts)):
                await for_each(storm.random.sample(names, max(1, len(names) // 4)), change)

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


async def converged(client: Client, report: Report, storm: Storm) -> None:
    """Wait until each object has what it wants, as the server sees it."""
    while True:
        found = [obj async for obj in _all(client)]
        behind = [obj.name for obj in found if obj["data"].get("have") != obj["data"]["want"]]
        if len(found) == report.objects and not behind and not storm.running:
            return
        await asyncio.sleep(max(0.1, report.objects / 2000))  # looking costs the server a list of everything


async def _all(client: Client) -> AsyncGenerator[Any, None]:
    for obj in (await client.list_all(CM, namespace="default")).items:
        if LABEL in obj.labels:
            yield obj


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
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.CRITICAL)
    report = asyncio.run(run(**vars(arguments)))
    print("\n".join(report.lines()))
    raise SystemExit(1 if report.missing else 0)


if __name__ == "__main__":
    main()
