"""Queue in strict order between a reflector and a controller.

Only one task can pop, because a second one would break the order.

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
    """Queue in strict order that pops deltas of different keys together.

    Deletions are queued even if the object is unknown. A list is applied in one step. A resync contains the objects
    that the consumer has when it is popped. Failed deltas return to the front.
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
        """Create an empty queue.

        Args:
            known_objects: Objects of the consumer (its ``Store``).
            key_func: Function that returns the key of an object.
            transform: Function applied once to each arriving object. It returns the object to store.
            on_version: Function called with each version up to which all changes have been processed.
            batch_size: Largest number of deltas per pop.
            room: Function called before each pop that returns how many deltas the consumer can accept. At least one is
                popped.
        """
        core = InOrderQueue[V](
            known_objects=known_objects, key_func=key_func, transform=transform, batch_size=batch_size
        )
        super().__init__(core, core.entries, on_version=on_version)
        self._room = room

    async def replace_in_turns(
        self, objects: Iterable[V], resource_version: str = "", unread: Unread = NOTHING_UNREAD
    ) -> None:
        """Do the same as ``replace``, but let other tasks run between objects.

        If canceled, the queue does not change.
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
        """Whether the queue is empty and no deltas are being processed."""
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
