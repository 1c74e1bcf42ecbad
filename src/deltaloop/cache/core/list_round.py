"""One list in pages: what to ask next, and what all pages are together.

The version of the whole is that of its first page. A token has the version in it: the server refuses to be told both.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from deltaloop.api.list_options import ListOptions
from deltaloop.api.resource import Resource
from deltaloop.cache.core.deltas import Unread
from deltaloop.cache.core.reflector_effects import Listed
from deltaloop.client.core.pager import PageProgress
from deltaloop.client.resource_list import ResourceList, UnreadableItemError


@dataclass(slots=True)
class ListRound:
    """A list that is under way.

    Attributes:
        first: What was asked for at its beginning.
        options: What is to be asked for next.
        in_full: Whether it replaces one whose pages were lost, and is asked for without pages.
        items: What has come.
        resource_version: The version of the first page.
        pages: How many have come.
        unreadable: Why objects are left out.
        progress: Whether it comes to an end.
    """

    first: ListOptions
    options: ListOptions
    in_full: bool
    items: list[Resource] = field(default_factory=list[Resource])
    resource_version: str = ""
    pages: int = 0
    unreadable: list[UnreadableItemError] = field(default_factory=list[UnreadableItemError])
    progress: PageProgress[Resource] = field(default_factory=PageProgress[Resource])

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

    def whole(self) -> Listed:
        """Return everything that came and can be kept."""
        named = tuple(item for item in self.items if item.name)
        skipped = len(self.items) - len(named) + len(self.unreadable)
        return Listed(
            named, self.resource_version, skipped, next(iter(self.unreadable), None), unread_of(self.unreadable)
        )


def unread_of(errors: Iterable[UnreadableItemError]) -> Unread:
    """Return which objects could not be read."""
    keys = [error.key for error in errors]
    return Unread(frozenset(key for key in keys if key is not None), None in keys)
