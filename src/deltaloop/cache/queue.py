"""What stands between a reflector and a controller: the protocol of both queues, and the choice between them.

``DeltaFIFO`` merges what happens to one object while it waits, and is what the older client-go and most texts about it
describe. ``RealFIFO`` keeps strict order over all objects, replaces a list in one step and pops in batches, as
client-go does today. What a cache holds in the end, and what its handlers see of one object, is the same.

Source: client-go tools/cache/fifo.go (``Queue``), controller.go (``newQueueFIFO``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import Protocol, TypeVar

from deltaloop.cache.core.deltas import DeletedFinalStateUnknown, Deltas, KnownObjects, Unread
from deltaloop.cache.real_fifo import RealFIFO
from deltaloop.cache.waiting_queue import Process

V = TypeVar("V")


class Queue(Protocol[V]):
    """A queue of deltas.

    It belongs to one event loop.
    """

    def add(self, obj: V) -> None:
        """An object came into being."""
        ...

    def update(self, obj: V) -> None:
        """An object changed."""
        ...

    def delete(self, obj: V | DeletedFinalStateUnknown[V]) -> None:
        """An object went away."""
        ...

    def replace(self, objects: Iterable[V], resource_version: str = "", unread: Unread = ...) -> None:
        """Everything that exists is this, at that version, and what is ``unread``."""
        ...

    def resync(self) -> None:
        """Tell every known object again."""
        ...

    def update_resource_version(self, resource_version: str) -> None:
        """Everything up to this version has come."""
        ...

    async def pop(self, process: Process[V]) -> Deltas[V]:
        """Wait for what is first in line and give it to ``process``: deltas of one key, or of different keys."""
        ...

    def close(self) -> None:
        """Let ``pop`` raise once nothing waits."""
        ...

    @property
    def closed(self) -> bool:
        """Whether ``close`` was called."""
        ...

    @property
    def has_synced(self) -> bool:
        """Whether everything of the initial list was processed."""
        ...

    async def wait_for_sync(self) -> None:
        """Wait until ``has_synced`` is true."""
        ...

    @property
    def processed_version(self) -> str:
        """The version that everything processed amounts to; "" before the first one."""
        ...

    @property
    def is_idle(self) -> bool:
        """Whether nothing waits, and nothing is being processed."""
        ...

    async def wait_for_progress(self) -> None:
        """Wait until something comes or was processed."""
        ...

    def __len__(self) -> int: ...


class QueueKind(StrEnum):
    """Which queue an informer has."""

    DELTA_FIFO = "DeltaFIFO"
    REAL_FIFO = "RealFIFO"


def new_queue(
    kind: QueueKind,
    *,
    known_objects: KnownObjects[V],
    transform: Callable[[V], V] | None = None,
    on_version: Callable[[str], None] | None = None,
    room: Callable[[], int] | None = None,
) -> Queue[V]:
    """Make a queue.

    Args:
        kind: ``DeltaFIFO`` or ``RealFIFO``.
        known_objects: The informer's cache, by which deletions that the watch missed are found.
        transform: Makes the object that is kept out of the one that comes; called once for each.
        on_version: Called with a version when everything up to it was processed.
        room: Says how many deltas the consumer has room for, to a queue that gives out several at once.
    """
    if kind is QueueKind.REAL_FIFO:
        return RealFIFO[V](known_objects=known_objects, transform=transform, on_version=on_version, room=room)
    from deltaloop.cache.delta_fifo import DeltaFIFO

    return DeltaFIFO[V](known_objects=known_objects, transform=transform, on_version=on_version)
