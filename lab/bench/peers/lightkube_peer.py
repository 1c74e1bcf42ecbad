"""lightkube: ``AsyncClient.list`` in pages, then ``watch`` from the version of the list, into a dictionary."""

from __future__ import annotations

import asyncio
from functools import partial
from importlib import import_module
from typing import Any

from lab.bench.peers import peer
from lab.bench.peers.dict_cache import DictCache
from lab.bench.replay.objects import GROUP

lightkube: Any = import_module("lightkube")
generic: Any = import_module("lightkube.generic_resource")
core: Any = import_module("lightkube.resources.core_v1")


def sent_at(obj: Any) -> str:
    """Return when the server sent a paced event."""
    sent: str = obj.metadata.annotations[peer.SENT]
    return sent


async def main() -> None:
    """Fill the cache and follow the runner."""
    counter, started = peer.Counter(), asyncio.Event()
    cache = DictCache[Any]()
    full = False
    kind: Any = core.Pod
    if peer.kind() == "widgets":
        kind = generic.create_namespaced_resource(GROUP, "v1", "Widget", "widgets")
    client = lightkube.AsyncClient()

    def put(obj: Any) -> None:
        metadata = obj.metadata
        cache.put(f"{metadata.namespace}/{metadata.name}", metadata.labels[peer.INDEX_LABEL], obj)

    async def follow() -> None:
        nonlocal full
        await started.wait()
        listing = client.list(kind, namespace="*", chunk_size=500)
        async for obj in listing:
            put(obj)
        full = True
        async for _, obj in client.watch(kind, namespace="*", resource_version=listing.resourceVersion):
            put(obj)
            counter.event(partial(sent_at, obj))

    def probe(key: str) -> dict[str, object]:
        version = cache.get(key).metadata.resourceVersion
        return peer.found_facts(version, len(cache.indexed(peer.PROBE_APPLICATION)))

    following = asyncio.create_task(follow())
    peer.say("ready")
    await peer.converse(counter, lambda: len(cache) if full else -1, probe, started)
    following.cancel()


if __name__ == "__main__":
    asyncio.run(main())
