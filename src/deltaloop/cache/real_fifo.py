"""The in-order queue between a reflector and a controller; the decisions are in core/real_fifo.py.

One task pops: a second one would break the order.

Source: client-go tools/cache/the_real_fifo.go.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any, TypeVar, final

from deltaloop.cache.core.deltas import NOTHING_UNREAD, KnownObjects, Unread, deletion_handling_key
from deltaloop.cache.core.real_fifo import BATCH_SIZE, Batch, InOrderQueue
from deltaloop.cache.queue import Queue

V = TypeVar("V")


@final
class RealFIFO(Queue[V]):
    """A queue in strict order that pops deltas of different keys together.

    A deletion is queued even if the object was never seen. A list is processed in one step. A resync delivers the
    objects that the consumer holds when it is popped. What could not be processed goes back to the front.
    """

    _counted = "entries"
    _core: InOrderQueue[V]

    def __init__(
        self,
        *,
        known_objects: KnownObjects[V],
        key_func: Callable[[V], str] = deletion_handling_key,
        transform: Callable[[V], V] | None = None,
        on_version: Callable[[str], None] | None = None,
        batch_size: int = BATCH_SIZE,
        room: Callable[[], int] | None = None,
    ) -> None:
        """Make an empty queue.

        Args:
            known_objects: The objects that the consumer holds (its ``Store``).
            key_func: Function that returns the key of an object.
            transform: Function called once for each object that comes; returns the object that is kept.
            on_version: Function called with a version when everything up to it was processed.
            batch_size: Most deltas that are popped together.
            room: Function called before each pop; returns the number of deltas the consumer has room for. One is popped
                in any case.
        """
        core = InOrderQueue[V](
            known_objects=known_objects, key_func=key_func, transform=transform, batch_size=batch_size
        )
        super().__init__(core, core.entries, on_version=on_version)
        self._room = room

    async def replace_in_turns(
        self, objects: Iterable[V], resource_version: str = "", unread: Unread = NOTHING_UNREAD
    ) -> None:
        """Do what ``replace`` does, letting other tasks run between the objects.

        If cancelled, nothing was added.
        """
        for listing in self._core.prepare(objects, unread=unread):
            if listing is None:
                await asyncio.sleep(0)
                continue
            self._core.put_list(listing)
            if resource_version:
                self._core.update_resource_version(resource_version)
            self._came()

    @property
    def is_idle(self) -> bool:
        """Whether nothing waits, and nothing is being processed."""
        return self._core.is_idle

    def _take(self) -> Any:
        return self._core.pop() if self._room is None else self._core.pop(self._room())

    def _processed(self, popped: Batch[V]) -> None:
        self._core.processed(popped)

    def _put_back(self, popped: Batch[V]) -> None:
        self._core.put_back(popped)

    _requeue = _put_back

    def _is_synced(self) -> bool:
        return self._core.has_synced
