"""A write that is worked out beside the store, and done at once if nothing that it has read has changed meanwhile.

Theory. To check a large object takes seconds, and the server's loop has others to serve. So such a write runs in a
thread of its own, over a draft: what it reads comes from the store and is remembered, what it writes stays here. Then,
in one step on the loop,

    is_current   an object that was read is still the same one (or is still missing);
                 of a resource that was listed or counted, nothing has changed
    commit       all that was written is written to the store

which makes it one transaction like every other. What is not current any more is thrown away and worked out anew.

A draft asks the store through ``ask``, which has the answer given on the loop: two threads never are in the store. What
is read twice is the same both times, and one's own writes are seen. The revisions that they give are provisional, far
above those of any store, and ``Commit.final`` sets them right.

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
    Objects,
    Page,
    Renumbered,
    RevisionStore,
    check_size,
    encode_object,
)
from deltaloop.apiserver.core.storage.store_errors import (
    CompactedError,
)

T = TypeVar("T")

_Place: TypeAlias = tuple[str, str]
_NO_LIMIT: Final = 1 << 62
_PROVISIONAL: Final = 1 << 60


class Ask(Protocol):
    """Has a question answered where the store is, and gives the answer."""

    def __call__(self, question: Callable[[], T], /) -> T:
        """Return the answer; what the question raises is raised here."""
        ...


def ask_at_once(question: Callable[[], T], /) -> T:
    """Answer a question here: for a write that runs where the store is."""
    return question()


@final
@dataclass(frozen=True, slots=True)
class Commit:
    """What became of a draft.

    Attributes:
        after: The revision that the store had before the draft was written to it.
        stored: What the store has made of each object that was written, in that order; None for one that was removed.
    """

    after: int = 0
    stored: tuple[Resource | None, ...] = ()

    def final(self, obj: Resource) -> Resource:
        """Return an object that the draft gave, with the revision that it has got; it takes a while for a large one."""
        version = int(obj.resource_version) if obj.resource_version.isdecimal() else 0
        if version <= _PROVISIONAL:
            return obj
        stored = self.stored[version - _PROVISIONAL - 1]
        if stored is not None and stored.uid == obj.uid:
            return stored
        return with_resource_version(obj, self.after + version - _PROVISIONAL)


NO_DRAFT: Final = Commit()
"""Of what was written, or read, where the store is."""


@final
class Draft(Objects):
    """The store as one write sees it. Used by one thread; ``is_current`` and ``commit`` belong to the loop."""

    def __init__(self, store: RevisionStore, *, ask: Ask) -> None:
        """Begin on the loop; whatever is read is asked through ``ask``."""
        self._store = store
        self._ask = ask
        self._renumberings = store.renumberings
        self._read: dict[_Place, Resource | None] = {}
        self._scanned: dict[str, int] = {}
        self._written: dict[_Place, Resource | None] = {}
        self._writes: list[Callable[[], Resource | None]] = []

    @property
    def revision(self) -> int:
        """Revision of the last write, provisional if it is one of the draft's own."""
        if self._writes:
            return _PROVISIONAL + len(self._writes)
        return self._ask(lambda: self._store.revision)

    @property
    def size(self) -> int:
        """Bytes of all objects in the store."""
        return self._store.size

    def get(self, resource: str, key: str, *, at: int | None = None) -> Resource | None:
        """Return an object, or None: the present one, or the one at a revision.

        Raises:
            CompactedError: If ``at`` lies before the window.
        """
        if at is not None:
            return self._ask(lambda: self._store.get(resource, key, at=at))
        place = resource, key
        if place in self._written:
            return self._written[place]
        if place not in self._read:
            self._read[place] = self._ask(lambda: self._store.get(resource, key))
        return self._read[place]

    def list(self, resource: str, *, prefix: str = "", matches: Callable[[Resource], bool] | None = None) -> Page:
        """Return a resource's objects, in key order; those of the draft's own among them."""
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
        """Return how many objects a resource has."""
        return len(self.list(resource).items) if self._has_written(resource) else self._count(resource)

    def delete(self, resource: str, key: str) -> None:
        """Remove an object.

        Raises:
            KeyMissingError: If it does not exist.
        """
        self._expect(resource, key)

        def remove() -> None:
            self._store.delete(resource, key)

        self._writes.append(remove)
        self._written[resource, key] = None

    # -- on the loop

    def is_current(self) -> bool:
        """Tell whether everything that was read is still so."""
        if self._store.renumberings != self._renumberings:
            return False
        if any(self._store.get(*place) is not seen for place, seen in self._read.items()):
            return False
        return all(not self._has_changed(resource, after) for resource, after in self._scanned.items())

    def commit(self) -> Commit:
        """Write to the store what was written here; it has to be current."""
        after = self._store.revision
        return Commit(after, tuple([write() for write in self._writes]))

    # -- how

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

    def _write(
        self, resource: str, key: str, old: Resource | None, fields: Mapping[str, object], *, any_size: bool
    ) -> Resource:
        del old
        revision = str(_PROVISIONAL + len(self._writes) + 1)
        raw = encode_object(fields, resource_version=revision)
        if not any_size:
            check_size(raw)
        # The loop need not encode it again, which takes long for some.
        self._writes.append(partial(self._store.adopt, resource, key, fields, Renumbered(raw, revision)))
        obj = self._written[resource, key] = Resource.from_json(raw)
        return obj
