"""Read-your-writes: what this program has written, laid over a cache that has not heard of it yet.

For each key there is at most one entry:

    Written(obj)            the newest answer to a write; shown instead of what the cache has
    Gone(uid, version)      a tombstone: the object of that uid is not shown; ``version`` is the newest one known of it

An entry goes when the cache has come as far: its stream has reached the version, or it holds the object at that version
or a later one. So what others do after our write is never hidden, and what the cache has of before it never comes back.

Versions are compared as numbers (KEP-5504). Where they cannot be, an entry goes when the cache shows the very same
version, or after ``UNCOMPARABLE_AGE`` seconds. After ``MAX_AGE`` it goes in any case, and at once if the version of
the cache goes back: the server was restored from a backup, and our writes are gone.

Writes of unknown outcome (no answer came, and the server may have carried them out) make a key *uncertain*: it is to be
read from the server. It stays so until what was read proves that the write was, or can no longer be, carried out (for a
create: until there is such an object; that it goes again before a create that is still on its way is neglected), or
``UNCERTAIN_FOR`` seconds have passed: the longest time that a server works on one request. Of a create with a generated
name only the beginning is known: every key that begins so is uncertain, for that long.

The cache is asked, never told: nothing here has to be registered with an informer, and an entry that nobody reads costs
its memory until ``prune``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum
from typing import Final, TypeAlias, final

import msgspec

from deltaloop.api.resource import Resource
from deltaloop.api.resource_version import is_newer, version_number

MAX_AGE: Final = 300.0
UNCOMPARABLE_AGE: Final = 10.0
UNCERTAIN_FOR: Final = 60.0
"""The API server's own default limit of a request (``--request-timeout``)."""

_PRUNE_FROM: Final = 64


@final
class StoredWrite(msgspec.Struct, frozen=True):
    """An object as it was stored by a write of ours."""

    obj: Resource
    at: float
    reached_then: str


@final
class Gone(msgspec.Struct, frozen=True):
    """A deletion of ours."""

    uid: str
    version: str
    at: float
    reached_then: str


Entry: TypeAlias = StoredWrite | Gone


class WriteKind(Enum):
    """What kind of write has an unknown outcome: it decides what proves that it is over."""

    CREATE = "create"
    UPDATE = "update"
    """Conditional on a version: an update, or a patch that names one."""
    PATCH = "patch"
    """Unconditional: nothing proves that it will not be carried out any more."""
    DELETE = "delete"


@final
class UnknownWrite(msgspec.Struct, frozen=True):
    """A write of unknown outcome.

    Attributes:
        kind: What kind of write.
        uid: The uid of the object that it was for, if known.
        version: The version that it was based on, if known.
        until: When it cannot be under way any more.
    """

    kind: WriteKind
    uid: str
    version: str
    until: float


@final
class Overlay:
    """The writes of one program to the objects of one cache."""

    def __init__(self) -> None:
        """Begin without writes."""
        self.entries: dict[str, Entry] = {}
        """Of the keys that ``show`` may say something else of than the cache."""
        self.has_unknown = False
        """Whether a write may have an unknown outcome; if not, no key is uncertain."""
        self._unknown: dict[str, UnknownWrite] = {}
        self._unknown_names: dict[str, float] = {}
        self._prune_from = _PRUNE_FROM

    def __len__(self) -> int:
        return len(self.entries)

    def uid_of_gone(self, key: str) -> str:
        """Return the uid of the object that a deletion of ours hides; empty if none does."""
        entry = self.entries.get(key)
        return entry.uid if isinstance(entry, Gone) else ""

    # -- what was written

    def wrote(self, obj: Resource, *, reached: str, now: float) -> None:
        """Take the answer to a write, or to a read from the server.

        Args:
            obj: The object as stored.
            reached: The version that the cache has come to.
            now: The monotonic clock, in seconds.
        """
        if obj.resource_version == reached or 0 < obj.version < version_number(reached):
            return  # the stream was faster than the answer
        present = self.entries.get(obj.key)
        if present is None:
            pass
        elif isinstance(present, StoredWrite):
            if present.obj.version > obj.version > 0:
                return  # an answer that was overtaken
        elif present.uid == obj.uid or is_newer(present.version, obj.resource_version):
            return  # of before the deletion
        self.entries[obj.key] = StoredWrite(obj, now, reached)

    def deleted(self, key: str, *, uid: str, version: str, reached: str, now: float) -> None:
        """Take a deletion that was carried out.

        Args:
            key: Of which object.
            uid: Its uid; never empty.
            version: The newest version known of it; empty if none is.
            reached: The version that the cache has come to.
            now: The monotonic clock, in seconds.
        """
        present = self.entries.get(key)
        if isinstance(present, StoredWrite) and is_newer(present.obj.resource_version, version):
            if present.obj.uid != uid:
                return  # a successor is there already
            version = present.obj.resource_version
        self.entries[key] = Gone(uid, version, now, reached)
        unknown = self._unknown.get(key)
        if unknown is not None and unknown.uid == uid and unknown.kind in (WriteKind.UPDATE, WriteKind.DELETE):
            del self._unknown[key]  # it was for the object that is gone

    def lost_sight(self, key: str, kind: WriteKind, *, uid: str = "", version: str = "", now: float) -> None:
        """Take a write that got no answer and may have been carried out.

        Args:
            key: Of which object.
            kind: What kind of write.
            uid: The object's uid, if known.
            version: The version that the write was based on, if any.
            now: The monotonic clock, in seconds.
        """
        present = self._unknown.get(key)
        if present is not None and now < present.until:  # two at once: only time proves that both are over
            kind, version = WriteKind.PATCH, ""
        self._unknown[key] = UnknownWrite(kind, uid, version, now + UNCERTAIN_FOR)
        self.has_unknown = True

    def lost_sight_of_generated(self, beginning: str, *, now: float) -> None:
        """Take a create with a generated name that got no answer: nobody knows which key it made, if any.

        Args:
            beginning: How that key begins: ``namespace/`` and the ``generateName``.
            now: The monotonic clock, in seconds.
        """
        self._unknown_names[beginning] = now + UNCERTAIN_FOR
        self.has_unknown = True

    def has_unknown_names(self, namespace: str | None, *, now: float) -> bool:
        """Tell whether a namespace, or any if that is None, may have objects of names that nobody knows."""
        for beginning in [name for name, until in self._unknown_names.items() if now >= until]:
            del self._unknown_names[beginning]
        return any(not namespace or beginning.startswith(f"{namespace}/") for beginning in self._unknown_names)

    def is_uncertain(self, key: str, *, now: float) -> bool:
        """Tell whether a key has to be read from the server."""
        if self._unknown_names and any(
            now < until and key.startswith(beginning) for beginning, until in self._unknown_names.items()
        ):
            return True
        unknown = self._unknown.get(key)
        if unknown is not None and now < unknown.until:
            return True
        if unknown is not None:
            del self._unknown[key]
        self.has_unknown = bool(self._unknown or self._unknown_names)
        return False

    def uncertain(self, *, now: float) -> tuple[str, ...]:
        """Return the keys that have to be read from the server."""
        return tuple(key for key in [*self._unknown] if self.is_uncertain(key, now=now))

    def settle(
        self, key: str, live: Resource | None, *, reached: str, now: float, cached: Resource | None = None
    ) -> bool:
        """Take what the server said about an uncertain key; None if it has no such object.

        Return whether it is news: that what was written is gone is all that the program has to know. Another one that
        somebody has made under its name is shown when the cache brings it, with all else that has happened since: who
        still sees the reasons for a deletion would delete that one, too.

        Args:
            key: Key of the object, ``namespace/name``.
            live: The object as read after the write was sent.
            reached: The version that the cache has come to.
            now: The monotonic clock, in seconds.
            cached: What the cache has.
        """
        unknown = self._unknown.get(key)
        if unknown is not None and _is_over(unknown, live):
            del self._unknown[key]
        gone = self._known(key, cached)
        is_known = True
        if unknown is not None and unknown.uid and unknown.version:
            gone.append((unknown.uid, unknown.version))
            is_known = live is None or any(uid == live.uid for uid, _ in gone)
        if live is not None and is_known:
            self.wrote(live, reached=reached, now=now)
        elif gone:
            uid, version = gone[0]
            for other in gone[1:]:
                uid, version = other if is_newer(other[1], version) else (uid, version)
            self.entries[key] = Gone(uid, version, now, reached)
        return not is_known

    def _known(self, key: str, cached: Resource | None) -> list[tuple[str, str]]:
        """Return uids and versions of what is known of a key."""
        found = [] if cached is None else [(cached.uid, cached.resource_version)]
        match self.entries.get(key):
            case StoredWrite(obj):
                found.append((obj.uid, obj.resource_version))
            case Gone(uid, version):
                found.append((uid, version))
            case None:
                pass
        return found

    # -- what is seen

    def show(self, key: str, cached: Resource | None, *, reached: str, now: float) -> Resource | None:
        """Return the object as this program knows it; None if there is none.

        Args:
            key: Key of the object, ``namespace/name``.
            cached: What the cache has.
            reached: The version that the cache has come to.
            now: The monotonic clock, in seconds.
        """
        entry = self.entries.get(key)
        if entry is None:
            return cached
        if self._is_caught_up(entry, cached, reached=reached, now=now):
            del self.entries[key]
            return cached
        return entry.obj if isinstance(entry, StoredWrite) else None

    def merge(
        self,
        cached: Iterable[Resource],
        lookup: Callable[[str], Resource | None],
        *,
        matches: Callable[[Resource], bool],
        reached: str,
        now: float,
    ) -> list[Resource]:
        """Return a list or the answer of an index as this program knows it.

        Args:
            cached: What the cache answers.
            lookup: From a key to what the cache has.
            matches: Whether an object belongs into the answer.
            reached: The version that the cache has come to.
            now: The monotonic clock, in seconds.
        """
        if not self.entries:
            return [*cached]
        answer = {obj.key: obj for obj in cached}
        for key in [*self.entries]:
            shown = self.show(key, lookup(key), reached=reached, now=now)
            if shown is not None and matches(shown):
                answer[key] = shown
            else:
                answer.pop(key, None)
        return [*answer.values()]

    def prune(self, lookup: Callable[[str], Resource | None], *, reached: str, now: float) -> None:
        """Drop what the cache has caught up with, if much has gathered; for the writing side."""
        if len(self.entries) < self._prune_from:
            return
        for key in [*self.entries]:
            self.show(key, lookup(key), reached=reached, now=now)
        self._prune_from = max(_PRUNE_FROM, 2 * len(self.entries))

    def _is_caught_up(self, entry: Entry, cached: Resource | None, *, reached: str, now: float) -> bool:
        version = entry.obj.resource_version if isinstance(entry, StoredWrite) else entry.version
        number, at = version_number(version), version_number(reached)
        limit = MAX_AGE if number > 0 and at > 0 else UNCOMPARABLE_AGE
        if now - entry.at >= limit or version_number(entry.reached_then) > at > 0:
            return True
        is_there = version == reached or 0 < number < at
        if isinstance(entry, StoredWrite):
            return is_there or (
                cached is not None and (cached.resource_version == version or cached.version > number > 0)
            )
        return is_there if cached is None else cached.uid != entry.uid and not number > cached.version > 0


def _is_over(unknown: UnknownWrite, live: Resource | None) -> bool:
    """Tell whether what the server has proves that a write was carried out, or never will be."""
    match unknown.kind:
        case WriteKind.CREATE:
            return live is not None
        case WriteKind.UPDATE:
            return live is None or live.resource_version != unknown.version
        case WriteKind.DELETE:
            return live is None or unknown.uid not in ("", live.uid) or live.deletion_timestamp is not None
        case WriteKind.PATCH:
            return False
