"""kubernetes_asyncio: list, then ``watch.Watch`` from its version, into a dictionary; it has no informer."""

from __future__ import annotations

import asyncio
from functools import partial
from importlib import import_module
from typing import Any

from lab.bench.peers import peer
from lab.bench.peers.dict_cache import DictCache
from lab.bench.replay.objects import GROUP

client: Any = import_module("kubernetes_asyncio.client")
config: Any = import_module("kubernetes_asyncio.config")
watch: Any = import_module("kubernetes_asyncio.watch")


def sent_at(obj: Any) -> str:
    """Return when the server sent a paced event."""
    pod = peer.kind() == "pods"
    sent: str = (obj.metadata.annotations if pod else obj["metadata"]["annotations"])[peer.SENT]
    return sent


async def main() -> None:
    """Fill the cache and follow the runner."""
    await config.load_kube_config()
    counter, started = peer.Counter(), asyncio.Event()
    cache = DictCache[Any]()
    full = False
    pods = peer.kind() == "pods"

    def put(obj: Any) -> None:
        if pods:
            metadata = obj.metadata
            cache.put(f"{metadata.namespace}/{metadata.name}", metadata.labels[peer.INDEX_LABEL], obj)
        else:
            fields = obj["metadata"]
            cache.put(f"{fields['namespace']}/{fields['name']}", fields["labels"][peer.INDEX_LABEL], obj)

    async def follow(api: Any) -> None:
        nonlocal full
        await started.wait()
        arguments: tuple[Any, ...] = () if pods else (GROUP, "v1", "widgets")
        function: Any = (
            client.CoreV1Api(api).list_pod_for_all_namespaces
            if pods
            else client.CustomObjectsApi(api).list_cluster_custom_object
        )
        page = await function(*arguments)
        for obj in page.items if pods else page["items"]:
            put(obj)
        version = page.metadata.resource_version if pods else page["metadata"]["resourceVersion"]
        del page
        full = True
        async with watch.Watch().stream(function, *arguments, resource_version=version) as stream:
            async for event in stream:
                obj = event["object"]
                put(obj)
                counter.event(partial(sent_at, obj))

    def probe(key: str) -> dict[str, object]:
        obj = cache.get(key)
        version = obj.metadata.resource_version if pods else obj["metadata"]["resourceVersion"]
        return peer.found_facts(version, len(cache.indexed(peer.PROBE_APPLICATION)))

    async with client.ApiClient() as api:
        following = asyncio.create_task(follow(api))
        peer.say("ready")
        await peer.converse(counter, lambda: len(cache) if full else -1, probe, started)
        following.cancel()


if __name__ == "__main__":
    asyncio.run(main())
