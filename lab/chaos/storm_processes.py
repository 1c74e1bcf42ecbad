"""The storm among processes: leaders are killed in the midst of their work, and a standby process takes over.

The server is in this process. Each replica is one of its own, with its own event loop, caches, queue and elector, and
is ended by its id: by SIGKILL, in turns with SIGTERM. What each has run is in its journal, so that the check that no
key ever runs twice at once spans all of them, the dead ones included.
"""

from __future__ import annotations

import asyncio
import random
import signal
import sys
import time
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from deltaloop.api import kinds
from deltaloop.apiserver import ApiServer, ServerOptions
from deltaloop.client import Client, ClientConfig
from deltaloop.errors import DeltaloopError
from lab.chaos.storm_journal import read_journals, run_twice_at_once
from lab.chaos.storm_load import Report, change, converged, create, for_each

BUSY = 2000
"""So many bytes has a leader written in its journal before it is killed: some ten reconciles."""


class Replicas:
    """The processes."""

    def __init__(self, url: str, folder: Path, *, seed: int, lease: str) -> None:
        self._url = url
        self._folder = folder
        self._seed = seed
        self._lease = lease
        self._running: dict[str, Process] = {}
        self._started = 0
        self.died_at: dict[str, float] = {}

    async def start(self) -> str:
        self._started += 1
        name = f"replica-{self._started}"
        arguments = (self._url, name, str(self._folder), str(self._seed + self._started), self._lease)
        module = (sys.executable, "-m", "lab.chaos.storm_replica")
        self._running[name] = await asyncio.create_subprocess_exec(*module, *arguments, stdin=PIPE, stdout=DEVNULL)
        return name

    def is_busy(self, name: str) -> bool:
        """Tell whether a replica runs, and has begun some reconciles."""
        path = self._folder / f"{name}.journal"
        runs = name in self._running and self._running[name].returncode is None
        return runs and path.exists() and path.stat().st_size >= BUSY

    def check(self) -> None:
        """Notice at once if a replica has ended by itself, instead of waiting for a leader that cannot come.

        Raises:
            RuntimeError: Naming it, and how it ended.
        """
        for name, process in self._running.items():
            if process.returncode is not None:
                raise RuntimeError(f"{name} has ended by itself, with {process.returncode}")

    async def end(self, name: str, number: signal.Signals) -> int:
        """Send a signal, and wait for the death; return the exit code."""
        process = self._running.pop(name)
        process.send_signal(number)
        code = await process.wait()
        self.died_at[name] = time.monotonic()
        return code

    @asynccontextmanager
    async def while_running(self) -> AsyncGenerator[None]:
        try:
            yield
        finally:
            for name in [*self._running]:
                await self.end(name, signal.SIGKILL)


async def holder(client: Client) -> str:
    """Return who leads, as the Lease says; empty if nobody does, or the server is away."""
    try:
        lease = await client.get(kinds.LEASE, "storm", namespace="default")
    except DeltaloopError:
        return ""
    return str(lease["spec"].get("holderIdentity") or "")


async def busy_leader(client: Client, replicas: Replicas, *, patience: float) -> str:
    """Wait for a leader that is at work.

    Raises:
        TimeoutError: If there is none in time.
        RuntimeError: If a replica has ended by itself.
    """
    async with asyncio.timeout(patience):
        while not replicas.is_busy(name := await holder(client)):
            replicas.check()
            await asyncio.sleep(0.05)
    return name


async def storm_of_processes(
    *, objects: int, ends: Sequence[signal.Signals], limit: float, seed: int = 1, lease: str = "4,3,0.2"
) -> Report:
    """Run two replicas, and end the leader by one signal after the other; restart the server each second time."""
    report = Report(objects)
    chance = random.Random(seed)
    names = [f"o-{number}" for number in range(objects)]
    with TemporaryDirectory() as folder:
        async with (
            ApiServer(ServerOptions(insecure_http=True)) as server,
            Client(ClientConfig(server=server.url, namespace="default")) as client,
        ):
            replicas = Replicas(server.url, Path(folder), seed=seed, lease=lease)
            calm = asyncio.Event()

            async def changes() -> None:
                await for_each(names, lambda name: create(client, name))
                while not calm.is_set():
                    some = chance.sample(names, max(1, objects // 4))
                    await for_each(some, lambda name: change(client, name, chance))
                    await asyncio.sleep(0.2)

            async def trouble() -> None:
                for turn, number in enumerate(ends):
                    if turn:
                        await replicas.start()
                    await end_a_leader(client, replicas, report, number=number, patience=limit)
                    if turn % 2:
                        await server._restart(0.3)
                        report.server_restarts += 1
                calm.set()

            began_at = time.monotonic()
            async with replicas.while_running():
                await replicas.start()
                await replicas.start()
                try:
                    async with asyncio.timeout(limit):
                        async with asyncio.TaskGroup() as group:
                            group.create_task(changes())
                            group.create_task(trouble())
                        await converged(client, report)
                except TimeoutError:
                    report.missing.append(f"not everything had converged after {limit:g} s")
            report.seconds = time.monotonic() - began_at
        read_what_ran(report, Path(folder), replicas.died_at)
    return report


async def end_a_leader(
    client: Client, replicas: Replicas, report: Report, *, number: signal.Signals, patience: float
) -> None:
    """End whoever leads in the midst of its work, and wait until a successor is."""
    leader = await busy_leader(client, replicas, patience=patience)
    began_at = time.monotonic()
    code = await replicas.end(leader, number)
    await busy_leader(client, replicas, patience=patience)
    if number is signal.SIGKILL:
        report.kills += 1
        report.takeovers.append(time.monotonic() - began_at)
        return
    report.leader_restarts += 1
    if code != 0:
        report.missing.append(f"a leader that was told to end ended with {code}")


def read_what_ran(report: Report, folder: Path, died_at: dict[str, float]) -> None:
    """Take the numbers from the journals, and check them."""
    runs = read_journals(folder, died_at)
    report.reconciles = len(runs)
    report.waits = [run.wait for run in runs if run.wait is not None]
    report.tries.update(run.attempt for run in runs if run.succeeded)
    twice = run_twice_at_once(runs)
    if twice:
        report.missing.append(f"{len(twice)} keys ran twice at once")
    if report.kills and len({run.replica for run in runs}) < 2:
        report.missing.append("no standby took over")
