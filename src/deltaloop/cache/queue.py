"""Base class of the queues between a reflector and a controller. A queue belongs to one event loop.

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

Only a ``WholeList`` is a complete list. For a list that is too long for one step, the function can return an awaitable.
"""


class Queue(ABC, Generic[V]):
    """Queue of deltas: ``DeltaFIFO`` or ``RealFIFO``.

    Attributes:
        waiting: Queued items, for their number.
        processed_version: Version of the processed deltas, or "" before the first delta.
        has_synced: Whether the initial list was processed. You can read it from any thread.
        consume: Function called during a write while a consumer waits in ``arrival``. It processes queued deltas with
            ``process_next``, or returns False to wake the consumer.
    """

    _counted: str
    """Unit of ``len``, for the ``repr``."""

    def __init__(
        self,
        core: DeltaQueue[V] | InOrderQueue[V],
        waiting: Sized,
        *,
        on_version: Callable[[str], None] | None,
    ) -> None:
        """Create a queue. ``on_version`` is called with each version of the processed deltas."""
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
            TransformError: If the transform fails, as for the other writes. The queue does not change.
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
        """Queue several changes with their versions.

        Raises:
            TransformError: If the transform fails. Earlier changes stay queued.
        """
        try:
            self._core.write_all(changes)
        finally:
            self._came()

    def replace(self, objects: Iterable[V], resource_version: str = "", unread: Unread = NOTHING_UNREAD) -> None:
        """Queue a complete list, which deletes all other known objects.

        Args:
            objects: All existing objects.
            resource_version: Version of the list, which applies once the list has been processed.
            unread: Unreadable objects of the list, whose known states are kept.
        """
        self._core.replace(objects, unread=unread)
        if resource_version:
            self._core.update_resource_version(resource_version)
        self._came()

    async def replace_in_turns(
        self, objects: Iterable[V], resource_version: str = "", unread: Unread = NOTHING_UNREAD
    ) -> None:
        """Do the same as ``replace``.

        Queues that support it let other tasks run during a long list.
        """
        self.replace(objects, resource_version, unread)

    def update_resource_version(self, resource_version: str) -> None:
        """Record that all changes up to this version have arrived, according to an event or bookmark."""
        if self._core.update_resource_version(resource_version):
            self._changed()

    def resync(self) -> None:
        """Queue all known objects again."""
        self._core.resync()
        self._came()

    async def pop(self, process: Process[V]) -> Deltas[V]:
        """Wait for the first deltas, process and return them.

        If the wait is canceled, the queue does not change. If ``process`` is canceled, the deltas return to the front.

        Args:
            process: Function that processes the deltas. If it raises, the exception propagates and the deltas are
                dropped. For a ``RequeueError``, the deltas are requeued and the error's cause is raised.

        Raises:
            FifoClosedError: If the queue is closed and empty.
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
        """Wait until the queue is not empty or closed."""
        if not (self.waiting or self._core.closed):
            if self._next_arrival is None:
                self._next_arrival = asyncio.Event()
            await self._next_arrival.wait()

    def process_next(self, process: Process[V]) -> Awaitable[None] | None:
        """Process the first deltas, and return an awaitable if the processing is not finished.

        Raises:
            FifoClosedError: If the queue is closed and empty.
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
        """Handle deltas whose processing failed, and return the exception to raise."""
        if isinstance(error, RequeueError):
            self._requeue(popped)
            error = error.cause
        elif isinstance(error, Exception):
            self._processed(popped)
        else:  # canceled: not processed, so the queue has not synced
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
        """Let ``pop`` raise when the queue is empty, and wake waiting tasks.

        You can call it repeatedly.
        """
        self._core.close()
        self._came()

    @property
    def closed(self) -> bool:
        """Whether ``close`` was called."""
        return self._core.closed

    async def wait_for_sync(self) -> None:
        """Wait until ``has_synced`` is True."""
        await self._synced.wait()

    @property
    @abstractmethod
    def is_idle(self) -> bool:
        """Whether the queue is empty and idle, so that ``processed_version`` is the version of the store."""

    async def wait_for_progress(self) -> None:
        """Wait until deltas arrive or have been processed."""
        if self._next_change is None:
            self._next_change = asyncio.Event()
        await self._next_change.wait()

    def list_keys(self) -> list[str]:
        """Return the queued keys in order of their oldest deltas."""
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

    ``DeltaFIFO`` merges queued changes of one object, like older versions of client-go. ``RealFIFO`` preserves the
    order of all objects, applies a list in one step and pops in batches, like current client-go. Both lead to the same
    cache, and handlers see the same sequence for each object.
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
    """Create a queue of the given kind. ``room`` returns how many deltas the consumer can accept in a batch."""
    if kind is QueueKind.REAL_FIFO:
        from deltaloop.cache.real_fifo import RealFIFO

        return RealFIFO[V](known_objects=known_objects, transform=transform, on_version=on_version, room=room)
    from deltaloop.cache.delta_fifo import DeltaFIFO

    return DeltaFIFO[V](known_objects=known_objects, transform=transform, on_version=on_version)
