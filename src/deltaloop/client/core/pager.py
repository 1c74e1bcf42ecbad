"""Lists in pages: which request is next, and what all pages are together.

1. Each page is asked for with ``limit``; the first one with the caller's resource version and match.
2. While the server answers with a continue token, the next request carries it, and neither resource version nor match:
   a server refuses both beside a token (400).
3. If the token has expired (410 ``Expired`` on page 2 or later), everything is asked for again at once, in one
   request without limit, at the resource version and match of the beginning; what was collected is dropped. That
   happens once. An error on page 1, or any other error, ends it.
4. The version of the whole is the version of its first page: the pages are one snapshot.

A list that would never end is an error: a token that came before comes again, or beyond the hundredth page another
hundred in a row bring no object that has not come before. (Pages may be empty: a server may select behind ``limit``.) A
server that invents objects cannot be told from one that has many.

Going through a list item by item is rules 1 and 2 only: items that were handed on cannot be taken back, so an expired
token is the caller's to see.

Source: client-go tools/pager/pager.go, ``ListPager.List``, ``ListPager.EachListItem``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Generic, TypeVar, final

from deltaloop.api.errors import DeltaloopError, MalformedObjectError
from deltaloop.api.keys import meta_namespace_key
from deltaloop.api.list_options import ListOptions
from deltaloop.api.status import ExpiredError
from deltaloop.client.verbs.resource_list import ResourceList

DEFAULT_PAGE_SIZE = 500
DEFAULT_PAGE_BUFFER = 10

_TRUSTED_PAGES: Final = 100
_BARREN_PAGES: Final = 100

T = TypeVar("T")


@final
class PageProgress(Generic[T]):
    """Tells a list that comes to an end from one that goes round in circles."""

    def __init__(self) -> None:
        """Begin a list."""
        self._tokens: set[str] = set()
        self._keys: set[object] | None = None
        self._barren = 0

    def never_ends(self, page: ResourceList[T], *, before: Sequence[T] | None) -> str:
        """Take the next page; return why there will always be another one, or "" if the list may end.

        Args:
            page: The page that was received.
            before: The items of the pages before it; None if nobody has kept them: then only pages without items count.
        """
        if not page.continue_:
            return ""
        if page.continue_ in self._tokens:
            return "a continue token came again: the list never ends"
        self._tokens.add(page.continue_)
        if len(self._tokens) <= _TRUSTED_PAGES:
            return ""
        self._barren = 0 if self._is_new(page, before) else self._barren + 1
        if self._barren < _BARREN_PAGES:
            return ""
        return f"{self._barren} pages in a row brought nothing new, and a continue token each: the list never ends"

    def _is_new(self, page: ResourceList[T], before: Sequence[T] | None) -> bool:
        if before is None:
            return bool(page.items)
        if self._keys is None:
            self._keys = {_key_of(item) for item in before}
        known = len(self._keys)
        self._keys.update(_key_of(item) for item in page.items)
        return len(self._keys) > known


def _key_of(item: object) -> object:
    try:
        return meta_namespace_key(item)
    except MalformedObjectError:
        return id(item)


@final
class Pager(Generic[T]):
    """The state of one paged list.

    ``next_request`` says what to ask; ``saw`` or ``failed`` tells the outcome; ``result`` is there once nothing is left
    to ask.
    """

    def __init__(
        self,
        options: ListOptions,
        *,
        page_size: int = DEFAULT_PAGE_SIZE,
        collect: bool = True,
    ) -> None:
        """Begin a list.

        Args:
            options: What to list; its ``limit``, where it has one, goes before ``page_size``.
            page_size: Objects in one page; 0 asks for everything at once.
            collect: Whether the items are kept for ``result``; not where each page is handed on as it comes.

        Raises:
            ValueError: If ``page_size`` is negative.
        """
        if page_size < 0:
            raise ValueError(f"page_size is {page_size}; 0 (everything at once) or more is needed")
        self._first = options
        self._next: ListOptions | None = options.replace(limit=options.limit or page_size)
        self._collect = collect
        self._items: list[T] = []
        self._resource_version = ""
        self._pages = 0
        self._fell_back = False
        self._progress = PageProgress[T]()

    @property
    def next_request(self) -> ListOptions | None:
        """The options of the next request, or None when the list is complete."""
        return self._next

    @property
    def paginated(self) -> bool:
        """Whether the server answered in more than one page."""
        return self._pages > 1 or self._fell_back

    @property
    def pages(self) -> int:
        """Pages seen."""
        return self._pages

    def saw(self, page: ResourceList[T]) -> None:
        """Take the answer to ``next_request``.

        Raises:
            MalformedObjectError: If the list would never end.
        """
        asked = self._asked()
        self._pages += 1
        why = self._progress.never_ends(page, before=self._items if self._collect else None)
        if why:
            raise MalformedObjectError(why)
        if self._pages == 1:
            self._resource_version = page.resource_version
        if self._collect:
            self._items.extend(page.items)
        if not page.continue_:
            self._next = None
            return
        self._next = asked.replace(continue_=page.continue_, resource_version="", resource_version_match="")

    def failed(self, error: DeltaloopError) -> bool:
        """Take the failure of ``next_request``; True if the list goes on, False if the error is the caller's to see."""
        self._asked()
        if not isinstance(error, ExpiredError) or self._pages == 0 or self._fell_back:
            return False
        self._fell_back = True
        self._items.clear()
        self._progress = PageProgress[T]()
        self._pages = 0
        self._next = self._first.replace(limit=0, continue_="")
        return True

    def result(self) -> ResourceList[T]:
        """Return all pages as one list.

        Raises:
            RuntimeError: If pages are still missing; a caller's bug.
        """
        if self._next is not None:
            raise RuntimeError("the list is not complete: next_request is not None")
        return ResourceList(items=tuple(self._items), resource_version=self._resource_version)

    def _asked(self) -> ListOptions:
        if self._next is None:
            raise RuntimeError("the list is complete; nothing was asked for")
        return self._next
