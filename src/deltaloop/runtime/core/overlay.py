"""Overlay of a program's own writes over a cache that has not received them yet.

Each key has at most one entry:

    StoredWrite(obj)        newest response to a write, shown instead of the cached object
    Gone(uid, version)      tombstone that hides the object with the UID; ``version`` is its newest known version

An entry is dropped when the cache has caught up: its stream has reached the version, or it has the object at that
version or a later one. If versions are not comparable, an entry is dropped when the cache shows the same version, or
after ``UNCOMPARABLE_AGE`` seconds. All entries are dropped after ``MAX_AGE`` seconds, or when the cache's version
decreases, because the server was then restored from a backup.

A write has an unknown outcome if no response arrived. It makes its key *uncertain*: the object must be read from the
server until the read proves that the write was carried out or can no longer be. For a create, the proof is that the
object exists. Uncertainty ends in any case after ``UNCERTAIN_FOR`` seconds, the longest time that a server works on a
request. For a create with a generated name, all keys with its prefix are uncertain for that long.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, Literal, TypeAlias, final

import msgspec

from deltaloop.api.resource import Resource
from deltaloop.api.resource_version import is_newer, version_number

MAX_AGE: Final = 300.0
UNCOMPARABLE_AGE: Final = 10.0
UNCERTAIN_FOR: Final = 60.0
"""The API server's default request timeout in seconds (``--request-timeout``)."""

_PRUNE_FROM: Final = 64


@final
class StoredWrite(msgspec.Struct, frozen=True, gc=False):
    obj: Resource
    at: float
    reached_then: int


@final
class Gone(msgspec.Struct, frozen=True, gc=False):
    uid: str
    version: str
    at: float
    reached_then: int


Entry: TypeAlias = "StoredWrite | Gone"


WriteKind: TypeAlias = "Literal['create', 'update', 'patch', 'delete']"
"""Kind of a write with an unknown outcome, which determines how to prove that it is over."""


@final
class UnknownWrite(msgspec.Struct, frozen=True, gc=False):
    """A write with an unknown outcome, which can be in progress until ``until``; unknown fields are empty."""

    kind: WriteKind
    uid: str
    version: str
    until: float


@final
class Overlay:
    """Own writes of one program to the objects of one cache.

    ``reached`` is the version that the cache has reached, and ``now`` is in monotonic seconds.
    """

    def __init__(self) -> None:
        self.entries: dict[str, Entry] = {}
        """Entries by key. ``show`` can differ from the cache only for these keys."""
        self.has_unknown: bool = False
        """Whether a write may have an unknown outcome. If it is False, no key is uncertain."""
        self._unknown: dict[str, UnknownWrite] = {}
        self._unknown_names: dict[str, float] = {}
        self._reached: tuple[str, int] = ("", -1)
        self.prune_from: int = _PRUNE_FROM
        """Number of entries from which ``prune`` is worth its cost."""

    def __len__(self) -> int:
        return len(self.entries)

    def uid_of_gone(self, key: str) -> str:
        entry = self.entries.get(key)
        return entry.uid if isinstance(entry, Gone) else ""

    # -- writes

    def wrote(self, obj: Resource, reached: str, now: float) -> None:
        """Record the response to a write, or an object read from the server."""
        reached_number = self._reached[1] if reached == self._reached[0] else self._number(reached)
        if obj.resource_version == reached or 0 < obj.version < reached_number:
            return  # the watch was faster than the response
        present = self.entries[obj.key] if obj.key in self.entries else None  # noqa: SIM401 - without a call
        if present is None:
            pass
        elif isinstance(present, StoredWrite):
            if present.obj.version > obj.version > 0:
                return  # a newer response arrived first
        elif present.uid == obj.uid or is_newer(present.version, obj.resource_version):
            return  # state before the deletion
        self.entries[obj.key] = StoredWrite(obj, now, reached_number)

    def deleted(self, key: str, *, uid: str, version: str, reached: str, now: float) -> None:
        """Record a successful deletion; ``version`` is the newest known one and can be empty."""
        present = self.entries.get(key)
        if isinstance(present, StoredWrite) and is_newer(present.obj.resource_version, version):
            if present.obj.uid != uid:
                return  # a successor already exists
            version = present.obj.resource_version
        self.entries[key] = Gone(uid, version, now, version_number(reached))
        unknown = self._unknown.get(key)
        if unknown is not None and unknown.uid == uid and unknown.kind in ("update", "delete"):
            del self._unknown[key]  # it was for the deleted object

    def lost_sight(self, key: str, kind: WriteKind, *, uid: str = "", version: str = "", now: float) -> None:
        """Record a write without a response that may have been carried out; unknown values are empty."""
        present = self._unknown.get(key)
        if present is not None and now < present.until:  # for two writes at once, only time proves that both are over
            kind, version = "patch", ""
        self._unknown[key] = UnknownWrite(kind, uid, version, now + UNCERTAIN_FOR)
        self.has_unknown = True

    def lost_sight_of_generated(self, beginning: str, *, now: float) -> None:
        """Record a create without a response, whose key starts with ``namespace/`` and the ``generateName``."""
        self._unknown_names[beginning] = now + UNCERTAIN_FOR
        self.has_unknown = True

    def has_unknown_names(self, namespace: str | None, *, now: float) -> bool:
        """Return whether a namespace (None means any) may have objects with unknown generated names."""
        for beginning in [name for name, until in self._unknown_names.items() if now >= until]:
            del self._unknown_names[beginning]
        return any(not namespace or beginning.startswith(f"{namespace}/") for beginning in self._unknown_names)

    def is_uncertain(self, key: str, *, now: float) -> bool:
        """Return whether a key must be read from the server."""
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
        return tuple(key for key in [*self._unknown] if self.is_uncertain(key, now=now))

    def settle(
        self, key: str, live: Resource | None, *, reached: str, now: float, cached: Resource | None = None
    ) -> bool:
        """Record the server's state of an uncertain key, and return whether it is an unknown successor.

        For a successor, only the deletion of the known object is recorded, and the cache delivers the successor
        together with other changes. A program that still sees the causes of a deletion would otherwise delete it as
        well.
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
            self.entries[key] = Gone(uid, version, now, version_number(reached))
        return not is_known

    def _known(self, key: str, cached: Resource | None) -> list[tuple[str, str]]:
        found = [] if cached is None else [(cached.uid, cached.resource_version)]
        match self.entries.get(key):
            case StoredWrite(obj):
                found.append((obj.uid, obj.resource_version))
            case Gone(uid, version):
                found.append((uid, version))
            case None:
                pass
        return found

    # -- reads

    def show(self, key: str, cached: Resource | None, reached: str, now: float) -> Resource | None:
        """Return the object as this program knows it; None if it does not exist."""
        entry = self.entries[key] if key in self.entries else None  # noqa: SIM401 - without a call
        if entry is None:
            return cached
        if self._is_caught_up(entry, cached, reached, now):
            del self.entries[key]
            return cached
        return entry.obj if type(entry) is StoredWrite else None

    def merge(
        self,
        cached: Iterable[Resource],
        lookup: Callable[[str], Resource | None],
        *,
        matches: Callable[[Resource], bool],
        reached: str,
        now: float,
    ) -> list[Resource]:
        """Return a list or an index result as this program knows it."""
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
        """Drop the entries that the cache has caught up with."""
        for key in [*self.entries]:
            self.show(key, lookup(key), reached=reached, now=now)
        self.prune_from = max(_PRUNE_FROM, 2 * len(self.entries))

    def _number(self, reached: str) -> int:
        self._reached = reached, version_number(reached)
        return self._reached[1]

    def _is_caught_up(self, entry: Entry, cached: Resource | None, reached: str, now: float) -> bool:
        at = self._reached[1] if reached == self._reached[0] else self._number(reached)
        if type(entry) is StoredWrite:
            version, number = entry.obj.resource_version, entry.obj.version
        else:
            version, number = entry.version, version_number(entry.version)
        limit = MAX_AGE if number > 0 and at > 0 else UNCOMPARABLE_AGE
        if now - entry.at >= limit or entry.reached_then > at > 0:
            return True
        is_there = version == reached or 0 < number < at
        if type(entry) is StoredWrite:
            return is_there or (
                cached is not None and (cached.resource_version == version or cached.version > number > 0)
            )
        return is_there if cached is None else cached.uid != entry.uid and not number > cached.version > 0


def _is_over(unknown: UnknownWrite, live: Resource | None) -> bool:
    """Return whether the server's state proves that a write was carried out or never will be."""
    match unknown.kind:
        case "create":
            return live is not None
        case "update":
            return live is None or live.resource_version != unknown.version
        case "delete":
            return live is None or unknown.uid not in ("", live.uid) or live.deletion_timestamp is not None
        case "patch":
            return False
