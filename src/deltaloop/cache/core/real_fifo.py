"""Queue of changes in strict order over all objects, without merging.

Each add, update and delete is an entry. A complete list and a complete resync are one entry each. Rules:

* Entries are popped in order of arrival, and no state is skipped.
* The deletions of a list are determined when it is popped: the consumer has then processed all earlier entries, so each
  object that is not in the list was deleted (``DeletedFinalStateUnknown``). Deletions come before the listed objects,
  as in client-go. Unreadable objects of a list are ``Replaced`` by their known states.
* A resync contains ``Sync`` for each object that the consumer has when it is popped.
* A pop takes up to 1000 entries of different keys, so that they can be applied in one step. Lists and resyncs are
  popped alone. A batch never mixes entries of the initial list with later entries.
* Deletions are queued even if the object is unknown.
* The queue has synced when the first list has been *processed*, or when another write came first, as in client-go.
* Failed and interrupted batches return to the front (``put_back``) to preserve the order.
* A transform sees each object once, on arrival.

Source: client-go tools/cache/the_real_fifo.go (atomic events, ``PopBatch``).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import islice, repeat
from typing import Any, Final, Generic, TypeVar, cast, final

import msgspec

from deltaloop.api.json_values import type_of
from deltaloop.api.resource import Resource
from deltaloop.cache.core.deltas import (
    NOTHING_UNREAD,
    Change,
    DeletedFinalStateUnknown,
    Delta,
    Deltas,
    DeltaType,
    KnownObjects,
    Unread,
    deletion_handling_key,
    transformed,
    whole_list,
    with_keys,
)
from deltaloop.cache.errors import FifoClosedError

V = TypeVar("V")

BATCH_SIZE: Final = 1000
TURN: Final = 500


class _Entry(msgspec.Struct, Generic[V], gc=False):
    """Delta of ``key``, a list, or a resync (neither). ``version`` applies once the entry has been processed."""

    key: str
    delta: Delta[V] | None = None
    version: str = ""
    listing: Listing[V] | None = None
    initial: bool = False


class Listing(msgspec.Struct, Generic[V], frozen=True):
    """Prepared list: the keys, a delta for each, and the unreadable objects."""

    keys: Collection[str]
    deltas: Deltas[V]
    unread: Unread


class Batch(msgspec.Struct, Generic[V], frozen=True):
    """Entries that were popped together. A list is a ``WholeList``, and can be empty."""

    deltas: Deltas[V]
    is_in_initial_list: bool
    entries: tuple[_Entry[V], ...]


@final
class InOrderQueue(Generic[V]):
    def __init__(
        self,
        *,
        known_objects: KnownObjects[V],
        key_func: Callable[[V], str] = deletion_handling_key,
        transform: Callable[[V], V] | None = None,
        batch_size: int = BATCH_SIZE,
    ) -> None:
        self._known = known_objects
        self._key_func = key_func
        self._transform = transform
        self._batch_size = batch_size
        self.entries: Final[deque[_Entry[V]]] = deque()
        self._populated = False
        self._initial_waits = False
        self._processing: tuple[_Entry[V], ...] = ()
        self.processed_version: str = ""
        self._closed = False

    def __len__(self) -> int:
        return len(self.entries)

    def list_keys(self) -> list[str]:
        """Return the queued keys without duplicates, in order of their oldest entries. Lists have no key."""
        return list(dict.fromkeys(entry.key for entry in self.entries if entry.key))

    @property
    def has_synced(self) -> bool:
        """Whether the initial list has been processed."""
        return self._populated and not self._initial_waits

    @property
    def closed(self) -> bool:
        """Whether ``close`` was called. You can still pop queued entries."""
        return self._closed

    @property
    def is_idle(self) -> bool:
        return not self.entries and not self._processing

    def key_of(self, obj: V | DeletedFinalStateUnknown[V]) -> str:
        return obj.key if isinstance(obj, DeletedFinalStateUnknown) else self._key_func(obj)

    def add(self, obj: V) -> None:
        self.write_all([(DeltaType.ADDED, obj, "")])

    def update(self, obj: V) -> None:
        self.write_all([(DeltaType.UPDATED, obj, "")])

    def delete(self, obj: V | DeletedFinalStateUnknown[V]) -> None:
        if isinstance(obj, DeletedFinalStateUnknown):
            tombstone = cast("DeletedFinalStateUnknown[V]", obj)
            self._put(_Entry(tombstone.key, Delta(DeltaType.DELETED, tombstone)))
        else:
            self.write_all([(DeltaType.DELETED, obj, "")])

    def write_all(self, changes: Iterable[Change[V]]) -> None:
        """Write several changes, each with its version. If a write raises, the earlier changes stay queued."""
        key_func, transform, append = self._key_func, self._transform, self.entries.append
        by_name = key_func is deletion_handling_key
        obj: Any
        for delta_type, obj, version in changes:
            key = obj.key if by_name and type_of(obj) is Resource and obj.name else key_func(obj)
            kept = obj if transform is None else transformed(key, obj, transform=transform, key_func=key_func)
            self._populated = True
            append(_Entry(key, Delta(delta_type, kept), version))

    def replace(self, objects: Iterable[V], *, unread: Unread = NOTHING_UNREAD) -> None:
        """Queue a complete list; after an error of a key function or transform, the queue does not change."""
        for listing in self.prepare(objects, unread=unread):
            if listing is not None:
                self.put_list(listing)

    def prepare(self, objects: Iterable[V], *, unread: Unread = NOTHING_UNREAD) -> Iterator[Listing[V] | None]:
        """Prepare a list in batches: yield None after every ``TURN`` objects, and finally the list."""
        listed: dict[str, Delta[V]] = {}
        key_func, transform = self._key_func, self._transform
        by_name = key_func is deletion_handling_key
        rest: Iterator[Any] = iter(objects)
        while together := [*islice(rest, TURN)]:
            keys = [obj.key if by_name and type_of(obj) is Resource and obj.name else key_func(obj) for obj in together]
            if transform is not None:
                together = [
                    transformed(key, obj, transform=transform, key_func=key_func)
                    for key, obj in zip(keys, together, strict=True)
                ]
            deltas: Iterable[Delta[V]] = map(Delta, repeat(DeltaType.REPLACED), together)
            listed.update(zip(keys, deltas, strict=True))
            if len(together) == TURN:
                yield None
        yield Listing(listed.keys(), tuple(listed.values()), unread)

    def put_list(self, listing: Listing[V]) -> None:
        first = not self._populated
        self._initial_waits = self._initial_waits or first
        self._put(_Entry("", listing=listing, initial=first))

    def resync(self) -> None:
        if self._populated:
            self._put(_Entry(""))

    def update_resource_version(self, resource_version: str) -> bool:
        """Record that all changes up to this version have arrived, and return whether all have been processed."""
        if self.entries:
            self.entries[-1].version = resource_version
            return False
        if self._processing:
            self._processing[-1].version = resource_version
            return False
        self.processed_version = resource_version
        return True

    def pop(self, limit: int = BATCH_SIZE) -> Batch[V] | None:
        """Pop the first entries, or return None, or raise FifoClosedError.

        Call ``processed`` or ``put_back`` afterwards.
        """
        if not self.entries:
            if self._closed:
                raise FifoClosedError("the queue is closed and empty")
            return None
        entries = self.entries
        first = entries[0]
        if first.delta is None:
            self._processing = (entries.popleft(),)
            return Batch(self._deltas_of_all(first), first.initial, self._processing)
        most = self._batch_size if limit > self._batch_size else max(1, limit)
        deltas: dict[str, Any] = {first.key: first.delta}
        if len(entries) == 1:
            self._processing = (entries.popleft(),)
        else:
            for entry in islice(entries, 1, most):
                if entry.delta is None or entry.key in deltas:
                    break
                deltas[entry.key] = entry.delta
            self._processing = tuple([entries.popleft() for _ in deltas])
        return Batch(with_keys(deltas.values(), [*deltas]), first.initial, self._processing)

    def processed(self, batch: Batch[V]) -> None:
        """Record that a batch was processed, successfully or not."""
        self._processing = ()
        for entry in reversed(batch.entries):
            if entry.version:
                self.processed_version = entry.version
                break
        self._initial_waits = self._initial_waits and not batch.is_in_initial_list

    def put_back(self, batch: Batch[V]) -> None:
        self._processing = ()
        self.entries.extendleft(reversed(batch.entries))

    def close(self) -> None:
        """Let ``pop`` raise when the queue is empty."""
        self._closed = True

    def _deltas_of_all(self, entry: _Entry[V]) -> Deltas[V]:
        listing = entry.listing
        if listing is None:
            found = [self._known.get_by_key(key) for key in self._known.list_keys()]
            return tuple(Delta(DeltaType.SYNC, obj) for obj in found if obj is not None)
        known = [(key, self._known.get_by_key(key)) for key in self._known.list_keys() if key not in listing.keys]
        gone: dict[str, Delta[V]] = {}
        kept: dict[str, Delta[V]] = {}
        for key, obj in known:
            if obj is not None and listing.unread.may_be(key):
                kept[key] = Delta(DeltaType.REPLACED, obj)  # the state is known, so no handler is notified
            elif obj is not None:
                gone[key] = Delta(DeltaType.DELETED, DeletedFinalStateUnknown(key, obj))
        return whole_list([*gone.values(), *listing.deltas, *kept.values()], [*gone, *listing.keys, *kept])

    def _put(self, entry: _Entry[V]) -> None:
        self._populated = True
        self.entries.append(entry)
