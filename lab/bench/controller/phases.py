"""One operator through all phases on one server, and what each took."""

from __future__ import annotations

import asyncio
import contextlib
import os
import statistics
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import IO, Any, Final, final

from lab.bench.controller import processes
from lab.bench.controller.load import Load, connect
from lab.bench.controller.operators import Operator
from lab.bench.controller.servers import ROOT, Server

START, CHANGE, SINGLE, IDLE, RESTART = PHASES = ("start", "change", "single", "idle", "restart")
_QUIET, _ASKED, _TICKS = 1.0, 0.1, 0.02
_ENDING: Final = 15.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How much there is to do.

    Attributes:
        objects: Greetings.
        singles: Changes one after another.
        idle: Seconds of doing nothing.
        limit: Seconds that a phase may take.
    """

    objects: int = 3000
    singles: int = 300
    idle: float = 5.0
    limit: float = 240.0


@dataclass(slots=True, kw_only=True)
class Measured:
    """What one phase took.

    Attributes:
        cpu: User and system seconds of the operator's processes: in ``start`` and ``restart`` from the beginning of
            the process, in the others of the phase, always until they are at rest again.
        wall: Seconds until the last status was seen; in ``restart`` until the operator was at rest.
        server_cpu: Seconds of the server's processes; those for the runner's writes and its watch are among them.
        peak: The highest resident size until then, in MiB.
        rss: The resident size afterwards, in MiB.
        requests: What the operator asked for, by verb and resource, and ``conflict``.
        latencies: Milliseconds from a write of a spec until the status is seen: ``p50``, ``p99``.
    """

    cpu: float
    wall: float
    server_cpu: float
    peak: float
    rss: float
    requests: Mapping[str, int] = field(default_factory=dict[str, int])
    latencies: Mapping[str, float] = field(default_factory=dict[str, float])

    def document(self) -> dict[str, Any]:
        """Return it as it is written down."""
        return asdict(self)


Note = Callable[[str, Measured], None]


@final
class Running:
    """An operator's process; what it prints is kept for when something fails."""

    def __init__(self, process: subprocess.Popen[bytes], output: IO[bytes]) -> None:
        """Made by ``running``."""
        self._process = process
        self._output = output

    @property
    def cpu(self) -> float:
        """CPU seconds until now."""
        return processes.cpu([self._process.pid])

    def memory(self, field_name: str) -> float:
        """Return ``VmRSS`` or ``VmHWM`` in MiB."""
        return processes.memory(self._process.pid, field_name)

    def check(self) -> None:
        """Refuse a process that has ended.

        Raises:
            RuntimeError: With what it printed last.
        """
        if self._process.poll() is not None:
            raise RuntimeError(f"the operator ended with code {self._process.returncode}: {self.tail()}")

    def tail(self) -> str:
        """Return what it printed last."""
        self._output.seek(0)
        return self._output.read()[-2000:].decode(errors="replace")

    async def rest(self, limit: float) -> float:
        """Wait until it uses next to no CPU for a second; return when that second began.

        Raises:
            RuntimeError: It ended, or is still busy after ``limit`` seconds.
        """
        until = time.perf_counter() + limit
        quiet_from, used = time.perf_counter(), self.cpu
        while time.perf_counter() - quiet_from < _QUIET:
            await asyncio.sleep(_ASKED)
            self.check()
            now = self.cpu
            if now - used > _TICKS:
                quiet_from, used = time.perf_counter(), now
            if time.perf_counter() > until:
                raise RuntimeError(f"the operator is still busy after {limit:.0f} s")
        return quiet_from


@contextlib.contextmanager
def running(operator: Operator, server: Server) -> Generator[Running]:
    """Run an operator until the block ends; then it is asked to end, and killed if it does not."""
    environment = {**os.environ, **operator.environment, "KUBECONFIG": str(server.kubeconfig)}
    environment["BENCH_SERVER"] = server.name
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # as installed: compiled once
    with (
        tempfile.TemporaryFile() as output,
        subprocess.Popen(
            operator.command, cwd=ROOT, env=environment, stdout=output, stderr=output, stdin=subprocess.DEVNULL
        ) as process,
    ):
        there = Running(process, output)
        try:
            yield there
        except RuntimeError as error:
            raise RuntimeError(f"{operator.name}: {error}; it printed last: {there.tail()}") from error
        finally:
            process.terminate()
            try:
                process.wait(_ENDING)
            except subprocess.TimeoutExpired:
                process.kill()


@final
class _Meter:
    """Reads everything before and after a phase."""

    def __init__(self, server: Server, load: Load) -> None:
        self._server, self._load = server, load
        self._cpu = self._server_cpu = self._began = 0.0
        self._requests: Counter[str] = Counter()

    async def begin(self, operator: Running | None) -> None:
        """Begin a phase; without an operator, its process is still to be started."""
        self._requests = await self._load.requests()
        self._cpu = operator.cpu if operator is not None else 0.0
        self._server_cpu = processes.cpu(self._server.processes)
        self._began = time.perf_counter()

    async def end(self, operator: Running, ended: float, latencies: Mapping[str, float] | None = None) -> Measured:
        """End a phase."""
        used, server_used = operator.cpu, processes.cpu(self._server.processes)
        asked = await self._load.requests()
        asked.subtract(self._requests)
        return Measured(
            cpu=used - self._cpu,
            wall=ended - self._began,
            server_cpu=server_used - self._server_cpu,
            peak=operator.memory("VmHWM"),
            rss=operator.memory("VmRSS"),
            requests={what: number for what, number in sorted(asked.items()) if number},
            latencies=latencies or {},
        )


def percentiles(seconds: Iterable[float]) -> dict[str, float]:
    """Return the median and the 99th percentile in milliseconds."""
    ordered = sorted(each * 1e3 for each in seconds)
    return {"p50": statistics.median(ordered), "p99": ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]}


async def _work(operator: Running, load: Load, sizes: Sizes) -> float:
    """Wait until everything is done and the operator is at rest; return when the last status was seen."""
    try:
        await load.done(sizes.limit)
    finally:
        operator.check()
    ended = time.perf_counter()
    await operator.rest(sizes.limit)
    return ended


async def _one_life(
    operator: Running, load: Load, meter: _Meter, sizes: Sizes, phases: frozenset[str], note: Note
) -> None:
    """Take the phases from the first start until the operator is ended."""
    note(START, await meter.end(operator, await _work(operator, load, sizes)))
    await load.verify()
    if CHANGE in phases:
        await meter.begin(operator)
        await load.change(sizes.objects, "changed")
        note(CHANGE, await meter.end(operator, await _work(operator, load, sizes)))
        await load.verify()
    if SINGLE in phases:
        await meter.begin(operator)
        took = [
            await load.single(number % sizes.objects, f"single-{number}", limit=sizes.limit)
            for number in range(sizes.singles)
        ]
        ended = await _work(operator, load, sizes)
        note(SINGLE, await meter.end(operator, ended, percentiles(took)))
        await load.verify()
    if IDLE in phases:
        await meter.begin(operator)
        await asyncio.sleep(sizes.idle)
        note(IDLE, await meter.end(operator, time.perf_counter()))


async def _both_lives(operator: Operator, server: Server, sizes: Sizes, phases: frozenset[str], note: Note) -> None:
    async with connect(server) as load:
        await load.seed(sizes.objects, "first")
        meter = _Meter(server, load)
        await meter.begin(None)
        with running(operator, server) as first:
            await _one_life(first, load, meter, sizes, phases, note)
        if RESTART in phases:
            await meter.begin(None)
            with running(operator, server) as second:
                note(RESTART, await meter.end(second, await second.rest(sizes.limit)))
                await load.single(0, "after-restart", limit=sizes.limit)  # it was at rest, but it does run
                await load.verify()


def measure(
    operator: Operator, server: Server, sizes: Sizes, phases: frozenset[str], show: Note
) -> dict[str, Measured]:
    """Take one operator through the phases; ``start`` is always among them.

    Args:
        operator: Which program.
        server: Fresh.
        sizes: How much there is to do.
        phases: Those that are wanted.
        show: Is given each phase and what it took, as soon as it is over.

    Raises:
        RuntimeError: The operator ended, did not do its work, or did it wrongly.
    """
    found = dict[str, Measured]()

    def note(phase: str, measured: Measured) -> None:
        found[phase] = measured
        show(phase, measured)

    asyncio.run(_both_lives(operator, server, sizes, phases, note))
    return found
