"""The queue between a reflector and a controller: the base class of both kinds, and the choice between them.

A queue belongs to one event loop: every call is made there.

Source: client-go tools/cache/fifo.go (``Queue``), controller.go (``newQueueFIFO``).
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Sized
from enum import StrEnum
from typing import Any, Final, Generic, TypeAlias, TypeVar

from deltaloop.cache.core.deltas import (
    NOTHING_UNREAD,
    Change,
    DeletedFinalStateUnknown,
    DeltaQueue,
    Deltas,
    KnownObjects,
    Unread,
)
from deltaloop.cache.core.real_fifo import InOrderQueue
from deltaloop.cache.errors import RequeueError

V = TypeVar("V")

Process: TypeAlias = Callable[[Deltas[V], bool], "Awaitable[None] | None"]
"""Function that processes popped deltas. Its arguments are the deltas and whether they belong to the initial list.

A ``WholeList`` is a list; other deltas are not, however many there are. It may return an awaitable, for a list that
is too long to be processed in one step.
"""


class Queue(ABC, Generic[V]):
    """A queue of deltas: ``DeltaFIFO`` or ``RealFIFO``.

    Attributes:
        waiting: The items that wait, for their number.
        processed_version: Version that is reached by the processed deltas; "" before the first one.
        has_synced: Whether the initial list was processed; may be read from any thread.
        consume: Function that is called in the step of a write while a consumer waits in ``arrival``. It processes
            what waits with ``process_next``, and returns False to wake the consumer instead.
    """

    _counted: str
    """The items that ``len`` counts, for the ``repr``."""

    def __init__(
        self,
        core: DeltaQueue[V] | InOrderQueue[V],
        waiting: Sized,
        *,
        on_version: Callable[[str], None] | None,
    ) -> None:
        """Make a queue; ``on_version`` is called with each version that is reached by the processed deltas."""
        self._core = core
        self._on_version = on_version
        self.waiting: Final = waiting
        self.processed_version: str = ""
        self.has_synced: bool = False
        self.consume: Callable[[], bool] | None = None
        self._next_arrival: asyncio.Event | None = None
        self._next_change: asyncio.Event | None = None
        self._synced = asyncio.Event()

    def add(self, obj: V) -> None:
        """Queue the addition of an object.

        Raises:
            TransformError: If the transform fails; nothing was added. The same holds for the other writes.
        """
        self._core.add(obj)
        self._came()

    def update(self, obj: V) -> None:
        """Queue the update of an object."""
        self._core.update(obj)
        self._came()

    def delete(self, obj: V | DeletedFinalStateUnknown[V]) -> None:
        """Queue the deletion of an object."""
        self._core.delete(obj)
        self._came()

    def write_all(self, changes: Iterable[Change[V]]) -> None:
        """Queue several changes, each with the version that it reaches.

        Raises:
            TransformError: If the transform fails; what is before that change was added.
        """
        try:
            self._core.write_all(changes)
        finally:
            self._came()

    def replace(self, objects: Iterable[V], resource_version: str = "", unread: Unread = NOTHING_UNREAD) -> None:
        """Queue a whole list; known objects that are not in it are deleted.

        Args:
            objects: All objects that exist.
            resource_version: Version of the list, reached when all of it was processed.
            unread: Objects of the list that cannot be read; their known state is kept.
        """
        self._core.replace(objects, unread=unread)
        if resource_version:
            self._core.update_resource_version(resource_version)
        self._came()

    async def replace_in_turns(
        self, objects: Iterable[V], resource_version: str = "", unread: Unread = NOTHING_UNREAD
    ) -> None:
        """Do what ``replace`` does; a queue that is able to lets other tasks run between the objects of a long list."""
        self.replace(objects, resource_version, unread)

    def update_resource_version(self, resource_version: str) -> None:
        """Record that all changes up to this version have come, as an event or a bookmark says."""
        if self._core.update_resource_version(resource_version):
            self._changed()

    def resync(self) -> None:
        """Queue every known object again."""
        self._core.resync()
        self._came()

    async def pop(self, process: Process[V]) -> Deltas[V]:
        """Wait for the first deltas in line, give them to ``process``, and return them.

        If it is cancelled while waiting, nothing was taken. If it is cancelled while ``process`` is awaited, the deltas
        are put back to the front.

        Args:
            process: Function that processes the deltas. Its exception is raised here and the deltas are gone, unless it
                is a ``RequeueError``: then they are put back and its cause is raised.

        Raises:
            FifoClosedError: If the queue is closed and nothing waits.
        """
        popped: list[Deltas[V]] = []

        def processing(deltas: Deltas[V], is_in_initial_list: bool) -> Awaitable[None] | None:
            popped.append(deltas)
            return process(deltas, is_in_initial_list)

        while not (self.waiting or self._core.closed):
            await self.arrival()
        unfinished = self.process_next(processing)
        if unfinished is not None:
            await unfinished
        return popped[0]

    async def arrival(self) -> None:
        """Wait until something comes, unless something waits or the queue is closed."""
        if not (self.waiting or self._core.closed):
            if self._next_arrival is None:
                self._next_arrival = asyncio.Event()
            await self._next_arrival.wait()

    def process_next(self, process: Process[V]) -> Awaitable[None] | None:
        """Give the first deltas in line to ``process``; return what must be awaited to finish that.

        Raises:
            FifoClosedError: If the queue is closed and nothing waits.
        """
        popped = self._take()
        try:
            unfinished = process(popped.deltas, popped.is_in_initial_list)
        except BaseException as error:
            if (failure := self._failed(popped, error)) is error:
                raise
            raise failure from error
        if unfinished is not None:
            return self._finish(popped, unfinished)
        self._processed(popped)
        self._changed()
        return None

    async def _finish(self, popped: Any, unfinished: Awaitable[None]) -> None:
        try:
            await unfinished
        except BaseException as error:
            if (failure := self._failed(popped, error)) is error:
                raise
            raise failure from error
        self._processed(popped)
        self._changed()

    def _failed(self, popped: Any, error: BaseException) -> BaseException:
        """Settle deltas that could not be processed; return the exception to raise."""
        if isinstance(error, RequeueError):
            self._requeue(popped)
            error = error.cause
        elif isinstance(error, Exception):
            self._processed(popped)
        else:  # cancelled: not processed, and so nothing has synced by it
            self._put_back(popped)
        self._changed()
        return error

    @abstractmethod
    def _take(self) -> Any: ...

    @abstractmethod
    def _processed(self, popped: Any) -> None: ...

    @abstractmethod
    def _put_back(self, popped: Any) -> None: ...

    @abstractmethod
    def _requeue(self, popped: Any) -> None: ...

    @abstractmethod
    def _is_synced(self) -> bool: ...

    def close(self) -> None:
        """Let ``pop`` raise once nothing waits, and wake those who wait.

        Closing twice does no harm.
        """
        self._core.close()
        self._came()

    @property
    def closed(self) -> bool:
        """Whether ``close`` was called."""
        return self._core.closed

    async def wait_for_sync(self) -> None:
        """Wait until ``has_synced`` is true; cancellation leaves nothing behind."""
        await self._synced.wait()

    @property
    @abstractmethod
    def is_idle(self) -> bool:
        """Whether nothing waits and nothing is being processed: ``processed_version`` is that of the store."""

    async def wait_for_progress(self) -> None:
        """Wait until something comes or was processed; cancellation leaves nothing behind."""
        if self._next_change is None:
            self._next_change = asyncio.Event()
        await self._next_change.wait()

    def list_keys(self) -> list[str]:
        """Return the keys that wait, in the order of their oldest deltas."""
        return self._core.list_keys()

    def __len__(self) -> int:
        return len(self.waiting)

    def __repr__(self) -> str:
        state = "synced" if self.has_synced else "not synced"
        return f"<{type(self).__name__} {len(self)} {self._counted}, {state}{', closed' if self.closed else ''}>"

    def _came(self) -> None:
        arrival = self._next_arrival
        if arrival is not None and (self._core.closed or self.consume is None or not self.consume()):
            arrival.set()
            self._next_arrival = None
        if self._next_change is not None or not self.has_synced:
            self._changed()

    def _changed(self) -> None:
        if self._next_change is not None:
            self._next_change.set()
            self._next_change = None
        version = self._core.processed_version
        if version != self.processed_version:
            self.processed_version = version
            if self._on_version is not None:
                self._on_version(version)
        if not self.has_synced and self._is_synced():
            self.has_synced = True
            self._synced.set()


class QueueKind(StrEnum):
    """Queue of an informer.

    ``DeltaFIFO`` merges what happens to one object while it waits, as the older client-go did. ``RealFIFO`` keeps
    strict order over all objects, replaces a list in one step and pops in batches, as client-go does today. The cache
    ends in the same state, and handlers see the same sequence for each object.
    """

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
        transform: Function called once for each object that comes; returns the object that is kept.
        on_version: Function called with a version when everything up to it was processed.
        room: Function that returns the number of deltas the consumer has room for, for a queue that pops several.
    """
    if kind is QueueKind.REAL_FIFO:
        from deltaloop.cache.real_fifo import RealFIFO

        return RealFIFO[V](known_objects=known_objects, transform=transform, on_version=on_version, room=room)
    from deltaloop.cache.delta_fifo import DeltaFIFO

    return DeltaFIFO[V](known_objects=known_objects, transform=transform, on_version=on_version)
