"""Beside the peers: time split, growth, stalls, work queue, election, compression, import. Each gives a few numbers."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from lab.bench.imports import imports
from lab.bench.peers.catalogue import GO_PEER
from lab.bench.replay.session import Load, Sample, measure, replay

_OURS: Final = (sys.executable, "-m", "lab.bench.peers.deltaloop_peer")
_STAGES: Final[Mapping[str, tuple[str, ...]]] = {
    "socket": (sys.executable, "-m", "lab.bench.stages", "socket"),
    "http": (sys.executable, "-m", "lab.bench.stages", "http"),
    "lines": (sys.executable, "-m", "lab.bench.stages", "lines"),
    "floor": (sys.executable, "-m", "lab.bench.floor"),
    "client": (sys.executable, "-m", "lab.bench.stages", "client"),
    "cache": _OURS,
    "index": _OURS,
    "handlers": _OURS,
}
_STAGE_OPTIONS: Final = {"cache": "no-index", "handlers": "handlers=2"}


def _median_per_unit(samples: list[Sample]) -> dict[str, float]:
    found = {"list": statistics.median(each.list_cpu / each.objects * 1e6 for each in samples)}
    found["bytes"] = statistics.median(each.retained / each.objects for each in samples)
    if samples[0].events:
        found["event"] = statistics.median(each.watch_cpu / each.events * 1e6 for each in samples)
    return found


def _measured(
    load: Load, programs: Mapping[str, tuple[tuple[str, ...], str]], root: Path, runs: int
) -> dict[str, list[Sample]]:
    found: dict[str, list[Sample]] = {name: [] for name in programs}
    with replay(kind=load.kind, objects=load.objects, events=load.events, paced=0, root=root, converter=None) as server:
        for _ in range(runs):
            for name, (command, options) in programs.items():
                own = {"BENCH_OPTIONS": options}
                size = next((int(word[10:]) for word in options.split(",") if word.startswith("informers=")), 1)
                sample = measure(server, replace(load, watches=size), command, own, name=name, root=root)
                found[name].append(sample)
    return found


def time_split(root: Path, *, objects: int, events: int, runs: int) -> dict[str, Any]:
    """Return microseconds of CPU for each object and event, of clients that do less and less; over TLS and without."""
    tls = Load(objects=objects, events=events)
    programs = {name: (command, _STAGE_OPTIONS.get(name, "")) for name, command in _STAGES.items()}
    stages = _measured(tls, programs, root, runs)
    plain = _measured(replace(tls, tls=False), {"socket": programs["socket"]}, root, runs)
    found = {name: _median_per_unit(samples) for name, samples in stages.items()}
    return {"plain-socket": _median_per_unit(plain["socket"]), **found}


def growth(root: Path, *, objects: int, events: int, runs: int) -> dict[str, Any]:
    """Return costs with 1, 10 and 100 informers, and with 1, 10 and 100 handlers, in one process."""
    found: dict[str, Any] = {}
    for what in ("informers", "handlers"):
        programs = {str(number): (_OURS, f"{what}={number}") for number in (1, 10, 100)}
        load = Load(objects=objects, events=events)
        for number, samples in _measured(load, programs, root, runs).items():
            numbers = _median_per_unit(samples)
            share = int(number) if what == "informers" else 1
            found[f"{what}={number}"] = {name: value / share for name, value in numbers.items()}
    return found


def stalls(root: Path, *, objects: int, runs: int) -> dict[str, Any]:
    """Return the longest time for which a list held the event loop up, and what the collector took; seconds."""
    programs = {"ticking": (_OURS, "ticking")}
    samples = _measured(Load(objects=objects, events=0), programs, root, runs)["ticking"]
    extra = [each.extra for each in samples]
    return {
        "objects": objects,
        **{name: statistics.median(float(each[name]) for each in extra) for name in extra[0]},
        "worst_stall": max(float(each["longest_stall"]) for each in extra),
    }


def queue(root: Path, *, size: int, runs: int) -> dict[str, Any]:
    """Return nanoseconds of CPU for each operation of our queue and client-go's, in turn."""
    found: dict[str, dict[str, list[float]]] = {"ours": {}, "client-go": {}}
    programs = {"ours": [sys.executable, "-m", "lab.bench.queue_operations", str(size)]}
    if (root / GO_PEER).exists():
        programs["client-go"] = [str(root / GO_PEER), "queue", str(size)]
    for _ in range(runs):
        for name, command in programs.items():
            for operation, value in json.loads(_output(command, root)).items():
                found[name].setdefault(operation, []).append(value)
    return {
        "size": size,
        **{name: {each: statistics.median(values) for each, values in all_.items()} for name, all_ in found.items()},
    }


def election(root: Path, *, seconds: float) -> dict[str, Any]:
    """Return the CPU seconds of a leader's renewal against the embedded server, which is another process."""
    with tempfile.TemporaryDirectory() as folder:
        kubeconfig = Path(folder) / "kubeconfig"
        program = Path(sys.executable).with_name("deltaloop")
        command = [str(program), "apiserver", "--write-kubeconfig", str(kubeconfig)]
        with subprocess.Popen(command, cwd=root, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
            try:
                deadline = time.monotonic() + 60
                while not kubeconfig.exists() and time.monotonic() < deadline:
                    time.sleep(0.05)  # noqa: TID251 - the server says that it is ready by writing the file
                found: dict[str, Any] = json.loads(
                    _output([sys.executable, "-m", "lab.bench.election", str(kubeconfig), str(seconds)], root)
                )
            finally:
                server.terminate()
    return found


def compression(root: Path, *, objects: int, runs: int) -> dict[str, Any]:
    """Return what compressing and reading a cached object costs, in microseconds of CPU, and its size."""
    command = [sys.executable, "-m", "lab.bench.compression", str(objects)]
    found: list[dict[str, float]] = [json.loads(_output(command, root)) for _ in range(runs)]
    return {"objects": objects, **{name: statistics.median(each[name] for each in found) for name in found[0]}}


def all_of(root: Path, *, full: bool, runs: int) -> dict[str, Callable[[], dict[str, Any]]]:
    """Return everything that is measured here, by name; each takes up to some minutes when called."""
    size = 10 if full else 1
    return {
        "time-split": lambda: time_split(root, objects=1_000 * size, events=2_000 * size, runs=runs),
        "growth": lambda: growth(root, objects=100 * size, events=100 * size, runs=min(runs, 3)),
        "stalls": lambda: stalls(root, objects=100_000 if full else 5_000, runs=runs),
        "queue": lambda: queue(root, size=10_000 * size, runs=runs),
        "election": lambda: election(root, seconds=float(size)),
        "compression": lambda: compression(root, objects=500 * size, runs=runs),
        "import": lambda: imports(runs=runs),
    }


def _output(command: list[str], root: Path) -> str:
    done = subprocess.run(
        command, cwd=root, env=dict(os.environ), capture_output=True, text=True, timeout=600, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(command[1:4])} failed: {done.stderr[-400:]}")
    return done.stdout
