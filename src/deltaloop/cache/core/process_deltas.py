"""What deltas mean for a store and for those who are told.

    delta                             in the store    what happens to the store    who hears what
    Added Updated Replaced Sync       no              stored                       Added
    Added Updated Replaced Sync       yes             stored                       Updated (old, new)
    Deleted                           either          taken out                    Deleted

The store decides between added and updated, not the delta: after a relist, or a restart of the watch, the two differ.
The store is written first, then the notification is handed out, one delta after the other.

An object that was deleted and made again between two lists appears as an update whose objects have different uids, as
upstream.

Source: client-go tools/cache/controller.go, ``processDeltas``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Generic, Protocol, TypeAlias, TypeVar

from deltaloop.cache.core.deltas import DeletedFinalStateUnknown, Deltas, DeltaType

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

    def get(self, obj: V) -> V | None:
        """Return what is stored under the key of ``obj``."""
        ...

    def update(self, obj: V) -> None:
        """Store ``obj``."""
        ...

    def delete(self, obj: V) -> None:
        """Take out what has the key of ``obj``."""
        ...


def process_deltas(
    deltas: Deltas[M], store: WritableStore[M], *, is_in_initial_list: bool
) -> Iterator[Notification[M]]:
    """Apply deltas to a store, oldest first, and yield after each what there is to tell."""
    for delta in deltas:
        obj = delta.object
        if isinstance(obj, DeletedFinalStateUnknown):
            store.delete(obj.obj)
            yield DeleteNotification(obj.obj, final_state_known=False)
        elif delta.type is DeltaType.DELETED:
            store.delete(obj)
            yield DeleteNotification(obj)
        else:
            old = store.get(obj)
            store.update(obj)
            if old is None:
                yield AddNotification(obj, is_in_initial_list)
            else:
                unchanged = delta.type is DeltaType.REPLACED and _is_same_state(old, obj)
                yield UpdateNotification(old, obj, is_unchanged=unchanged)


def _is_same_state(old: Versioned, new: Versioned) -> bool:
    return bool(new.resource_version) and (old.uid, old.resource_version) == (new.uid, new.resource_version)
