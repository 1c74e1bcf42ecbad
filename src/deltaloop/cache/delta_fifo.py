"""Drives core/deltas.py: the queue between a reflector and a controller, with a ``pop`` that waits.

``pop`` hands the deltas to a plain function before anything else can run, so that no reader sees the moment in which an
object is neither in the queue nor in the store.

Source: client-go tools/cache/delta_fifo.go.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, final

from deltaloop.cache.core.deltas import DeltaQueue, Deltas, KnownObjects, deletion_handling_key
from deltaloop.cache.errors import RequeueError
from deltaloop.cache.waiting_queue import Process, WaitingQueue

V = TypeVar("V")


@final
class DeltaFIFO(WaitingQueue[V]):
    """A queue of deltas by key; see the core for what is merged, dropped and made up.

    A deletion is dropped if neither the queue nor the consumer ever heard of the object. A resync leaves out what has
    something newer waiting.
    """

    _counted = "keys"

    def __init__(
        self,
        *,
        known_objects: KnownObjects[V] | None = None,
        key_func: Callable[[V], str] = deletion_handling_key,
        transform: Callable[[V], V] | None = None,
        on_version: Callable[[str], None] | None = None,
    ) -> None:
        """Begin empty.

        Args:
            known_objects: What the consumer holds (its ``Store``): deletions that the watch missed are found by it, and
                ``resync`` tells it again.
            key_func: Gives the key of an object.
            transform: Makes the object that is kept out of the one that comes; called once for each.
            on_version: Called with a version when everything up to it was processed.
        """
        self._deltas = DeltaQueue[V](known_objects=known_objects, key_func=key_func, transform=transform)
        self._processing = 0
        super().__init__(self._deltas, on_version=on_version)

    def add_if_not_present(self, key: str, deltas: Deltas[V]) -> None:
        """Put popped deltas back at the end of the line, unless something newer waits for that key."""
        self._deltas.add_if_not_present(key, deltas)
        self._wake()

    async def pop(self, process: Process[V]) -> Deltas[V]:
        """Wait for a key, give its deltas to ``process``, and return them.

        Several may wait; each key goes to one. Cancelled while waiting, nothing has been taken; cancelled while
        ``process`` is awaited, what was taken is put back to the front, since how far it came is not known.

        Args:
            process: Called with the deltas and with whether they belong to the initial list. What it raises is raised
                here, and the deltas are gone, unless it is a ``RequeueError``: then they are put back and its cause
                is raised.

        Raises:
            FifoClosedError: If the queue is closed and nothing waits.
        """
        while (popped := self._deltas.pop()) is None:
            await self._change()
        self._processing += 1
        try:
            unfinished = process(popped.deltas, popped.is_in_initial_list)
            if unfinished is not None:
                await unfinished
        except RequeueError as error:
            self._deltas.add_if_not_present(popped.key, popped.deltas)
            raise error.cause from error
        except Exception:
            raise
        except BaseException:  # cancelled: not processed, and so nothing has synced by it
            self._deltas.put_back(popped)
            raise
        finally:
            self._processing -= 1
            self._wake()
        return popped.deltas

    @property
    def is_idle(self) -> bool:
        """Whether nothing waits, and nothing is being processed."""
        return not self._processing and not len(self)

    @property
    def has_synced(self) -> bool:
        """Whether everything of the initial list was popped and processed; may be read from any thread."""
        return self._deltas.has_synced and not self._processing
