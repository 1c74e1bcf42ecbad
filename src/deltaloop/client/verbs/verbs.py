"""Verbs of the API, shared by all clients.

A verb looks up the kind, builds a request, and passes it to the backend of its client (``Way``). Finalizer changes are
repeated after a conflict, because they do not depend on other fields.

Source: controller-runtime pkg/controller/controllerutil/controllerutil.go.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, TypeVar, Unpack, overload

from deltaloop.api import kinds
from deltaloop.api.errors import InvalidArgumentError, MalformedObjectError
from deltaloop.api.json_writing import encode_json, json_for_yaml, plain_fields, plain_json, write_json
from deltaloop.api.keys import join_key
from deltaloop.api.list_options import DEFAULT_PAGE_SIZE, ListOptions
from deltaloop.api.resource import Resource, typed
from deltaloop.api.resource_type import Kind, ResourceType, TypedKind
from deltaloop.api.status import ConflictError, NotFoundError
from deltaloop.api.watch_event import WatchEvent
from deltaloop.client.core.object_encoding import OutgoingObject, encode_object
from deltaloop.client.discovery import BoundKind
from deltaloop.client.options import LogOptions, PatchType, WriteOptions
from deltaloop.client.verbs.server import (
    APPLY,
    EVERYTHING,
    SCALE,
    UNSURE,
    Way,
    WriteRequest,
    WriteVerb,
    not_found,
    place_of,
    selected,
)
from deltaloop.client.verbs.watch import WatchStream, open_watch

if TYPE_CHECKING:
    from deltaloop.api.selectors import LabelSelector
    from deltaloop.client.core.resource_index import ResourceIndex
    from deltaloop.client.core.wait_conditions import Deleted, WaitCondition
    from deltaloop.client.verbs.logs import LogStream
    from deltaloop.client.verbs.request_keywords import (
        ApplyKeywords,
        DeleteCollectionKeywords,
        DeleteKeywords,
        GetKeywords,
        ListKeywords,
        PatchKeywords,
        RequestKeywords,
        SubresourceWriteKeywords,
        WaitKeywords,
        WriteKeywords,
    )
    from deltaloop.client.verbs.resource_list import ResourceList
    from deltaloop.types.written import KindOf, Written

T = TypeVar("T")
W = TypeVar("W")

Change: TypeAlias = "Callable[[dict[str, Any]], object]"
Patch: TypeAlias = "Mapping[str, Any] | Sequence[Mapping[str, Any]]"
_StoreVerb: TypeAlias = "Literal['create', 'update', 'apply']"

_CONFLICT_TRIES: Final = 5
_NO_OPTIONS: Final = LogOptions()


class OperationResult(Enum):
    """Result of ``create_or_update``."""

    UNCHANGED = "unchanged"
    CREATED = "created"
    UPDATED = "updated"


_UNCHANGED, _CREATED, _UPDATED = OperationResult  # access to a member costs as much as a call


class Verbs:
    """Verbs of the API; ``timeout`` is in seconds for a call with its retries, and None means the client's."""

    _way: Way
    _kinds: dict[int, BoundKind]
    """The resource of each known kind or name, by its ``id``."""

    @property
    def namespace(self) -> str:
        """Default namespace for methods that access one object."""
        return self._way.home

    async def resource(self, name: str, *, timeout: float | None = None) -> ResourceType[Resource]:
        """Find a resource by any of its names.

        Args:
            name: Plural, singular, kind, short name (``deploy``), ``deployments.apps``, ``deployments.v1.apps`` or
                ``apps/v1/Deployment``. Names are case-insensitive.
            timeout: Timeout of each request in seconds.

        Raises:
            UnknownResourceError: If the resource does not exist. The message lists similar names.
        """
        return await self._way.server.discovery.find(name, timeout=timeout)

    async def resources(self, *, timeout: float | None = None) -> ResourceIndex:
        """Return all resources of the server.

        The result is cached. ``resource`` refreshes it when necessary. ``timeout`` applies to each request, in seconds.
        """
        return await self._way.server.discovery.resources(timeout=timeout)

    @overload
    async def get(self, kind: TypedKind[T], name: str, **keywords: Unpack[GetKeywords]) -> T: ...
    @overload
    async def get(self, kind: str, name: str, **keywords: Unpack[GetKeywords]) -> Resource: ...
    async def get(
        self,
        kind: Kind,
        name: str,
        *,
        namespace: str | None = None,
        subresource: str | None = None,
        timeout: float | None = None,
    ) -> Any:
        """Read one object, or a subresource that has the object's own type, such as ``status``.

        Raises:
            NotFoundError: If the object does not exist.
        """
        known = self._kinds.get(id(kind)) or await self._bind(kind, timeout)
        found = None if subresource else self._way.cached(known, name, namespace)
        if found is None or found is UNSURE:
            found = await self._way.read(known, name, namespace=namespace, subresource=subresource, timeout=timeout)
        return found if known.decode is None or found is None else known.decode(found)

    @overload
    async def find(self, kind: TypedKind[T], name: str, **keywords: Unpack[GetKeywords]) -> T | None: ...
    @overload
    async def find(self, kind: str, name: str, **keywords: Unpack[GetKeywords]) -> Resource | None: ...
    async def find(
        self,
        kind: Kind,
        name: str,
        *,
        namespace: str | None = None,
        subresource: str | None = None,
        timeout: float | None = None,
    ) -> Any:
        """Read one object like ``get``, but return None if it does not exist."""
        known = self._kinds.get(id(kind)) or await self._bind(kind, timeout)
        found = UNSURE if subresource else self._way.cached(known, name, namespace)
        if found is UNSURE:
            found = await self._way.read(
                known, name, must_exist=False, namespace=namespace, subresource=subresource, timeout=timeout
            )
        return found if known.decode is None or found is None else known.decode(found)

    @overload
    async def list(  # type: ignore[overload-overlap] # the first matching overload applies
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
        """Read objects in one request: all objects, or one page if ``options.limit`` is set.

        The response is decoded while it arrives, which limits the memory for large lists. With ``metadata_only``, the
        result contains ``PartialObjectMetadata`` as ``Resource`` for all kinds.

        Raises:
            UnreadableItemsError: If some items are invalid. The error contains the valid items.
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
        """Read all objects page by page.

        ``timeout`` applies to each page. If the snapshot expires, all objects are requested again without pages.

        Source: client-go tools/pager, ``ListPager.List``.
        """
        known = self._kinds.get(id(kind)) or await self._bind(kind, keywords.get("timeout"))
        from deltaloop.client.core.pager import Pager
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
        page_buffer: int = 10,
        **keywords: Unpack[ListKeywords],
    ) -> AsyncGenerator[Any, None]:
        """Iterate over all objects with ``async for``, without keeping them all in memory.

        Pages are read ahead in the background. If the continue token expires, ``ExpiredError`` is raised, because items
        that were already delivered cannot be taken back. To leave the loop early, use ``contextlib.aclosing``.
        Otherwise the background task runs until the iterator is garbage collected.

        ``namespace`` None means all namespaces. ``page_buffer`` is the maximum number of pages to read ahead; 0
        requests each page after the previous page is consumed. ``timeout`` is in seconds for each page.

        Raises:
            InvalidArgumentError: If ``page_size`` or ``page_buffer`` is negative.

        Source: client-go tools/pager, ``ListPager.EachListItem``.
        """
        if page_buffer < 0:
            raise InvalidArgumentError(f"must be >= 0, got {page_buffer}.", argument="page_buffer")
        from deltaloop.client.core.pager import Pager
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
        """Open a watch as a context manager, and iterate over its events.

        Iteration ends when the server ends the stream. Errors are not retried, because the reflector is responsible for
        resuming. ``timeout`` only applies to opening the stream. ``last_byte_at`` is the time of the last received
        byte. With ``metadata_only``, events contain ``PartialObjectMetadata``.

        Iteration raises these errors:

        - ``ApiError`` for an ERROR event. After ``ExpiredError``, list again.
        - ``MalformedEventError`` for an invalid line.
        - ``ResponseTooLargeError`` for an event larger than ``ClientConfig.max_event_bytes``.
        - ``StreamEndedError`` if the stream breaks, is 15 s overdue (``options.timeout_seconds``), or is silent for 90
          s after its first bookmark.
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
        """Wait until an object fulfills a condition, and return the object, or None for ``deleted()``.

        The object is listed and then watched, so no state is missed, except after a 410. The wait continues after ended
        streams, expired versions and temporary failures. Canceling closes the watch.

        Args:
            kind: Kind of the object. The verbs ``list`` and ``watch`` must be permitted.
            name: Name of the object. The object does not need to exist yet.
            condition: ``deleted()``, ``created()``, ``ready()``, ``established()``, ``status_condition(...)``,
                ``field_value(...)``, or your own ``WaitCondition``.
            namespace: Namespace. None means the client's namespace.
            timeout: Timeout in seconds for the complete wait. None means the client's timeout (30 s by default).
            ignore_deletion: Whether to continue if the object is deleted, because an object of the same name may be
                created.

        Raises:
            NotFoundError: If the object existed, and was deleted or replaced by another object of the same name.
            WaitTimeoutError: If the timeout expires. The message describes the last state.
            ApiError: If the server returns a permanent error, such as 403.
        """
        limit = self._way.server.config.request_timeout if timeout is None else timeout
        until = asyncio.get_running_loop().time() + limit
        known = self._kinds.get(id(kind)) or await self._bind(kind, limit)
        raw_type, where = known.untyped, place_of(self._way, known, namespace)
        raw_type.path(namespace=where, name=name)  # raises for invalid names

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
        asked: dict[str, Any] = {**keywords, "selector": None}  # the options of each page contain it

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
        """Create an object, and return the stored object.

        You can use ``metadata.generateName`` instead of a name.

        Raises:
            AlreadyExistsError: If an object of this name exists.
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
        """Replace an object, and return the stored object.

        For kinds with a status subresource, ``status`` is unchanged.

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
        """Replace the ``status`` of an object, and return the stored object.

        Other fields are unchanged.

        Raises:
            ConflictError: If the object has changed since its ``metadata.resourceVersion``.
            NotFoundError: If the kind has no status subresource, or the object does not exist.
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
        """Apply fields with server-side apply, and create the object if it does not exist.

        Pass only the fields that this field manager owns. The server removes fields that you applied earlier and omit
        now. It rejects objects that were read from the server, because they contain ``managedFields``. Controllers
        should ``force`` the fields that they own.

        Raises:
            ConflictError: If another manager owns one of the fields and ``force`` is not set.
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
        """Patch an object, and return the stored object.

        For server-side apply, use ``apply``.

        To make a patch conditional, set ``metadata.resourceVersion`` in a merge patch, or add a ``test`` operation to a
        JSON patch.

        ``patch`` is a mapping, or a list of operations for a JSON patch (RFC 6902). In a merge patch (RFC 7386), None
        removes a field. Strategic merge patches, which merge lists by key, are only supported for built-in kinds.

        Raises:
            ConflictError: If the object has a different resource version.
            InvalidArgumentError: If the patch does not match its type.
        """
        known = self._kinds.get(id(kind)) or await self._bind(kind, keywords.get("timeout"))
        if isinstance(patch, (dict, Mapping)) == (type is PatchType.JSON):
            wanted = "a list of operations" if type is PatchType.JSON else "a mapping"
            problem = f"of type {type.name} for {known.text} {name!r} must be {wanted}."
            raise InvalidArgumentError(problem, argument="patch")
        return await self._patch(known, name, patch, type, **keywords)

    @overload
    async def delete(self, kind: TypedKind[T], name: str, **keywords: Unpack[DeleteKeywords]) -> T | None: ...
    @overload
    async def delete(self, kind: str, name: str, **keywords: Unpack[DeleteKeywords]) -> Resource | None: ...
    async def delete(self, kind: Kind, name: str, **keywords: Unpack[DeleteKeywords]) -> Any:
        """Delete an object, or mark it for deletion if it has finalizers or a grace period.

        Returns:
            The object if the server returned it, because it still exists or was just deleted. Otherwise None.

        Raises:
            NotFoundError: If the object does not exist.
            ConflictError: If a precondition in ``options`` is not met.
        """
        known = self._kinds.get(id(kind)) or await self._bind(kind, keywords.get("timeout"))
        return await self._way.write(self._request("delete", known, name, decode=known.decode, **keywords))

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
        """Delete all or selected objects of a namespace, or of a cluster-scoped kind.

        The namespace has no default, because the call can delete many objects.

        Returns:
            The objects if the server returned them, otherwise None.

        Raises:
            InvalidArgumentError: If the kind is namespaced and ``namespace`` is missing.
        """
        known = self._kinds.get(id(kind)) or await self._bind(kind, keywords.get("timeout"))
        if known.namespaced and not keywords.get("namespace"):
            raise InvalidArgumentError(f"must be set to delete a collection of {known.text}.", argument="namespace")
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
        """Create an object if it does not exist, or update it if ``change`` modifies it.

        Conflicts are raised, so that the reconcile fails and is retried with the current object, as in
        controller-runtime.

        ``change`` receives the object as a dict and modifies it, except for name and namespace. For a new object, the
        dict only contains the kind and names. It runs on the event loop. ``timeout`` is in seconds for each request.

        Returns:
            The operation and the stored object.

        Raises:
            ConflictError: If another program changed the object in the meantime.
            AlreadyExistsError: If another program created the object in the meantime.
            InvalidArgumentError: If ``change`` changed the name or namespace.

        Source: controller-runtime pkg/controller/controllerutil ``CreateOrUpdate``.
        """
        known = self._kinds.get(id(kind)) or await self._bind(kind, timeout)
        present = self._way.cached(known, name, namespace)
        if present is UNSURE:
            present = await self._way.read(known, name, must_exist=False, namespace=namespace, timeout=timeout)
        if present is None:
            place = place_of(self._way, known, namespace) or ""
            fields: dict[str, Any] = _blank(known.type, name, place)
            before = b""
        else:
            fields, name, place = present.to_dict(), present.name, present.namespace
            before = encode_json(fields)
        change(fields)
        body = plain_json(fields, before)
        if present is not None and body is before:
            return _UNCHANGED, present if known.decode is None else known.decode(present)
        outgoing = encode_object(known.type, fields, body)
        if outgoing.name != name or outgoing.namespace != place:
            problem = f"must not change name or namespace of {known.text} {name!r}."
            raise InvalidArgumentError(problem, argument="change")
        verb: _StoreVerb = "create" if present is None else "update"
        made = await self._store(verb, known, fields, outgoing, namespace=namespace, options=options, timeout=timeout)
        return _CREATED if present is None else _UPDATED, made

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
        """Edit an object of a class, and return the stored object.

        Only the changes that ``change`` makes are sent, as a merge patch with the resource version that was read.
        Without changes, no request is sent. Fields that the class does not have stay unchanged, and unset defaults are
        not written. To remove a field, set it to None or ``UNSET``. Conflicts are raised.

        ``kind`` is a class or its resource type. ``change`` modifies the object, or returns a new object, for example
        from ``msgspec.structs.replace``, on the event loop. ``timeout`` is in seconds for each request.

        Raises:
            NotFoundError: If the object does not exist.
            ConflictError: If another program changed the object in the meantime.
            MalformedObjectError: If the object does not match the class.
            InvalidArgumentError: If the kind has no class, or ``change`` changed the identity or a status subresource.
        """
        from deltaloop.api.set_fields import set_fields
        from deltaloop.client.core.edited_objects import edit_patch, refuse_what_no_edit_changes

        known = self._kinds.get(id(kind)) or await self._bind(kind, timeout)
        if known.type.model in (None, Resource, dict, bytes):
            problem = f"must be a kind with a class, got {known.text}. Use patch, or create_or_update."
            raise InvalidArgumentError(problem, argument="kind")
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
        """Add a finalizer to an object if it is missing, and return the stored object.

        The request is a merge patch of the finalizers, because a cache's transform may have removed other fields.
        Conflicts are retried. If the object already has the finalizer, it is read again, because it may be out of date.

        Raises:
            NotFoundError: If the object does not exist.
            ConflictError: If conflicts persist.
        """
        return await self._change_finalizers(kind, obj, lambda present: dict.fromkeys((*present, name)), **keywords)

    async def remove_finalizer(
        self, kind: TypedKind[T] | str, obj: T, name: str, **keywords: Unpack[WriteKeywords]
    ) -> T | None:
        """Remove a finalizer from an object, and return the stored object, or None if the object does not exist.

        Conflicts are retried. If the object does not have the finalizer, it is read again, because it may be out of
        date.

        Raises:
            ConflictError: If conflicts persist.
        """
        try:
            return await self._change_finalizers(kind, obj, lambda present: filter(name.__ne__, present), **keywords)
        except NotFoundError:
            return None

    async def get_scale(self, kind: Kind, name: str, **keywords: Unpack[RequestKeywords]) -> Resource:
        """Read the ``Scale`` of an object: desired and current replicas, and the selector of its pods.

        Raises:
            NotFoundError: If the object does not exist, or its kind has no scale subresource.
        """
        known = self._kinds.get(id(kind)) or await self._bind(kind, keywords.get("timeout"))
        found = await self._way.read(known, name, subresource="scale", **keywords)
        return Resource.from_json(found.raw, SCALE)

    async def scale(
        self, kind: Kind, name: str, replicas: int, *, resource_version: str = "", **keywords: Unpack[WriteKeywords]
    ) -> Resource:
        """Set the number of replicas through the scale subresource, and return the ``Scale``.

        An empty ``resource_version`` accepts any version of the object.

        Raises:
            ConflictError: If the object has a different resource version.
        """
        known = self._kinds.get(id(kind)) or await self._bind(kind, keywords.get("timeout"))
        patch: dict[str, object] = {"spec": {"replicas": replicas}}
        if resource_version:
            patch["metadata"] = {"resourceVersion": resource_version}
        scaled: Resource = await self._patch(known, name, patch, subresource="scale", **keywords)
        return scaled

    async def evict(self, name: str, **keywords: Unpack[DeleteKeywords]) -> None:
        """Delete a pod if its disruption budgets permit it.

        Raises:
            TooManyRequestsError: If a disruption budget does not permit it at the moment.
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
        """Create a subresource of an object, such as ``token`` of a service account or ``binding`` of a pod.

        ``obj`` is the request object, with its ``apiVersion`` and ``kind``.
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
        """Open the log of a container as a context manager, and iterate over its lines.

        The content of the log is never written to deltaloop's own log.

        ``timeout`` is in seconds for the response headers. The stream has no time limit.

        Raises:
            ApiError: If the server rejects the request when the context is entered, such as 400 for a container that
                has not started.
            StreamEndedError: If the stream breaks while you read it.
        """
        known = self._kinds.get(id(kinds.POD)) or await self._bind(kinds.POD, None)
        server, place = self._way.server, place_of(self._way, known, namespace)
        path = kinds.POD.path(namespace=place, name=name, subresource="log")
        if server.access_check is not None:
            server.access_check("get", kinds.POD, place, "log")
        async with server.sender.stream(
            path, query=options.to_query(), accept="*/*", timeout=timeout, on_warning=server.on_warning
        ) as answer:
            from deltaloop.client.verbs.logs import LogStream

            yield LogStream(answer.chunks, path=path, max_line_bytes=server.config.max_event_bytes)

    # -- helpers

    async def _bind(self, kind: Kind, timeout: float | None) -> BoundKind:
        """Find a kind that no verb has used yet. Classes and built-in kinds need no request."""
        return await self._way.server.discovery.bind(kind, timeout=timeout)

    def _request(
        self, verb: WriteVerb, known: BoundKind, name: str, *, namespace: str | None = None, **more: Any
    ) -> WriteRequest:
        place = place_of(self._way, known, namespace)
        return WriteRequest(verb=verb, kind=known, name=name, namespace=place, **more)

    def _query(self, options: WriteOptions | None) -> Mapping[str, str]:
        always = self._way.write_query
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
                f"the {known.text} object must have metadata.name, got none.", path="metadata.name", given=True
            )

        async def asked(way: Way) -> Resource:
            found: Resource = await way.read(known, name, namespace=place, timeout=timeout)
            if uid and found.uid != uid:
                raise not_found(known.type, name)
            return found

        server = self._way.server  # after a conflict, read from the server, because a cache may be out of date
        if not present.resource_version:  # a patch replaces the complete list
            present = await asked(server)
        elif [*change(present.finalizers)] == [*present.finalizers]:
            # The object may be older than the last change of the finalizers, so read it again before concluding that it
            # is up to date.
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

    def _store(
        self,
        verb: _StoreVerb,
        known: BoundKind,
        obj: object,
        outgoing: OutgoingObject | None = None,
        *,
        force: bool = False,
        namespace: str | None = None,
        subresource: str | None = None,
        options: WriteOptions | None = None,
        timeout: float | None = None,
    ) -> Coroutine[Any, Any, Any]:
        outgoing = outgoing or encode_object(known.type, obj)
        if not outgoing.name and verb != "create":
            raise MalformedObjectError(
                f"{verb} requires metadata.name of the {known.text} object.", path="metadata.name", given=True
            )
        body, place = outgoing.body, namespace or outgoing.namespace
        query = self._way.write_query if options is None else self._query(options)
        if verb == "apply":
            # Apply requires a manager. The server derives the same name from the user agent for other writes.
            manager = self._way.server.config.user_agent.partition("/")[0] or "deltaloop"
            query = {**({"force": "true"} if force else {}), "fieldManager": manager, **query}
            body = json_for_yaml(body)
        request = WriteRequest(
            verb=verb,
            kind=known,
            name=outgoing.name,
            namespace=place if known.namespaced and place else place_of(self._way, known, place),
            query=query,
            options=options,
            subresource=subresource,
            body=body,
            content_type=APPLY if verb == "apply" else "application/json",
            version=outgoing.version,
            generate_name=outgoing.generate_name,
            timeout=timeout,
            decode=known.decode,
            obj=obj,
        )
        return self._way.write(request)

    def _patch(
        self,
        known: BoundKind,
        name: str,
        patch: Patch,
        type: PatchType = PatchType.MERGE,  # noqa: A002 - the API's word
        *,
        namespace: str | None = None,
        subresource: str | None = None,
        options: WriteOptions | None = None,
        timeout: float | None = None,
    ) -> Coroutine[Any, Any, Any]:
        # A check of an abstract class is slow, so check for a dict first.
        metadata: Mapping[str, Any] | None = patch.get("metadata") if isinstance(patch, (dict, Mapping)) else None
        request = WriteRequest(
            verb="patch",
            kind=known,
            name=name,
            namespace=place_of(self._way, known, namespace),
            query=self._query(options),
            options=options,
            subresource=subresource,
            body=write_json(patch, f"the patch of {known.text} {name!r}"),
            content_type=type,
            version=str(metadata.get("resourceVersion") or "") if isinstance(metadata, (dict, Mapping)) else "",
            timeout=timeout,
            decode=None if subresource == "scale" else known.decode,
        )
        return self._way.write(request)


def _asked(keywords: ListKeywords) -> ListOptions:
    return selected(keywords.get("options", EVERYTHING), keywords.get("selector"))


def _blank(known: ResourceType[Any], name: str, namespace: str | None) -> dict[str, Any]:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": known.api_version, "kind": known.kind, "metadata": metadata}
