"""Store with sorted keys, a global revision, and a window of past changes.

Each write appends one ``StoredChange``, so changes have consecutive revisions. The state at revision R is the current
state with all changes after R undone. ``compacted`` is the last revision whose change was dropped from the window:

    exact reads:  compacted <= R <= revision          watches: compacted <= R

Objects are stored as JSON **without** ``kind`` and ``apiVersion``, which ``encoding.py`` prepends; custom resources
keep the ``apiVersion`` in which they are stored. Keys of objects are sorted, so that equal objects have equal bytes.

Source: etcd's revisions and compaction; apiserver pkg/storage/etcd3/store.go.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left, insort
from collections import ChainMap, deque
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from operator import attrgetter
from typing import Final, final

import msgspec

from deltaloop.api.json_values import mapping
from deltaloop.api.resource import Resource
from deltaloop.apiserver.core.storage.history import Journal, Record, StoredChange
from deltaloop.apiserver.core.storage.stored_size import MAX_REQUEST, request_size
from deltaloop.schemas.json_in_parts import encode_sorted


class StoreError(Exception):
    """Base class of store errors; ``storing`` converts them to a Status."""


@final
class KeyExistsError(StoreError):
    """Object that already exists."""


@final
class KeyMissingError(StoreError):
    """Object that does not exist."""


@final
class OversizedError(StoreError):
    def __init__(self, size: int) -> None:
        super().__init__(f"a request must have at most {MAX_REQUEST} bytes, got {size}")
        self.size = size


@final
class CompactedError(StoreError):
    def __init__(self, revision: int, compacted: int) -> None:
        super().__init__(f"revision {revision} is older than {compacted}, the oldest that is kept")
        self.revision = revision
        self.compacted = compacted


_BUMP: Final = 1_000_000


class Page(msgspec.Struct, frozen=True):
    """Page of a list."""

    items: tuple[Resource, ...]
    revision: int
    next_start: str = ""
    remaining: int = 0


class _Table:
    """Objects of one resource in key order, with an index of the few objects that are being deleted."""

    __slots__ = ("being_deleted", "objects", "order")

    def __init__(self, objects: Mapping[str, Resource] | None = None, order: Iterable[str] = ()) -> None:
        self.objects: dict[str, Resource] = dict(objects or {})
        self.order: list[str] = [*order]
        self.being_deleted = {key for key, obj in self.objects.items() if obj.deletion_timestamp is not None}

    def copy(self) -> _Table:
        copied = _Table()
        copied.objects, copied.order = self.objects.copy(), self.order.copy()
        copied.being_deleted = self.being_deleted.copy()
        return copied

    def put(self, key: str, obj: Resource) -> None:
        if key not in self.objects:
            insort(self.order, key)
        self.objects[key] = obj
        if obj.deletion_timestamp is None:
            self.being_deleted.discard(key)
        else:
            self.being_deleted.add(key)

    def remove(self, key: str) -> None:
        del self.objects[key]
        self.being_deleted.discard(key)
        del self.order[bisect_left(self.order, key)]


_NO_TABLE: Final = _Table()
_being_deleted: Final = attrgetter("being_deleted")


def encode_object(fields: Mapping[str, object], *, resource_version: str) -> bytes:
    """Encode an object for the store: sorted keys, with the resource version unless it is empty (dry run).

    An ``apiVersion`` without a ``kind`` stays the first key, because it is the stored version of a custom resource.
    """
    kept = {name: value for name, value in fields.items() if name not in ("kind", "apiVersion")}
    metadata = {**mapping(fields["metadata"]), "resourceVersion": resource_version}
    if not resource_version:
        del metadata["resourceVersion"]
    kept["metadata"] = metadata
    api_version = "" if "kind" in fields else fields.get("apiVersion")
    if api_version:
        return b'{"apiVersion":' + msgspec.json.encode(api_version) + b"," + encode_sorted(kept)[1:]
    return encode_sorted(kept)


def check_size(raw: bytes) -> None:
    """Raise OversizedError if a real server could not store the object as JSON."""
    if request_size(len(raw)) > MAX_REQUEST:
        raise OversizedError(request_size(len(raw)))


class Objects(ABC):
    @property
    @abstractmethod
    def revision(self) -> int:
        """Revision of the last write."""

    @property
    @abstractmethod
    def size(self) -> int:
        """Total size of the stored objects in bytes."""

    @abstractmethod
    def get(self, resource: str, key: str, *, at: int | None = None) -> Resource | None:
        """Return the current object or the object at a revision, or None if it does not exist."""

    @abstractmethod
    def list(self, resource: str, *, prefix: str = "", matches: Callable[[Resource], bool] | None = None) -> Page:
        """Return a resource's objects in key order."""

    @abstractmethod
    def count(self, resource: str) -> int:
        """Return the number of a resource's objects."""

    def create(self, resource: str, key: str, fields: Mapping[str, object], *, any_size: bool = False) -> Resource:
        """Write a new object; ``any_size`` means that the size was already checked."""
        if self.get(resource, key) is not None:
            raise KeyExistsError(f"{resource} {key}")
        raw = encode_object(fields, resource_version=str(self._next))
        return self._write(resource, key, None, fields, raw, any_size=any_size)

    def update(
        self, resource: str, key: str, fields: Mapping[str, object], *, always: bool = False, any_size: bool = False
    ) -> Resource:
        """Write a changed object, or return the current object if only the order of keys differs and not ``always``."""
        current = self._expect(resource, key)
        version = current.resource_version
        raw = encode_object(fields, resource_version=version)
        if raw == current.raw and not always:
            return current
        raw = renumbered(fields, raw, version, self._next)
        return self._write(resource, key, current, fields, raw, any_size=any_size)

    @abstractmethod
    def delete(self, resource: str, key: str) -> object:
        """Delete an object, or raise KeyMissingError if it does not exist."""

    @property
    @abstractmethod
    def _next(self) -> int:
        """Revision of the next write."""

    def _write(
        self, resource: str, key: str, old: Resource | None, fields: Mapping[str, object], raw: bytes, *, any_size: bool
    ) -> Resource:
        if not any_size:
            check_size(raw)
        return self._put(resource, key, old, fields, raw)

    @abstractmethod
    def _put(
        self, resource: str, key: str, old: Resource | None, fields: Mapping[str, object], raw: bytes
    ) -> Resource: ...

    def _expect(self, resource: str, key: str) -> Resource:
        current = self.get(resource, key)
        if current is None:
            raise KeyMissingError(f"{resource} {key}")
        return current


def renumbered(fields: Mapping[str, object], raw: bytes, version: str, revision: int) -> bytes:
    """Return an object, which was encoded with a version, at a revision. It is rarely encoded again."""
    found = b'"resourceVersion":"%b"' % version.encode()
    if raw.count(found) != 1:
        return encode_object(fields, resource_version=str(revision))
    return raw.replace(found, b'"resourceVersion":"%d"' % revision)


@final
@dataclass(frozen=True, slots=True)
class StoreState:
    """Snapshot of a store; the objects are shared because they are immutable.

    Attributes:
        compacted: Last revision that has left the window.
        tables: Objects and sorted keys of each resource.
        dropped: Last change of each resource that has left the window.
        written_at: Last revision of each resource.
        held: Size of the changes in bytes.
        size: Size of the objects in bytes.
        outside: Uids of owners that the snapshot does not contain; the garbage collector keeps their dependents.
    """

    revision: int
    compacted: int
    tables: Mapping[str, tuple[Mapping[str, Resource], tuple[str, ...]]]
    changes: tuple[StoredChange, ...]
    dropped: Mapping[str, int]
    written_at: Mapping[str, int]
    held: int
    size: int
    outside: frozenset[str] = frozenset()


@final
class RevisionStore(Objects):
    """Objects and their history. Not thread-safe."""

    def __init__(self, *, window: int = 10_000, window_bytes: int = 64 * 1024 * 1024) -> None:
        """Create an empty store at revision 1."""
        self._window = window
        self._window_bytes = window_bytes
        self._revision = 1
        self._compacted = 1
        self._tables: dict[str, _Table] = {}
        self._changes: deque[StoredChange] = deque()
        self._written_at: dict[str, int] = {}  # the last revision of each resource
        self._dropped: dict[str, int] = {}  # the last change of each resource that has left the window
        self._renumbered_at = 0
        self._renumberings = 0
        self._held = 0
        self._size = 0
        self._journal: Journal | None = None
        self.outside: frozenset[str] = frozenset()

    def attach(self, journal: Journal) -> None:
        self._journal = journal

    def restore(self, records: Iterable[Record], *, revision: int, compacted: int) -> None:
        """Restore an empty store from a journal's sorted records."""
        if self._revision != 1 or self._tables:
            raise ValueError("the store must be empty before a restore")
        self._revision = max(1, revision)
        self._compacted = max(1, compacted)
        following = self._compacted + 1
        for record in records:
            old = self.get(record.resource, record.key)
            new = Resource.from_json(record.value) if record.value is not None else None
            if new is not None:
                self._tables.setdefault(record.resource, _Table()).put(record.key, new)
            elif old is not None:
                self._tables[record.resource].remove(record.key)
            if record.revision > self._compacted:
                if record.revision != following:
                    raise ValueError(f"the change of revision {following} is missing")
                following += 1
                change = StoredChange(record.revision, record.resource, record.key, old, new)
                self._changes.append(change)
                self._held += change.size
        if following != self._revision + 1:
            raise ValueError(f"the change of revision {following} is missing")
        self._size = self._sum()

    def _sum(self) -> int:
        return sum(len(obj.raw) for table in self._tables.values() for obj in table.objects.values())

    def copy_of(self, resource: str) -> RevisionStore:
        """Return a copy of one resource's objects and changes, for a reader in another thread."""
        copy = RevisionStore(window=self._window, window_bytes=self._window_bytes)
        copy._revision, copy._compacted, copy._renumberings = self._revision, self._compacted, self._renumberings
        copy._changes = self._changes.copy()
        table = self._tables.get(resource)
        if table is not None:
            copy._tables[resource] = table.copy()
        return copy

    def state(self) -> StoreState:
        return StoreState(
            revision=self._revision,
            compacted=self._compacted,
            tables={name: (dict(table.objects), tuple(table.order)) for name, table in self._tables.items()},
            changes=tuple(self._changes),
            dropped=dict(self._dropped),
            written_at=dict(self._written_at),
            held=self._held,
            size=self._size,
            outside=self.outside,
        )

    def place(self, resource: str, key: str, fields: Mapping[str, object], *, version: int) -> Resource:
        """Store an object of another server with its own version, without a change; ``seal`` must follow."""
        obj = Resource.from_json(encode_object(fields, resource_version=str(version)))
        self._tables.setdefault(resource, _Table()).put(key, obj)
        self._revision = max(self._revision, version)
        return obj

    def seal(self, outside: frozenset[str]) -> None:
        """End the placing of objects: the history begins at the highest version."""
        self._changes.clear()
        self._compacted = self._revision
        self._held, self._size, self.outside = 0, self._sum(), outside

    def begin_with(self, state: StoreState) -> None:
        """Fill an empty store from a snapshot of a store with the same window, or raise ValueError."""
        if self._revision != 1 or self._tables:
            raise ValueError("the store must be empty before it takes over another state")
        self._revision, self._compacted = state.revision, state.compacted
        for name, (objects, order) in state.tables.items():
            self._tables[name] = _Table(objects, order)
        self._changes.extend(state.changes)
        self._written_at.update(state.written_at)
        self._dropped.update(state.dropped)
        self.outside = state.outside
        self._held, self._size = state.held, state.size

    @property
    def revision(self) -> int:
        return self._revision

    @property
    def size(self) -> int:
        return self._size

    @property
    def compacted(self) -> int:
        return self._compacted

    @property
    def renumberings(self) -> int:
        """Number of times that revisions were renumbered and lost their meaning."""
        return self._renumberings

    def __repr__(self) -> str:
        count = sum(len(table.objects) for table in self._tables.values())
        return f"<RevisionStore {count} objects at {self._revision}, {len(self._changes)} changes kept>"

    def get(self, resource: str, key: str, *, at: int | None = None) -> Resource | None:
        table = self._tables.get(resource)
        found = table.objects.get(key) if table is not None else None
        if at is None or at >= self._revision:
            return found
        if at < self._compacted:
            raise CompactedError(at, self._compacted)
        for change in self._newer_than(at):
            if change.resource == resource and change.key == key:
                found = change.old
        return found

    def delete(self, resource: str, key: str) -> StoredChange:
        current = self._expect(resource, key)
        self._tables[resource].remove(key)
        return self._append(resource, key, current, None)

    def list(
        self,
        resource: str,
        *,
        prefix: str = "",
        matches: Callable[[Resource], bool] | None = None,
        limit: int = 0,
        start: str = "",
        at: int | None = None,
        in_namespace: Callable[[str], bool] | None = None,
    ) -> Page:
        """Return one page of a resource's objects, or raise CompactedError if ``at`` is too old."""
        order, objects = self._state(resource, at)
        first = bisect_left(order, prefix + start) if prefix or start else 0
        last = bisect_left(order, prefix + "\U0010ffff") if prefix else len(order)
        items: list[Resource] = []
        position = first
        if matches is None:
            position = max(first, min(last, first + limit if limit > 0 else last))
            items = [*map(objects.__getitem__, order[first:position])]
        inside = ""
        while position < last and (limit <= 0 or len(items) < limit):
            key = order[position]
            if in_namespace is not None and not (inside and key.startswith(inside)):
                namespace, inside, _ = key.partition("/")
                inside = inside and f"{namespace}/"
                if inside and not in_namespace(namespace):
                    position = bisect_left(order, f"{inside}\U0010ffff", position, last)
                    continue
            obj = objects[key]
            if matches is None or matches(obj):
                items.append(obj)
            position += 1
        revision = self._revision if at is None else at
        if position >= last:
            return Page(tuple(items), revision)
        return Page(tuple(items), revision, order[position - 1][len(prefix) :] + "\0", last - position)

    def count(self, resource: str) -> int:
        table = self._tables.get(resource)
        return len(table.order) if table is not None else 0

    def being_deleted(self, resource: str) -> tuple[Resource, ...]:
        """Return a resource's objects that are being deleted in key order, without a scan."""
        table = self._tables.get(resource)
        return () if table is None else tuple(table.objects[key] for key in sorted(table.being_deleted))

    @property
    def is_deleting(self) -> bool:
        return any(map(_being_deleted, self._tables.values()))

    def resources(self) -> tuple[str, ...]:
        return tuple(name for name, table in self._tables.items() if table.order)

    def changes_after(self, revision: int, *, limit: int = 1000) -> tuple[StoredChange, ...]:
        """Return the changes after a revision, empty for a future revision, or raise CompactedError."""
        if revision < self._compacted:
            raise CompactedError(revision, self._compacted)
        missing = self._revision - revision
        if missing <= 0:
            return ()
        newest_first = islice(reversed(self._changes), missing)
        return tuple(reversed(tuple(newest_first)))[:limit]

    def compact(self, revision: int) -> None:
        while self._changes and self._changes[0].revision <= revision:
            self._drop_oldest()

    def has_changed(self, resource: str, *, after: int) -> bool:
        """Return whether a resource was written after a revision. True if the history is incomplete."""
        return after < self._compacted or self._written_at.get(resource, 0) > after

    def have_keys_changed(self, resource: str, *, after: int) -> bool:
        """Return whether objects were created or deleted after a revision, so that its list is a copy."""
        return any(
            change.resource == resource and (change.old is None or change.new is None)
            for change in self._newer_than(after)
        )

    def revisions_of(self, resources: Container[str]) -> tuple[int, ...]:
        """Return the known revisions of writes to some resources, oldest first."""
        return tuple([change.revision for change in self._changes if change.resource in resources])

    def changes_of(self, resource: str, *, after: int) -> tuple[StoredChange, ...]:
        return tuple([change for change in self._newer_than(after) if change.resource == resource])[::-1]

    def has_dropped(self, resource: str, *, after: int) -> bool:
        return max(self._dropped.get(resource, 0), self._renumbered_at) > after

    def restore_backup(self, revision: int) -> None:
        """Restore the objects of a past revision, like from a backup, and drop all later writes.

        The revision jumps by a million and the history is cleared, so that earlier watches and tokens are too old.
        Objects keep their resource versions. Raises CompactedError if the revision is too old.
        """
        if revision < self._compacted:
            raise CompactedError(revision, self._compacted)
        for name in {change.resource for change in self._newer_than(revision)}:
            order, objects = self._state(name, revision)
            self._tables[name] = _Table(objects, order)
        self._size = self._sum()
        self._changes.clear()
        self._held = 0
        self._revision += _BUMP
        self._compacted = self._renumbered_at = self._revision
        self._renumberings += 1
        if self._journal is not None:
            kept = [(name, key, obj) for name, table in self._tables.items() for key, obj in table.objects.items()]
            records = [Record(int(obj.resource_version), name, key, obj.raw) for name, key, obj in kept]
            records.sort(key=lambda record: record.revision)
            self._journal.renumbered(records, revision=self._revision)

    def renumber(self, *, revision: int = 1) -> None:
        """Renumber the objects from a revision, like after a move to a new etcd, so resource versions decrease."""
        places = [(name, key) for name, table in self._tables.items() for key in table.order]
        places.sort(key=lambda place: int(self._tables[place[0]].objects[place[1]].resource_version))
        records: list[Record] = []
        for number, (name, key) in enumerate(places, start=revision + 1):
            raw = encode_object(self._tables[name].objects[key].to_dict(), resource_version=str(number))
            self._tables[name].objects[key] = Resource.from_json(raw)
            records.append(Record(number, name, key, raw))
        self._changes.clear()
        self._held = 0
        self._revision = self._compacted = self._renumbered_at = revision + len(records)
        self._renumberings += 1
        if self._journal is not None:
            self._journal.renumbered(records, revision=self._revision)

    def adopt(self, resource: str, key: str, fields: Mapping[str, object], raw: bytes, version: int) -> Resource:
        """Write an object that a draft has encoded and checked."""
        raw = renumbered(fields, raw, str(version), self._next)
        return self._put(resource, key, self.get(resource, key), fields, raw)

    @property
    def _next(self) -> int:
        return self._revision + 1

    def _put(self, resource: str, key: str, old: Resource | None, fields: Mapping[str, object], raw: bytes) -> Resource:
        del fields
        obj = Resource.from_json(raw)
        self._tables.setdefault(resource, _Table()).put(key, obj)
        self._append(resource, key, old, obj)
        return obj

    def _append(self, resource: str, key: str, old: Resource | None, new: Resource | None) -> StoredChange:
        self._revision += 1
        self._size += (len(new.raw) if new is not None else 0) - (len(old.raw) if old is not None else 0)
        change = StoredChange(self._revision, resource, key, old, new)
        self._changes.append(change)
        self._written_at[resource] = self._revision
        self._held += change.size
        if self._journal is not None:
            self._journal.wrote(change)
        while len(self._changes) > self._window or (self._held > self._window_bytes and len(self._changes) > 1):
            self._drop_oldest()
        return change

    def _drop_oldest(self) -> None:
        dropped = self._changes.popleft()
        self._held -= dropped.size
        self._compacted = self._dropped[dropped.resource] = dropped.revision
        if self._journal is not None:
            self._journal.dropped(dropped)

    def _state(self, resource: str, at: int | None) -> tuple[Sequence[str], Mapping[str, Resource]]:
        table = self._tables.get(resource) or _NO_TABLE
        if at is None or at >= self._revision:
            return table.order, table.objects
        if at < self._compacted:
            raise CompactedError(at, self._compacted)
        old = {change.key: change.old for change in self._newer_than(at) if change.resource == resource}
        kept = {key: obj for key, obj in old.items() if obj is not None}
        if len(kept) == len(old) and kept.keys() <= table.objects.keys():
            return table.order, ChainMap(kept, table.objects) if kept else table.objects  # a copy takes long
        objects = {key: obj for key, obj in table.objects.items() if key not in old} | kept
        return sorted(objects), objects

    def _newer_than(self, revision: int) -> Iterator[StoredChange]:
        for change in reversed(self._changes):
            if change.revision <= revision:
                return
            yield change
