"""Queue of deltas by key between a reflector and a controller.

Source: client-go tools/cache/delta_fifo.go.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, final

from deltaloop.cache.core.deltas import DeltaQueue, Deltas, KnownObjects, Popped, deletion_handling_key
from deltaloop.cache.queue import Queue

V = TypeVar("V")


@final
class DeltaFIFO(Queue[V]):
    """Queue of deltas that pops all deltas of one key.

    Deletions of objects that neither the queue nor the consumer knows are dropped. Resyncs skip objects with queued
    deltas. Failed deltas return to the end of the queue. Several tasks can pop; each key goes to one of them.
    """

    _counted = "keys"
    _core: DeltaQueue[V]

    def __init__(
        self,
        *,
        known_objects: KnownObjects[V] | None = None,
        key_func: Callable[[V], str] = deletion_handling_key,
        transform: Callable[[V], V] | None = None,
        on_version: Callable[[str], None] | None = None,
    ) -> None:
        """Create an empty queue.

        Args:
            known_objects: Objects of the consumer (its ``Store``), used to detect missed deletions and for resyncs.
            key_func: Function that returns the key of an object.
            transform: Function applied once to each arriving object. It returns the object to store.
            on_version: Function called with each version up to which all changes have been processed.
        """
        core = DeltaQueue[V](known_objects=known_objects, key_func=key_func, transform=transform)
        super().__init__(core, core.items, on_version=on_version)
        self._processing = 0

    def add_if_not_present(self, key: str, deltas: Deltas[V]) -> None:
        """Return popped deltas to the end of the queue, unless newer deltas of the key are queued."""
        self._core.add_if_not_present(key, deltas)
        self._came()

    @property
    def is_idle(self) -> bool:
        """Whether the queue is empty and no deltas are being processed."""
        return not self._processing and not self.waiting

    def _take(self) -> Any:
        popped = self._core.pop()
        self._processing += 1
        return popped

    def _processed(self, popped: Popped[V]) -> None:  # noqa: ARG002 - the other queue needs it
        self._processing -= 1

    def _put_back(self, popped: Popped[V]) -> None:
        self._core.put_back(popped)
        self._processing -= 1

    def _requeue(self, popped: Popped[V]) -> None:
        self._core.add_if_not_present(popped.key, popped.deltas)
        self._processing -= 1

    def _is_synced(self) -> bool:
        return self._core.has_synced and not self._processing
