"""The verbs that read: get, list (one page, all, item by item), watch, and waiting for a condition.

Most verbs have two signatures, one for each way to name a resource.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Unpack, overload

from deltaloop.api.keys import join_key
from deltaloop.api.list_options import ListOptions
from deltaloop.api.resource import Resource, typed, untyped
from deltaloop.api.resource_type import ResourceType, TypedKind
from deltaloop.api.selectors import LabelSelector
from deltaloop.api.status import NotFoundError
from deltaloop.api.watch_event import WatchEvent
from deltaloop.client.core.pager import DEFAULT_PAGE_BUFFER, DEFAULT_PAGE_SIZE, Pager
from deltaloop.client.verbs.base_client import EVERYTHING, Caller, not_found, selected
from deltaloop.client.verbs.request_keywords import GetKeywords, Kind, ListKeywords, WaitKeywords
from deltaloop.client.verbs.resource_list import ResourceList
from deltaloop.client.verbs.watch import WatchStream, open_watch

if TYPE_CHECKING:
    from deltaloop.client.core.wait_conditions import Deleted, WaitCondition

T = TypeVar("T")


class ReadVerbs(Caller):
    """The verbs that change nothing.

    ``timeout`` is in seconds, for a whole call with its repeats; None is the client's own limit (30 s).
    """

    @overload
    async def get(self, kind: TypedKind[T], name: str, **keywords: Unpack[GetKeywords]) -> T: ...
    @overload
    async def get(self, kind: str, name: str, **keywords: Unpack[GetKeywords]) -> Resource: ...
    async def get(self, kind: Kind, name: str, **keywords: Unpack[GetKeywords]) -> Any:
        """Read one object, or a subresource that has the object's own type, such as ``status``.

        Raises:
            NotFoundError: If there is none of that name.
        """
        known = await self._known(kind, keywords.get("timeout"))
        return typed(known, await self._read(known, name, **keywords))

    @overload
    async def find(self, kind: TypedKind[T], name: str, **keywords: Unpack[GetKeywords]) -> T | None: ...
    @overload
    async def find(self, kind: str, name: str, **keywords: Unpack[GetKeywords]) -> Resource | None: ...
    async def find(self, kind: Kind, name: str, **keywords: Unpack[GetKeywords]) -> Any:
        """Read one object as ``get`` does, or return None if there is none of that name."""
        known = await self._known(kind, keywords.get("timeout"))
        found = await self._find(known, name, **keywords)
        return None if found is None else typed(known, found)

    @overload
    async def list(  # type: ignore[overload-overlap]  # the first that fits is what is meant
        self, kind: TypedKind[T], *, metadata_only: Literal[False] = False, **keywords: Unpack[ListKeywords]
    ) -> ResourceList[T]: ...
    @overload
    async def list(
        self, kind: TypedKind[Any], *, metadata_only: Literal[True], **keywords: Unpack[ListKeywords]
    ) -> ResourceList[Resource]: ...
    @overload
    async def list(
        self, kind: ResourceType[Resource] | str, *, metadata_only: bool = ..., **keywords: Unpack[ListKeywords]
    ) -> ResourceList[Resource]: ...
    async def list(
        self, kind: Kind, *, metadata_only: bool = False, **keywords: Unpack[ListKeywords]
    ) -> ResourceList[Any]:
        """Ask for objects in one request: everything, or one page if ``options.limit`` is set.

        The answer is decoded while it arrives, so that a large list needs its memory once. With ``metadata_only`` the
        server is asked for ``PartialObjectMetadata``; such objects come as ``Resource``, whatever the kind's class is.

        Raises:
            UnreadableItemsError: Some items are not objects; those that are can be had from the error.
        """
        known = await self._known(kind, keywords.get("timeout"))
        return await self._list(untyped(known) if metadata_only else known, metadata_only=metadata_only, **keywords)

    @overload
    async def list_all(
        self, kind: TypedKind[T], *, page_size: int = ..., **keywords: Unpack[ListKeywords]
    ) -> ResourceList[T]: ...
    @overload
    async def list_all(
        self, kind: str, *, page_size: int = ..., **keywords: Unpack[ListKeywords]
    ) -> ResourceList[Resource]: ...
    async def list_all(
        self, kind: Kind, *, page_size: int = DEFAULT_PAGE_SIZE, **keywords: Unpack[ListKeywords]
    ) -> ResourceList[Any]:
        """Read all objects, page by page; ``timeout`` is for each page.

        If the snapshot expires on the way, everything is asked for once more without pages.

        Source: client-go tools/pager, ``ListPager.List``.
        """
        known = await self._known(kind, keywords.get("timeout"))
        from deltaloop.client.verbs.pager import fetch_all

        pager = Pager[Any](_asked(keywords), page_size=page_size)
        return await fetch_all(self._pages(known, keywords), pager)

    @overload
    def iter_list(
        self, kind: TypedKind[T], *, page_size: int = ..., page_buffer: int = ..., **keywords: Unpack[ListKeywords]
    ) -> AsyncGenerator[T, None]: ...
    @overload
    def iter_list(
        self, kind: str, *, page_size: int = ..., page_buffer: int = ..., **keywords: Unpack[ListKeywords]
    ) -> AsyncGenerator[Resource, None]: ...
    def iter_list(
        self,
        kind: Kind,
        *,
        page_size: int = DEFAULT_PAGE_SIZE,
        page_buffer: int = DEFAULT_PAGE_BUFFER,
        **keywords: Unpack[ListKeywords],
    ) -> AsyncGenerator[Any, None]:
        """Go through all objects by ``async for``, without holding them all; ``timeout`` is for each page.

        Pages are read ahead in the background. An expired token is raised as ``ExpiredError``: what was given already
        cannot be taken back. Leave the loop early by ``contextlib.aclosing``, or the background task lives on until the
        iterator is collected.

        Args:
            kind: What to list.
            namespace: None means all namespaces.
            options: What to select.
            page_size: Objects in one page.
            page_buffer: Most pages that are read ahead; 0 asks for each page when the one before it is used up.
            timeout: Seconds for each page.

        Raises:
            ValueError: If ``page_size`` or ``page_buffer`` is negative.

        Source: client-go tools/pager, ``ListPager.EachListItem``.
        """
        if page_buffer < 0:
            raise ValueError(f"page_buffer is {page_buffer}; 0 (no reading ahead) or more is needed")
        from deltaloop.client.verbs.pager import each_item

        pager = Pager[Any](_asked(keywords), page_size=page_size, collect=False)

        async def items() -> AsyncGenerator[Any, None]:
            known = await self._known(kind, keywords.get("timeout"))
            found = each_item(self._pages(known, keywords), pager, page_buffer=page_buffer)
            try:
                async for item in found:
                    yield item
            finally:
                await found.aclose()

        return items()

    @asynccontextmanager
    async def watch(
        self,
        kind: Kind,
        *,
        namespace: str | None = None,
        options: ListOptions = EVERYTHING,
        selector: str | LabelSelector | None = None,
        timeout: float | None = None,
        metadata_only: bool = False,
    ) -> AsyncGenerator[WatchStream, None]:
        """Watch objects: entering opens the stream, iterating gives its events, leaving closes it.

        Iteration ends when the server ends the stream; it raises ``ApiError`` for an ERROR event (``ExpiredError``:
        list again), ``MalformedEventError`` for a line that is no event, ``ResponseTooLargeError`` for one of more than
        ``ClientConfig.max_event_bytes``, and ``StreamEndedError`` when the stream
        breaks off, is 15 s overdue (``options.timeout_seconds``), or is silent for 90 s after it has shown a bookmark.
        ``timeout`` is for opening it only. Nothing is repeated: resuming is the reflector's business. The stream says
        when its last byte came (``last_byte_at``). With ``metadata_only`` the events carry ``PartialObjectMetadata``.
        """
        known = await self._known(kind, timeout)
        options = selected(options, selector)
        async with AsyncExitStack() as stack:
            try:
                opening = self._open_watch(known, namespace, options, timeout, metadata_only=metadata_only)
                events = await stack.enter_async_context(opening)
            except NotFoundError as error:
                moved = await self._moved(known, error, timeout)
                opening = self._open_watch(moved, namespace, options, timeout, metadata_only=metadata_only)
                events = await stack.enter_async_context(opening)
            yield events

    def _open_watch(
        self,
        known: ResourceType[Any],
        namespace: str | None,
        options: ListOptions,
        timeout: float | None,
        *,
        metadata_only: bool,
    ) -> AbstractAsyncContextManager[WatchStream]:
        namespace = self._usable(known, namespace)
        self._check_access("watch", known, namespace)
        return open_watch(
            self._sender,
            known,
            known.path(namespace=namespace),
            options.to_query(),
            timeout_seconds=options.timeout_seconds,
            timeout=timeout,
            on_warning=self._on_warning,
            metadata_only=metadata_only,
            drop_managed_fields=options.drop_managed_fields,
            max_event_bytes=self._config.max_event_bytes,
        )

    @overload
    async def wait_for(self, kind: Kind, name: str, condition: Deleted, **keywords: Unpack[WaitKeywords]) -> None: ...
    @overload
    async def wait_for(
        self, kind: TypedKind[T], name: str, condition: WaitCondition, **keywords: Unpack[WaitKeywords]
    ) -> T: ...
    @overload
    async def wait_for(
        self, kind: str, name: str, condition: WaitCondition, **keywords: Unpack[WaitKeywords]
    ) -> Resource: ...
    async def wait_for(
        self,
        kind: Kind,
        name: str,
        condition: WaitCondition | Deleted,
        *,
        namespace: str | None = None,
        timeout: float | None = None,
        ignore_deletion: bool = False,
    ) -> Any:
        """Wait until an object fulfils a condition, and return it as it was then; None for ``deleted()``.

        The object is listed, then watched from there: no state is missed but after a 410. Streams that end, expired
        versions and failures that may pass are survived. Cancelling closes the watch.

        Args:
            kind: What kind of object; the verbs ``list`` and ``watch`` must be allowed.
            name: Name of the object; it need not exist yet.
            condition: ``deleted()``, ``created()``, ``ready()``, ``established()``, ``status_condition(...)``,
                ``field_value(...)``, or anything that is a ``WaitCondition``.
            namespace: The client's by default.
            timeout: Seconds for everything; None is the configured default (30).
            ignore_deletion: Whether to continue when the object is deleted, because another one of its name may come.

        Raises:
            NotFoundError: If the object was there and is deleted, or replaced by another one of its name.
            WaitTimeoutError: If it does not happen in time; the message says what was last seen.
            ApiError: If the server refuses in a way that will not pass, such as 403.
        """
        limit = self._config.request_timeout if timeout is None else timeout
        until = asyncio.get_running_loop().time() + limit
        known = await self._known(kind, limit)
        raw_type = untyped(known)
        where = self._namespace(raw_type, namespace)
        raw_type.path(namespace=where, name=name)  # refuses what is no name

        async def ask(options: ListOptions, left: float) -> ResourceList[Resource]:
            return await self.list(raw_type, namespace=where, options=options, timeout=left)

        def watch(options: ListOptions, left: float) -> AbstractAsyncContextManager[AsyncIterator[WatchEvent]]:
            return self.watch(raw_type, namespace=where, options=options, timeout=left)

        from deltaloop.client.core.waiting import Waiting
        from deltaloop.client.verbs.waiting import wait_until

        waiting = Waiting(name, condition, ignore_deletion=ignore_deletion)
        found = await wait_until(
            waiting,
            ask,
            watch,
            field_selector=f"metadata.name={name}",
            what=f"{known} {join_key(where or '', name)}",
            until=until,
            limit=limit,
        )
        if waiting.gone:
            raise not_found(raw_type, name, f"was deleted while waiting for {waiting.condition}")
        return None if found is None else typed(known, found)

    def _pages(
        self, known: ResourceType[Any], keywords: ListKeywords
    ) -> Callable[[ListOptions], Awaitable[ResourceList[Any]]]:
        asked = keywords.copy()
        asked["selector"] = None  # it is in the options of every page

        async def fetch(page: ListOptions) -> ResourceList[Any]:
            asked["options"] = page
            return await self._list(known, **asked)

        return fetch


def _asked(keywords: ListKeywords) -> ListOptions:
    return selected(keywords.get("options", EVERYTHING), keywords.get("selector"))
