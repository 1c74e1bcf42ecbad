"""The beginning of a streamed list: what has come is held until the server says that it is whole."""

from __future__ import annotations

from deltaloop.api.resource import Resource
from deltaloop.api.watch_event import EventType, WatchEvent
from deltaloop.cache.core.reflector_effects import Listed, Verdict


class InitialEvents:
    """What a streamed list has brought so far; changes that come among it are applied to it."""

    __slots__ = ("_objects", "_skipped")

    def __init__(self) -> None:
        """Begin with nothing."""
        self._objects: dict[str, Resource] = {}
        self._skipped = 0

    def __len__(self) -> int:
        return len(self._objects)

    def take(self, event: WatchEvent) -> Verdict:
        """Hold what an event brings."""
        obj = event.object
        if not obj.name:
            self._skipped += 1
            return Verdict.SKIP
        if event.type is EventType.DELETED:
            self._objects.pop(obj.key, None)
        else:
            self._objects[obj.key] = obj
        return Verdict.HOLD

    def whole(self, resource_version: str) -> Listed:
        """Return everything that is held: it is all there is at this version."""
        return Listed(tuple(self._objects.values()), resource_version, self._skipped)
