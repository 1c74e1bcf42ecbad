"""The queue of deltas by key between a reflector and a controller; the decisions are in core/deltas.py.

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
    """A queue of deltas by key, which pops all deltas of one key.

    A deletion is dropped if neither the queue nor the consumer has seen the object. A resync leaves out objects for
    which something newer waits. What could not be processed goes behind everything else. Several tasks may pop; each
    key goes to one.
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
        """Make an empty queue.

        Args:
            known_objects: The objects that the consumer holds (its ``Store``): deletions that the watch missed are
                found by it, and ``resync`` queues them again.
            key_func: Function that returns the key of an object.
            transform: Function called once for each object that comes; returns the object that is kept.
            on_version: Function called with a version when everything up to it was processed.
        """
        core = DeltaQueue[V](known_objects=known_objects, key_func=key_func, transform=transform)
        super().__init__(core, core.items, on_version=on_version)
        self._processing = 0

    def add_if_not_present(self, key: str, deltas: Deltas[V]) -> None:
        """Put popped deltas back at the end of the line, unless something newer waits for that key."""
        self._core.add_if_not_present(key, deltas)
        self._came()

    @property
    def is_idle(self) -> bool:
        """Whether nothing waits, and nothing is being processed."""
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
