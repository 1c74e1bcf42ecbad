"""Drives core/real_fifo.py: the in-order queue between a reflector and a controller, with a ``pop`` that waits.

One task pops: a second one would break the order.

Source: client-go tools/cache/the_real_fifo.go.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import TypeVar, final

from deltaloop.cache.core.deltas import NOTHING_UNREAD, Deltas, KnownObjects, Unread, deletion_handling_key
from deltaloop.cache.core.real_fifo import BATCH_SIZE, Batch, InOrderQueue
from deltaloop.cache.errors import RequeueError
from deltaloop.cache.waiting_queue import Process, WaitingQueue

V = TypeVar("V")


@final
class RealFIFO(WaitingQueue[V]):
    """A queue in strict order; see the core for what is one entry and what is popped together.

    A deletion is told even if the object was never seen. A list is processed in one step. A resync tells what the
    consumer holds when it comes up.
    """

    _counted = "entries"

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
        """Begin empty.

        Args:
            known_objects: What the consumer holds (its ``Store``).
            key_func: Gives the key of an object.
            transform: Makes the object that is kept out of the one that comes; called once for each.
            on_version: Called with a version when everything up to it was processed.
            batch_size: How many deltas are popped together at most.
            room: Says before each pop how many deltas the consumer has room for; one is popped in any case.
        """
        self._entries = InOrderQueue[V](
            known_objects=known_objects, key_func=key_func, transform=transform, batch_size=batch_size
        )
        self._room = room
        super().__init__(self._entries, on_version=on_version)

    async def replace_in_turns(
        self, objects: Iterable[V], resource_version: str = "", unread: Unread = NOTHING_UNREAD
    ) -> None:
        """Do what ``replace`` does, letting others run between the objects; cancelled, nothing was added.

        Args:
            objects: All objects that exist: what is missing here is deleted.
            resource_version: Version of the list.
            unread: Objects that are in the list, too, and cannot be read; what is known of them is kept.

        Raises:
            TransformError: If the transform fails; nothing was added.
        """
        for listing in self._entries.prepare(objects, unread=unread):
            if listing is None:
                await asyncio.sleep(0)
                continue
            self._entries.put_list(listing)
            if resource_version:
                self._entries.update_resource_version(resource_version)
            self._wake()

    async def pop(self, process: Process[V]) -> Deltas[V]:
        """Wait for what is first in line, give it to ``process``, and return it.

        Cancelled while waiting, nothing has been taken; cancelled while ``process`` is awaited, what was taken is put
        back to the front, since how far it came is not known.

        Args:
            process: Called with deltas of different keys and with whether they belong to the initial list. What it
                raises is raised here, and the deltas are gone, unless it is a ``RequeueError``: then they are put back,
                to the front, and its cause is raised.

        Raises:
            FifoClosedError: If the queue is closed and nothing waits.
        """
        while (batch := self._take()) is None:
            await self._change()
        try:
            unfinished = process(batch.deltas, batch.is_in_initial_list)
            if unfinished is not None:
                await unfinished
        except RequeueError as error:
            self._entries.put_back(batch)
            raise error.cause from error
        except Exception:
            self._entries.processed(batch)
            raise
        except BaseException:  # cancelled: not processed, and so nothing has synced by it
            self._entries.put_back(batch)
            raise
        else:
            self._entries.processed(batch)
        finally:
            self._wake()
        return batch.deltas

    @property
    def is_idle(self) -> bool:
        """Whether nothing waits, and nothing is being processed."""
        return self._entries.is_idle

    def _take(self) -> Batch[V] | None:
        return self._entries.pop() if self._room is None else self._entries.pop(self._room())
