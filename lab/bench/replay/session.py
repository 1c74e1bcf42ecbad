"""One measurement: a replay server, one peer, and what the runner reads from outside of it."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, final

import trustme

from lab.bench.replay.objects import name_of, namespace_of
from lab.bench.replay.recording import probed_version

_SERVER_LIMIT: Final = 6 * 3600.0
_PEER_LIMIT: Final = 900.0
INDEXED_EVERY: Final = 2000  # objects of one application; that of number 7 is looked up


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What is sent to a peer.

    Attributes:
        kind: ``pods`` or ``widgets``.
        objects: How many are listed.
        events: How many changes are sent at once after that.
        paced: How many more are sent one at a time.
        rate: Of those, in a second.
        streamed: Whether the server offers the streamed list.
        tls: Whether the peer is led to the port with TLS.
        watches: How many streams the peer opens.
    """

    kind: str = "pods"
    objects: int = 10_000
    events: int = 50_000
    paced: int = 0
    rate: float = 200.0
    streamed: bool = False
    tls: bool = True
    watches: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """What one run of one peer took; seconds and bytes.

    Attributes:
        objects: How many were listed.
        list_cpu: User and system time of the peer's process, from ``list`` to ``synced``.
        list_wall: The same on the clock.
        retained: Resident bytes after settling, over those before the list.
        peak: The highest resident size so far, over that before the list.
        events: How many changes were sent at once.
        watch_cpu: Of the peer's process, from the moment before the first change is sent to the last handler's call.
        watch_wall: The same on the clock.
        latencies: Microseconds from the server's write to the handler's call, ``p50`` and ``p99``.
        start_cpu: What the peer's process used until it was ready to list.
        start_rss: Its resident size then.
        retained_after: As ``retained``, after the changes.
        extra: What the peer said beside that.
    """

    objects: int
    list_cpu: float
    list_wall: float
    retained: int
    peak: int
    events: int
    watch_cpu: float
    watch_wall: float
    latencies: Mapping[str, float]
    start_cpu: float
    start_rss: int
    retained_after: int
    extra: Mapping[str, Any]


@final
class Process:
    """A child that answers lines of JSON; ended by its own id at the latest when its time is over."""

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], *, name: str, cwd: Path, limit: float
    ) -> None:
        """Start it; it is killed after ``limit`` seconds."""
        self.name = name
        self._process = subprocess.Popen(
            command, env=dict(environment), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=cwd
        )
        self._limit = threading.Timer(limit, self._process.kill)
        self._limit.daemon = True
        self._limit.start()

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(BrokenPipeError, subprocess.TimeoutExpired):
            self._process.communicate('{"do": "quit"}\n' if self.name == "replay" else "quit\n", timeout=10)
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        self._limit.cancel()

    def tell(self, line: str) -> None:
        """Send one command."""
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def answer(self) -> dict[str, Any]:
        """Wait for one answer.

        Raises:
            RuntimeError: The process ended instead, or says what is wrong.
        """
        assert self._process.stdout is not None
        while True:
            line = self._process.stdout.readline()
            if not line:
                raise RuntimeError(f"{self.name} ended with code {self._process.wait()} instead of answering")
            if line.startswith("{"):
                answer: dict[str, Any] = json.loads(line)
                if "error" in answer:
                    raise RuntimeError(f"{self.name}: {answer['error']}")
                return answer

    def memory(self, field: str) -> int:
        """Return a field of the process's status in bytes, of the process and its threads."""
        for line in Path(f"/proc/{self._process.pid}/status").read_text().splitlines():
            if line.startswith(field + ":"):
                return int(line.split()[1]) * 1024
        raise RuntimeError(f"no {field} in the status of {self.name}")


@final
class Replay:
    """A server with one recording, for as many peers as one likes, one after another."""

    def __init__(self, server: Process, folder: Path, authority: trustme.CA, facts: Mapping[str, Any]) -> None:
        """Made by ``replay``."""
        self.server = server
        self.facts = facts
        self._folder = folder
        self._authority = authority

    def command(self, **command: object) -> dict[str, Any]:
        """Give the server a command and return its answer."""
        self.server.tell(json.dumps(command))
        return self.server.answer()

    def kubeconfig(self, *, tls: bool) -> Path:
        """Return a file that leads to the server."""
        cluster: dict[str, object] = {"server": f"http://127.0.0.1:{self.facts['ports']['http']}"}
        if tls:
            cluster = {
                "server": f"https://127.0.0.1:{self.facts['ports']['tls']}",
                "certificate-authority-data": base64.b64encode(self._authority.cert_pem.bytes()).decode(),
            }
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "bench",
            "clusters": [{"name": "bench", "cluster": cluster}],
            "users": [{"name": "bench", "user": {"token": "replay-takes-any-token"}}],
            "contexts": [{"name": "bench", "context": {"cluster": "bench", "user": "bench"}}],
        }
        path = self._folder / f"kubeconfig-{'tls' if tls else 'http'}"
        path.write_text(json.dumps(document))
        return path


@contextlib.contextmanager
def replay(
    *, kind: str, objects: int, events: int, paced: int, root: Path, converter: Path | None, self_test: bool = False
) -> Generator[Replay]:
    """Run a server until the block ends; it has prepared everything when the block begins."""
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        authority = trustme.CA()
        authority.issue_cert("127.0.0.1", "localhost").private_key_and_cert_chain_pem.write_to_path(here / "tls.pem")
        command = [sys.executable, "-m", "lab.bench.replay.server", "--kind", kind, "--tls", folder]
        command += ["--objects", str(objects), "--events", str(events), "--paced", str(paced)]
        if converter is not None:
            command += ["--converter", str(converter)]
        if self_test:
            command.append("--self-test")
        with Process(command, os.environ, name="replay", cwd=root, limit=_SERVER_LIMIT) as server:
            yield Replay(server, here, authority, server.answer())


def measure(
    server: Replay, load: Load, command: Sequence[str], environment: Mapping[str, str], *, name: str, root: Path
) -> Sample:
    """Run one peer.

    Args:
        server: Has a recording of at least that load.
        load: What the peer gets.
        command: The peer.
        environment: Variables of its own.
        name: Of the peer, for errors.
        root: The checkout.

    Raises:
        RuntimeError: The peer ended early, or does not hold what it should.
    """
    server.command(do="begin", streamed=load.streamed)
    own = {**os.environ, "KUBECONFIG": str(server.kubeconfig(tls=load.tls)), "BENCH_KIND": load.kind, **environment}
    own["BENCH_STREAMED"] = "1" if load.streamed else ""
    own["BENCH_OBJECTS"] = str(load.objects)
    with Process(command, own, name=name, cwd=root, limit=_PEER_LIMIT) as child:
        ready = child.answer()
        start_rss = child.memory("VmRSS")
        child.tell("list")
        began = time.monotonic()
        synced = child.answer()
        list_wall = time.monotonic() - began
        peak = child.memory("VmHWM")
        if synced["objects"] != load.objects:
            raise RuntimeError(f"{name} holds {synced['objects']} objects, not {load.objects}")
        retained = settled(child) - start_rss
        watch_cpu, watch_wall, done = _events(server, load, child)
        return Sample(
            objects=load.objects,
            list_cpu=synced["cpu"] - ready["cpu"],
            list_wall=list_wall,
            retained=retained,
            peak=peak - start_rss,
            events=load.events,
            watch_cpu=watch_cpu,
            watch_wall=watch_wall,
            latencies=_paced(server, load, child),
            start_cpu=ready["cpu"],
            start_rss=start_rss,
            retained_after=settled(child) - start_rss,
            extra={**synced.get("extra", {}), **done.get("extra", {})},
        )


def settled(child: Process) -> int:
    """Let a peer give back what it does not need; return its resident size."""
    child.tell("settle")
    child.answer()
    return child.memory("VmRSS")


def _probe_key() -> str:
    return f"{namespace_of(0)}/{name_of(0)}"


def _events(server: Replay, load: Load, child: Process) -> tuple[float, float, Mapping[str, Any]]:
    """Send the changes at once; return what the peer took for them, and its last answer."""
    if not load.events:
        return 0.0, 0.0, {}
    child.tell(f"events {load.events} {_probe_key()}")
    listening = child.answer()
    server.command(do="release", events=load.events, watches=load.watches)
    done = child.answer()
    check(done, load, child.name)
    return done["cpu"] - listening["cpu"], done["wall"] - listening["wall"], done


def _paced(server: Replay, load: Load, child: Process) -> Mapping[str, float]:
    """Send changes one at a time; return how late they reached the handler."""
    if not load.paced:
        return {}
    child.tell(f"pace {load.paced} {_probe_key()}")
    child.answer()
    server.command(do="pace", events=load.paced, rate=load.rate)
    latencies: Mapping[str, float] = child.answer()["latencies"]
    return latencies


def check(done: Mapping[str, Any], load: Load, name: str) -> None:
    """Hold what the peer found against what it must have.

    Raises:
        RuntimeError: It has something else.
    """
    if "probe_version" not in done:
        return  # it keeps nothing
    version = probed_version(load.objects, load.events)
    if done["probe_version"] != version:
        raise RuntimeError(f"{name} holds version {done['probe_version']} of the probed object, not {version}")
    indexed = len(range(7, load.objects, INDEXED_EVERY))
    if done["indexed"] != indexed:
        raise RuntimeError(f"{name} finds {done['indexed']} objects by index, not {indexed}")
