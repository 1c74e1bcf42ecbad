"""kr8s: ``get`` in pages, then ``watch`` from the version of the list, into a dictionary; it has no cache."""

from __future__ import annotations

import asyncio
from functools import partial
from importlib import import_module
from typing import Any

from lab.bench.peers import peer
from lab.bench.peers.dict_cache import DictCache
from lab.bench.replay.objects import GROUP

kr8s: Any = import_module("kr8s.asyncio")
kinds: Any = import_module("kr8s.asyncio.objects")
EVERYWHERE: Any = import_module("kr8s").ALL


def sent_at(obj: Any) -> str:
    """Return when the server sent a paced event."""
    sent: str = obj.annotations[peer.SENT]
    return sent


async def main() -> None:
    """Fill the cache and follow the runner."""
    counter, started = peer.Counter(), asyncio.Event()
    cache = DictCache[Any]()
    full = False
    kind: Any = kinds.Pod
    if peer.kind() == "widgets":
        kind = kinds.new_class("Widget", f"{GROUP}/v1", namespaced=True)
    api = await kr8s.api()

    def put(obj: Any) -> None:
        cache.put(f"{obj.namespace}/{obj.name}", obj.labels[peer.INDEX_LABEL], obj)

    async def follow() -> None:
        nonlocal full
        await started.wait()
        async for obj in api.get(kind, namespace=EVERYWHERE):
            put(obj)
        full = True
        async for _, obj in api.watch(kind, namespace=EVERYWHERE, since=str(len(cache) + 1000)):
            put(obj)
            counter.event(partial(sent_at, obj))

    def probe(key: str) -> dict[str, object]:
        version = cache.get(key).metadata["resourceVersion"]
        return peer.found_facts(version, len(cache.indexed(peer.PROBE_APPLICATION)))

    following = asyncio.create_task(follow())
    peer.say("ready")
    await peer.converse(counter, lambda: len(cache) if full else -1, probe, started)
    following.cancel()


if __name__ == "__main__":
    asyncio.run(main())
