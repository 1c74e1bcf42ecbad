"""One list that is under way: in pages (``ListRound``), or streamed as the beginning of a watch (``InitialEvents``).

**In pages.** The version of the whole is that of its first page. A continue token has the version in it: the server
refuses a request that names both.

**Streamed.** What has come is held until the server says that it is whole. A server that streams a list sends each
object once, as ADDED, then what has changed meanwhile, and the bookmark that ends it before any other (apiserver
pkg/storage/cacher/cache_watcher.go, ``nonblockingAdd``). So a change, or another bookmark, says that the list is
through, and that its end is due. From a server that does not know the request it says that this is an ordinary watch,
and that no end will come. New objects alone look like a slow list. So a list that is not whole soon gets a bound: the
server's version, read after the stream was opened. A list holds nothing newer than the server was at its beginning, so
an object above the bound comes behind the list.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from deltaloop.api.list_options import ListOptions
from deltaloop.api.resource import Resource
from deltaloop.api.resource_version import is_newer
from deltaloop.api.watch_event import EventType, WatchEvent
from deltaloop.cache.core.deltas import Unread
from deltaloop.cache.core.reflector.effects import CompleteList, Verdict
from deltaloop.client.core.pager import PageProgress
from deltaloop.client.verbs.resource_list import ResourceList, UnreadableItemError


class ListRound(msgspec.Struct):
    """A list that is under way.

    Attributes:
        first: The options of its first page.
        options: The options of its next page.
        in_full: Whether it replaces one whose pages were lost, and is asked for without pages.
        items: The objects of the pages that have come.
        resource_version: The version of the first page.
        pages: How many pages have come.
        unreadable: The errors of objects that cannot be decoded, and are left out.
        progress: Finds continue tokens that repeat, so that a list that never ends is given up.
    """

    first: ListOptions
    options: ListOptions
    in_full: bool
    items: list[Resource] = msgspec.field(default_factory=list[Resource])
    resource_version: str = ""
    pages: int = 0
    unreadable: list[UnreadableItemError] = msgspec.field(default_factory=list[UnreadableItemError])
    progress: PageProgress[Resource] = msgspec.field(default_factory=PageProgress[Resource])

    @classmethod
    def begin(cls, options: ListOptions, *, in_full: bool = False) -> ListRound:
        """Begin a list."""
        return cls(options, options, in_full)

    def never_ends(self, page: ResourceList[Resource]) -> str:
        """Return why the list would never end with this as its next page, or "" if it may."""
        return self.progress.never_ends(page, before=self.items)

    def take(self, page: ResourceList[Resource]) -> bool:
        """Take a page; return whether it was the last one."""
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
        """Return everything that came and can be kept."""
        named = tuple(item for item in self.items if item.name)
        skipped = len(self.items) - len(named) + len(self.unreadable)
        return CompleteList(
            named, self.resource_version, skipped, next(iter(self.unreadable), None), unread_of(self.unreadable)
        )


def unread_of(errors: Iterable[UnreadableItemError]) -> Unread:
    """Return which objects could not be read."""
    keys = [error.key for error in errors]
    return Unread(frozenset(key for key in keys if key is not None), None in keys)


class InitialEvents:
    """What a streamed list has brought so far; changes that come among it are applied to it."""

    __slots__ = ("_objects", "_skipped", "bound", "is_through")

    def __init__(self) -> None:
        """Begin with nothing."""
        self._objects: dict[str, Resource] = {}
        self._skipped = 0
        self.bound: str = ""
        """Version of the server after the list began; empty while it is not known."""
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
        if event.type is not EventType.ADDED or (self.bound and is_newer(obj.resource_version, self.bound)):
            self.is_through = True
        if not obj.name:
            self._skipped += 1
            return Verdict.SKIP
        if obj.key in self._objects:
            self.is_through = True
        if event.type is EventType.DELETED:
            self._objects.pop(obj.key, None)
        else:
            self._objects[obj.key] = obj
        return Verdict.HOLD

    def whole(self, resource_version: str) -> CompleteList:
        """Return everything that is held: it is all there is at this version."""
        return CompleteList(tuple(self._objects.values()), resource_version, self._skipped)
