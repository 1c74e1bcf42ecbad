"""A queue of what happened to objects: a list of deltas for each key, and the keys in the order they came.

    items   key -> deltas, oldest first; the order of the keys is the line in which they wait

Rules:

* A key keeps its place in line while deltas are added to it; popped, it goes to the end when something new happens.
* No key waits without deltas.
* Two ``Deleted`` in a row are one: the one that knows the object's final state wins, else the first.
* The deletion of an object that neither waits nor is known is dropped.
* ``replace`` is a list as a whole: a ``Replaced`` for each item, and a ``Deleted`` with ``DeletedFinalStateUnknown``
  for each key that waits or is known and is not in the list. What is told about it is its newest state: the queued
  one before the known one (the rule of client-go 0.27; 0.26 missed objects that only waited, kubernetes#115658).
  An object that is in the list and cannot be read is not gone: what waits or is known stays.
* ``resync`` adds a ``Sync`` for each known object that has nothing queued: what is queued is newer.
* Synced means that everything of the first ``replace``, its deletions included, was popped; or that any other write
  came first. An object popped before that is in the initial list.
* A transform sees each object once, when it comes. What is known already (a resync, the object of a tombstone) has been
  through it, and what a process function gives back, too; so it need not be idempotent.
* What was interrupted is put back: it keeps its place in the initial list and comes first. What failed is put back by
  ``add_if_not_present``, behind everything else, as upstream.
* ``processed_version`` is how far the consumer has come: the version before the oldest delta that waits, or the last
  one told if none does.

Source: client-go tools/cache/delta_fifo.go.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Sequence
from enum import StrEnum
from typing import Final, Generic, NamedTuple, Protocol, TypeAlias, TypeGuard, TypeVar, cast, final

import msgspec

from deltaloop.api.keys import meta_namespace_key
from deltaloop.api.resource import Resource
from deltaloop.cache.errors import FifoClosedError, TransformError

V = TypeVar("V")
V_co = TypeVar("V_co", covariant=True)


class DeltaType(StrEnum):
    """What happened to an object."""

    ADDED = "Added"
    UPDATED = "Updated"
    DELETED = "Deleted"
    REPLACED = "Replaced"
    SYNC = "Sync"


class DeletedFinalStateUnknown(msgspec.Struct, Generic[V], frozen=True):
    """Stands for an object whose deletion was not seen, only its absence from a later list.

    Attributes:
        key: The object's key.
        obj: Its newest known state; it may have changed between that and its deletion.
    """

    key: str
    obj: V


class Delta(msgspec.Struct, Generic[V], frozen=True, gc=False):
    """One thing that happened to an object, and its state after that (before it, for a deletion)."""

    type: DeltaType
    object: V | DeletedFinalStateUnknown[V]


Deltas: TypeAlias = tuple[Delta[V], ...]


class WholeList(tuple[Delta[V], ...]):
    """The deltas of a list: they say everything that exists, and what of the known has gone.

    Only its type tells a list from what happened to one object, or to some: there may be any number of either.
    """

    __slots__ = ()


def is_whole_list(deltas: Deltas[V]) -> TypeGuard[WholeList[V]]:
    """Tell whether deltas are a list."""
    return isinstance(deltas, WholeList)


class KeyedDeltas(tuple[Delta[V], ...]):  # noqa: SLOT001 - a tuple has no room for more
    """Single events of different objects, with the keys that the queue has found for them.

    There is no ``Replaced`` and no ``Sync`` among them: those come with a list or a resync.

    Attributes:
        keys: The key of each, in the same order.
    """

    keys: Sequence[str] = ()


def with_keys(deltas: Iterable[Delta[V]], keys: Sequence[str]) -> KeyedDeltas[V]:
    """Return deltas with their keys, each another one."""
    keyed: KeyedDeltas[V] = KeyedDeltas(deltas)
    keyed.keys = keys
    return keyed


def is_keyed(deltas: Deltas[V]) -> TypeGuard[KeyedDeltas[V]]:
    """Tell whether deltas say their keys."""
    return isinstance(deltas, KeyedDeltas)


Change: TypeAlias = tuple[DeltaType, V, str]
"""What a watch brought: added, updated or deleted, the object, and the version that is reached by it or ``""``."""


class Popped(NamedTuple, Generic[V]):
    """What was first in line.

    Attributes:
        key: The object's key.
        deltas: What happened to it, oldest first; never empty.
        is_in_initial_list: Whether the queue had not synced before this was popped.
        since: When the oldest of it came, and the version before.
    """

    key: str
    deltas: Deltas[V]
    is_in_initial_list: bool
    since: tuple[int, str]


class Unread(msgspec.Struct, frozen=True):
    """The objects of a list that are there and cannot be read: what is known of them is kept.

    Attributes:
        keys: Their keys, as far as those can be read.
        is_any: Whether there is one without a key: it may be any object that is not in the list.
    """

    keys: frozenset[str] = frozenset()
    is_any: bool = False

    def may_be(self, key: str) -> bool:
        """Tell whether an object that is not in the list may be one of them."""
        return self.is_any or key in self.keys

    def __bool__(self) -> bool:
        return self.is_any or bool(self.keys)


NOTHING_UNREAD: Final = Unread()


class KnownObjects(Protocol[V_co]):
    """What the consumer of the queue holds already; a ``Store`` is one."""

    def list_keys(self) -> Collection[str]:
        """Return all keys."""
        ...

    def get_by_key(self, key: str) -> V_co | None:
        """Return one object, or None."""
        ...


def deletion_handling_key(obj: object) -> str:
    """Return the key of an object, or of the one that a ``DeletedFinalStateUnknown`` stands for.

    Raises:
        MalformedObjectError: If there is no metadata or no name to make a key from.

    Source: client-go tools/cache/controller.go, ``DeletionHandlingMetaNamespaceKeyFunc``.
    """
    if isinstance(obj, Resource) and obj.name:  # nearly always
        return obj.key
    if isinstance(obj, DeletedFinalStateUnknown):
        return cast("DeletedFinalStateUnknown[object]", obj).key
    return meta_namespace_key(obj)


def transformed(key: str, obj: V, *, transform: Callable[[V], V] | None, key_func: Callable[[V], str]) -> V:
    """Return what a transform makes of an object.

    Raises:
        TransformError: If it raises, or gives back an object of another key.
    """
    if transform is None:
        return obj
    try:
        new = transform(obj)
        new_key = key_func(new)
    except Exception as error:
        raise TransformError(key, "raised") from error
    if new_key != key:
        raise TransformError(key, f"gave back an object of the key {new_key!r}")
    return new


@final
class DeltaQueue(Generic[V]):
    """The decisions of ``DeltaFIFO``: what waits, in which order, and whether the initial list is through."""

    def __init__(
        self,
        *,
        known_objects: KnownObjects[V] | None = None,
        key_func: Callable[[V], str] = deletion_handling_key,
        transform: Callable[[V], V] | None = None,
    ) -> None:
        """Begin empty.

        Args:
            known_objects: What the consumer holds; without it, deletions are found among what waits only.
            key_func: Gives the key of an object.
            transform: Makes the object that is kept out of the one that comes.
        """
        self._known = known_objects
        self._key_func = key_func
        self._transform = transform
        self._version = ""
        self._arrivals = 0
        self._since: dict[str, tuple[int, str]] = {}  # key -> when its oldest delta came, and the version before
        self._popped_since: dict[str, tuple[int, str]] = {}  # of what was popped last
        self._out_of_order = False
        self.items: Final[OrderedDict[str, list[Delta[V]]]] = OrderedDict()
        self._populated = False
        self._initial_left = 0
        self._closed = False

    def __len__(self) -> int:
        return len(self.items)

    def list_keys(self) -> list[str]:
        """Return the keys that wait, first in line first."""
        return list(self.items)

    def deltas_of(self, key: str) -> Deltas[V]:
        """Return what waits for a key; empty if nothing does."""
        return tuple(self.items.get(key, ()))

    @property
    def has_synced(self) -> bool:
        """Whether everything of the initial list was popped."""
        return self._populated and self._initial_left == 0

    @property
    def closed(self) -> bool:
        """Whether ``close`` was called; what waits can still be popped."""
        return self._closed

    def key_of(self, obj: V | DeletedFinalStateUnknown[V]) -> str:
        """Return the key of an object or of a stand-in for a deleted one."""
        if isinstance(obj, DeletedFinalStateUnknown):
            return obj.key
        return self._key_func(obj)

    @property
    def processed_version(self) -> str:
        """The version that everything popped amounts to; "" before the first one."""
        if not self.items:
            return self._version
        if self._out_of_order:
            return min(self._since.values())[1]
        return self._since[next(iter(self.items))][1]

    def update_resource_version(self, resource_version: str) -> bool:
        """Everything up to this version has come; return whether it is processed, too."""
        self._version = resource_version
        return not self.items

    def add(self, obj: V) -> None:
        """An object came into being."""
        key = self.key_of(obj)
        self._write(DeltaType.ADDED, key, self._transformed(key, obj))

    def update(self, obj: V) -> None:
        """An object changed."""
        key = self.key_of(obj)
        self._write(DeltaType.UPDATED, key, self._transformed(key, obj))

    def delete(self, obj: V | DeletedFinalStateUnknown[V]) -> None:
        """An object went away; dropped if neither the queue nor the consumer ever heard of it."""
        key = self.key_of(obj)
        known = self._known is not None and self._known.get_by_key(key) is not None
        if key not in self.items and not known:
            self._populated = True
            return
        if isinstance(obj, DeletedFinalStateUnknown):
            self._write(DeltaType.DELETED, key, cast("DeletedFinalStateUnknown[V]", obj))
        else:
            self._write(DeltaType.DELETED, key, self._transformed(key, obj))

    def write_all(self, changes: Iterable[Change[V]]) -> None:
        """Write several changes; what is before one that raises is written."""
        writes = {DeltaType.ADDED: self.add, DeltaType.UPDATED: self.update, DeltaType.DELETED: self.delete}
        for delta_type, obj, version in changes:
            writes[delta_type](obj)
            if version:
                self._version = version

    def replace(self, objects: Iterable[V], *, unread: Unread = NOTHING_UNREAD) -> None:
        """Everything that exists is this; what waits or is known beyond it and is not ``unread`` is gone.

        Nothing changes if an object has no key or the transform raises: both are asked first.
        """
        listed = [(key, self._transformed(key, obj)) for key, obj in [(self.key_of(obj), obj) for obj in objects]]
        keys = {key for key, _ in listed}
        for key, obj in listed:
            self._append(key, Delta(DeltaType.REPLACED, obj))
        gone = [tombstone for tombstone in self._gone(keys) if not unread.may_be(tombstone.key)]
        for tombstone in gone:
            self._append(tombstone.key, Delta(DeltaType.DELETED, tombstone))
        if not self._populated:
            self._populated = True
            self._initial_left = len(keys) + len(gone)

    def resync(self) -> None:
        """Tell every known object again, unless something newer about it waits."""
        if self._known is None:
            return
        for key in self._known.list_keys():
            obj = self._known.get_by_key(key)
            if obj is not None and key not in self.items:
                self._append(key, Delta(DeltaType.SYNC, obj))

    def add_if_not_present(self, key: str, deltas: Deltas[V]) -> None:
        """Put popped deltas back at the end of the line, unless something newer waits for that key."""
        self._populated = True
        if key not in self.items and deltas:
            self.items[key] = list(deltas)
            self._since[key] = self._popped_since.get(key, self._arrival())
            self._out_of_order = True

    def pop(self) -> Popped[V] | None:
        """Take what is first in line; None if nothing waits.

        Raises:
            FifoClosedError: If nothing waits and the queue is closed.
        """
        if not self.items:
            if self._closed:
                raise FifoClosedError("the queue is closed and empty")
            return None
        is_in_initial_list = not self.has_synced
        key, deltas = self.items.popitem(last=False)
        since = self._since.pop(key)
        self._popped_since = {key: since}
        self._out_of_order = self._out_of_order and bool(self.items)
        if self._initial_left:
            self._initial_left -= 1
        return Popped(key, tuple(deltas), is_in_initial_list, since)

    def put_back(self, popped: Popped[V]) -> None:
        """What was popped has to be popped again, as if it never had been, with what has come for that key since."""
        key, newer = popped.key, self.items.get(popped.key, [])
        first = next(iter(self._since.values()), popped.since)
        self._out_of_order = self._out_of_order or first < popped.since
        self.items[key] = [*popped.deltas]
        self.items.move_to_end(key, last=False)
        self._since[key] = popped.since
        for delta in newer:
            self._append(key, delta)
        if popped.is_in_initial_list:
            self._initial_left += 1

    def close(self) -> None:
        """Take nothing new to wait for: once empty, ``pop`` raises."""
        self._closed = True

    def _gone(self, listed: set[str]) -> list[DeletedFinalStateUnknown[V]]:
        gone = [
            DeletedFinalStateUnknown(key, _state(deltas[-1])) for key, deltas in self.items.items() if key not in listed
        ]
        if self._known is not None:
            for key in self._known.list_keys():
                if key in self.items:  # as all that is listed is
                    continue
                obj = self._known.get_by_key(key)
                if obj is not None:
                    gone.append(DeletedFinalStateUnknown(key, obj))
        return gone

    def _write(self, delta_type: DeltaType, key: str, obj: V | DeletedFinalStateUnknown[V]) -> None:
        self._populated = True
        self._append(key, Delta(delta_type, obj))

    def _transformed(self, key: str, obj: V) -> V:
        return transformed(key, obj, transform=self._transform, key_func=self._key_func)

    def _arrival(self) -> tuple[int, str]:
        self._arrivals += 1
        return self._arrivals, self._version

    def _append(self, key: str, delta: Delta[V]) -> None:
        deltas = self.items.get(key)
        if deltas is None:
            self.items[key] = [delta]
            self._since[key] = self._arrival()
            return
        if delta.type is DeltaType.DELETED and deltas[-1].type is DeltaType.DELETED:
            if isinstance(deltas[-1].object, DeletedFinalStateUnknown):
                deltas[-1] = delta
            return
        deltas.append(delta)


def _state(delta: Delta[V]) -> V:
    obj = delta.object
    return cast("DeletedFinalStateUnknown[V]", obj).obj if isinstance(obj, DeletedFinalStateUnknown) else obj
