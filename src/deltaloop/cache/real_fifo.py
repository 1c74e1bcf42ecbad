"""Drives core/real_fifo.py: the in-order queue between a reflector and a controller, with a ``pop`` that waits.

It belongs to one event loop, and one task pops: a second one would break the order.

Source: client-go tools/cache/the_real_fifo.go.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar, final

from deltaloop.api.keys import meta_namespace_key
from deltaloop.cache.core.deltas import DeletedFinalStateUnknown, Deltas, KnownObjects
from deltaloop.cache.core.real_fifo import BATCH_SIZE, InOrderQueue
from deltaloop.cache.errors import RequeueError

V = TypeVar("V")


@final
class RealFIFO(Generic[V]):
    """A queue in strict order; see the core for what is one entry and what is popped together."""

    def __init__(
        self,
        *,
        known_objects: KnownObjects[V],
        key_func: Callable[[V], str] = meta_namespace_key,
        transform: Callable[[V], V] | None = None,
        on_version: Callable[[str], None] | None = None,
        batch_size: int = BATCH_SIZE,
    ) -> None:
        """Begin empty.

        Args:
            known_objects: What the consumer holds (its ``Store``).
            key_func: Gives the key of an object.
            transform: Makes the object that is kept out of the one that comes; called once for each.
            on_version: Called with a version when everything up to it was processed.
            batch_size: How many deltas are popped together at most.
        """
        self._core = InOrderQueue[V](
            known_objects=known_objects, key_func=key_func, transform=transform, batch_size=batch_size
        )
        self._on_version = on_version
        self._told_version = ""
        self._changed = asyncio.Event()
        self._progressed = asyncio.Event()
        self._synced = asyncio.Event()

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
        """An object went away; told even if nobody ever heard of it."""
        self._core.delete(obj)
        self._wake()

    def replace(self, objects: Iterable[V], resource_version: str = "") -> None:
        """Everything that exists is this; it is processed in one step.

        Args:
            objects: All objects.
            resource_version: Version of the list, reached when the list was processed.
        """
        self._core.replace(objects)
        if resource_version:
            self._core.update_resource_version(resource_version)
        self._wake()

    def resync(self) -> None:
        """Tell every object again that the consumer holds when this comes up."""
        self._core.resync()
        self._wake()

    def update_resource_version(self, resource_version: str) -> None:
        """Everything up to this version has come: an event was added, or a bookmark says so."""
        self._core.update_resource_version(resource_version)
        self._wake()

    async def pop(self, process: Callable[[Deltas[V], bool], None]) -> Deltas[V]:
        """Wait for what is first in line, give it to ``process``, and return it.

        Cancelled while waiting, nothing has been taken.

        Args:
            process: Called with deltas of different keys and with whether they belong to the initial list. What it
                raises is raised here, and the deltas are gone, unless it is a ``RequeueError``: then they are put back,
                to the front, and its cause is raised.

        Raises:
            FifoClosedError: If the queue is closed and nothing waits.
        """
        while (batch := self._core.pop()) is None:
            self._changed.clear()
            await self._changed.wait()
        try:
            process(batch.deltas, batch.is_in_initial_list)
        except RequeueError as error:
            self._core.put_back(batch)
            raise error.cause from error
        except BaseException:
            self._core.processed(batch)
            raise
        else:
            self._core.processed(batch)
        finally:
            self._wake()
        return batch.deltas

    def close(self) -> None:
        """Let ``pop`` raise once nothing waits; who waits now is woken. Closing twice is fine."""
        self._core.close()
        self._wake()

    @property
    def closed(self) -> bool:
        """Whether ``close`` was called."""
        return self._core.closed

    @property
    def has_synced(self) -> bool:
        """Whether everything of the initial list was processed; may be read from any thread."""
        return self._core.has_synced

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
        """Return the keys that wait, in the order of their oldest entries."""
        return self._core.list_keys()

    def __len__(self) -> int:
        return len(self._core)

    def __repr__(self) -> str:
        state = "synced" if self.has_synced else "not synced"
        return f"<RealFIFO {len(self)} entries, {state}{', closed' if self.closed else ''}>"

    def _wake(self) -> None:
        self._changed.set()
        self._progressed.set()
        version = self._core.processed_version
        if version != self._told_version and self._on_version is not None:
            self._told_version = version
            self._on_version(version)
        if self.has_synced:
            self._synced.set()
