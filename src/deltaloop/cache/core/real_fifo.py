"""A queue of what happened, one thing after the other: strict order over all objects, nothing merged.

    entries   one for each add, update and delete; one for a whole list; one for a whole resync; oldest first

Rules:

* What comes first is popped first, whatever its key; every state that came is seen.
* A list is one entry. What it deletes is found when it is popped: at that moment the consumer has processed everything
  before it, so that what it holds beyond the list is exactly what is gone (``DeletedFinalStateUnknown``). Deletions
  come before the listed objects, as upstream. An object that is in the list and cannot be read is not gone: it is
  ``Replaced`` by what is known of it.
* A resync is one entry, too: a ``Sync`` for each object that the consumer holds when it is popped.
* A pop takes up to 1000 entries, of different keys, so that they can be applied in one step. A list or a resync is
  taken alone. Entries of the initial list are never mixed with later ones.
* A deletion is queued even if the object was never seen.
* Synced means that the first list was *processed* (``processed``), or that any other write came first, as upstream.
* What could not be processed goes back to the front (``put_back``): order is kept, everything waits for it. So does
  what was interrupted.

A transform sees each object once, when it comes.

Source: client-go tools/cache/the_real_fifo.go (atomic events, ``PopBatch``).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import islice
from typing import Final, Generic, TypeVar, cast, final

import msgspec

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
    WholeList,
    deletion_handling_key,
    transformed,
    with_keys,
)
from deltaloop.cache.errors import FifoClosedError

V = TypeVar("V")

BATCH_SIZE: Final = 1000
TURN: Final = 500


class _Entry(msgspec.Struct, Generic[V], gc=False):
    """One delta of ``key``, or a list, or neither: a resync. ``version`` is reached when it is processed."""

    key: str
    delta: Delta[V] | None = None
    version: str = ""
    listing: Listing[V] | None = None
    initial: bool = False


class Listing(msgspec.Struct, Generic[V], frozen=True):
    """A list that is ready to wait: the keys of its objects, a delta for each, and what else is in it."""

    keys: Collection[str]
    deltas: Deltas[V]
    unread: Unread


class Batch(msgspec.Struct, Generic[V], frozen=True):
    """What was first in line, of different keys.

    Attributes:
        deltas: What happened; a list is a ``WholeList``, and may be empty.
        is_in_initial_list: Whether it belongs to the first list.
        entries: The queue's entries that it was made of, for putting it back.
    """

    deltas: Deltas[V]
    is_in_initial_list: bool
    entries: tuple[_Entry[V], ...]


@final
class InOrderQueue(Generic[V]):
    """The decisions of ``RealFIFO``: what waits, what is popped together, and whether the initial list is through."""

    def __init__(
        self,
        *,
        known_objects: KnownObjects[V],
        key_func: Callable[[V], str] = deletion_handling_key,
        transform: Callable[[V], V] | None = None,
        batch_size: int = BATCH_SIZE,
    ) -> None:
        """Begin empty.

        Args:
            known_objects: The informer's cache, by which deletions that the watch missed are found.
            key_func: Gives the key of an object.
            transform: Makes the object that is kept out of the one that comes.
            batch_size: How many entries are popped together at most.
        """
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
        """Return the keys that wait, each once, in the order of their oldest entries; lists have none."""
        return list(dict.fromkeys(entry.key for entry in self.entries if entry.key))

    @property
    def has_synced(self) -> bool:
        """Whether everything of the initial list was processed."""
        return self._populated and not self._initial_waits

    @property
    def closed(self) -> bool:
        """Whether ``close`` was called; what waits can still be popped."""
        return self._closed

    @property
    def is_idle(self) -> bool:
        """Whether nothing waits, and nothing that was popped is still being dealt with."""
        return not self.entries and not self._processing

    def key_of(self, obj: V | DeletedFinalStateUnknown[V]) -> str:
        """Return the key of an object or of a stand-in for a deleted one."""
        return obj.key if isinstance(obj, DeletedFinalStateUnknown) else self._key_func(obj)

    def add(self, obj: V) -> None:
        """An object came into being."""
        self.write_all([(DeltaType.ADDED, obj, "")])

    def update(self, obj: V) -> None:
        """An object changed."""
        self.write_all([(DeltaType.UPDATED, obj, "")])

    def delete(self, obj: V | DeletedFinalStateUnknown[V]) -> None:
        """An object went away."""
        if isinstance(obj, DeletedFinalStateUnknown):
            tombstone = cast("DeletedFinalStateUnknown[V]", obj)
            self._put(_Entry(tombstone.key, Delta(DeltaType.DELETED, tombstone)))
        else:
            self.write_all([(DeltaType.DELETED, obj, "")])

    def write_all(self, changes: Iterable[Change[V]]) -> None:
        """Write several changes, each with its version; what is before one that raises is written."""
        key_func, transform, append = self._key_func, self._transform, self.entries.append
        by_name = key_func is deletion_handling_key
        for delta_type, obj, version in changes:
            key = obj.key if by_name and isinstance(obj, Resource) and obj.name else key_func(obj)
            kept = obj if transform is None else transformed(key, obj, transform=transform, key_func=key_func)
            self._populated = True
            append(_Entry(key, Delta(delta_type, kept), version))

    def replace(self, objects: Iterable[V], *, unread: Unread = NOTHING_UNREAD) -> None:
        """Everything that exists is this, and what is ``unread``.

        Nothing changes if an object has no key or the transform raises: both are asked first.
        """
        for listing in self.prepare(objects, unread=unread):
            if listing is not None:
                self.put_list(listing)

    def prepare(self, objects: Iterable[V], *, unread: Unread = NOTHING_UNREAD) -> Iterator[Listing[V] | None]:
        """Make a list ready to wait, and yield it in the end; yields None every ``TURN`` objects before.

        A key that is there twice counts as its last object.
        """
        listed: dict[str, Delta[V]] = {}
        key_func, transform, replaced = self._key_func, self._transform, DeltaType.REPLACED
        for place, obj in enumerate(objects, 1):
            key = key_func(obj)
            kept = obj if transform is None else transformed(key, obj, transform=transform, key_func=key_func)
            listed[key] = Delta(replaced, kept)
            if place % TURN == 0:
                yield None
        yield Listing(listed.keys(), tuple(listed.values()), unread)

    def put_list(self, listing: Listing[V]) -> None:
        """Everything that exists is this, which was made ready by ``prepare``."""
        first = not self._populated
        self._initial_waits = self._initial_waits or first
        self._put(_Entry("", listing=listing, initial=first))

    def resync(self) -> None:
        """Tell every object again that the consumer holds when this comes up."""
        if self._populated:
            self._put(_Entry(""))

    def update_resource_version(self, resource_version: str) -> bool:
        """Everything up to this version has come; return whether it is processed, too."""
        if self.entries:
            self.entries[-1].version = resource_version
            return False
        if self._processing:
            self._processing[-1].version = resource_version
            return False
        self.processed_version = resource_version
        return True

    def pop(self, limit: int = BATCH_SIZE) -> Batch[V] | None:
        """Take what is first in line; None if nothing waits. ``processed`` or ``put_back`` has to follow.

        Args:
            limit: How many entries to take at most, beside the batch size; one is always taken, however small.

        Raises:
            FifoClosedError: If nothing waits and the queue is closed.
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
        keys: dict[str, Delta[V]] = {}
        for entry in islice(entries, max(1, min(limit, self._batch_size))):
            key, delta = entry.key, entry.delta
            if delta is None or key in keys:
                break
            keys[key] = delta
        self._processing = tuple([entries.popleft() for _ in keys])
        return Batch(with_keys(keys.values(), [*keys]), first.initial, self._processing)

    def processed(self, batch: Batch[V]) -> None:
        """What was popped has been dealt with, well or not."""
        self._processing = ()
        for entry in reversed(batch.entries):
            if entry.version:
                self.processed_version = entry.version
                break
        self._initial_waits = self._initial_waits and not batch.is_in_initial_list

    def put_back(self, batch: Batch[V]) -> None:
        """What was popped has to be popped again, before everything else."""
        self._processing = ()
        self.entries.extendleft(reversed(batch.entries))

    def close(self) -> None:
        """Take nothing new to wait for: once empty, ``pop`` raises."""
        self._closed = True

    def _deltas_of_all(self, entry: _Entry[V]) -> Deltas[V]:
        listing = entry.listing
        if listing is None:
            found = [self._known.get_by_key(key) for key in self._known.list_keys()]
            return tuple(Delta(DeltaType.SYNC, obj) for obj in found if obj is not None)
        known = [(key, self._known.get_by_key(key)) for key in self._known.list_keys() if key not in listing.keys]
        gone: list[Delta[V]] = []
        kept: list[Delta[V]] = []
        for key, obj in known:
            if obj is not None and listing.unread.may_be(key):
                kept.append(Delta(DeltaType.REPLACED, obj))  # no handler is told: it is the state that is known
            elif obj is not None:
                gone.append(Delta(DeltaType.DELETED, DeletedFinalStateUnknown(key, obj)))
        return WholeList([*gone, *listing.deltas, *kept])

    def _put(self, entry: _Entry[V]) -> None:
        self._populated = True
        self.entries.append(entry)
