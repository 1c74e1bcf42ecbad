"""Queue of changes by key: a list of deltas for each key, and the keys in order of arrival.

Rules:

* A key keeps its place while deltas are added. After a pop, the next change adds it at the end.
* Two consecutive ``Deleted`` deltas are merged. The delta with the object's final state wins, otherwise the first.
* The deletion of an object that is neither queued nor known is dropped.
* ``replace`` represents a complete list. It adds ``Replaced`` for each item, and ``Deleted`` with
  ``DeletedFinalStateUnknown`` for each queued or known key that is missing. The tombstone contains the queued state,
  otherwise the known one (the rule of client-go 0.27; 0.26 missed objects that were only queued, kubernetes#115658).
  Unreadable objects of the list are not deleted.
* ``resync`` adds ``Sync`` for each known object without queued deltas, because queued states are newer.
* The queue has synced when all deltas of the first ``replace``, deletions included, have been popped, or when another
  write came first. Deltas that are popped earlier belong to the initial list.
* A transform sees each object once, on arrival, so it need not be idempotent.
* Interrupted deltas return to the front (``put_back``) and stay part of the initial list. Failed deltas return to the
  end (``add_if_not_present``), as in client-go.
* ``processed_version`` is the version before the oldest queued delta, or the last received version if the queue is
  empty.

Source: client-go tools/cache/delta_fifo.go.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Sequence
from enum import StrEnum
from typing import Final, Generic, Protocol, TypeAlias, TypeGuard, TypeVar, cast, final

import msgspec

from deltaloop.api.keys import meta_namespace_key
from deltaloop.api.resource import Resource
from deltaloop.cache.errors import FifoClosedError, TransformError

V = TypeVar("V")
V_co = TypeVar("V_co", covariant=True)


class DeltaType(StrEnum):
    """Types of changes."""

    ADDED = "Added"
    UPDATED = "Updated"
    DELETED = "Deleted"
    REPLACED = "Replaced"
    SYNC = "Sync"


class DeletedFinalStateUnknown(msgspec.Struct, Generic[V], frozen=True):
    """Tombstone for an object whose deletion was missed by the watch, and detected by a later list.

    Attributes:
        key: Key of the object.
        obj: Newest known state. The object may have changed again before its deletion.
    """

    key: str
    obj: V


class Delta(msgspec.Struct, Generic[V], frozen=True, gc=False):
    """One change of an object, with its state after the change (before the change, for a deletion)."""

    type: DeltaType
    object: V | DeletedFinalStateUnknown[V]


Deltas: TypeAlias = tuple[Delta[V], ...]


class WholeList(tuple[Delta[V], ...]):  # noqa: SLOT001 - a tuple has no room for more
    """Deltas of a complete list and their keys, with deletions of the known objects that are missing from it.

    The type distinguishes a list from single changes, because both can have any length.
    """

    keys: Sequence[str] = ()


def whole_list(deltas: Iterable[Delta[V]], keys: Sequence[str]) -> WholeList[V]:
    listed: WholeList[V] = WholeList(deltas)
    listed.keys = keys
    return listed


def is_whole_list(deltas: Deltas[V]) -> TypeGuard[WholeList[V]]:
    return isinstance(deltas, WholeList)


class KeyedDeltas(tuple[Delta[V], ...]):  # noqa: SLOT001 - a tuple has no room for more
    """Single changes of different objects, with their keys. They do not contain ``Replaced`` or ``Sync``."""

    keys: Sequence[str] = ()


def with_keys(deltas: Iterable[Delta[V]], keys: Sequence[str]) -> KeyedDeltas[V]:
    keyed: KeyedDeltas[V] = KeyedDeltas(deltas)
    keyed.keys = keys
    return keyed


def is_keyed(deltas: Deltas[V]) -> TypeGuard[KeyedDeltas[V]]:
    return isinstance(deltas, KeyedDeltas)


Change: TypeAlias = "tuple[DeltaType, V, str]"
"""Change from a watch: type (added, updated or deleted), object, and the new resource version or ``""``."""


class Popped(msgspec.Struct, Generic[V], frozen=True):
    """Deltas of the first key, with the arrival number of the oldest one and the version before it (``since``)."""

    key: str
    deltas: Deltas[V]
    is_in_initial_list: bool
    since: tuple[int, str]


class Unread(msgspec.Struct, frozen=True):
    """Objects of a list that exist but cannot be decoded. Their known states are kept.

    Attributes:
        is_any: Whether a key is unreadable, so that it may be any object missing from the list.
    """

    keys: frozenset[str] = frozenset()
    is_any: bool = False

    def may_be(self, key: str) -> bool:
        """Return whether an object that is missing from the list may be one of the unreadable objects."""
        return self.is_any or key in self.keys

    def __bool__(self) -> bool:
        return self.is_any or bool(self.keys)


NOTHING_UNREAD: Final = Unread()


class KnownObjects(Protocol[V_co]):
    """Objects that the consumer of the queue already has.

    A ``Store`` implements this.
    """

    def list_keys(self) -> Collection[str]:
        """Return all keys."""
        ...

    def get_by_key(self, key: str) -> V_co | None:
        """Return an object, or None if it is unknown."""
        ...


def deletion_handling_key(obj: object) -> str:
    """Return the key of an object or of a ``DeletedFinalStateUnknown``.

    Raises:
        MalformedObjectError: If the metadata or the name is missing.

    Source: client-go tools/cache/controller.go, ``DeletionHandlingMetaNamespaceKeyFunc``.
    """
    if type(obj) is Resource and obj.name:  # usual
        return obj.key
    if isinstance(obj, DeletedFinalStateUnknown):
        return cast("DeletedFinalStateUnknown[object]", obj).key
    return meta_namespace_key(obj)


def transformed(key: str, obj: V, *, transform: Callable[[V], V] | None, key_func: Callable[[V], str]) -> V:
    """Apply a transform, and raise ``TransformError`` if it raises or changes the key."""
    if transform is None:
        return obj
    try:
        new = transform(obj)
        new_key = key_func(new)
    except Exception as error:
        raise TransformError(key, "raised") from error
    if new_key != key:
        raise TransformError(key, f"returned an object with another key: {new_key!r}")
    return new


@final
class DeltaQueue(Generic[V]):
    def __init__(
        self,
        *,
        known_objects: KnownObjects[V] | None = None,
        key_func: Callable[[V], str] = deletion_handling_key,
        transform: Callable[[V], V] | None = None,
    ) -> None:
        self._known = known_objects
        self._key_func = key_func
        self._transform = transform
        self._version = ""
        self._arrivals = 0
        self._since: dict[str, tuple[int, str]] = {}  # key -> its oldest delta: arrival number, version before
        self._popped_since: dict[str, tuple[int, str]] = {}  # the same for the key that was popped last
        self._out_of_order = False
        self.items: Final[OrderedDict[str, list[Delta[V]]]] = OrderedDict()
        self._populated = False
        self._initial_left = 0
        self._closed = False

    def __len__(self) -> int:
        return len(self.items)

    def list_keys(self) -> list[str]:
        return list(self.items)

    def deltas_of(self, key: str) -> Deltas[V]:
        return tuple(self.items.get(key, ()))

    @property
    def has_synced(self) -> bool:
        """Whether all deltas of the initial list have been popped."""
        return self._populated and self._initial_left == 0

    @property
    def closed(self) -> bool:
        """Whether ``close`` was called. You can still pop queued deltas."""
        return self._closed

    def key_of(self, obj: V | DeletedFinalStateUnknown[V]) -> str:
        if isinstance(obj, DeletedFinalStateUnknown):
            return obj.key
        return self._key_func(obj)

    @property
    def processed_version(self) -> str:
        """Version that corresponds to all popped deltas, or "" before the first pop."""
        if not self.items:
            return self._version
        if self._out_of_order:
            return min(self._since.values())[1]
        return self._since[next(iter(self.items))][1]

    def update_resource_version(self, resource_version: str) -> bool:
        """Record that all changes up to this version have arrived, and return whether all have been popped."""
        self._version = resource_version
        return not self.items

    def add(self, obj: V) -> None:
        key = self.key_of(obj)
        self._write(DeltaType.ADDED, key, self._transformed(key, obj))

    def update(self, obj: V) -> None:
        key = self.key_of(obj)
        self._write(DeltaType.UPDATED, key, self._transformed(key, obj))

    def delete(self, obj: V | DeletedFinalStateUnknown[V]) -> None:
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
        """Write several changes. If a write raises, the earlier changes stay queued."""
        writes = {DeltaType.ADDED: self.add, DeltaType.UPDATED: self.update, DeltaType.DELETED: self.delete}
        for delta_type, obj, version in changes:
            writes[delta_type](obj)
            if version:
                self._version = version

    def replace(self, objects: Iterable[V], *, unread: Unread = NOTHING_UNREAD) -> None:
        """Queue a complete list, and delete known objects that are not in it.

        After an error the queue does not change.
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
        if self._known is None:
            return
        for key in self._known.list_keys():
            obj = self._known.get_by_key(key)
            if obj is not None and key not in self.items:
                self._append(key, Delta(DeltaType.SYNC, obj))

    def add_if_not_present(self, key: str, deltas: Deltas[V]) -> None:
        """Return popped deltas to the end of the queue, unless newer deltas of the key are queued."""
        self._populated = True
        if key not in self.items and deltas:
            self.items[key] = list(deltas)
            self._since[key] = self._popped_since.get(key, self._arrival())
            self._out_of_order = True

    def pop(self) -> Popped[V] | None:
        """Pop the first key, or return None if the queue is empty, or raise FifoClosedError if it is also closed."""
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
        """Return popped deltas to the front, before newer deltas of the key."""
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
        """Let ``pop`` raise when the queue is empty."""
        self._closed = True

    def _gone(self, listed: set[str]) -> list[DeletedFinalStateUnknown[V]]:
        gone = [
            DeletedFinalStateUnknown(key, _state(deltas[-1])) for key, deltas in self.items.items() if key not in listed
        ]
        if self._known is not None:
            for key in self._known.list_keys():
                if key in self.items:  # listed objects were queued above
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
