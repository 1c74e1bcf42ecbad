"""Whether a cache holds what the server had at the same version: a comparison, and when it may be made.

Compared are key, uid and resource version, not contents: a transform may have changed those.

Source: client-go util/consistencydetector (which panics; in tests only).
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from deltaloop.api.resource import Resource
from deltaloop.cache.core.deltas import NOTHING_UNREAD, Unread


class ConsistencyReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a cache and its server do not agree about, at one version.

    Attributes:
        resource_version: The version at which both were looked at.
        missing: Keys that the server has and the cache has not, sorted.
        left_over: Keys that the cache has and the server has not.
        different: Keys whose uid or resource version differs.
    """

    resource_version: str
    missing: tuple[str, ...]
    left_over: tuple[str, ...]
    different: tuple[str, ...]

    @property
    def is_consistent(self) -> bool:
        """Whether they agree about everything."""
        return not (self.missing or self.left_over or self.different)


State = dict[str, tuple[str, str]]


def state_of(objects: Iterable[Resource]) -> State:
    """Return uid and resource version of each object, by key."""
    return {obj.key: (obj.uid, obj.resource_version) for obj in objects}


def compare(
    cached: State, served: State, *, resource_version: str, unread: Unread = NOTHING_UNREAD
) -> ConsistencyReport:
    """Compare what is cached with what the server has; what cannot be read (``unread``) is kept as it was."""
    return ConsistencyReport(
        resource_version=resource_version,
        missing=tuple(sorted(served.keys() - cached.keys())),
        left_over=tuple(sorted(key for key in cached.keys() - served.keys() if not unread.may_be(key))),
        different=tuple(sorted(key for key in cached.keys() & served.keys() if cached[key] != served[key])),
    )
