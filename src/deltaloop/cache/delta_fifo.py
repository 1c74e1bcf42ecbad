"""Drives core/deltas.py: the queue between a reflector and a controller, with a ``pop`` that waits.

It belongs to one event loop: every call is made there. ``pop`` hands the deltas to a plain function before anything
else can run, so that nobody sees the moment in which an object is neither in the queue nor in the store.

Source: client-go tools/cache/delta_fifo.go.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar, final

from deltaloop.api.keys import meta_namespace_key
from deltaloop.cache.core.deltas import DeletedFinalStateUnknown, DeltaQueue, Deltas, KnownObjects
from deltaloop.cache.errors import RequeueError

V = TypeVar("V")


@final
class DeltaFIFO(Generic[V]):
    """A queue of deltas by key; see the core for what is merged, dropped and made up."""

    def __init__(
        self,
        *,
        known_objects: KnownObjects[V] | None = None,
        key_func: Callable[[V], str] = meta_namespace_key,
        transform: Callable[[V], V] | None = None,
        on_version: Callable[[str], None] | None = None,
    ) -> None:
        """Begin empty.

        Args:
            known_objects: What the consumer holds (its ``Store``): deletions that nobody saw are found by it, and
                ``resync`` tells it again.
            key_func: Gives the key of an object.
            transform: Makes the object that is kept out of the one that comes; called once for each.
            on_version: Called with a version when everything up to it was processed.
        """
        self._core = DeltaQueue[V](known_objects=known_objects, key_func=key_func, transform=transform)
        self._on_version = on_version
        self._told_version = ""
        self._changed = asyncio.Event()
        self._progressed = asyncio.Event()
        self._synced = asyncio.Event()
        self._processing = 0

    def add(self, obj: V) -> None:
        """An object came into being.

        Raises:
            TransformError: If the transform fails; nothing was added. The same holds for the other writes.
        """
        self._core.add(obj)
        self._wake()

    def update(self, obj: V) -> None:
        """An object changed."""
        self._core.update(obj)
        self._wake()

    def delete(self, obj: V | DeletedFinalStateUnknown[V]) -> None:
        """An object went away; dropped if neither the queue nor the consumer ever heard of it."""
        self._core.delete(obj)
        self._wake()

    def replace(self, objects: Iterable[V], resource_version: str = "") -> None:
        """Everything that exists is this; what waits or is known beyond it is deleted.

        Args:
            objects: All objects.
            resource_version: Version of the list, reached when everything of it was processed.
        """
        self._core.replace(objects)
        if resource_version:
            self._core.update_resource_version(resource_version)
        self._wake()

    def update_resource_version(self, resource_version: str) -> None:
        """Everything up to this version has come: an event was added, or a bookmark says so."""
        self._core.update_resource_version(resource_version)
        self._wake()

    def resync(self) -> None:
        """Tell every known object again, unless something newer about it waits."""
        self._core.resync()
        self._wake()

    def add_if_not_present(self, key: str, deltas: Deltas[V]) -> None:
        """Put popped deltas back at the end of the line, unless something newer waits for that key."""
        self._core.add_if_not_present(key, deltas)
        self._wake()

    async def pop(self, process: Callable[[Deltas[V], bool], None]) -> Deltas[V]:
        """Wait for a key, give its deltas to ``process``, and return them.

        Several may wait; each key goes to one. Cancelled while waiting, nothing has been taken.

        Args:
            process: Called with the deltas and with whether they belong to the initial list. What it raises is raised
                here, and the deltas are gone, unless it is a ``RequeueError``: then they are put back and its cause
                is raised.

        Raises:
            FifoClosedError: If the queue is closed and nothing waits.
        """
        while (popped := self._core.pop()) is None:
            self._changed.clear()
            await self._changed.wait()
        self._processing += 1
        try:
            process(popped.deltas, popped.is_in_initial_list)
        except RequeueError as error:
            self._core.add_if_not_present(popped.key, popped.deltas)
            raise error.cause from error
        finally:
            self._processing -= 1
            self._wake()
        return popped.deltas

    def close(self) -> None:
        """Let ``pop`` raise once nothing waits; those who wait now are woken. Closing twice is fine."""
        self._core.close()
        self._wake()

    @property
    def closed(self) -> bool:
        """Whether ``close`` was called."""
        return self._core.closed

    @property
    def has_synced(self) -> bool:
        """Whether everything of the initial list was popped and processed; may be read from any thread."""
        return self._core.has_synced and not self._processing

    async def wait_for_sync(self) -> None:
        """Wait until ``has_synced`` is true; cancellation leaves nothing behind."""
        await self._synced.wait()

    @property
    def processed_version(self) -> str:
        """The version that everything processed amounts to; "" before the first one."""
        return self._core.processed_version

    async def wait_for_progress(self) -> None:
        """Wait until something comes or was processed; cancellation leaves nothing behind."""
        self._progressed.clear()
        await self._progressed.wait()

    def list_keys(self) -> list[str]:
        """Return the keys that wait, first in line first."""
        return self._core.list_keys()

    def __len__(self) -> int:
        return len(self._core)

    def __repr__(self) -> str:
        state = "synced" if self.has_synced else "not synced"
        return f"<DeltaFIFO {len(self)} keys, {state}{', closed' if self.closed else ''}>"

    def _wake(self) -> None:
        self._changed.set()
        self._progressed.set()
        version = self._core.processed_version
        if version != self._told_version and self._on_version is not None:
            self._told_version = version
            self._on_version(version)
        if self.has_synced:
            self._synced.set()
