"""Compare a cache with the server's objects at the same version: key, uid and resource version.

Source: client-go util/consistencydetector (which panics; in tests only).
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from deltaloop.api.resource import Resource
from deltaloop.cache.core.deltas import NOTHING_UNREAD, Unread


class ConsistencyReport(msgspec.Struct, frozen=True, kw_only=True):
    """Differences between a cache and its server at one version.

    Attributes:
        resource_version: Version of both states.
        missing: Sorted keys that exist only on the server.
        left_over: Sorted keys that exist only in the cache.
        different: Sorted keys whose uid or resource version differs.
    """

    resource_version: str
    missing: tuple[str, ...]
    left_over: tuple[str, ...]
    different: tuple[str, ...]

    @property
    def is_consistent(self) -> bool:
        """Whether there are no differences."""
        return not (self.missing or self.left_over or self.different)


State = dict[str, tuple[str, str]]


def state_of(objects: Iterable[Resource]) -> State:
    """Return the uid and resource version of each object by key."""
    return {obj.key: (obj.uid, obj.resource_version) for obj in objects}


def compare(
    cached: State, served: State, *, resource_version: str, unread: Unread = NOTHING_UNREAD
) -> ConsistencyReport:
    """Compare two states. Cached objects that may be among the unreadable ones (``unread``) are not left over."""
    return ConsistencyReport(
        resource_version=resource_version,
        missing=tuple(sorted(served.keys() - cached.keys())),
        left_over=tuple(sorted(key for key in cached.keys() - served.keys() if not unread.may_be(key))),
        different=tuple(sorted(key for key in cached.keys() & served.keys() if cached[key] != served[key])),
    )
