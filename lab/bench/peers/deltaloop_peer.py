"""deltaloop: an informer of a factory, one index, one handler. ``BENCH_OPTIONS`` names what differs.

managedFields are kept, as other peers keep them; ``stripped`` drops them, which is our default. ``delta-fifo`` takes
the other queue, ``compressed`` compresses the cache;
``no-index`` leaves that out; ``informers=N`` and ``handlers=N`` are that many, ``ticking`` measures how long the event
loop is held up and how long garbage is collected, and ``profile=PATH`` writes where the time goes.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import time
from pathlib import Path
from typing import Any, final

import deltaloop as dl
from deltaloop.cache.informer_options import InformerOptions
from deltaloop.cache.queue import QueueKind
from lab.bench.peers import peer
from lab.bench.peers.sampler import sampled
from lab.bench.replay.objects import GROUP


def resource_type() -> dl.ResourceType[dl.Resource]:
    """Return the kind that is watched."""
    if peer.kind() == "pods":
        return dl.kinds.POD
    return dl.ResourceType(GROUP, "v1", "Widget", "widgets", namespaced=True)


def by_application(obj: dl.Resource) -> list[str]:
    """Index by a label."""
    return [obj.metadata.labels.get(peer.INDEX_LABEL, "")]


def informer_options(words: set[str]) -> InformerOptions:
    """Return the options that the words name."""
    options: dict[str, Any] = {"keep_managed_fields": "stripped" not in words}
    if "delta-fifo" in words:
        options["queue"] = QueueKind.DELTA_FIFO
    if "compressed" in words:
        options["compression"] = "zstd"
    return InformerOptions(**options)


def number_of(words: set[str], name: str) -> int:
    """Return the number after a name, or 1."""
    return next((int(word.removeprefix(f"{name}=")) for word in words if word.startswith(f"{name}=")), 1)


@final
class Ticking:
    """A task that wants to run every millisecond, and the collector's pauses."""

    def __init__(self) -> None:
        """Begin with nothing seen."""
        self.latest = self.pause = self.collecting = 0.0
        self.collections = 0
        self._began = 0.0
        gc.callbacks.append(self._collected)

    def _collected(self, phase: str, _: dict[str, int]) -> None:
        if phase == "start":
            self._began = time.perf_counter()
            return
        took = time.perf_counter() - self._began
        self.collections += 1
        self.collecting += took
        self.pause = max(self.pause, took)

    async def run(self) -> None:
        """Tick until cancelled."""
        while True:
            due = time.perf_counter() + 0.001
            await asyncio.sleep(0.001)
            self.latest = max(self.latest, time.perf_counter() - due)

    def facts(self) -> dict[str, object]:
        """Return what was seen, in seconds."""
        return {
            "longest_stall": self.latest,
            "longest_collection": self.pause,
            "collecting": self.collecting,
            "collections": self.collections,
        }


@final
class Measured:
    """The informers and what the runner asks about them."""

    def __init__(self, factory: dl.InformerFactory, words: set[str], counter: peer.Counter) -> None:
        """Watch nothing yet."""
        self._factory = factory
        self._words = words
        self._counter = counter
        self._informers: list[dl.Informer[dl.Resource]] = []
        self.size = number_of(words, "informers")
        self.handlers = number_of(words, "handlers")

    async def begin(self, started: asyncio.Event) -> None:
        """Watch once that is asked for; a label selector, which the server ignores, makes one informer many."""
        await started.wait()
        indexers = {} if "no-index" in self._words else {"application": by_application}
        for number in range(self.size):
            selector = f"informer={number}" if number else ""
            informer = self._factory.informer(resource_type(), indexers=indexers, label_selector=selector)
            for _ in range(self.handlers):
                informer.add_event_handler(
                    dl.HandlerFuncs(
                        on_update=lambda _, new: self._counter.event(lambda: new["metadata"]["annotations"][peer.SENT])
                    )
                )
            self._informers.append(informer)

    def synced(self) -> int:
        """Return how many objects the first has when all are complete, else -1."""
        if len(self._informers) < self.size or not all(each.has_synced for each in self._informers):
            return -1
        return len(self._informers[0].lister().list())

    def probe(self, key: str) -> dict[str, object]:
        """Read by key and by index."""
        lister = self._informers[0].lister()
        found = dl_version(lister.get(key))
        if "no-index" in self._words:
            return {}
        return peer.found_facts(found, len(lister.by_index("application", peer.PROBE_APPLICATION)))


def dl_version(obj: dl.Resource) -> str:
    """Return an object's version."""
    return obj.metadata.resource_version


async def main() -> None:
    """Fill the cache and follow the runner."""
    counter, started = peer.Counter(), asyncio.Event()
    words = set(os.environ.get("BENCH_OPTIONS", "").split(",")) - {""}
    ticking = Ticking() if "ticking" in words else None
    profile = next((word.removeprefix("profile=") for word in words if word.startswith("profile=")), "")
    options = informer_options(words)
    with sampled(Path(profile)) if profile else contextlib.nullcontext():
        async with dl.connect() as client, dl.InformerFactory(client, options=options) as factory:
            measured = Measured(factory, words, counter)
            peer.say("ready")
            tasks = [asyncio.create_task(measured.begin(started))]
            if ticking is not None:
                tasks.append(asyncio.create_task(ticking.run()))
            await peer.converse(
                counter,
                measured.synced,
                measured.probe,
                started,
                calls_per_event=measured.size * measured.handlers,
                extra=ticking.facts if ticking is not None else dict,
            )
            for task in tasks:
                task.cancel()


if __name__ == "__main__":
    asyncio.run(main())
