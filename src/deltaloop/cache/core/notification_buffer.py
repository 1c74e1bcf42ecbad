"""What waits for one handler: in the order it came, or merged to the newest state of each object.

**Unbounded**: every notification waits; a handler that falls behind grows it. As upstream.

**Bounded**: the same, and once ``size`` wait the buffer is full: the informer that fills it stops until there is room.
It is not refused what comes nevertheless (an informer's replay and resync, the rest of a key's deltas), so that nothing
is ever lost.

**Coalescing**: at most one notification waits for an object, with its place in line kept:

    waits     comes     becomes
    Added     Updated   Added, with the newer state
    Added     Deleted   nothing: the handler never hears of the object
    Updated   Updated   Updated, from the first old state to the last new one
    Updated   Deleted   Deleted
    Deleted   Added     Updated, from what the handler heard last, or else the deleted state; the uids differ
    Deleted   Updated   Updated, likewise (a store never tells that; the rule is here to be whole)
    Deleted   Deleted   the second
    Added     Added     the second, likewise

What the handler sees of each object is (add update* delete)* under every policy.

An item of the initial list stays one while it is merged. ``put`` returns how many of them will never be delivered, so
that what counts them does not wait for ever.

Source: client-go tools/cache/shared_informer.go (``processorListener``, unbounded); the other two are ours.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Sequence
from enum import StrEnum
from typing import Generic, Protocol, TypeVar, final

import msgspec

from deltaloop.api.resource import Resource
from deltaloop.cache.core.process_deltas import (
    AddNotification,
    DeleteNotification,
    Notification,
    UpdateNotification,
)

K = TypeVar("K", bound="Keyed")


class Keyed(Protocol):
    """An object that knows its key."""

    @property
    def key(self) -> str:
        """``namespace/name``, or the name alone."""
        ...


class BufferPolicy(StrEnum):
    """How notifications wait for a handler that is busy."""

    UNBOUNDED = "unbounded"
    COALESCING = "coalescing"
    BOUNDED = "bounded"


def key_of(notification: Notification[K]) -> str:
    """Return the key of the object that a notification is about."""
    return notification.new.key if isinstance(notification, UpdateNotification) else notification.obj.key


class NotificationBuffer(Protocol[K]):
    """Notifications on their way to one handler."""

    @property
    def is_full(self) -> bool:
        """Whether the informer that fills it should wait."""
        ...

    @property
    def room(self) -> int:
        """How many more it takes before it is full; 0 for one that is full, or never will be."""
        ...

    def put_all(self, notifications: Sequence[Notification[K]]) -> int:
        """Let notifications wait; return how many items of the initial list will not be delivered because of them."""
        ...

    def popleft(self) -> Notification[K]:
        """Take the first one in line; there must be one."""
        ...

    def keys(self) -> set[str]:
        """Return the keys for which something waits."""
        ...

    def clear(self) -> None:
        """Drop everything that waits."""
        ...

    def __len__(self) -> int: ...


def make_buffer(policy: BufferPolicy, size: int) -> NotificationBuffer[Resource]:
    """Make the buffer of a policy; ``size`` is for the bounded one."""
    if policy is BufferPolicy.COALESCING:
        return CoalescingBuffer[Resource]()
    return FifoBuffer[Resource](size if policy is BufferPolicy.BOUNDED else None)


@final
class FifoBuffer(deque[Notification[K]]):
    """Every notification, in the order it came; with a size, it says when it is full."""

    __slots__ = ("_size",)

    def __init__(self, size: int | None = None) -> None:
        """Begin empty."""
        self._size = size

    @property
    def is_full(self) -> bool:
        """Whether as many wait as it has room for."""
        return self._size is not None and len(self) >= self._size

    @property
    def room(self) -> int:
        """How many more it takes before it is full."""
        return 0 if self._size is None else max(0, self._size - len(self))

    def put_all(self, notifications: Sequence[Notification[K]]) -> int:
        """Let them wait at the end; nothing is ever merged."""
        self.extend(notifications)
        return 0

    def keys(self) -> set[str]:
        """Return the keys for which something waits."""
        return {key_of(notification) for notification in self}


class _Entry(msgspec.Struct, Generic[K]):
    notification: Notification[K]
    told: K | None = None  # once an update has waited: the state that the handler knows


@final
class CoalescingBuffer(Generic[K]):
    """At most one notification for an object: the sum of those that came."""

    def __init__(self) -> None:
        """Begin empty."""
        self._waiting: OrderedDict[str, _Entry[K]] = OrderedDict()

    @property
    def is_full(self) -> bool:
        """Never: it has room for one of each object."""
        return False

    @property
    def room(self) -> int:
        """None that is counted."""
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
        """Let them wait, each merged with what waits for the same object."""
        return sum(map(self._put, notifications))

    def popleft(self) -> Notification[K]:
        """Take the one whose object has waited longest."""
        return self._waiting.popitem(last=False)[1].notification

    def keys(self) -> set[str]:
        """Return the keys for which something waits."""
        return set(self._waiting)

    def clear(self) -> None:
        """Drop everything that waits."""
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
