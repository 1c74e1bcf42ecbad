"""Decide the requests of a paged list, and combine the pages.

1. Each page is requested with ``limit``. The first request also contains the caller's resource version and match.
2. While the server returns a continue token, the next request contains the token, but neither resource version nor
   match, because servers reject both together with a token (400).
3. If the token has expired (410 ``Expired`` on page 2 or later), the pages are dropped, and the complete list is
   requested once without a limit, at the original resource version and match. Other errors, and errors on page 1, end
   the list.
4. The resource version of the list is the version of the first page, because the pages are one snapshot.

A list without end is an error: a continue token is repeated or, after page 100, another hundred consecutive pages
contain no new object. Iteration item by item only uses rules 1 and 2, because delivered items cannot be taken back.

Source: client-go tools/pager/pager.go, ``ListPager.List``, ``ListPager.EachListItem``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Generic, TypeVar, final

from deltaloop.api.errors import DeltaloopError, InvalidArgumentError, MalformedObjectError
from deltaloop.api.keys import meta_namespace_key
from deltaloop.api.list_options import DEFAULT_PAGE_SIZE, ListOptions
from deltaloop.api.status import ExpiredError
from deltaloop.client.verbs.resource_list import ResourceList

_TRUSTED_PAGES: Final = 100
_BARREN_PAGES: Final = 100

T = TypeVar("T")


@final
class PageProgress(Generic[T]):
    """Detector of lists that never end."""

    def __init__(self) -> None:
        self._tokens: set[str] = set()
        self._keys: set[object] | None = None
        self._barren = 0

    def never_ends(self, page: ResourceList[T], *, before: Sequence[T] | None) -> str:
        """Record a page, and return the reason why the list never ends, or ""."""
        if not page.continue_:
            return ""
        if page.continue_ in self._tokens:
            return "the list never ends: the server repeated a continue token"
        self._tokens.add(page.continue_)
        if len(self._tokens) <= _TRUSTED_PAGES:
            return ""
        self._barren = 0 if self._is_new(page, before) else self._barren + 1
        if self._barren < _BARREN_PAGES:
            return ""
        return f"the list never ends: {self._barren} successive pages have a continue token but no new objects"

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
    """State of a paged list.

    Send ``next_request``, then report the outcome with ``saw`` or ``failed``. ``result`` is available once
    ``next_request`` is None.
    """

    def __init__(
        self,
        options: ListOptions,
        *,
        page_size: int = DEFAULT_PAGE_SIZE,
        collect: bool = True,
    ) -> None:
        """Start a list.

        Args:
            options: List options. Their ``limit`` takes precedence over ``page_size``.
            page_size: Objects per page. 0 requests all objects at once.
            collect: Whether to keep the items for ``result``.

        Raises:
            ValueError: If ``page_size`` is negative.
        """
        if page_size < 0:
            raise InvalidArgumentError(f"must be >= 0, got {page_size}. 0 disables paging.", argument="page_size")
        self._first = options
        self._next: ListOptions | None = options.replace(limit=options.limit or page_size)
        self._collect = collect
        self._items: list[T] = []
        self._resource_version = ""
        self._shard_selector = ""
        self._pages = 0
        self._fell_back = False
        self._progress = PageProgress[T]()

    @property
    def next_request(self) -> ListOptions | None:
        """Options of the next request, or None if the list is complete."""
        return self._next

    @property
    def paginated(self) -> bool:
        """Whether the server returned more than one page."""
        return self._pages > 1 or self._fell_back

    @property
    def pages(self) -> int:
        """Number of received pages."""
        return self._pages

    def saw(self, page: ResourceList[T]) -> None:
        """Record the response to ``next_request``.

        Raises:
            MalformedObjectError: If the list never ends.
        """
        asked = self._asked()
        self._pages += 1
        why = self._progress.never_ends(page, before=self._items if self._collect else None)
        if why:
            raise MalformedObjectError(why)
        if self._pages == 1:
            self._resource_version = page.resource_version
            self._shard_selector = page.shard_selector
        if self._collect:
            self._items.extend(page.items)
        if not page.continue_:
            self._next = None
            return
        self._next = asked.replace(continue_=page.continue_, resource_version="", resource_version_match="")

    def failed(self, error: DeltaloopError) -> bool:
        """Record the failure of ``next_request``.

        Return True to continue, or False to raise the error.
        """
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
            RuntimeError: If the list is not complete.
        """
        if self._next is not None:
            raise RuntimeError("the list is not complete: next_request is not None")
        return ResourceList(
            items=tuple(self._items), resource_version=self._resource_version, shard_selector=self._shard_selector
        )

    def _asked(self) -> ListOptions:
        if self._next is None:
            raise RuntimeError("the list is complete: no request is pending")
        return self._next
