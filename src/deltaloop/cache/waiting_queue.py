"""What both queues of deltas share: the core that decides, and the ways to wait for it.

Drives core/deltas.py for ``DeltaFIFO`` and core/real_fifo.py for ``RealFIFO``; those two add how they pop.

A queue belongs to one event loop: every call is made there.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable
from typing import Generic, Protocol, TypeAlias, TypeVar

from deltaloop.cache.core.deltas import NOTHING_UNREAD, Change, DeletedFinalStateUnknown, Deltas, Unread

V = TypeVar("V")
V_contra = TypeVar("V_contra", contravariant=True)


Process: TypeAlias = Callable[[Deltas[V], bool], "Awaitable[None] | None"]
"""What is done with deltas that were popped: called with them, and with whether they belong to the initial list. A
``WholeList`` is a list; other deltas are none, however many they are. It may return something to be awaited, for a list
that is too long to be processed in one go."""


class DeltaQueueCore(Protocol[V_contra]):
    """The decisions of a queue, as far as both cores have them in common."""

    def add(self, obj: V_contra) -> None:
        """An object came into being."""
        ...

    def update(self, obj: V_contra) -> None:
        """An object changed."""
        ...

    def delete(self, obj: V_contra | DeletedFinalStateUnknown[V_contra]) -> None:
        """An object went away."""
        ...

    def write_all(self, changes: Iterable[Change[V_contra]]) -> None:
        """Write several changes; what is before one that raises is written."""
        ...

    def replace(self, objects: Iterable[V_contra], *, unread: Unread = ...) -> None:
        """Everything that exists is this, and what is ``unread``."""
        ...

    def resync(self) -> None:
        """Tell every known object again."""
        ...

    def update_resource_version(self, resource_version: str) -> bool:
        """Everything up to this version has come; return whether it is processed, too."""
        ...

    def close(self) -> None:
        """Take nothing new to wait for."""
        ...

    def list_keys(self) -> list[str]:
        """Return the keys that wait."""
        ...

    @property
    def closed(self) -> bool:
        """Whether ``close`` was called."""
        ...

    @property
    def has_synced(self) -> bool:
        """Whether the initial list is through."""
        ...

    @property
    def processed_version(self) -> str:
        """The version that everything processed amounts to."""
        ...

    def __len__(self) -> int: ...


class WaitingQueue(ABC, Generic[V]):
    """A queue whose ``pop`` waits. Made to be a base class: ``DeltaFIFO``, ``RealFIFO``."""

    _counted: str
    """What ``len`` counts, for the ``repr``."""

    def __init__(self, core: DeltaQueueCore[V], *, on_version: Callable[[str], None] | None) -> None:
        """Begin as ``core`` is; ``on_version`` is told each version up to which everything was processed."""
        self._core = core
        self._on_version = on_version
        self._told_version = ""
        self._next_change: asyncio.Event | None = None  # there while somebody waits for it
        self._synced = asyncio.Event()
        self._told_synced = False

    def add(self, obj: V) -> None:
        """An object came into being.

        Raises:
            TransformError: If the transform fails; nothing was added. The same holds for the other writes.
        """
        self._core.add(obj)
        self._came()

    def update(self, obj: V) -> None:
        """An object changed."""
        self._core.update(obj)
        self._came()

    def delete(self, obj: V | DeletedFinalStateUnknown[V]) -> None:
        """An object went away."""
        self._core.delete(obj)
        self._came()

    def write_all(self, changes: Iterable[Change[V]]) -> None:
        """Do what the three do, and ``update_resource_version`` after each, with what came together.

        Raises:
            TransformError: If the transform fails; what is before that change was added.
        """
        try:
            self._core.write_all(changes)
        finally:
            self._came()

    def replace(self, objects: Iterable[V], resource_version: str = "", unread: Unread = NOTHING_UNREAD) -> None:
        """Everything that exists is this; what is beyond it is deleted.

        Args:
            objects: All objects that exist: what is missing here is deleted.
            resource_version: Version of the list, reached when everything of it was processed.
            unread: Objects that are in the list, too, and cannot be read; what is known of them is kept.
        """
        self._core.replace(objects, unread=unread)
        if resource_version:
            self._core.update_resource_version(resource_version)
        self._wake()

    async def replace_in_turns(
        self, objects: Iterable[V], resource_version: str = "", unread: Unread = NOTHING_UNREAD
    ) -> None:
        """Do what ``replace`` does, letting others run between the objects of a long list if the queue is able to."""
        self.replace(objects, resource_version, unread)

    def update_resource_version(self, resource_version: str) -> None:
        """Everything up to this version has come: an event was added, or a bookmark says so."""
        if self._core.update_resource_version(resource_version):
            self._wake()

    def resync(self) -> None:
        """Tell every known object again."""
        self._core.resync()
        self._wake()

    @abstractmethod
    async def pop(self, process: Process[V]) -> Deltas[V]:
        """Wait for what is first in line, give it to ``process``, and return it."""

    def close(self) -> None:
        """Let ``pop`` raise once nothing waits; those who wait now are woken.

        Closing twice is fine.
        """
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

    @property
    @abstractmethod
    def is_idle(self) -> bool:
        """Whether nothing waits, and nothing is being processed: ``processed_version`` is that of the store."""

    async def wait_for_progress(self) -> None:
        """Wait until something comes or was processed; cancellation leaves nothing behind."""
        await self._change()

    def list_keys(self) -> list[str]:
        """Return the keys that wait, in the order of their oldest deltas."""
        return self._core.list_keys()

    def __len__(self) -> int:
        return len(self._core)

    def __repr__(self) -> str:
        state = "synced" if self.has_synced else "not synced"
        return f"<{type(self).__name__} {len(self)} {self._counted}, {state}{', closed' if self.closed else ''}>"

    async def _change(self) -> None:
        """Wait until something comes, was processed, or the queue is closed."""
        if self._next_change is None:
            self._next_change = asyncio.Event()
        await self._next_change.wait()

    def _came(self) -> None:
        # One more that waits brings nobody's version on; so there is something to do if somebody waits for a change.
        if self._next_change is not None or not self._told_synced:
            self._wake()

    def _wake(self) -> None:
        if self._next_change is not None:
            self._next_change.set()
            self._next_change = None
        if self._on_version is not None:
            version = self._core.processed_version
            if version != self._told_version:
                self._told_version = version
                self._on_version(version)
        if not self._told_synced and self.has_synced:
            self._told_synced = True
            self._synced.set()
