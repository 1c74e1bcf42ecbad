"""The load of the storm: what is wanted of each object, the reconciler that brings it about, and the report.

Nothing here needs the embedded server, so that a replica in a process of its own starts without it.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from deltaloop.api import kinds
from deltaloop.client import Client
from deltaloop.errors import DeltaloopError
from deltaloop.predicates import Where
from deltaloop.runtime import Context, Controller, Request, controller
from deltaloop.workqueue import ItemExponentialFailureRateLimiter
from lab.chaos.storm_journal import Journal

CM = kinds.CONFIG_MAP
LABEL = "storm"
WORKERS = 20
FAILURES = 0.1


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
        leader_restarts: How often a leader was ended and started again.
        leader_crashes: How many of these ends were crashes.
        kills: How often a leader's process was killed.
        takeovers: Seconds from each of these deaths until a successor was at work.
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
    leader_crashes: int = 0
    kills: int = 0
    takeovers: list[float] = field(default_factory=list[float])
    blocks: tuple[int, int] = (0, 0)

    def quantile(self, share: float) -> float:
        """Return a quantile of the waits in seconds."""
        ordered = sorted(self.waits)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0

    def lines(self) -> list[str]:
        """Say it for people."""
        histogram = ", ".join(f"{tries}: {number}" for tries, number in sorted(self.tries.items()))
        killed = f", leader killed {self.kills}" if self.kills else ""
        lines = [
            (
                f"objects {self.objects}, reconciles {self.reconciles} in {self.seconds:.1f} s:"
                f" {self.reconciles / max(self.seconds, 1e-9):.0f} a second"
            ),
            f"event to reconcile: p50 {self.quantile(0.5):.3f} s, p99 {self.quantile(0.99):.3f} s",
            f"tries until success: {histogram}",
            (
                f"restarts: server {self.server_restarts}, leader {self.leader_restarts},"
                f" {self.leader_crashes} by a crash{killed}"
            ),
        ]
        if self.takeovers:
            lines.append(
                f"from a death to a successor at work: {', '.join(f'{each:.1f}' for each in self.takeovers)} s"
            )
        if self.blocks[0]:
            times = self.blocks[1] / self.blocks[0]
            lines.append(f"memory: {self.blocks[0]} blocks before, {self.blocks[1]} after ({times:.2f} times)")
        return [*lines, f"did not happen: {'; '.join(self.missing)}" if self.missing else "everything happened"]


class Storm:
    """One storm."""

    def __init__(self, report: Report, *, seed: int, journal: Journal | None = None) -> None:
        self.report = report
        self.journal = journal
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
            wait: float | None = None
            if ctx.attempts == 1 and ctx.triggers:
                wait = asyncio.get_running_loop().time() - ctx.triggers[0].at
                report.waits.append(wait)
            number = 0 if self.journal is None else self.journal.began(request.key, attempt=ctx.attempts, wait=wait)
            succeeded = False
            self.running[request.key] += 1
            if self.running[request.key] > 1:
                self.twice.add(request.key)
            try:
                await self.bring_about(request, ctx)
                report.tries[ctx.attempts] += 1
                succeeded = True
            finally:
                if self.journal is not None:
                    self.journal.ended(number, succeeded=succeeded)
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


async def create(client: Client, name: str) -> None:
    """Create an object, unless an earlier try without an answer did."""
    with suppress(Exception):
        await client.get(CM, name)
        return
    await client.create(CM, {"metadata": {"name": name, "labels": {LABEL: ""}}, "data": {"want": "0"}})


async def change(client: Client, name: str, chance: random.Random) -> None:
    """Have an object ask for something else."""
    await client.patch(CM, name, {"data": {"want": str(chance.randrange(1, 1000))}})


async def converged(client: Client, report: Report, storm: Storm | None = None) -> None:
    """Wait until each object has what it wants, as the server sees it, and nothing runs in this process."""
    while True:
        found = [obj async for obj in _all(client)]
        behind = [obj.name for obj in found if obj["data"].get("have") != obj["data"]["want"]]
        if len(found) == report.objects and not behind and not (storm is not None and storm.running):
            return
        await asyncio.sleep(max(0.1, report.objects / 2000))  # looking costs the server a list of everything


async def _all(client: Client) -> AsyncGenerator[Any, None]:
    for obj in (await client.list_all(CM, namespace="default")).items:
        if LABEL in obj.labels:
            yield obj
