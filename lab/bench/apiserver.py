"""The embedded server beside a real one, in one run: ``make -C lab bench-apiserver``.

Each server runs in a process of its own and is used over TLS with a token, by the same small client: aiohttp, no
informer. The real one is a kube-apiserver with its etcd (``make -C lab kube`` builds them); without it, its column is
empty.

    start        from the start of the process until it answers ``/readyz``; for the embedded one also what it takes
                 beyond importing aiohttp, as CPU time of one process and by the clock
    creates      config maps of a few hundred bytes, one after the other over one connection, in 90 s at most
    memory       resident size per object, after the creates and before (a real server: with its etcd)
    watches      100 watchers of one resource while it changes for 5 s at 1 000 changes per second, or as fast as the
                 server takes them: how many a second were written, how many events arrived, and how long after the
                 last answer the last watcher had everything; and what an event took of the server's CPU time (on Linux;
                 writes included) and of this client's own, which bounds what any server can show here

Figures are printed as they are taken, and once more as a table.

    python lab/bench/apiserver.py [--objects 10000] [--watchers 100] [--rate 1000] [--seconds 5]
        [--json build/bench-apiserver.json]
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import contextlib
import json
import os
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

from deltaloop.api.yaml_reader import read_yaml
from deltaloop.testing.servers.control_plane import ControlPlane, find_assets

PATH = "/api/v1/namespaces/default/configmaps"
CREATING, ARRIVING, LIMIT = 90.0, 30.0, 180.0
WRITERS, CHANGED = 8, 100
START = """
import time, sys
began = time.perf_counter(), time.process_time()
import aiohttp, aiohttp.web
middle = time.perf_counter(), time.process_time()
import asyncio
from deltaloop.apiserver import ApiServer, ServerOptions
async def main():
    async with ApiServer(ServerOptions()):
        end = time.perf_counter(), time.process_time()
        print(middle[0] - began[0], middle[1] - began[1], end[0] - middle[0], end[1] - middle[1])
asyncio.run(main())
"""


@dataclass
class Server:
    """A running server and how to use it."""

    name: str
    url: str
    trust: ssl.SSLContext
    token: str
    processes: tuple[int, ...]
    figures: dict[str, float] = field(default_factory=dict[str, float])

    def session(self, connections: int) -> aiohttp.ClientSession:
        """Open a session with so many connections at most."""
        return aiohttp.ClientSession(
            self.url,
            headers={"Authorization": f"Bearer {self.token}"},
            connector=aiohttp.TCPConnector(limit=connections, ssl=self.trust),
            timeout=aiohttp.ClientTimeout(total=None),
        )

    def note(self, name: str, value: float) -> None:
        """Keep a figure, and print it: what comes later may take long."""
        self.figures[name] = value
        print(f"  {self.name}: {name} {value:.3f}", flush=True)

    def cpu(self) -> float | None:
        """Return the CPU seconds that its processes have used, where that can be read to a hundredth."""
        try:
            return sum(_cpu_of(process) for process in self.processes)
        except FileNotFoundError:
            return None

    def resident(self) -> int:
        """Return the resident size of its processes in bytes."""
        return sum(_resident(process) for process in self.processes)


def _resident(process: int) -> int:
    shown = subprocess.run(["/bin/ps", "-o", "rss=", "-p", str(process)], capture_output=True, text=True, check=True)
    return int(shown.stdout.strip()) * 1024


def _cpu_of(process: int) -> float:
    # After the name, which may hold anything: user and system time, the 14th and 15th field.
    after_name = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(after_name[11]) + int(after_name[12])) / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def embedded() -> Generator[Server]:
    """Run ``deltaloop apiserver``."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "kubeconfig"
        program = str(Path(sys.executable).with_name("deltaloop"))
        command = [sys.executable, program, "apiserver", "--write-kubeconfig", str(file)]
        began = time.perf_counter()
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            try:
                assert process.stdout is not None
                if "ready" not in process.stdout.readline():
                    raise SystemExit("the embedded server did not start")
                took = time.perf_counter() - began
                config = read_yaml(file.read_text(), source=file.name)
                yield _server("embedded", config, (process.pid,), took)
            finally:
                process.kill()


@contextlib.contextmanager
def real() -> Generator[Server | None]:
    """Run a kube-apiserver, if there is one."""
    assets = find_assets()
    if assets is None:
        print("no kube-apiserver here: `make -C lab kube` builds one; its column stays empty\n")
        yield None
        return
    began = time.perf_counter()
    with ControlPlane(assets) as plane:
        took = time.perf_counter() - began
        yield _server(f"kube-apiserver {assets.version}", plane.kubeconfig(), plane.process_ids, took)


def _server(name: str, config: dict[str, Any], processes: tuple[int, ...], took: float) -> Server:
    cluster = config["clusters"][0]["cluster"]
    trust = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
    return Server(name, cluster["server"], trust, config["users"][0]["user"]["token"], processes, {"start, s": took})


def beyond_aiohttp() -> dict[str, float]:
    """Measure what starting the embedded server takes beyond importing aiohttp: the best of six processes."""
    runs: list[list[float]] = []
    with tempfile.TemporaryDirectory() as folder:
        # As installed: compiled once, whatever this environment says about that.
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        environment["PYTHONPYCACHEPREFIX"] = folder
        for _ in range(6):
            command = [sys.executable, "-c", START]
            done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
            runs.append([float(part) for part in done.stdout.split()])
    best = [min(run[position] for run in runs) for position in range(4)]
    return {"importing aiohttp, s": best[0], "beyond it, s": best[2], "beyond it, CPU s": best[3]}


async def creates(server: Server, count: int) -> None:
    """Create objects over one connection, as many as there is time for, and see what they weigh."""
    async with server.session(1) as session:
        async with session.get(PATH) as answer:
            await answer.read()
        before = server.resident()
        began = time.perf_counter()
        made = 0
        while made < count and time.perf_counter() - began < CREATING:
            body = {"metadata": {"name": f"object-{made}", "labels": {"app": "bench"}}, "data": {"key": "v" * 200}}
            async with session.post(PATH, json=body) as answer:
                await answer.read()
                if answer.status != 201:
                    raise SystemExit(f"{server.name}: a create was answered with {answer.status}")
            made += 1
        took = time.perf_counter() - began
    server.note("created", made)
    server.note("creates/s", made / took)
    server.note("create, ms", took / made * 1e3)
    server.note("KiB/object", (server.resident() - before) / made / 1024)


async def watches(server: Server, watchers: int, rate: int, seconds: float) -> None:
    """Change objects at a rate, for so long, while many watch."""
    async with server.session(0) as session:
        async with session.get(f"{PATH}?limit=1") as answer:
            revision = (await answer.json())["metadata"]["resourceVersion"]
        seen = [0] * watchers
        last = [0.0] * watchers
        written = 0
        progress = asyncio.Event()

        async def watch(number: int, opened: asyncio.Event) -> None:
            async with session.get(f"{PATH}?watch=1&resourceVersion={revision}", read_bufsize=2**20) as stream:
                opened.set()
                async for part in stream.content.iter_any():
                    seen[number] += part.count(b"\n")
                    last[number] = time.perf_counter()
                    progress.set()

        async def write(position: int, began: float) -> None:
            nonlocal written
            for number in range(position, int(rate * seconds), WRITERS):
                await asyncio.sleep(began + number / rate - time.perf_counter())
                if time.perf_counter() - began > seconds:
                    return
                body = json.dumps({"data": {"n": str(number)}}).encode()
                headers = {"Content-Type": "application/merge-patch+json"}
                async with session.patch(f"{PATH}/object-{number % CHANGED}", data=body, headers=headers) as answer:
                    await answer.read()
                    if answer.status != 200:
                        raise SystemExit(f"{server.name}: a change was answered with {answer.status}")
                written += 1

        opened = [asyncio.Event() for _ in range(watchers)]
        tasks = [asyncio.create_task(watch(number, event)) for number, event in enumerate(opened)]
        await asyncio.gather(*(event.wait() for event in opened))
        used, own = server.cpu(), time.process_time()
        began = time.perf_counter()
        await asyncio.gather(*(write(position, began) for position in range(WRITERS)))
        acknowledged = time.perf_counter()
        server.note("changes/s", written / (acknowledged - began))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(ARRIVING):
                while min(seen) < written:
                    progress.clear()
                    await progress.wait()
        used_after, own_after = server.cpu(), time.process_time()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    behind = sum(each < written for each in seen)
    if behind:
        print(f"{server.name}: {behind} watchers had not seen everything {ARRIVING:.0f} s after the last change")
    end = max(last)
    server.note("events/s", sum(seen) / (end - began))
    server.note("last event after, ms", max(0.0, end - acknowledged) * 1e3)
    if used is not None and used_after is not None:
        server.note("server CPU, us/event", (used_after - used) / sum(seen) * 1e6)
    server.note("client CPU, us/event", (own_after - own) / sum(seen) * 1e6)


async def measure(server: Server, options: argparse.Namespace) -> None:
    """Take all figures of one server, in bounded time."""
    async with asyncio.timeout(LIMIT):
        await creates(server, options.objects)
        await watches(server, options.watchers, options.rate, options.seconds)


def show(ours: Server, theirs: Server | None) -> None:
    """Print both columns and the ratio."""
    print(f"{'':24}{ours.name:>16}{theirs.name if theirs else '-':>28}{'ratio':>10}")
    for name, value in ours.figures.items():
        other = theirs.figures.get(name) if theirs else None
        ratio = f"{value / other:10.2f}" if other else f"{'':10}"
        print(f"{name:24}{value:16.3f}{f'{other:28.3f}' if other is not None else '':>28}{ratio}")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--objects", type=int, default=10_000)
    parser.add_argument("--watchers", type=int, default=100)
    parser.add_argument("--rate", type=int, default=1_000)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument(
        "--json", type=Path, default=Path("build/bench-apiserver.json"), help="where the figures go, too"
    )
    options = parser.parse_args()
    beyond = beyond_aiohttp()
    with embedded() as ours:
        ours.figures |= beyond
        asyncio.run(measure(ours, options))
    with real() as theirs:
        if theirs is not None:
            asyncio.run(measure(theirs, options))
    show(ours, theirs)
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps({each.name: each.figures for each in (ours, theirs) if each}, indent=2) + "\n")


if __name__ == "__main__":
    main()
