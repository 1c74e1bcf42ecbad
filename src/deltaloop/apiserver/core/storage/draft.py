"""Optimistic transaction: a write in a separate thread that is committed if its reads are still current.

Checking a large object takes seconds, and the event loop must stay responsive. The draft records its reads, which
``ask`` runs on the event loop, and buffers its writes. Then one step on the event loop commits:

    is_current   each object that was read is unchanged (or still missing), and each resource that was listed or counted
                 has no changes
    commit       all buffered writes are applied to the store

A draft that is not current is discarded, and the write is repeated. Revisions of a draft are provisional, far above
those of the store, until ``Commit.final`` replaces them.

Source: apiserver pkg/storage/etcd3/store.go (``GuaranteedUpdate``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol, TypeAlias, TypeVar, final

from deltaloop.api.resource import Resource
from deltaloop.apiserver.core.storage.encoding import with_resource_version
from deltaloop.apiserver.core.storage.store import (
    CompactedError,
    Objects,
    Page,
    RevisionStore,
)

T = TypeVar("T")

_Place: TypeAlias = tuple[str, str]
_NO_LIMIT: Final = 1 << 62
_PROVISIONAL: Final = 1 << 60


class Ask(Protocol):
    """Function that runs a question in the store's thread."""

    def __call__(self, question: Callable[[], T], /) -> T: ...


def ask_at_once(question: Callable[[], T], /) -> T:
    """Run a question directly, for a write in the store's thread."""
    return question()


@final
@dataclass(frozen=True, slots=True)
class Commit:
    """Result of a committed draft."""

    after: int = 0
    stored: tuple[Resource | None, ...] = ()

    def final(self, obj: Resource) -> Resource:
        """Return an object of the draft with its final revision. This is slow for large objects."""
        version = int(obj.resource_version) if obj.resource_version.isdecimal() else 0
        if version <= _PROVISIONAL:
            return obj
        stored = self.stored[version - _PROVISIONAL - 1]
        if stored is not None and stored.uid == obj.uid:
            return stored
        return with_resource_version(obj, self.after + version - _PROVISIONAL)


NO_DRAFT: Final = Commit()
"""Commit of a write without a draft."""


@final
class Draft(Objects):
    """Snapshot and write buffer of one write. One thread uses it, except for ``is_current`` and ``commit``."""

    def __init__(self, store: RevisionStore, *, ask: Ask) -> None:
        self._store = store
        self._ask = ask
        self._renumberings = store.renumberings
        self._read: dict[_Place, Resource | None] = {}
        self._scanned: dict[str, int] = {}
        self._written: dict[_Place, Resource | None] = {}
        self._writes: list[Callable[[], Resource | None]] = []

    @property
    def revision(self) -> int:
        """Revision of the last write, provisional after a write of the draft."""
        if self._writes:
            return _PROVISIONAL + len(self._writes)
        return self._ask(lambda: self._store.revision)

    @property
    def size(self) -> int:
        return self._store.size

    def get(self, resource: str, key: str, *, at: int | None = None) -> Resource | None:
        """Return the object, currently or at a revision, or None; raises CompactedError if ``at`` is too old."""
        if at is not None:
            return self._ask(lambda: self._store.get(resource, key, at=at))
        place = resource, key
        if place in self._written:
            return self._written[place]
        if place not in self._read:
            self._read[place] = self._ask(lambda: self._store.get(resource, key))
        return self._read[place]

    def list(self, resource: str, *, prefix: str = "", matches: Callable[[Resource], bool] | None = None) -> Page:
        page = self._scan(resource, lambda: self._store.list(resource, prefix=prefix))
        found = {obj.key: obj for obj in page.items}
        for (of, key), obj in self._written.items():
            if of == resource and key.startswith(prefix):
                if obj is None:
                    found.pop(key, None)
                else:
                    found[key] = obj
        items = (found[key] for key in sorted(found))
        return Page(tuple(obj for obj in items if matches is None or matches(obj)), self.revision)

    def count(self, resource: str) -> int:
        return len(self.list(resource).items) if self._has_written(resource) else self._count(resource)

    def delete(self, resource: str, key: str) -> None:
        self._expect(resource, key)

        def remove() -> None:
            self._store.delete(resource, key)

        self._writes.append(remove)
        self._written[resource, key] = None

    # -- on the event loop

    def is_current(self) -> bool:
        if self._store.renumberings != self._renumberings:
            return False
        if any(self._store.get(*place) is not seen for place, seen in self._read.items()):
            return False
        return all(not self._has_changed(resource, after) for resource, after in self._scanned.items())

    def commit(self) -> Commit:
        """Apply the writes to the store. The draft must be current."""
        after = self._store.revision
        return Commit(after, tuple([write() for write in self._writes]))

    # -- helpers

    def _has_changed(self, resource: str, after: int) -> bool:
        try:
            changes = self._store.changes_after(after, limit=_NO_LIMIT)
        except CompactedError:
            return True
        return any(change.resource == resource for change in changes)

    def _scan(self, resource: str, question: Callable[[], T]) -> T:
        def answer() -> tuple[T, int]:
            return question(), self._store.revision

        found, revision = self._ask(answer)
        self._scanned.setdefault(resource, revision)
        return found

    def _count(self, resource: str) -> int:
        return self._scan(resource, lambda: self._store.count(resource))

    def _has_written(self, resource: str) -> bool:
        return any(of == resource for of, _ in self._written)

    @property
    def _next(self) -> int:
        return _PROVISIONAL + len(self._writes) + 1

    def _put(self, resource: str, key: str, old: Resource | None, fields: Mapping[str, object], raw: bytes) -> Resource:
        del old
        # Reuse the encoded object, because encoding on the event loop is slow for large objects.
        self._writes.append(partial(self._store.adopt, resource, key, fields, raw, self._next))
        obj = self._written[resource, key] = Resource.from_json(raw)
        return obj
