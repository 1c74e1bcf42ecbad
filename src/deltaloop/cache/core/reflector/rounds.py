"""Lists in progress: in pages (``ListRound``), or streamed at the beginning of a watch (``InitialEvents``).

**Pages.** The first page determines the version of the list. Later requests must not specify a version, because their
continue token contains it.

**Streamed lists.** Objects are collected until the list is complete. A server sends each object once as ADDED, then
later changes, and the final bookmark before other bookmarks (apiserver pkg/storage/cacher/cache_watcher.go,
``nonblockingAdd``). A change or another bookmark therefore shows that all objects have arrived and the end is due. If
the server does not know the request, it shows that this is an ordinary watch, which will not send the end. New objects
alone look like a slow list. So a probe soon sets a bound: the server's version after the stream was opened. The list
cannot contain newer objects, so an object above the bound comes after the list.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from deltaloop.api.list_options import ListOptions
from deltaloop.api.resource import Resource
from deltaloop.api.resource_version import is_newer
from deltaloop.api.watch_event import EventType, WatchEvent
from deltaloop.cache.core.deltas import Unread
from deltaloop.cache.core.reflector.effects import CompleteList, Verdict

if TYPE_CHECKING:
    from deltaloop.client.core.pager import PageProgress
    from deltaloop.client.verbs.resource_list import ResourceList, UnreadableItemError

_ADDED: Final = EventType.ADDED


def _progress() -> PageProgress[Resource]:
    from deltaloop.client.core.pager import PageProgress

    return PageProgress()


class ListRound(msgspec.Struct):
    """A list in progress; ``in_full`` means that it replaces a list whose pages expired."""

    first: ListOptions
    options: ListOptions
    in_full: bool
    items: list[Resource] = msgspec.field(default_factory=list[Resource])
    resource_version: str = ""
    pages: int = 0
    unreadable: list[UnreadableItemError] = []
    progress: PageProgress[Resource] = msgspec.field(default_factory=_progress)

    @classmethod
    def begin(cls, options: ListOptions, *, in_full: bool = False) -> ListRound:
        return cls(options, options, in_full)

    def never_ends(self, page: ResourceList[Resource]) -> str:
        """Return why the list would never end with this page, or ""."""
        return self.progress.never_ends(page, before=self.items)

    def take(self, page: ResourceList[Resource]) -> bool:
        if self.pages == 0:
            self.resource_version = page.resource_version
        self.pages += 1
        self.items.extend(page.items)
        self.unreadable.extend(page.unreadable)
        if not page.continue_:
            return True
        self.options = self.first.replace(continue_=page.continue_, resource_version="", resource_version_match="")
        return False

    def whole(self) -> CompleteList:
        named = tuple(item for item in self.items if item.name)
        skipped = len(self.items) - len(named) + len(self.unreadable)
        return CompleteList(
            named, self.resource_version, skipped, next(iter(self.unreadable), None), unread_of(self.unreadable)
        )


def unread_of(errors: Iterable[UnreadableItemError]) -> Unread:
    keys = [error.key for error in errors]
    return Unread(frozenset(key for key in keys if key is not None), None in keys)


class InitialEvents:
    """Objects of a streamed list in progress. Changes that arrive early are applied to them."""

    __slots__ = ("_objects", "_skipped", "bound", "is_through")

    def __init__(self) -> None:
        self._objects: dict[str, Resource] = {}
        self._skipped = 0
        self.bound: str = ""
        """Server version after the start of the list, or "" if unknown."""
        self.is_through: bool = False
        """Whether an event has arrived that can only follow the objects of the list."""

    def __len__(self) -> int:
        return len(self._objects)

    def take_all(self, events: Sequence[WatchEvent]) -> int:
        """Take the first events that only add objects of the list, and return their number."""
        objects, taken = self._objects, 0
        for event in () if self.bound else events:
            obj = event.object
            key = obj.key
            if event.type is not _ADDED or not obj.name or key in objects:
                break
            objects[key] = obj
            taken += 1
        return taken

    def take(self, event: WatchEvent) -> Verdict:
        obj = event.object
        if event.type is EventType.BOOKMARK:
            self.is_through = True
            return "bookmark"
        if event.type is not EventType.ADDED or (self.bound and is_newer(obj.resource_version, self.bound)):
            self.is_through = True
        if not obj.name:
            self._skipped += 1
            return "skip"
        if obj.key in self._objects:
            self.is_through = True
        if event.type is EventType.DELETED:
            self._objects.pop(obj.key, None)
        else:
            self._objects[obj.key] = obj
        return "hold"

    def whole(self, resource_version: str) -> CompleteList:
        return CompleteList(tuple(self._objects.values()), resource_version, self._skipped)
