"""The store: objects by ordered key, one counter of revisions for everything, and a window of past changes.

Theory. Every write takes the next revision and appends one ``StoredChange``, so changes have consecutive revisions. The
state at revision R is today's state with the changes after R undone, newest first. The window of changes is bounded by
count and by bytes; ``compacted`` is the last revision whose change has been dropped, hence

    readable exactly:  compacted <= R <= revision          watchable from: compacted <= R

An object is kept as JSON bytes **without** ``kind`` and ``apiVersion``: lists of built-in kinds are written without
them, and single objects, custom resources and watch events get them put in front (``encoding.py``), whatever version
they are served in. A custom resource has the ``apiVersion`` that it is stored in. Keys of ``metadata`` and all others
are sorted, so that equal objects have equal bytes.

Keys are ``namespace/name`` or ``name``, compared as text, as etcd compares them: ``a-b/x`` sorts before ``a/x``.

A ``Journal`` may be attached (``history``). It is told of every change and of every change that leaves the window, and
what it has kept is enough to make the same store again, window and all (``restore``).

Source: etcd's revisions and compaction; apiserver pkg/storage/etcd3/store.go.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, final

from deltaloop.api.json_values import mapping
from deltaloop.api.resource import Resource
from deltaloop.apiserver.core.storage.history import Journal, Record, StoredChange
from deltaloop.apiserver.core.storage.store_errors import (
    CompactedError,
    KeyExistsError,
    KeyMissingError,
    OversizedError,
)
from deltaloop.apiserver.core.storage.stored_size import MAX_REQUEST, request_size
from deltaloop.schemas.json_in_parts import encode_sorted

_BUMP: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Page:
    """A part of a list.

    Attributes:
        items: The objects, in key order.
        revision: The state that they belong to.
        next_start: Where the next page begins, relative to the listed range; empty on the last page.
        remaining: Keys after this page, whether they match a selector or not.
    """

    items: tuple[Resource, ...]
    revision: int
    next_start: str = ""
    remaining: int = 0


class _Table:
    """The objects of one resource, in key order; and which of them are being deleted: few, and often asked for."""

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


def encode_object(fields: Mapping[str, object], *, resource_version: str) -> bytes:
    """Write an object in the store's form: keys sorted, the resource version set, ``kind`` and ``apiVersion`` gone.

    An ``apiVersion`` without a ``kind`` stays, and comes first: that of a custom resource, which one server stores in
    one version today and in another one tomorrow. An empty resource version is left out, as in the answer to a dry run.
    """
    kept = {name: value for name, value in fields.items() if name not in ("kind", "apiVersion")}
    metadata = {**mapping(fields["metadata"]), "resourceVersion": resource_version}
    if not resource_version:
        del metadata["resourceVersion"]
    kept["metadata"] = metadata
    api_version = "" if "kind" in fields else fields.get("apiVersion")
    if api_version:
        return b'{"apiVersion":' + encode_sorted(api_version) + b"," + encode_sorted(kept)[1:]
    return encode_sorted(kept)


def check_size(raw: bytes) -> None:
    """Reject an object that a real server could not store, if it stores it as JSON.

    Raises:
        OversizedError: If it is too large.
    """
    if request_size(len(raw)) > MAX_REQUEST:
        raise OversizedError(request_size(len(raw)))


class Objects(ABC):
    """Stored objects as a write reads and changes them: those of the store, or those of a draft."""

    @property
    @abstractmethod
    def revision(self) -> int:
        """Revision of the last write."""

    @property
    @abstractmethod
    def size(self) -> int:
        """Bytes of all objects in the store."""

    @abstractmethod
    def get(self, resource: str, key: str, *, at: int | None = None) -> Resource | None:
        """Return an object, or None: the present one, or the one at a revision.

        Raises:
            CompactedError: If ``at`` lies before the window.
        """

    @abstractmethod
    def list(self, resource: str, *, prefix: str = "", matches: Callable[[Resource], bool] | None = None) -> Page:
        """Return a resource's objects, in key order."""

    @abstractmethod
    def count(self, resource: str) -> int:
        """Return how many objects a resource has."""

    def create(self, resource: str, key: str, fields: Mapping[str, object], *, any_size: bool = False) -> Resource:
        """Write a new object.

        Args:
            resource: Name of the resource.
            key: Key of the object.
            fields: The object as it is to be stored.
            any_size: Whether its size has been checked.

        Raises:
            KeyExistsError: If there is one already.
            OversizedError: If it is too large.
        """
        if self.get(resource, key) is not None:
            raise KeyExistsError(f"{resource} {key}")
        return self._write(resource, key, None, fields, any_size=any_size)

    def update(
        self, resource: str, key: str, fields: Mapping[str, object], *, always: bool = False, any_size: bool = False
    ) -> Resource:
        """Write a changed object; if nothing but key order differs, write nothing and return the present one.

        Args:
            resource: Name of the resource.
            key: Key of the object.
            fields: The object as it is to be stored.
            always: Whether to write it even if nothing differs.
            any_size: Whether its size has been checked.

        Raises:
            KeyMissingError: If it does not exist.
            OversizedError: If it is too large.
        """
        current = self._expect(resource, key)
        if not always and encode_object(fields, resource_version=current.resource_version) == current.raw:
            return current
        return self._write(resource, key, current, fields, any_size=any_size)

    @abstractmethod
    def delete(self, resource: str, key: str) -> object:
        """Remove an object.

        Raises:
            KeyMissingError: If it does not exist.
        """

    @abstractmethod
    def _write(
        self, resource: str, key: str, old: Resource | None, fields: Mapping[str, object], *, any_size: bool
    ) -> Resource: ...

    def _expect(self, resource: str, key: str) -> Resource:
        current = self.get(resource, key)
        if current is None:
            raise KeyMissingError(f"{resource} {key}")
        return current


@final
class Renumbered:
    """An object that has been written already, but for the revision that it gets."""

    __slots__ = ("_raw", "_revision")

    def __init__(self, raw: bytes, revision: str) -> None:
        """Take the object with another revision, which no other text in it may look like."""
        self._raw = raw
        self._revision = f'"resourceVersion":"{revision}"'.encode()

    def at(self, revision: int) -> bytes | None:
        """Return the object at a revision; None if it has to be written again."""
        if self._raw.count(self._revision) != 1:
            return None
        return self._raw.replace(self._revision, b'"resourceVersion":"%d"' % revision)


@final
@dataclass(frozen=True, slots=True)
class StoreState:
    """All that a store holds at one moment; the objects are shared, since nothing changes them.

    Attributes:
        revision: Of the last write.
        compacted: The last revision that has left the window.
        tables: The objects of each resource, and their keys in order.
        changes: The window.
        dropped: The last change of each resource that has left the window.
    """

    revision: int
    compacted: int
    tables: Mapping[str, tuple[Mapping[str, Resource], tuple[str, ...]]]
    changes: tuple[StoredChange, ...]
    dropped: Mapping[str, int]


@final
class RevisionStore(Objects):
    """Objects and their history. Not safe for use from several threads."""

    def __init__(self, *, window: int = 10_000, window_bytes: int = 64 * 1024 * 1024) -> None:
        """Make an empty store at revision 1.

        Args:
            window: How many changes are kept at most.
            window_bytes: How many bytes of objects the kept changes may hold; the newest change is always kept.
        """
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

    def attach(self, journal: Journal) -> None:
        """Tell a journal of everything from now on."""
        self._journal = journal

    def restore(self, records: Iterable[Record], *, revision: int, compacted: int) -> None:
        """Fill an empty store with what a journal has kept.

        Args:
            records: In the order of their revisions.
            revision: Of the last write.
            compacted: The last revision that had left the window.

        Raises:
            ValueError: If the store is not empty, or the records do not fit together.
        """
        if self._revision != 1 or self._tables:
            raise ValueError("only an empty store can be restored")
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
        """Return a store with the objects and the changes of one resource, for a reader in another thread."""
        copy = RevisionStore(window=self._window, window_bytes=self._window_bytes)
        copy._revision, copy._compacted, copy._renumberings = self._revision, self._compacted, self._renumberings
        copy._changes = self._changes.copy()
        table = self._tables.get(resource)
        if table is not None:
            copy._tables[resource] = table.copy()
        return copy

    def state(self) -> StoreState:
        """Return what it holds now; later writes do not change that."""
        return StoreState(
            revision=self._revision,
            compacted=self._compacted,
            tables={name: (dict(table.objects), tuple(table.order)) for name, table in self._tables.items()},
            changes=tuple(self._changes),
            dropped=dict(self._dropped),
        )

    def begin_with(self, state: StoreState) -> None:
        """Fill an empty store with what another one, with as large a window, has held.

        Raises:
            ValueError: If the store is not empty.
        """
        if self._revision != 1 or self._tables:
            raise ValueError("only an empty store can begin with what another one has held")
        self._revision, self._compacted = state.revision, state.compacted
        for name, (objects, order) in state.tables.items():
            self._tables[name] = _Table(objects, order)
        self._changes.extend(state.changes)
        self._written_at.update((change.resource, change.revision) for change in state.changes)
        self._dropped.update(state.dropped)
        self._held = sum(change.size for change in state.changes)
        self._size = self._sum()

    @property
    def revision(self) -> int:
        """Revision of the last write."""
        return self._revision

    @property
    def size(self) -> int:
        """Bytes of all objects, as they are now."""
        return self._size

    @property
    def compacted(self) -> int:
        """The oldest revision that can be read exactly and watched from."""
        return self._compacted

    @property
    def renumberings(self) -> int:
        """How often revisions were counted anew; the same ones may then mean something else."""
        return self._renumberings

    def __repr__(self) -> str:
        count = sum(len(table.objects) for table in self._tables.values())
        return f"<RevisionStore {count} objects at {self._revision}, {len(self._changes)} changes kept>"

    def get(self, resource: str, key: str, *, at: int | None = None) -> Resource | None:
        """Return an object, or None: the present one, or the one at a revision.

        Raises:
            CompactedError: If ``at`` lies before the window.
        """
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
        """Remove an object.

        Raises:
            KeyMissingError: If it does not exist.
        """
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
    ) -> Page:
        """Return one page of a resource's objects.

        Args:
            resource: Plural and group.
            prefix: Beginning of the keys, such as ``default/``; a key after it is relative to it.
            matches: Which objects to return; others are passed over and do not count for ``limit``.
            limit: Most objects to return; 0 is all.
            start: First key to look at, relative to the prefix.
            at: The revision to read at; None is the present one.

        Raises:
            CompactedError: If ``at`` lies before the window.

        Source: apiserver pkg/storage/etcd3/store.go, ``GetList``: pages end where keys are left, matching or not.
        """
        order, objects = self._state(resource, at)
        first = bisect_left(order, prefix + start)
        last = bisect_left(order, prefix + "\U0010ffff") if prefix else len(order)
        items: list[Resource] = []
        position = first
        if matches is None:
            position = max(first, min(last, first + limit if limit > 0 else last))
            items = [objects[key] for key in order[first:position]]
        while position < last and (limit <= 0 or len(items) < limit):
            obj = objects[order[position]]
            if matches is None or matches(obj):
                items.append(obj)
            position += 1
        revision = self._revision if at is None else at
        if position >= last:
            return Page(tuple(items), revision)
        return Page(tuple(items), revision, order[position - 1][len(prefix) :] + "\0", last - position)

    def count(self, resource: str) -> int:
        """Return how many objects a resource has."""
        table = self._tables.get(resource)
        return len(table.order) if table is not None else 0

    def being_deleted(self, resource: str) -> tuple[Resource, ...]:
        """Return a resource's objects that are being deleted, in key order; it does not look through the others."""
        table = self._tables.get(resource)
        return () if table is None else tuple(table.objects[key] for key in sorted(table.being_deleted))

    def resources(self) -> tuple[str, ...]:
        """Return the resources that have objects."""
        return tuple(name for name, table in self._tables.items() if table.order)

    def changes_after(self, revision: int, *, limit: int = 1000) -> tuple[StoredChange, ...]:
        """Return the changes after a revision, oldest first; none for a revision from the future.

        Raises:
            CompactedError: If changes after it have been dropped.
        """
        if revision < self._compacted:
            raise CompactedError(revision, self._compacted)
        missing = self._revision - revision
        if missing <= 0:
            return ()
        newest_first = islice(reversed(self._changes), missing)
        return tuple(reversed(tuple(newest_first)))[:limit]

    def compact(self, revision: int) -> None:
        """Drop the changes up to a revision; one from the future drops them all."""
        while self._changes and self._changes[0].revision <= revision:
            self._drop_oldest()

    def has_changed(self, resource: str, *, after: int) -> bool:
        """Tell whether an object of a resource was written after a revision; True if nobody knows any more."""
        return after < self._compacted or self._written_at.get(resource, 0) > after

    def revisions_of(self, resources: Container[str]) -> tuple[int, ...]:
        """Return the revisions at which objects of some resources were written, oldest first, as far as is known."""
        return tuple([change.revision for change in self._changes if change.resource in resources])

    def changes_of(self, resource: str, *, after: int) -> tuple[StoredChange, ...]:
        """Return the changes of a resource's objects after a revision, oldest first, as far as they are known."""
        return tuple([change for change in self._newer_than(after) if change.resource == resource])[::-1]

    def has_dropped(self, resource: str, *, after: int) -> bool:
        """Tell whether a change of a resource after a revision has left the window, so that some are missing."""
        return max(self._dropped.get(resource, 0), self._renumbered_at) > after

    def restore_backup(self, revision: int) -> None:
        """Have the objects of a revision again, as from a backup that was made then; what was written since is gone.

        Revisions go on a million later, and everything before is forgotten, so that every watch and every token from
        before is too old. Objects keep the resource versions that they had.

        Raises:
            CompactedError: If the revision lies before the window.

        Source: etcd's documentation, "Restoring with revision bump" (``--bump-revision``, ``--mark-compacted``).
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
        """Count anew from a revision, as after a move to a new etcd: the objects stay, their resource versions go back.

        They are numbered in the order of their last writes; everything before is forgotten, so a watch or a token from
        before means nothing any more.
        """
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

    def adopt(self, resource: str, key: str, fields: Mapping[str, object], written: Renumbered) -> Resource:
        """Write an object that a draft has encoded and checked."""
        return self._put(
            resource,
            key,
            self.get(resource, key),
            written.at(self._revision + 1) or encode_object(fields, resource_version=str(self._revision + 1)),
        )

    def _write(
        self, resource: str, key: str, old: Resource | None, fields: Mapping[str, object], *, any_size: bool
    ) -> Resource:
        raw = encode_object(fields, resource_version=str(self._revision + 1))
        if not any_size:
            check_size(raw)
        return self._put(resource, key, old, raw)

    def _put(self, resource: str, key: str, old: Resource | None, raw: bytes) -> Resource:
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

    def _state(self, resource: str, at: int | None) -> tuple[Sequence[str], dict[str, Resource]]:
        table = self._tables.get(resource) or _Table()
        if at is None or at >= self._revision:
            return table.order, table.objects
        if at < self._compacted:
            raise CompactedError(at, self._compacted)
        objects = dict(table.objects)
        for change in self._newer_than(at):
            if change.resource != resource:
                continue
            if change.old is None:
                objects.pop(change.key, None)
            else:
                objects[change.key] = change.old
        return sorted(objects), objects

    def _newer_than(self, revision: int) -> Iterator[StoredChange]:
        for change in reversed(self._changes):
            if change.revision <= revision:
                return
            yield change
