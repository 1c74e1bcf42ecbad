"""All verbs, each written once: what a client of a server and the client of a reconcile have in common.

A verb finds the kind (one look into a dictionary, if it was met before), makes a request of its arguments, and asks the
way of its client, which reads and writes: a server, or caches with a server behind them.

Most verbs have two signatures, one for each way to name a kind. Conflicts of ``create_or_update`` are not hidden; those
of finalizers are tried again, because nothing else of the object matters to them.

Source: controller-runtime pkg/controller/controllerutil/controllerutil.go.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, TypeVar, Unpack, overload

from deltaloop.api import kinds
from deltaloop.api.errors import InvalidArgumentError, MalformedObjectError
from deltaloop.api.json_values import type_of
from deltaloop.api.json_writing import json_for_yaml, plain_fields, plain_json, sorted_json, write_json
from deltaloop.api.keys import join_key
from deltaloop.api.list_options import ListOptions
from deltaloop.api.resource import Resource, typed
from deltaloop.api.resource_type import ResourceType, TypedKind
from deltaloop.api.selectors import LabelSelector
from deltaloop.api.set_fields import set_fields
from deltaloop.api.status import ConflictError, NotFoundError
from deltaloop.api.watch_event import WatchEvent
from deltaloop.client.core.edited_objects import edit_patch, refuse_what_no_edit_changes
from deltaloop.client.core.object_encoding import encode_object
from deltaloop.client.core.pager import DEFAULT_PAGE_BUFFER, DEFAULT_PAGE_SIZE, Pager
from deltaloop.client.options import LogOptions, PatchType, WriteOptions
from deltaloop.client.verbs.logs import LogStream
from deltaloop.client.verbs.request_keywords import (
    ApplyKeywords,
    DeleteCollectionKeywords,
    DeleteKeywords,
    GetKeywords,
    Kind,
    ListKeywords,
    PatchKeywords,
    RequestKeywords,
    SubresourceWriteKeywords,
    WaitKeywords,
    WriteKeywords,
)
from deltaloop.client.verbs.resource_list import ResourceList
from deltaloop.client.verbs.server import EVERYTHING, SCALE, Way, WriteRequest, WriteVerb, not_found, place_of, selected
from deltaloop.client.verbs.watch import WatchStream, open_watch

if TYPE_CHECKING:
    from deltaloop.client.core.resource_index import ResourceIndex
    from deltaloop.client.core.wait_conditions import Deleted, WaitCondition
    from deltaloop.client.discovery import BoundKind
    from deltaloop.types.written import KindOf, Written

T = TypeVar("T")
W = TypeVar("W")

Change: TypeAlias = Callable[[dict[str, Any]], object]
Patch: TypeAlias = Mapping[str, Any] | Sequence[Mapping[str, Any]]

_APPLY: Final = "application/apply-patch+yaml"
_CONFLICT_TRIES: Final = 5
_NO_OPTIONS: Final = LogOptions()


class OperationResult(Enum):
    """What ``create_or_update`` did."""

    UNCHANGED = "unchanged"
    CREATED = "created"
    UPDATED = "updated"


class Verbs:
    """All verbs; the part ``status`` of an object is in ``get``, ``update_status``, ``patch`` and ``apply``.

    ``timeout`` is in seconds, for a whole call with its repeats; None is the client's own limit (30 s).
    """

    def __init__(self, way: Way, kinds: dict[int, BoundKind]) -> None:
        """Ask in one way; ``kinds`` are those that verbs have met, by the ``id`` of what names them."""
        self._way = way
        self._kinds = kinds

    @property
    def namespace(self) -> str:
        """Default namespace for methods that access one object."""
        return self._way.home

    async def resource(self, name: str, *, timeout: float | None = None) -> ResourceType[Resource]:
        """Find a resource that the server serves by any of its names.

        Args:
            name: Plural, singular, kind, short name (``deploy``), ``deployments.apps``, ``deployments.v1.apps`` or
                ``apps/v1/Deployment``, in upper or lower case.
            timeout: Seconds for each request.

        Raises:
            UnknownResourceError: If there is none of that name; the message lists names like it.
        """
        return await self._way.server.discovery.find(name, timeout=timeout)

    async def resources(self, *, timeout: float | None = None) -> ResourceIndex:
        """Return everything that the server serves; asked once and kept, ``resource`` refreshes it when needed.

        ``timeout`` is in seconds, for each request.
        """
        return await self._way.server.discovery.resources(timeout=timeout)

    @overload
    async def get(self, kind: TypedKind[T], name: str, **keywords: Unpack[GetKeywords]) -> T: ...
    @overload
    async def get(self, kind: str, name: str, **keywords: Unpack[GetKeywords]) -> Resource: ...
    async def get(self, kind: Kind, name: str, **keywords: Unpack[GetKeywords]) -> Any:
        """Read one object, or a subresource that has the object's own type, such as ``status``.

        Raises:
            NotFoundError: If there is none of that name.
        """
        known = self._kinds.get(id(kind)) or await self._bind(kind, keywords.get("timeout"))
        found = await self._way.read(known, name, **keywords)
        return found if known.decode is None or found is None else known.decode(found)

    @overload
    async def find(self, kind: TypedKind[T], name: str, **keywords: Unpack[GetKeywords]) -> T | None: ...
    @overload
    async def find(self, kind: str, name: str, **keywords: Unpack[GetKeywords]) -> Resource | None: ...
    async def find(self, kind: Kind, name: str, **keywords: Unpack[GetKeywords]) -> Any:
        """Read one object as ``get`` does, or return None if there is none of that name."""
        known = self._kinds.get(id(kind)) or await self._bind(kind, keywords.get("timeout"))
        found = await self._way.read(known, name, must_exist=False, **keywords)
        return found if known.decode is None or found is None else known.decode(found)

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
        known = self._kinds.get(id(kind)) or await self._bind(kind, keywords.get("timeout"))
        return await self._list(known, metadata_only=metadata_only, **keywords)

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
        known = self._kinds.get(id(kind)) or await self._bind(kind, keywords.get("timeout"))
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
            known = self._kinds.get(id(kind)) or await self._bind(kind, keywords.get("timeout"))
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
        known = self._kinds.get(id(kind)) or await self._bind(kind, timeout)
        options = selected(options, selector)
        async with AsyncExitStack() as stack:
            asked = options, namespace, timeout, metadata_only
            try:
                events = await stack.enter_async_context(self._open_watch(known, *asked))
            except NotFoundError as error:
                known = await self._way.server.moved(known, error, timeout)
                events = await stack.enter_async_context(self._open_watch(known, *asked))
            yield events

    def _open_watch(
        self, known: BoundKind, options: ListOptions, namespace: str | None, timeout: float | None, metadata_only: bool
    ) -> AbstractAsyncContextManager[WatchStream]:
        server = self._way.server
        namespace = server.usable(known.type, namespace)
        if server.access_check is not None:
            server.access_check("watch", known.type, namespace, "")
        return open_watch(
            server.sender,
            known.type,
            known.type.path(namespace=namespace),
            options.to_query(),
            timeout_seconds=options.timeout_seconds,
            timeout=timeout,
            on_warning=server.on_warning,
            metadata_only=metadata_only,
            drop_managed_fields=options.drop_managed_fields,
            max_event_bytes=server.config.max_event_bytes,
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
        limit = self._way.server.config.request_timeout if timeout is None else timeout
        until = asyncio.get_running_loop().time() + limit
        known = self._kinds.get(id(kind)) or await self._bind(kind, limit)
        raw_type, where = known.untyped, place_of(self._way, known, namespace)
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
            what=f"{known.text} {join_key(where or '', name)}",
            until=until,
            limit=limit,
        )
        if waiting.gone:
            raise not_found(raw_type, name, f"was deleted while waiting for {waiting.condition}")
        return found if known.decode is None or found is None else known.decode(found)

    async def _list(
        self,
        known: BoundKind,
        *,
        selector: str | LabelSelector | None = None,
        options: ListOptions = EVERYTHING,
        **keywords: Any,
    ) -> ResourceList[Any]:
        return await self._way.list(known, options=selected(options, selector), **keywords)

    def _pages(self, known: BoundKind, keywords: ListKeywords) -> Callable[[ListOptions], Awaitable[ResourceList[Any]]]:
        asked: dict[str, Any] = {**keywords, "selector": None}  # it is in the options of every page

        def read(page: ListOptions) -> Awaitable[ResourceList[Any]]:
            of_page: dict[str, Any] = {**asked, "options": page}
            return self._list(known, **of_page)

        return read

    @overload
    async def create(self, kind: KindOf[T, W], obj: W | Written, **keywords: Unpack[WriteKeywords]) -> T: ...
    @overload
    async def create(self, kind: type[T], obj: object, **keywords: Unpack[WriteKeywords]) -> T: ...
    @overload
    async def create(self, kind: str, obj: object, **keywords: Unpack[WriteKeywords]) -> Resource: ...
    async def create(self, kind: Any, obj: object, **keywords: Unpack[WriteKeywords]) -> Any:
        """Create an object and return it as stored; ``metadata.generateName`` works in place of a name.

        Raises:
            AlreadyExistsError: If there is one of that name.
        """
        known = self._kinds.get(id(kind)) or await self._bind(kind, keywords.get("timeout"))
        return await self._store("create", known, obj, **keywords)

    @overload
    async def update(self, kind: KindOf[T, W], obj: W | Written, **keywords: Unpack[WriteKeywords]) -> T: ...
    @overload
    async def update(self, kind: type[T], obj: object, **keywords: Unpack[WriteKeywords]) -> T: ...
    @overload
    async def update(self, kind: str, obj: object, **keywords: Unpack[WriteKeywords]) -> Resource: ...
    async def update(self, kind: Any, obj: object, **keywords: Unpack[WriteKeywords]) -> Any:
        """Replace an object and return it as stored; where there is a status subresource, ``status`` stays as it is.

        Raises:
            ConflictError: If the object has changed since its ``metadata.resourceVersion``.
        """
        known = self._kinds.get(id(kind)) or await self._bind(kind, keywords.get("timeout"))
        return await self._store("update", known, obj, **keywords)

    @overload
    async def update_status(self, kind: TypedKind[T], obj: object, **keywords: Unpack[WriteKeywords]) -> T: ...
    @overload
    async def update_status(self, kind: str, obj: object, **keywords: Unpack[WriteKeywords]) -> Resource: ...
    async def update_status(self, kind: Kind, obj: object, **keywords: Unpack[WriteKeywords]) -> Any:
        """Replace the ``status`` of an object and return it as stored; everything else stays as it is.

        Raises:
            ConflictError: If the object has changed since its ``metadata.resourceVersion``.
            NotFoundError: If the kind has no status subresource, or there is no such object.
        """
        known = self._kinds.get(id(kind)) or await self._bind(kind, keywords.get("timeout"))
        return await self._store("update", known, obj, subresource="status", **keywords)

    @overload
    async def apply(self, kind: KindOf[T, W], obj: W | Written, **keywords: Unpack[ApplyKeywords]) -> T: ...
    @overload
    async def apply(self, kind: type[T], obj: object, **keywords: Unpack[ApplyKeywords]) -> T: ...
    @overload
    async def apply(self, kind: str, obj: object, **keywords: Unpack[ApplyKeywords]) -> Resource: ...
    async def apply(self, kind: Any, obj: object, **keywords: Unpack[ApplyKeywords]) -> Any:
        """Server-side apply: say which fields this manager wants to have, creating the object if it is missing.

        Give the fields that are yours and no others; fields that were given before and are now missing are removed. An
        object as read from the server is refused by it (``managedFields``). Controllers should ``force`` what they own.

        Raises:
            ConflictError: If another manager has one of the fields and ``force`` is not set.
            MalformedObjectError: If the object has no name.
        """
        known = self._kinds.get(id(kind)) or await self._bind(kind, keywords.get("timeout"))
        return await self._store("apply", known, obj, **keywords)

    @overload
    async def patch(self, kind: TypedKind[T], name: str, patch: Patch, **keywords: Unpack[PatchKeywords]) -> T: ...
    @overload
    async def patch(self, kind: str, name: str, patch: Patch, **keywords: Unpack[PatchKeywords]) -> Resource: ...
    async def patch(
        self,
        kind: Kind,
        name: str,
        patch: Patch,
        *,
        type: PatchType = PatchType.MERGE,  # noqa: A002 - the API's word
        **keywords: Unpack[SubresourceWriteKeywords],
    ) -> Any:
        """Change an object and return it as stored; ``apply`` is the verb of server-side apply.

        A ``metadata.resourceVersion`` in a merge patch makes it conditional, in a JSON patch a ``test`` operation does.

        Args:
            kind: What kind of object.
            name: The object's name.
            patch: A mapping; for a JSON patch (RFC 6902) a list of operations. In a merge patch (RFC 7386) None removes
                a field.
            type: How the patch is meant. Strategic merge, which merges lists by key, is for built-in kinds only.
            **keywords: Of the write.

        Raises:
            ConflictError: If that version is not the present one.
            InvalidArgumentError: If the patch does not fit its type.
        """
        known = self._kinds.get(id(kind)) or await self._bind(kind, keywords.get("timeout"))
        if isinstance(patch, Mapping) == (type is PatchType.JSON):
            wanted = "a list of operations" if type is PatchType.JSON else "a mapping"
            raise InvalidArgumentError(f"{known.text} {name!r}: a patch of type {type.name} is {wanted}")
        return await self._patch(known, name, patch, type, **keywords)

    @overload
    async def delete(self, kind: TypedKind[T], name: str, **keywords: Unpack[DeleteKeywords]) -> T | None: ...
    @overload
    async def delete(self, kind: str, name: str, **keywords: Unpack[DeleteKeywords]) -> Resource | None: ...
    async def delete(self, kind: Kind, name: str, **keywords: Unpack[DeleteKeywords]) -> Any:
        """Delete an object, or mark it for deletion if finalizers or a grace period hold it.

        Returns:
            The object, where the server answers with it (it is still there, or has just gone), else None.

        Raises:
            NotFoundError: If there is none of that name.
            ConflictError: If a precondition of ``options`` does not hold.
        """
        known = self._kinds.get(id(kind)) or await self._bind(kind, keywords.get("timeout"))
        found = await self._way.write(self._request("delete", known, name, **keywords))
        return found if known.decode is None or found is None else known.decode(found)

    @overload
    async def delete_collection(
        self, kind: TypedKind[T], **keywords: Unpack[DeleteCollectionKeywords]
    ) -> ResourceList[T] | None: ...
    @overload
    async def delete_collection(
        self, kind: str, **keywords: Unpack[DeleteCollectionKeywords]
    ) -> ResourceList[Resource] | None: ...
    async def delete_collection(
        self,
        kind: Kind,
        *,
        selection: ListOptions = EVERYTHING,
        selector: str | LabelSelector | None = None,
        **keywords: Unpack[DeleteKeywords],
    ) -> Any:
        """Delete all objects of a namespace, or of a kind without namespaces, or those that are selected.

        A namespace must be named: what deletes much takes no default.

        Returns:
            The objects, where the server answers with them, else None.

        Raises:
            InvalidArgumentError: If the kind has namespaces and none is given.
        """
        known = self._kinds.get(id(kind)) or await self._bind(kind, keywords.get("timeout"))
        if known.namespaced and not keywords.get("namespace"):
            raise InvalidArgumentError(f"delete_collection of {known.text} needs a namespace: it takes no default")
        query = selected(selection, selector).to_query()
        return await self._way.write(self._request("delete_collection", known, "", query=query, **keywords))

    @overload
    async def create_or_update(
        self, kind: TypedKind[T], name: str, change: Change, **keywords: Unpack[WriteKeywords]
    ) -> tuple[OperationResult, T]: ...
    @overload
    async def create_or_update(
        self, kind: str, name: str, change: Change, **keywords: Unpack[WriteKeywords]
    ) -> tuple[OperationResult, Resource]: ...
    async def create_or_update(
        self,
        kind: Kind,
        name: str,
        change: Change,
        *,
        namespace: str | None = None,
        options: WriteOptions | None = None,
        timeout: float | None = None,
    ) -> Any:
        """Bring one object into the wanted shape: create it if it is missing, update it if ``change`` changes it.

        A conflict is not hidden: a reconcile fails and runs again with what is there then, as upstream has it.

        Args:
            kind: What kind of object.
            name: The object's name.
            change: Gets the object as a dict (of a missing one: its names only) and sets what it is to have; it must
                not change name or namespace. It is called on the event loop.
            namespace: The client's by default.
            options: Of the write.
            timeout: Seconds for each request.

        Returns:
            What was done, and the object as it is stored.

        Raises:
            ConflictError: If another program changed the object meanwhile.
            AlreadyExistsError: If another program created it meanwhile.
            InvalidArgumentError: If ``change`` changed the names.

        Source: controller-runtime pkg/controller/controllerutil ``CreateOrUpdate``.
        """
        known = self._kinds.get(id(kind)) or await self._bind(kind, timeout)
        present = await self._way.read(known, name, must_exist=False, namespace=namespace, timeout=timeout)
        if present is None:
            namespace = place_of(self._way, known, namespace)
            fields: dict[str, Any] = _blank(known.type, name, namespace)
            before, names = b"", (name, namespace or "")
        else:
            fields = present.edit()
            before, names = sorted_json(fields), (present.name, present.namespace)
        change(fields)
        metadata: Mapping[str, Any] | None = fields.get("metadata")
        # If the metadata is not a mapping, encode_object raises an error.
        named = type_of(metadata) is dict or isinstance(metadata, Mapping)
        if metadata is not None and named and (metadata.get("name") or "", metadata.get("namespace") or "") != names:
            raise InvalidArgumentError(
                f"create_or_update of {known.text} {name!r}: the change must not change its names"
            )
        if present is None:
            made = await self._store("create", known, fields, namespace=namespace, options=options, timeout=timeout)
            return OperationResult.CREATED, made
        now = plain_json(fields, sorted_json)  # None if more is in it than the encoder says
        if now == before or (now is None and Resource.from_dict(fields, present.resource_type) == present):
            return OperationResult.UNCHANGED, present if known.decode is None else known.decode(present)
        made = await self._store("update", known, fields, namespace=namespace, options=options, timeout=timeout)
        return OperationResult.UPDATED, made

    async def edit(
        self,
        kind: TypedKind[T],
        name: str,
        change: Callable[[T], T | None],
        *,
        namespace: str | None = None,
        options: WriteOptions | None = None,
        timeout: float | None = None,
    ) -> T:
        """Change one object of a class, and return it as stored: what ``change`` sets is sent, and nothing else.

        A merge patch with the version that was read is sent, if anything has changed. What the class does not have
        stays as it is, and a default that nobody set stays absent. A field that is set to None or ``UNSET`` is taken
        away. A conflict is not hidden, as that of ``create_or_update``.

        Args:
            kind: The class, or its resource type.
            name: The object's name.
            change: Gets the object, and sets fields of it, or returns another one in its place, such as one of
                ``msgspec.structs.replace``. It is called on the event loop.
            namespace: The client's by default.
            options: Of the write.
            timeout: Seconds for each request.

        Raises:
            NotFoundError: If there is none of that name.
            ConflictError: If another program changed the object meanwhile.
            MalformedObjectError: If the object does not fit the class.
            InvalidArgumentError: If the kind has no class, or ``change`` changed names, or the status of a kind whose
                status is a subresource.
        """
        known = self._kinds.get(id(kind)) or await self._bind(kind, timeout)
        if known.type.model in (None, Resource, dict, bytes):
            raise InvalidArgumentError(
                f"{known.text} has no class that could be edited: use patch, or create_or_update"
            )
        present: Resource = await self._way.read(known, name, namespace=namespace, timeout=timeout)
        obj: T = typed(known.type, present)
        before = plain_fields(obj)
        changed = change(obj)
        edited = obj if changed is None else changed
        patch = edit_patch(present.to_dict(), before, plain_fields(edited), set_fields(edited))
        if not patch:
            return edited
        refuse_what_no_edit_changes(known.type, patch)
        base = {"uid": present.uid, "resourceVersion": present.resource_version}
        patch["metadata"] = {**patch.get("metadata", {}), **base}
        stored: T = await self._patch(known, name, patch, namespace=namespace, options=options, timeout=timeout)
        return stored

    async def add_finalizer(self, kind: TypedKind[T] | str, obj: T, name: str, **keywords: Unpack[WriteKeywords]) -> T:
        """See to it that an object has a finalizer, and return it as stored; conflicts are tried again.

        Nothing but the finalizers is sent, as a merge patch: the object may lack what a cache's transform dropped. An
        object that has the finalizer is read again, because it may be an old state of the object.

        Raises:
            NotFoundError: If the object is gone.
            ConflictError: If it changes all the time.
        """
        return await self._change_finalizers(kind, obj, lambda present: dict.fromkeys((*present, name)), **keywords)

    async def remove_finalizer(
        self, kind: TypedKind[T] | str, obj: T, name: str, **keywords: Unpack[WriteKeywords]
    ) -> T | None:
        """See to it that an object does not have a finalizer, and return it as stored; None if it is gone.

        An object that does not have the finalizer is read again, because it may be an old state of the object.

        Raises:
            ConflictError: If the object changes all the time.
        """
        try:
            return await self._change_finalizers(kind, obj, lambda present: filter(name.__ne__, present), **keywords)
        except NotFoundError:
            return None

    async def get_scale(self, kind: Kind, name: str, **keywords: Unpack[RequestKeywords]) -> Resource:
        """Read the ``Scale`` of an object: wanted and present replicas, and the selector of its pods.

        Raises:
            NotFoundError: If there is no such object, or its kind cannot be scaled.
        """
        known = self._kinds.get(id(kind)) or await self._bind(kind, keywords.get("timeout"))
        found = await self._way.read(known, name, subresource="scale", **keywords)
        return Resource.from_json(found.raw, SCALE)

    async def scale(
        self, kind: Kind, name: str, replicas: int, *, resource_version: str = "", **keywords: Unpack[WriteKeywords]
    ) -> Resource:
        """Set how many replicas are wanted, whatever field of the kind says so; return the ``Scale``.

        Args:
            kind: What kind of object.
            name: The object's name.
            replicas: How many replicas are wanted.
            resource_version: Only if the object is at this version; empty means at any.
            **keywords: Of the write.

        Raises:
            ConflictError: If the object is not at that version.
        """
        known = self._kinds.get(id(kind)) or await self._bind(kind, keywords.get("timeout"))
        patch: dict[str, object] = {"spec": {"replicas": replicas}}
        if resource_version:
            patch["metadata"] = {"resourceVersion": resource_version}
        scaled: Resource = await self._patch(known, name, patch, subresource="scale", **keywords)
        return scaled

    async def evict(self, name: str, **keywords: Unpack[DeleteKeywords]) -> None:
        """Delete the pod of a name if its disruption budgets allow it.

        Raises:
            TooManyRequestsError: If a budget does not allow it now.
        """
        known = self._kinds.get(id(kinds.POD)) or await self._bind(kinds.POD, None)
        place, options = place_of(self._way, known, keywords.get("namespace")), keywords.get("options")
        metadata = {"name": name, "namespace": place}
        eviction: dict[str, object] = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata}
        if options is not None:
            eviction["deleteOptions"] = options.to_dict()
        body = write_json(eviction, "the eviction")
        await self._way.write(self._request("create", known, name, body=body, subresource="eviction", **keywords))

    async def create_subresource(
        self,
        kind: Kind,
        name: str,
        subresource: str,
        obj: Mapping[str, Any] | Resource,
        **keywords: Unpack[WriteKeywords],
    ) -> Resource:
        """Create something below an object, such as ``token`` of a service account or ``binding`` of a pod.

        Args:
            kind: What kind of object.
            name: The object's name.
            subresource: Name of the subresource.
            obj: What is sent, with its ``apiVersion`` and ``kind``.
            **keywords: Of the write.
        """
        known = self._kinds.get(id(kind)) or await self._bind(kind, keywords.get("timeout"))
        body, query = (
            write_json(obj, f"the {subresource} of {known.text} {name!r}"),
            self._query(keywords.get("options")),
        )
        request = self._request("create", known, name, body=body, query=query, subresource=subresource, **keywords)
        made: Resource = await self._way.write(request)
        return made

    @asynccontextmanager
    async def logs(
        self,
        name: str,
        *,
        namespace: str | None = None,
        options: LogOptions = _NO_OPTIONS,
        timeout: float | None = None,
    ) -> AsyncGenerator[LogStream, None]:
        """Read the log of a container: entering opens it, iterating gives its lines, leaving closes it.

        A log is data: it may hold anything that the program wrote. Nothing of it is logged here.

        Args:
            name: Name of the pod.
            namespace: The client's by default.
            options: Which container, which lines, and whether to go on.
            timeout: Seconds until the server has accepted; the stream itself has no limit.

        Raises:
            ApiError: On entering, if the server refuses, such as 400 for a container that has not started.
            StreamEndedError: While reading, if the stream breaks off.
        """
        known = self._kinds.get(id(kinds.POD)) or await self._bind(kinds.POD, None)
        server, place = self._way.server, place_of(self._way, known, namespace)
        path = kinds.POD.path(namespace=place, name=name, subresource="log")
        if server.access_check is not None:
            server.access_check("get", kinds.POD, place, "log")
        async with server.sender.stream(
            path, query=options.to_query(), accept="*/*", timeout=timeout, on_warning=server.on_warning
        ) as answer:
            yield LogStream(answer.chunks, path=path, max_line_bytes=server.config.max_event_bytes)

    # -- how

    async def _bind(self, kind: Kind, timeout: float | None) -> BoundKind:
        """Find a kind that no verb has met yet: of classes and built-in kinds without a question."""
        return await self._way.server.discovery.bind(kind, timeout=timeout)

    def _request(
        self, verb: WriteVerb, known: BoundKind, name: str, *, namespace: str | None = None, **more: Any
    ) -> WriteRequest:
        """Return a write; ``more`` are other attributes of it."""
        place = place_of(self._way, known, namespace)
        return WriteRequest(verb=verb, kind=known, name=name, namespace=place, **more)

    def _query(self, options: WriteOptions | None) -> Mapping[str, str]:
        always = self._way.server.write_query
        return always if options is None else {**always, **options.to_query()}

    async def _change_finalizers(
        self,
        kind: TypedKind[T] | str,
        obj: T,
        change: Callable[[Sequence[str]], Iterable[str]],
        *,
        namespace: str | None = None,
        options: WriteOptions | None = None,
        timeout: float | None = None,
    ) -> T:
        known = self._kinds.get(id(kind)) or await self._bind(kind, timeout)
        present = obj if isinstance(obj, Resource) else Resource.from_json(encode_object(known.type, obj).body)
        name, uid, place = present.name, present.uid, namespace or present.namespace or None
        if not name:
            raise MalformedObjectError(
                f"the {known.text} object has no metadata.name, which its finalizers need", given=True
            )

        async def asked(way: Way) -> Resource:
            found: Resource = await way.read(known, name, namespace=place, timeout=timeout)
            if uid and found.uid != uid:
                raise not_found(known.type, name)
            return found

        server = self._way.server  # after a conflict it is asked, and no cache: the conflict was not of the cache
        if not present.resource_version:  # a patch replaces the whole list
            present = await asked(server)
        elif [*change(present.finalizers)] == [*present.finalizers]:
            # The object may have been read before the finalizers changed, so it cannot show that nothing is to be done.
            present = await asked(self._way)
        for attempt in range(_CONFLICT_TRIES):
            finalizers = [*change(present.finalizers)]
            if finalizers == [*present.finalizers]:
                break
            base = {"uid": present.uid, "resourceVersion": present.resource_version}
            patch = {"metadata": {**base, "finalizers": finalizers}}
            try:
                stored: T = await self._patch(known, name, patch, namespace=place, options=options, timeout=timeout)
            except ConflictError:
                if attempt + 1 == _CONFLICT_TRIES:
                    raise
                present = await asked(server)
            else:
                return stored
        unchanged: T = typed(known.type, present)
        return unchanged

    async def _store(
        self,
        verb: Literal["create", "update", "apply"],
        known: BoundKind,
        obj: object,
        *,
        force: bool = False,
        namespace: str | None = None,
        options: WriteOptions | None = None,
        timeout: float | None = None,
        **more: Any,
    ) -> Any:
        outgoing = encode_object(known.type, obj)
        if not outgoing.name and verb != "create":
            raise MalformedObjectError(f"the {known.text} object has no metadata.name, which {verb} needs", given=True)
        query, body = self._query(options), outgoing.body
        if verb == "apply":
            # Apply must name a manager; this is the name that the server gives other writes by the user agent.
            manager = self._way.server.config.user_agent.partition("/")[0] or "deltaloop"
            query = {**({"force": "true"} if force else {}), "fieldManager": manager, **query}
            body = json_for_yaml(body)
        request = self._request(
            verb,
            known,
            outgoing.name,
            namespace=namespace or outgoing.namespace,
            query=query,
            options=options,
            body=body,
            content_type=_APPLY if verb == "apply" else "application/json",
            version=outgoing.version,
            generate_name=outgoing.generate_name,
            timeout=timeout,
            **more,
        )
        try:
            stored = await self._way.write(request)
        except NotFoundError:
            current = await self._bind(known.given, timeout)
            if current.type.api_version == known.type.api_version:
                raise
            asked: dict[str, Any] = {**more, "namespace": namespace, "options": options, "timeout": timeout}
            return await self._store(verb, current, obj, force=force, **asked)
        return stored if known.decode is None else known.decode(stored)

    async def _patch(
        self,
        known: BoundKind,
        name: str,
        patch: Patch,
        type: PatchType = PatchType.MERGE,  # noqa: A002 - the API's word
        *,
        options: WriteOptions | None = None,
        **more: Any,
    ) -> Any:
        metadata: Mapping[str, Any] | None = patch.get("metadata") if isinstance(patch, Mapping) else None
        request = self._request(
            "patch",
            known,
            name,
            query=self._query(options),
            options=options,
            body=write_json(patch, f"the patch of {known.text} {name!r}"),
            content_type=type.value,
            version=str(metadata.get("resourceVersion") or "") if isinstance(metadata, Mapping) else "",
            **more,
        )
        stored = await self._way.write(request)
        return stored if known.decode is None else known.decode(stored)


def _asked(keywords: ListKeywords) -> ListOptions:
    return selected(keywords.get("options", EVERYTHING), keywords.get("selector"))


def _blank(known: ResourceType[Any], name: str, namespace: str | None) -> dict[str, Any]:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": known.api_version, "kind": known.kind, "metadata": metadata}
