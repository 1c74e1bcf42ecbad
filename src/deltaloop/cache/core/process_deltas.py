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

from collections.abc import Iterable, Iterator
from typing import Any, Generic, Protocol, TypeAlias, TypeVar, final

import msgspec

from deltaloop.cache.core.deltas import DeletedFinalStateUnknown, Delta, Deltas, DeltaType, KeyedDeltas, with_keys
from deltaloop.cache.errors import TransactionError

V = TypeVar("V")
M = TypeVar("M", bound="Versioned")

# Looked up for each delta, where a member of an enum costs as much as a call.
_DELETED, _REPLACED = DeltaType.DELETED, DeltaType.REPLACED


@final
class AddNotification(msgspec.Struct, Generic[V], frozen=True, gc=False):
    """An object is new here."""

    obj: V
    is_in_initial_list: bool = False


@final
class UpdateNotification(msgspec.Struct, Generic[V], frozen=True, gc=False):
    """An object changed, or is delivered again (``old is new``: a resync).

    Attributes:
        old: State before.
        new: State after.
        is_unchanged: Whether a relist brought the known state: same uid, same resource version. No handler is called.
        is_in_initial_list: Whether it stands for an object of the initial list, merged with a later change.
    """

    old: V
    new: V
    is_unchanged: bool = False
    is_in_initial_list: bool = False


@final
class DeleteNotification(msgspec.Struct, Generic[V], frozen=True, gc=False):
    """An object is gone; ``obj`` is its last known state, its very last one if ``final_state_known``."""

    obj: V
    final_state_known: bool = True
    is_in_initial_list: bool = False


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
    run: dict[str, Delta[M]] = {}
    key_of = store.key_of
    for place, delta in enumerate(deltas):
        obj = delta.object
        try:
            key = obj.key if isinstance(obj, DeletedFinalStateUnknown) else key_of(obj)
        except Exception as error:  # noqa: BLE001 - a key function may raise anything; it is reported at the end
            failures[place] = error
            continue
        if key in run:
            yield from process_keyed(with_keys(run.values(), [*run]), store, is_in_initial_list=is_in_initial_list)
            run = {}
        run[key] = delta
    yield from process_keyed(with_keys(run.values(), [*run]), store, is_in_initial_list=is_in_initial_list)
    if failures:
        raise TransactionError(failures, len(deltas))


def process_keyed(
    deltas: KeyedDeltas[M], store: WritableStore[M], *, is_in_initial_list: bool
) -> list[Notification[M]]:
    """Apply deltas of different keys in one step, and return what there is to tell."""
    states: list[Any] = [None if delta.type is _DELETED else delta.object for delta in deltas]
    olds = store.transaction_by_key(zip(deltas.keys, states, strict=True))
    return [
        UpdateNotification(old, state, delta.type is _REPLACED and _is_same_state(old, state))
        if state is not None and old is not None
        else notification_of(delta, old, is_in_initial_list=is_in_initial_list)
        for delta, state, old in zip(deltas, states, olds, strict=True)
        if old is not None or not _is_plain_deletion(delta)
    ]


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
