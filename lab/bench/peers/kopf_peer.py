"""kopf: an index of the objects by key, one by label, and an ``on.event`` handler; without its annotations on objects.

kopf fills its indices before it calls handlers. Keys in its indices are looked up as its documentation shows.
"""

from __future__ import annotations

import asyncio
import logging
import os
from importlib import import_module
from typing import Any

from lab.bench.peers import peer
from lab.bench.replay.objects import GROUP

kopf: Any = import_module("kopf")

SELECTOR: tuple[str, ...] = ("", "v1", "pods") if peer.kind() == "pods" else (GROUP, "v1", "widgets")
counter = peer.Counter()
indices: dict[str, Any] = {}


def configure(settings: Any, **_: Any) -> None:
    """Turn off what would write to the server or the log."""
    settings.posting.enabled = False
    settings.peering.standalone = True
    settings.scanning.disabled = True
    settings.watching.server_timeout = 3600


def by_key(namespace: str, name: str, body: Any, **_: Any) -> Any:
    """Keep every object by its key."""
    return {(namespace, name): dict(body)}


def by_application(namespace: str, name: str, labels: Any, **_: Any) -> Any:
    """Keep every object's key by its label."""
    return {labels[peer.INDEX_LABEL]: (namespace, name)}


def event(by_key: Any, by_application: Any, type: str | None, annotations: Any, **_: Any) -> None:  # noqa: A002
    """Count changes."""
    indices.update(by_key=by_key, by_application=by_application)
    if type == "MODIFIED":
        counter.event(lambda: annotations[peer.SENT])


async def main() -> None:
    """Fill the indices and follow the runner."""
    kopf.on.startup()(configure)
    kopf.index(*SELECTOR)(by_key)
    kopf.index(*SELECTOR)(by_application)
    kopf.on.event(*SELECTOR)(event)
    logging.disable(logging.WARNING)
    started, stop = asyncio.Event(), asyncio.Event()

    async def operate() -> None:
        await started.wait()
        await kopf.operator(clusterwide=True, standalone=True, stop_flag=stop)

    def synced() -> int:
        size = len(indices.get("by_key", ()))
        return size if size >= peer.objects() else -1

    def probe(key: str) -> dict[str, object]:
        namespace, name = key.split("/")
        (body,) = indices["by_key"][namespace, name]
        indexed = len(list(indices["by_application"][peer.PROBE_APPLICATION]))
        return peer.found_facts(body["metadata"]["resourceVersion"], indexed)

    operating = asyncio.create_task(operate())
    peer.say("ready")
    await peer.converse(counter, synced, probe, started)
    del operating
    os._exit(0)  # everything is measured; an orderly end takes kopf seconds


if __name__ == "__main__":
    asyncio.run(main())
