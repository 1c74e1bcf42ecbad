"""The verbs of the API: get, list, watch, create, update, patch, delete, and finding a resource by name.

A resource is named by a ``ResourceType[T]``, and objects come as ``T``; or by a text such as ``"apps/v1/Deployment"``
for the built-in kinds, and objects come as ``Resource``. Objects are given as ``Resource``, mapping or typed object.

``namespace=None`` means all namespaces for list and watch. For verbs of one object it means the object's own
namespace, else the client's. ``timeout`` is in seconds; None is the configured default (30).

All verbs raise ``ApiError`` if the server refuses, ``TransportError`` if there is no answer, ``MalformedObjectError``
if an answer cannot be read, and ``InvalidInputError`` for what cannot be asked. A cancelled write may have been carried
out.

This module is longer than the others because every verb has two signatures, one for each way to name a resource.
"""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any, Final, Self, TypeVar, final, overload

from deltaloop.api.errors import MalformedObjectError
from deltaloop.api.kinds import parse_resource_type
from deltaloop.api.list_options import ListOptions
from deltaloop.api.resource import Resource, decode_object
from deltaloop.api.resource_type import ResourceType
from deltaloop.api.watch_event import WatchEvent
from deltaloop.client.config import ClientConfig
from deltaloop.client.core.answers import is_status
from deltaloop.client.core.list_decoding import decode_list
from deltaloop.client.core.object_encoding import encode_json, encode_object
from deltaloop.client.core.pager import DEFAULT_PAGE_SIZE, Pager
from deltaloop.client.core.resource_index import ResourceIndex
from deltaloop.client.discovery import Discovery
from deltaloop.client.options import DeleteOptions
from deltaloop.client.pager import fetch_all
from deltaloop.client.resource_list import ResourceList
from deltaloop.client.sender import RequestSender
from deltaloop.client.transport import Pool, Response, Transport
from deltaloop.client.transport_aiohttp import AiohttpTransport
from deltaloop.client.watch import open_watch

T = TypeVar("T")

_NO_OPTIONS: Final = ListOptions()
_MERGE_PATCH: Final = "application/merge-patch+json"


@final
class Client:
    """A client of one API server; ``async with`` closes its connections at the end.

    Made anywhere, used on one event loop. Safe for any number of tasks.
    """

    def __init__(self, config: ClientConfig, *, transport: Transport | None = None) -> None:
        """Make a client; nothing is sent yet.

        Args:
            config: Where the server is and who is asking.
            transport: The way to the server; by default HTTP as ``config`` says.

        Raises:
            ConfigError: If certificates or keys cannot be used.
        """
        self._config = config
        self._sender = RequestSender(
            transport if transport is not None else AiohttpTransport(config), default_timeout=config.request_timeout
        )
        self._discovery = Discovery(self._sender)
        self._pool = Pool.REQUESTS

    @property
    def config(self) -> ClientConfig:
        """The configuration; its ``repr`` shows no secret."""
        return self._config

    @property
    def namespace(self) -> str:
        """Namespace of verbs of one object that name none."""
        return self._config.namespace

    def with_pool(self, pool: Pool) -> Client:
        """Return the same client with other connections for its ordinary calls; closing either closes both."""
        other = copy.copy(self)
        other._pool = pool  # noqa: SLF001 - it is one of us
        return other

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections; a second call does nothing."""
        await self._sender.close()

    @overload
    async def get(
        self, rt: ResourceType[T], name: str, *, namespace: str | None = None, timeout: float | None = None
    ) -> T: ...
    @overload
    async def get(
        self, rt: str, name: str, *, namespace: str | None = None, timeout: float | None = None
    ) -> Resource: ...
    async def get(
        self, rt: ResourceType[Any] | str, name: str, *, namespace: str | None = None, timeout: float | None = None
    ) -> Any:
        """Read one object.

        Raises:
            NotFoundError: If there is none of that name.
        """
        known = parse_resource_type(rt)
        path = self._object_path(known, name, namespace)
        return _decoded(known, await self._send("GET", path, timeout=timeout))

    @overload
    async def list(
        self,
        rt: ResourceType[T],
        *,
        namespace: str | None = None,
        options: ListOptions = ...,
        timeout: float | None = None,
    ) -> ResourceList[T]: ...
    @overload
    async def list(
        self, rt: str, *, namespace: str | None = None, options: ListOptions = ..., timeout: float | None = None
    ) -> ResourceList[Resource]: ...
    async def list(
        self,
        rt: ResourceType[Any] | str,
        *,
        namespace: str | None = None,
        options: ListOptions = _NO_OPTIONS,
        timeout: float | None = None,
    ) -> ResourceList[Any]:
        """Ask for objects in one request: everything, or one page if ``options.limit`` is set."""
        known = parse_resource_type(rt)
        path = known.path(namespace=namespace)
        answer = await self._send("GET", path, query=options.to_query(), timeout=timeout)
        return decode_list(known, answer.body)

    @overload
    async def list_all(
        self,
        rt: ResourceType[T],
        *,
        namespace: str | None = None,
        options: ListOptions = ...,
        page_size: int = DEFAULT_PAGE_SIZE,
        timeout: float | None = None,
    ) -> ResourceList[T]: ...
    @overload
    async def list_all(
        self,
        rt: str,
        *,
        namespace: str | None = None,
        options: ListOptions = ...,
        page_size: int = DEFAULT_PAGE_SIZE,
        timeout: float | None = None,
    ) -> ResourceList[Resource]: ...
    async def list_all(
        self,
        rt: ResourceType[Any] | str,
        *,
        namespace: str | None = None,
        options: ListOptions = _NO_OPTIONS,
        page_size: int = DEFAULT_PAGE_SIZE,
        timeout: float | None = None,
    ) -> ResourceList[Any]:
        """Read all objects, page by page; ``timeout`` is for each page.

        If the snapshot expires on the way, everything is asked for once more without pages.

        Source: client-go tools/pager, ``ListPager.List``.
        """
        known = parse_resource_type(rt)

        async def fetch(page: ListOptions) -> ResourceList[Any]:
            return await self.list(known, namespace=namespace, options=page, timeout=timeout)

        return await fetch_all(fetch, Pager(options, page_size=page_size))

    def watch(
        self,
        rt: ResourceType[Any] | str,
        *,
        namespace: str | None = None,
        options: ListOptions = _NO_OPTIONS,
        timeout: float | None = None,
    ) -> AbstractAsyncContextManager[AsyncIterator[WatchEvent]]:
        """Watch objects: entering opens the stream, iterating gives its events, leaving closes it.

        Iteration ends when the server ends the stream; it raises ``ApiError`` for an ERROR event (``ExpiredError``:
        list again), ``MalformedEventError`` for a line that is no event, and ``StreamEndedError`` when the stream
        breaks off, is 15 s overdue (``options.timeout_seconds``), or is silent for 90 s after it has shown a bookmark.
        ``timeout`` is for opening it only. Nothing is repeated: resuming is the reflector's business.
        """
        known = parse_resource_type(rt)
        return open_watch(
            self._sender,
            known,
            known.path(namespace=namespace),
            options.to_query(),
            timeout_seconds=options.timeout_seconds,
            timeout=timeout,
        )

    @overload
    async def create(
        self, rt: ResourceType[T], obj: object, *, namespace: str | None = None, timeout: float | None = None
    ) -> T: ...
    @overload
    async def create(
        self, rt: str, obj: object, *, namespace: str | None = None, timeout: float | None = None
    ) -> Resource: ...
    async def create(
        self, rt: ResourceType[Any] | str, obj: object, *, namespace: str | None = None, timeout: float | None = None
    ) -> Any:
        """Create an object and return it as stored; ``metadata.generateName`` works in place of a name.

        Raises:
            AlreadyExistsError: If there is one of that name.
        """
        known = parse_resource_type(rt)
        outgoing = encode_object(known, obj)
        path = known.path(namespace=self._namespace(known, namespace or outgoing.namespace))
        return _decoded(known, await self._send("POST", path, body=outgoing.body, timeout=timeout))

    @overload
    async def update(
        self, rt: ResourceType[T], obj: object, *, namespace: str | None = None, timeout: float | None = None
    ) -> T: ...
    @overload
    async def update(
        self, rt: str, obj: object, *, namespace: str | None = None, timeout: float | None = None
    ) -> Resource: ...
    async def update(
        self, rt: ResourceType[Any] | str, obj: object, *, namespace: str | None = None, timeout: float | None = None
    ) -> Any:
        """Replace an object and return it as stored; where there is a status subresource, ``status`` stays as it is.

        Raises:
            ConflictError: If the object has changed since its ``metadata.resourceVersion``.
        """
        return await self._replace(parse_resource_type(rt), obj, None, namespace, timeout)

    @overload
    async def update_status(
        self, rt: ResourceType[T], obj: object, *, namespace: str | None = None, timeout: float | None = None
    ) -> T: ...
    @overload
    async def update_status(
        self, rt: str, obj: object, *, namespace: str | None = None, timeout: float | None = None
    ) -> Resource: ...
    async def update_status(
        self, rt: ResourceType[Any] | str, obj: object, *, namespace: str | None = None, timeout: float | None = None
    ) -> Any:
        """Replace the ``status`` of an object and return it as stored; everything else stays as it is.

        Raises:
            ConflictError: If the object has changed since its ``metadata.resourceVersion``.
            NotFoundError: If the kind has no status subresource, or there is no such object.
        """
        return await self._replace(parse_resource_type(rt), obj, "status", namespace, timeout)

    @overload
    async def patch(
        self,
        rt: ResourceType[T],
        name: str,
        patch: Mapping[str, Any],
        *,
        namespace: str | None = None,
        subresource: str | None = None,
        timeout: float | None = None,
    ) -> T: ...
    @overload
    async def patch(
        self,
        rt: str,
        name: str,
        patch: Mapping[str, Any],
        *,
        namespace: str | None = None,
        subresource: str | None = None,
        timeout: float | None = None,
    ) -> Resource: ...
    async def patch(
        self,
        rt: ResourceType[Any] | str,
        name: str,
        patch: Mapping[str, Any],
        *,
        namespace: str | None = None,
        subresource: str | None = None,
        timeout: float | None = None,
    ) -> Any:
        """Change an object by a JSON merge patch (RFC 7396: None removes a field) and return it as stored.

        A ``metadata.resourceVersion`` in the patch makes it conditional.

        Raises:
            ConflictError: If that version is not the present one.
        """
        known = parse_resource_type(rt)
        path = self._object_path(known, name, namespace, subresource)
        body = encode_json(patch, f"the patch of {known} {name!r}")
        answer = await self._send("PATCH", path, body=body, content_type=_MERGE_PATCH, timeout=timeout)
        return _decoded(known, answer)

    @overload
    async def delete(
        self,
        rt: ResourceType[T],
        name: str,
        *,
        namespace: str | None = None,
        options: DeleteOptions | None = None,
        timeout: float | None = None,
    ) -> T | None: ...
    @overload
    async def delete(
        self,
        rt: str,
        name: str,
        *,
        namespace: str | None = None,
        options: DeleteOptions | None = None,
        timeout: float | None = None,
    ) -> Resource | None: ...
    async def delete(
        self,
        rt: ResourceType[Any] | str,
        name: str,
        *,
        namespace: str | None = None,
        options: DeleteOptions | None = None,
        timeout: float | None = None,
    ) -> Any:
        """Delete an object, or mark it for deletion if finalizers or a grace period hold it.

        Returns:
            The object, where the server answers with it (it is still there, or has just gone), else None.

        Raises:
            NotFoundError: If there is none of that name.
            ConflictError: If a precondition of ``options`` does not hold.
        """
        known = parse_resource_type(rt)
        path = self._object_path(known, name, namespace)
        body = encode_json(options.to_dict(), "the delete options") if options is not None else None
        answer = await self._send("DELETE", path, body=body, timeout=timeout)
        return None if is_status(answer.body) else _decoded(known, answer)

    async def resource(self, name: str, *, timeout: float | None = None) -> ResourceType[Resource]:
        """Find a resource that the server serves by any of its names.

        Args:
            name: Plural, singular, kind, short name (``deploy``), ``deployments.apps`` or ``apps/v1/Deployment``, in
                upper or lower case.
            timeout: Seconds for each request.

        Raises:
            UnknownResourceError: If there is none of that name; the message lists names like it.
        """
        return await self._discovery.find(name, timeout=timeout)

    async def resources(self, *, timeout: float | None = None) -> ResourceIndex:
        """Return everything that the server serves; asked once and kept, ``resource`` refreshes it when needed."""
        return await self._discovery.resources(timeout=timeout)

    async def _send(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = "application/json",
        timeout: float | None = None,
    ) -> Response:
        return await self._sender.send(
            method, path, query=query, body=body, content_type=content_type, timeout=timeout, pool=self._pool
        )

    async def _replace(
        self, known: ResourceType[Any], obj: object, subresource: str | None, namespace: str | None, limit: float | None
    ) -> Any:
        outgoing = encode_object(known, obj)
        if not outgoing.name:
            raise MalformedObjectError(f"the {known} object has no metadata.name: it cannot be updated")
        path = self._object_path(known, outgoing.name, namespace or outgoing.namespace, subresource)
        return _decoded(known, await self._send("PUT", path, body=outgoing.body, timeout=limit))

    def _namespace(self, known: ResourceType[Any], namespace: str | None) -> str | None:
        return (namespace or self.namespace) if known.namespaced else namespace

    def _object_path(
        self, known: ResourceType[Any], name: str, namespace: str | None, subresource: str | None = None
    ) -> str:
        return known.path(namespace=self._namespace(known, namespace), name=name, subresource=subresource)

    def __repr__(self) -> str:
        return f"<Client {self._config.server} namespace={self.namespace}>"


def _decoded(known: ResourceType[T], answer: Response) -> T:
    return decode_object(known, answer.body)
