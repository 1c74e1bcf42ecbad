"""What every Python peer shares: the protocol with the runner, and what is counted.

A peer is a process. It is told what to do by lines on standard input and answers each with a line of JSON, which
carries the CPU seconds (user + system) that the process has used until then:

* at start: ``{"at": "ready"}``, everything imported;
* ``list``: fill the cache; ``{"at": "synced", "objects": N}``;
* ``settle``: give memory back that is not needed; ``{"at": "settled"}`` (the runner reads the resident size then);
* ``events K``: ``{"at": "listening"}`` at once, and ``{"at": "done", ...}`` when K events have reached the handler,
  with what is found by key and by index, so that the runner can see that all peers hold the same;
* ``pace K``: the same for events that say when they were sent; the answer has the latencies' percentiles;
* ``quit``.

The handler that counts is the same for all: it looks at nothing but the number of calls, and at the time while paced.
"""

from __future__ import annotations

import asyncio
import base64
import ctypes
import gc
import json
import os
import resource
import ssl
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, final

SENT: Final = "bench.deltaloop.dev/sent"
INDEX_LABEL: Final = "app"
PROBE_APPLICATION: Final = "app-0007"


def kind() -> str:
    """Return what to watch: ``pods`` or ``widgets``."""
    return os.environ["BENCH_KIND"]


def objects() -> int:
    """Return how many objects there are, for a client that cannot say when it is full."""
    return int(os.environ["BENCH_OBJECTS"])


@dataclass(frozen=True, slots=True)
class Target:
    """Where the server is, for clients that read no kubeconfig."""

    url: str
    token: str
    context: ssl.SSLContext | None


def target() -> Target:
    """Return what the kubeconfig of the run says; it is JSON."""
    config: Any = json.loads(Path(os.environ["KUBECONFIG"]).read_text())
    cluster, token = config["clusters"][0]["cluster"], config["users"][0]["user"]["token"]
    authority = cluster.get("certificate-authority-data")
    context = ssl.create_default_context(cadata=base64.b64decode(authority).decode()) if authority else None
    return Target(cluster["server"], token, context)


def say(at: str, **facts: object) -> None:
    """Answer the runner."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    print(json.dumps({"at": at, "cpu": used.ru_utime + used.ru_stime, "wall": time.monotonic(), **facts}), flush=True)


def settle() -> None:
    """Give back what is not needed, as far as an interpreter can."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)


def percentile(sorted_values: list[int], share: float) -> int:
    """Return a value below which ``share`` of all lie."""
    return sorted_values[min(len(sorted_values) - 1, int(share * len(sorted_values)))]


@final
class Counter:
    """Counts the handler's calls; safe for one thread that calls and one that waits."""

    def __init__(self) -> None:
        """Start at nothing; nobody waits."""
        self._left = 0
        self._paced = False
        self._latencies: list[int] = []
        self._reached: Callable[[], object] = lambda: None

    def expect(self, events: int, reached: Callable[[], object], *, paced: bool) -> None:
        """Call ``reached`` after so many events more; call this before they come."""
        self._left, self._reached, self._paced, self._latencies = events, reached, paced, []

    def event(self, sent: Callable[[], str]) -> None:
        """Count one event; ``sent`` reads when it was sent, and is called only while that is measured."""
        if self._paced:
            self._latencies.append(time.monotonic_ns() - int(sent()))
        self._left -= 1
        if not self._left:
            self._reached()

    def latencies(self) -> dict[str, float]:
        """Return percentiles in microseconds."""
        ordered = sorted(self._latencies)
        return {f"p{share}": percentile(ordered, share / 100) / 1e3 for share in (50, 99)} if ordered else {}


def found_facts(resource_version: str, indexed: int) -> dict[str, object]:
    """Return what was read by key and by index, as the runner compares it."""
    return {"probe_version": resource_version, "indexed": indexed}


async def converse(
    counter: Counter,
    synced: Callable[[], int],
    probe: Callable[[str], dict[str, object]],
    started: asyncio.Event,
    *,
    calls_per_event: int = 1,
    extra: Callable[[], dict[str, object]] = dict,
) -> None:
    """Follow the runner's commands on an event loop; ``started`` is set by ``list``.

    Args:
        counter: Is called by the handler.
        synced: Waited for by asking every millisecond; returns the number of objects, or -1 while not complete.
        probe: Reads the cache by key and by index.
        started: Set when the list may begin.
        calls_per_event: How often the handler is called for one event, over all informers and handlers.
        extra: What is said besides, after the list and after events.
    """
    loop = asyncio.get_running_loop()
    while line := (await loop.run_in_executor(None, sys.stdin.readline)).split():
        match line[0]:
            case "list":
                started.set()
                while (count := synced()) < 0:  # noqa: ASYNC110 - most clients have nothing to wait for
                    await asyncio.sleep(0.001)
                say("synced", objects=count, extra=extra())
            case "settle":
                settle()
                say("settled")
            case "events" | "pace" as what:
                reached = asyncio.Event()
                wake = partial(loop.call_soon_threadsafe, reached.set)
                counter.expect(int(line[1]) * calls_per_event, wake, paced=what == "pace")
                say("listening")
                await reached.wait()
                say("done", latencies=counter.latencies(), extra=extra(), **probe(line[2]))
            case _:
                return


def converse_blocking(counter: Counter, fill: Callable[[], int], probe: Callable[[str], dict[str, object]]) -> None:
    """Follow the runner's commands in the main thread of a threaded peer; ``fill`` returns when all is there."""
    for text in sys.stdin:
        line = text.split()
        match line[0]:
            case "list":
                say("synced", objects=fill())
            case "settle":
                settle()
                say("settled")
            case "events" | "pace" as what:
                reached = threading.Event()
                counter.expect(int(line[1]), reached.set, paced=what == "pace")
                say("listening")
                reached.wait()
                say("done", latencies=counter.latencies(), **probe(line[2]))
            case _:
                return
