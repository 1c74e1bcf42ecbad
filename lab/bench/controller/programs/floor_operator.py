"""The least that a controller in Python can do for the benchmark's job: no retries, causes, metrics or permissions.

Streamed lists and watches of both kinds, stores of raw objects, a queue without duplicates, 16 workers, and own writes
laid over the stores. No runtime can be faster than this on asyncio; the distance to ``duties_operator`` is the price
of what a runtime has to do.
"""

from __future__ import annotations

import asyncio
import signal
from collections import deque
from typing import final

from lab.bench.controller.programs.anchor_objects import (
    CONFIG_MAPS,
    GREETINGS,
    MERGE,
    WORKERS,
    decode_config_map,
    decode_event,
    decode_fields,
    decode_greeting,
    decode_head,
    encode,
    owner_reference,
)
from lab.bench.controller.programs.plain_http import PlainClient

Key = tuple[str, str]
Store = dict[Key, tuple[int, bytes]]


@final
class Floor:
    """The operator."""

    def __init__(self) -> None:
        """Know of no objects."""
        self._client = PlainClient()
        self._greetings: Store = {}
        self._config_maps: Store = {}
        self._queue: deque[Key] = deque()
        self._queued: set[Key] = set()
        self._running: set[Key] = set()
        self._idle: deque[asyncio.Future[None]] = deque()
        self._unsynced = 2
        self._synced = asyncio.Event()

    async def run(self) -> None:
        """Run until the process is told to end."""
        stopped = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
        await self._client.watch(f"{GREETINGS}/greetings", self._on_greeting)
        await self._client.watch(f"{CONFIG_MAPS}/configmaps", self._on_config_map)
        await self._synced.wait()
        workers = [asyncio.create_task(self._work()) for _ in range(WORKERS)]
        await stopped.wait()
        for worker in workers:
            worker.cancel()

    # -- watches

    def _on_greeting(self, line: bytes) -> None:
        event = decode_event(line)
        if event.type == "BOOKMARK":
            self._has_synced()
            return
        self._add(self._keep(self._greetings, bytes(event.object)))

    def _on_config_map(self, line: bytes) -> None:
        event = decode_event(line)
        if event.type == "BOOKMARK":
            self._has_synced()
            return
        raw = bytes(event.object)
        self._keep(self._config_maps, raw)
        metadata = decode_head(raw).metadata
        for owner in metadata.owner_references:
            if owner.controller and owner.kind == "Greeting":
                self._add((metadata.namespace, owner.name))

    def _keep(self, store: Store, raw: bytes) -> Key:
        """Keep an object unless the store has a newer one."""
        metadata = decode_head(raw).metadata
        key, version = metadata.key, int(metadata.resource_version)
        before = store.get(key)
        if before is None or before[0] < version:
            store[key] = version, raw
        return key

    def _has_synced(self) -> None:
        self._unsynced -= 1
        if self._unsynced == 0:
            self._synced.set()

    # -- the queue

    def _add(self, key: Key) -> None:
        if key in self._queued:
            return
        self._queued.add(key)
        if key not in self._running:
            self._queue.append(key)
            if self._idle:
                self._idle.popleft().set_result(None)

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            while not self._queue:
                idle: asyncio.Future[None] = loop.create_future()
                self._idle.append(idle)
                await idle
            key = self._queue.popleft()
            self._queued.discard(key)
            self._running.add(key)
            try:
                await self._reconcile(key)
            finally:
                self._running.discard(key)
                if key in self._queued:
                    self._queue.append(key)

    # -- the job

    async def _reconcile(self, key: Key) -> None:
        found = self._greetings.get(key)
        if found is None:
            return
        greeting = decode_greeting(found[1])
        namespace, name = key
        message = greeting.spec.message
        owners = [owner_reference(name, greeting.metadata.uid)]
        child = self._config_maps.get(key)
        path = f"{CONFIG_MAPS}/namespaces/{namespace}/configmaps"
        if child is None:
            metadata = {"name": name, "namespace": namespace, "ownerReferences": owners}
            config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"message": message}}
            self._keep(self._config_maps, await self._client.ask(b"POST", path, encode(config_map)))
        else:
            known = decode_config_map(child[1])
            if known.data != {"message": message} or not any(
                each.controller for each in known.metadata.owner_references
            ):
                fields = decode_fields(child[1])
                fields["data"] = {"message": message}
                fields["metadata"]["ownerReferences"] = owners
                self._keep(self._config_maps, await self._client.ask(b"PUT", f"{path}/{name}", encode(fields)))
        if greeting.status is None or greeting.status.message != message:
            path = f"{GREETINGS}/namespaces/{namespace}/greetings/{name}/status"
            patch = encode({"status": {"message": message}})
            self._keep(self._greetings, await self._client.ask(b"PATCH", path, patch, MERGE))


async def main() -> None:
    """Run the operator."""
    await Floor().run()


if __name__ == "__main__":
    asyncio.run(main())
