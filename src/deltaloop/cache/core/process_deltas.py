"""What deltas mean for a store and for those who are told.

    delta                             in the store    what happens to the store    who hears what
    Added Updated Replaced Sync       no              stored                       Added
    Added Updated Replaced Sync       yes             stored                       Updated (old, new)
    Deleted                           yes             taken out                    Deleted
    Deleted                           no              nothing                      nobody; a tombstone: Deleted

The store decides between added and updated, not the delta: after a relist, or a restart of the watch, the two differ.
The store is written first, then the notification is handed out. Deltas of different keys are written in one step, so
that no reader sees half of a list; deltas of one key one after the other, because each state is told.

A deletion of what is not in the store (a server that sends one twice, or for an object that it never showed) reaches no
handler, so that each hears (add update* delete)* of every key. DeltaFIFO drops it earlier, RealFIFO does not; upstream
tells it then.

What cannot be stored (an object without a key) reaches no handler; everything else does, and then
``TransactionError`` is raised.

An object that was deleted and made again between two lists appears as an update whose objects have different uids, as
upstream.

Source: client-go tools/cache/controller.go, ``processDeltas``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

import msgspec

from deltaloop.cache.core.deltas import DeletedFinalStateUnknown, Delta, Deltas, DeltaType, KeyedDeltas
from deltaloop.cache.errors import TransactionError

V = TypeVar("V")
M = TypeVar("M", bound="Versioned")

# Looked up for each delta, where a member of an enum costs as much as a call.
_DELETED, _REPLACED = DeltaType.DELETED, DeltaType.REPLACED


class AddNotification(msgspec.Struct, Generic[V], frozen=True, gc=False):
    """An object is new here."""

    obj: V
    is_in_initial_list: bool = False


class UpdateNotification(msgspec.Struct, Generic[V], frozen=True, gc=False):
    """An object changed, or is told again (``old is new``: a resync).

    ``is_unchanged`` says that a relist brought the very state that was known: same uid, same resource version. There
    is nothing to tell.
    """

    old: V
    new: V
    is_unchanged: bool = False


class DeleteNotification(msgspec.Struct, Generic[V], frozen=True, gc=False):
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

    def transaction_by_key(self, writes: Iterable[tuple[str, V | None]]) -> list[V | None]:
        """Do all writes in one step: store an object under its key, or take out what is there for None.

        Return for each write what was there right before it.
        """
        ...


def process_deltas(
    deltas: Deltas[M], store: WritableStore[M], *, is_in_initial_list: bool
) -> Iterator[Notification[M]]:
    """Apply deltas to a store, oldest first, and yield what there is to tell.

    Raises:
        TransactionError: At the end, if some objects have no key.
    """
    failures: dict[int, Exception] = {}
    kept, writes = _writes_of(deltas, store, failures)
    for start, end in _runs_of_different_keys(writes):
        olds = store.transaction_by_key(writes[start:end])
        for delta, old in zip(kept[start:end], olds, strict=True):
            if old is not None or not _is_plain_deletion(delta):
                yield notification_of(delta, old, is_in_initial_list=is_in_initial_list)
    if failures:
        raise TransactionError(failures, len(deltas))


def process_keyed(
    deltas: KeyedDeltas[M], store: WritableStore[M], *, is_in_initial_list: bool
) -> list[Notification[M]]:
    """Do the same with single events of different objects, where the queue's keys are the store's: in one step.

    It is called for all that a watch brings, so it asks nothing twice.
    """
    states: list[Any] = [None if delta.type is _DELETED else delta.object for delta in deltas]
    olds = store.transaction_by_key(zip(deltas.keys, states, strict=True))
    told: list[Notification[M]] = []
    for delta, state, old in zip(deltas, states, olds, strict=True):
        if state is not None and old is not None:
            told.append(UpdateNotification(old, state))
        elif old is not None or not _is_plain_deletion(delta):
            told.append(notification_of(delta, old, is_in_initial_list=is_in_initial_list))
    return told


def _writes_of(
    deltas: Deltas[M], store: WritableStore[M], failures: dict[int, Exception]
) -> tuple[list[Delta[M]], list[tuple[str, M | None]]]:
    """Return the deltas whose objects have keys, and what each means for the store: its key, and the object or None."""
    kept: list[Delta[M]] = []
    writes: list[tuple[str, M | None]] = []
    key_of = store.key_of
    for place, delta in enumerate(deltas):
        obj = delta.object
        try:
            if isinstance(obj, DeletedFinalStateUnknown):
                key, state = obj.key, obj.obj
            else:
                key, state = key_of(obj), obj
        except Exception as error:  # noqa: BLE001 - a key function may raise anything; it is reported at the end
            failures[place] = error
            continue
        kept.append(delta)
        writes.append((key, None if delta.type is _DELETED else state))
    return kept, writes


def _runs_of_different_keys(writes: Sequence[tuple[str, M | None]]) -> Iterator[tuple[int, int]]:
    if len(dict(writes)) == len(writes):
        yield 0, len(writes)
        return
    keys: set[str] = set()
    start = 0
    for place, (key, _) in enumerate(writes):
        if key in keys:
            yield start, place
            start = place
            keys.clear()
        keys.add(key)
    yield start, len(writes)


def _is_plain_deletion(delta: Delta[M]) -> bool:
    return delta.type is _DELETED and not isinstance(delta.object, DeletedFinalStateUnknown)


def notification_of(delta: Delta[M], old: M | None, *, is_in_initial_list: bool) -> Notification[M]:
    """Return what a delta means to who has heard of ``old``, which is None for an object that is not there."""
    obj, delta_type = delta.object, delta.type
    if isinstance(obj, DeletedFinalStateUnknown):
        return DeleteNotification(obj.obj, final_state_known=False)
    if delta_type is _DELETED:
        return DeleteNotification(obj)
    if old is None:
        return AddNotification(obj, is_in_initial_list)
    return UpdateNotification(old, obj, delta_type is _REPLACED and _is_same_state(old, obj))


def _is_same_state(old: Versioned, new: Versioned) -> bool:
    return bool(new.resource_version) and (old.uid, old.resource_version) == (new.uid, new.resource_version)
