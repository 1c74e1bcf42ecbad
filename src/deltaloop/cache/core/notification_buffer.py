"""Buffer of notifications for one handler, with one of three policies.

**Unbounded** stores all notifications, as client-go does. **Bounded** pauses the informer at ``size``, but stores
notifications that still arrive. **Coalescing** stores at most one notification per object, which keeps its place:

    stored    arrives   result
    Added     Updated   Added, with the newer state
    Added     Deleted   none: the handler never sees the object
    Updated   Updated   Updated, from the first old state to the last new one
    Updated   Deleted   Deleted
    Deleted   Added     Updated, from the state that the handler knows, otherwise the deleted state; the uids differ
    Deleted   Updated   Updated, likewise (does not occur with a store)
    Deleted   Deleted   the second
    Added     Added     the second (does not occur with a store)

With each policy, the handler sees (add update* delete)* for each object.

Source: client-go tools/cache/shared_informer.go (``processorListener``, unbounded); the other two are ours.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar, final

import msgspec

from deltaloop.api.resource import Resource
from deltaloop.cache.core.process_deltas import (
    AddNotification,
    DeleteNotification,
    Notification,
    UpdateNotification,
)

K = TypeVar("K", bound="Keyed")


@final
class SingleFileTracker:
    """Counter of undelivered items of the initial list for one consumer; failures count (kubernetes#129024).

    Source: client-go tools/cache/synctrack, ``SingleFileTracker``.
    """

    __slots__ = ("_on_the_way", "_upstream_has_synced")

    def __init__(self, upstream_has_synced: Callable[[], bool]) -> None:
        """Create a tracker. ``upstream_has_synced`` returns whether the source has sent all items."""
        self._upstream_has_synced = upstream_has_synced
        self._on_the_way = 0

    def start(self, count: int = 1) -> None:
        self._on_the_way += count

    def finished(self, count: int = 1) -> None:
        """Count items that were delivered, successfully or not."""
        if self._on_the_way < count:
            raise RuntimeError("unexpected delivery of an item")
        self._on_the_way -= count

    @property
    def has_synced(self) -> bool:
        """Whether all items of the source were delivered."""
        # Check the source first, because it counts items before it reports that it is done.
        return self._upstream_has_synced() and self._on_the_way == 0


if TYPE_CHECKING:

    class Keyed(Protocol):
        @property
        def key(self) -> str:
            """``namespace/name``, or only the name."""
            ...


class BufferPolicy(StrEnum):
    """Storage of notifications while a handler is busy."""

    UNBOUNDED = "unbounded"
    COALESCING = "coalescing"
    BOUNDED = "bounded"


def key_of(notification: Notification[K]) -> str:
    return notification.new.key if isinstance(notification, UpdateNotification) else notification.obj.key


if TYPE_CHECKING:

    class NotificationBuffer(Protocol[K]):
        @property
        def is_full(self) -> bool: ...

        @property
        def room(self) -> int:
            """Number of free places, or 0 if the buffer is full or has no limit."""
            ...

        def put_all(self, notifications: Sequence[Notification[K]]) -> int:
            """Add notifications, and return how many items of the initial list will not be delivered as a result."""
            ...

        def popleft(self) -> Notification[K]: ...

        def keys(self) -> set[str]: ...

        def clear(self) -> None: ...

        def __len__(self) -> int: ...


def make_buffer(policy: BufferPolicy, size: int) -> NotificationBuffer[Resource]:
    """Create the buffer of a policy. ``size`` applies to the bounded policy."""
    if policy is BufferPolicy.COALESCING:
        return CoalescingBuffer[Resource]()
    return FifoBuffer[Resource](size if policy is BufferPolicy.BOUNDED else None)


@final
class FifoBuffer(deque["Notification[K]"]):
    """Buffer that stores all notifications in order, optionally with a size limit."""

    __slots__ = ("_size",)

    def __init__(self, size: int | None = None) -> None:
        self._size = size

    @property
    def is_full(self) -> bool:
        return self._size is not None and len(self) >= self._size

    @property
    def room(self) -> int:
        """Number of free places, or 0 without a size limit."""
        return 0 if self._size is None else max(0, self._size - len(self))

    def put_all(self, notifications: Sequence[Notification[K]]) -> int:
        """Append notifications without merging."""
        self.extend(notifications)
        return 0

    def keys(self) -> set[str]:
        return {key_of(notification) for notification in self}


class _Entry(msgspec.Struct, Generic[K]):
    notification: Notification[K]
    told: K | None = None  # old state of the first merged update, which is the state that the handler knows


@final
class CoalescingBuffer(Generic[K]):
    """Buffer that stores at most one merged notification per object."""

    def __init__(self) -> None:
        self._waiting: OrderedDict[str, _Entry[K]] = OrderedDict()

    @property
    def is_full(self) -> bool:
        return False

    @property
    def room(self) -> int:
        return 0

    def _put(self, notification: Notification[K]) -> int:
        key = key_of(notification)
        entry = self._waiting.get(key)
        if entry is None:
            self._waiting[key] = _Entry(notification)
            return 0
        waits = entry.notification
        counted = waits.is_in_initial_list + notification.is_in_initial_list
        merged = self._merge(entry, notification, is_initial=counted > 0)
        if merged is None:
            del self._waiting[key]
            return counted
        entry.notification = merged
        return counted - (counted > 0)

    def put_all(self, notifications: Sequence[Notification[K]]) -> int:
        """Add notifications, and merge each with the stored one of the same object."""
        return sum(map(self._put, notifications))

    def popleft(self) -> Notification[K]:
        """Remove and return the notification of the object that was added first."""
        return self._waiting.popitem(last=False)[1].notification

    def keys(self) -> set[str]:
        return set(self._waiting)

    def clear(self) -> None:
        self._waiting.clear()

    def __len__(self) -> int:
        return len(self._waiting)

    def _merge(self, entry: _Entry[K], comes: Notification[K], *, is_initial: bool) -> Notification[K] | None:
        waits = entry.notification
        if isinstance(waits, UpdateNotification):
            entry.told = waits.old
        if isinstance(comes, DeleteNotification):
            if isinstance(waits, AddNotification):
                return None
            return DeleteNotification(comes.obj, comes.final_state_known, is_initial)
        new = comes.new if isinstance(comes, UpdateNotification) else comes.obj
        if isinstance(waits, AddNotification):
            return AddNotification(new, is_initial)
        old = waits.obj if entry.told is None and isinstance(waits, DeleteNotification) else entry.told
        assert old is not None
        return UpdateNotification(old, new, is_in_initial_list=is_initial)
