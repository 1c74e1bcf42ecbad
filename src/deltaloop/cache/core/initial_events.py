"""The beginning of a streamed list: what has come is held until the server says that it is whole.

A server that streams a list sends each object once, as ADDED, then what has changed meanwhile, and the bookmark that
ends it before any other (apiserver pkg/storage/cacher/cache_watcher.go, ``nonblockingAdd``). So a change, or another
bookmark, says that the list is through, and that its end is due. From a server that does not know the request it says
that this is an ordinary watch, and that no end will come. (One that sends nothing but new objects cannot be told from
a slow list: it is given up when the stream ends.)
"""

from __future__ import annotations

from deltaloop.api.resource import Resource
from deltaloop.api.watch_event import EventType, WatchEvent
from deltaloop.cache.core.reflector_effects import Listed, Verdict


class InitialEvents:
    """What a streamed list has brought so far; changes that come among it are applied to it."""

    __slots__ = ("_objects", "_skipped", "is_through")

    def __init__(self) -> None:
        """Begin with nothing."""
        self._objects: dict[str, Resource] = {}
        self._skipped = 0
        self.is_through: bool = False
        """Whether something has come that comes behind the objects of a list only."""

    def __len__(self) -> int:
        return len(self._objects)

    def take(self, event: WatchEvent) -> Verdict:
        """Hold what an event brings."""
        obj = event.object
        if event.type is EventType.BOOKMARK:
            self.is_through = True
            return Verdict.BOOKMARK
        if not obj.name:
            self._skipped += 1
            return Verdict.SKIP
        if event.type is not EventType.ADDED or obj.key in self._objects:
            self.is_through = True
        if event.type is EventType.DELETED:
            self._objects.pop(obj.key, None)
        else:
            self._objects[obj.key] = obj
        return Verdict.HOLD

    def whole(self, resource_version: str) -> Listed:
        """Return everything that is held: it is all there is at this version."""
        return Listed(tuple(self._objects.values()), resource_version, self._skipped)
