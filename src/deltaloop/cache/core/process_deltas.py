"""What deltas mean for a store and for those who are told.

    delta                             in the store    what happens to the store    who hears what
    Added Updated Replaced Sync       no              stored                       Added
    Added Updated Replaced Sync       yes             stored                       Updated (old, new)
    Deleted                           either          taken out                    Deleted

The store decides between added and updated, not the delta: after a relist, or a restart of the watch, the two differ.
The store is written first, then the notification is handed out. Deltas of different keys are written in one step, so
that no reader sees half of a list; deltas of one key one after the other, because each state is told.

What cannot be stored (an object without a key) is told to nobody; everything else is, and then ``TransactionError`` is
raised.

An object that was deleted and made again between two lists appears as an update whose objects have different uids, as
upstream.

Source: client-go tools/cache/controller.go, ``processDeltas``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeAlias, TypeVar

from deltaloop.cache.core.deltas import DeletedFinalStateUnknown, Delta, Deltas, DeltaType
from deltaloop.cache.core.store import StoreWrite
from deltaloop.cache.errors import TransactionError

V = TypeVar("V")
M = TypeVar("M", bound="Versioned")


@dataclass(frozen=True, slots=True)
class AddNotification(Generic[V]):
    """An object is new here."""

    obj: V
    is_in_initial_list: bool = False


@dataclass(frozen=True, slots=True)
class UpdateNotification(Generic[V]):
    """An object changed, or is told again (``old is new``: a resync).

    ``is_unchanged`` says that a relist brought the very state that was known: same uid, same resource version. There
    is nothing to tell.
    """

    old: V
    new: V
    is_unchanged: bool = False


@dataclass(frozen=True, slots=True)
class DeleteNotification(Generic[V]):
    """An object is gone; ``obj`` is its last known state, its very last one if ``final_state_known``."""

    obj: V
    final_state_known: bool = True


Notification: TypeAlias = AddNotification[V] | UpdateNotification[V] | DeleteNotification[V]


class Versioned(Protocol):
    """An object that says which state of which object it is; a ``Resource`` does."""

    @property
    def uid(self) -> str:
        """Tells it from its successor of the same name."""
        ...

    @property
    def resource_version(self) -> str:
        """Tells its states apart."""
        ...


class WritableStore(Protocol[V]):
    """What deltas are applied to; an ``Indexer`` is one."""

    def key_of(self, obj: V) -> str:
        """Return the key of an object."""
        ...

    def get_by_key(self, key: str) -> V | None:
        """Return what is stored under a key."""
        ...

    def transaction(self, writes: Iterable[StoreWrite[V]]) -> None:
        """Do all writes in one step; raise ``TransactionError`` for those whose objects have no key."""
        ...


def process_deltas(
    deltas: Deltas[M], store: WritableStore[M], *, is_in_initial_list: bool
) -> Iterator[Notification[M]]:
    """Apply deltas to a store, oldest first, and yield what there is to tell.

    Raises:
        TransactionError: At the end, if some objects have no key.
    """
    failures: dict[int, Exception] = {}
    for start, group in _groups_of_different_keys(deltas, store):
        olds = [_stored(delta, store) for delta in group]
        failed: dict[int, Exception] = {}
        try:
            store.transaction([_write(delta) for delta in group])
        except TransactionError as error:
            failed = error.failures
            failures |= {start + place: why for place, why in failed.items()}
        for place, (delta, old) in enumerate(zip(group, olds, strict=True)):
            if place not in failed:
                yield _notification(delta, old, is_in_initial_list=is_in_initial_list)
    if failures:
        raise TransactionError(failures, len(deltas))


def _groups_of_different_keys(deltas: Deltas[M], store: WritableStore[M]) -> Iterator[tuple[int, Sequence[Delta[M]]]]:
    keys: set[str] = set()
    start = 0
    for place, delta in enumerate(deltas):
        key = _key(delta, store)
        if key in keys:
            yield start, deltas[start:place]
            start = place
            keys.clear()
        if key is not None:
            keys.add(key)
    if start < len(deltas):
        yield start, deltas[start:]


def _key(delta: Delta[M], store: WritableStore[M]) -> str | None:
    if isinstance(delta.object, DeletedFinalStateUnknown):
        return delta.object.key
    try:
        return store.key_of(delta.object)
    except Exception:  # noqa: BLE001 - a key function may raise anything; the transaction reports it
        return None


def _stored(delta: Delta[M], store: WritableStore[M]) -> M | None:
    key = _key(delta, store)
    return None if key is None else store.get_by_key(key)


def _write(delta: Delta[M]) -> StoreWrite[M]:
    obj = delta.object.obj if isinstance(delta.object, DeletedFinalStateUnknown) else delta.object
    return StoreWrite(obj, delete=delta.type is DeltaType.DELETED)


def _notification(delta: Delta[M], old: M | None, *, is_in_initial_list: bool) -> Notification[M]:
    obj = delta.object
    if isinstance(obj, DeletedFinalStateUnknown):
        return DeleteNotification(obj.obj, final_state_known=False)
    if delta.type is DeltaType.DELETED:
        return DeleteNotification(obj)
    if old is None:
        return AddNotification(obj, is_in_initial_list)
    unchanged = delta.type is DeltaType.REPLACED and _is_same_state(old, obj)
    return UpdateNotification(old, obj, is_unchanged=unchanged)


def _is_same_state(old: Versioned, new: Versioned) -> bool:
    return bool(new.resource_version) and (old.uid, old.resource_version) == (new.uid, new.resource_version)
