"""List and watch over the connection of another client, without retries, which the reflector performs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final, final

from deltaloop._internal.pacing.checks import require_positive
from deltaloop._internal.root_error import DeltaloopError
from deltaloop.api.list_options import ListOptions
from deltaloop.api.redaction import redact
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.api.status import ApiError
from deltaloop.client.core.accept import list_accept, watch_accept
from deltaloop.client.core.answers import error_from_answer, is_success
from deltaloop.client.core.list_decoding import decode_list
from deltaloop.client.core.metadata_only import metadata_of_list
from deltaloop.client.core.watch_limits import WatchLimitOptions, WatchLimits
from deltaloop.client.errors import RequestTimeoutError, StreamEndedError, TransportError
from deltaloop.client.transport.protocol import Headers, StreamResponse
from deltaloop.client.transport.sender import JSON
from deltaloop.client.verbs.resource_list import ResourceList, UnreadableItemsError
from deltaloop.client.verbs.watch import WatchStream

_NO_OPTIONS: Final = ListOptions()
_LIMITS: Final = WatchLimitOptions()
_ERROR_BODY: Final = 64 * 1024
_LONGEST_SILENCE: Final = 3600.0
_DEEPEST: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Get:
    """One GET request: a quoted URL path and unquoted query parameters."""

    path: str
    query: Mapping[str, str]
    connect_timeout: float
    read_timeout: float
    accept: str = JSON

    @property
    def headers(self) -> dict[str, str]:
        """Headers to send in addition to those of the foreign client."""
        return {"Accept": self.accept, "Accept-Encoding": "identity"}


Opener = Callable[[Get], AbstractAsyncContextManager[StreamResponse]]


@final
class AdaptedClient:
    """Client for an ``InformerFactory`` or a ``ListWatch`` that lists and watches over a foreign client."""

    def __init__(self, opener: Opener, *, name: str, packages: frozenset[str], request_timeout: float = 30.0) -> None:
        """Create a client. The ``from_...`` functions call this for the supported clients.

        Args:
            opener: Function that sends a GET request. Its context returns the response for any status, and closes it on
                exit.
            name: Name of the foreign client for error messages.
            packages: Top-level packages whose exceptions mean that the connection failed.
            request_timeout: Timeout in seconds for a list request, and for the start of a watch.
        """
        require_positive("AdaptedClient", request_timeout=request_timeout)
        self._opener = opener
        self._name = name
        self._packages = packages
        self._request_timeout = request_timeout

    @property
    def drops_managed_fields(self) -> bool:
        """Whether ``ListOptions.drop_managed_fields`` works for any server: always true."""
        return True

    async def list(
        self,
        kind: ResourceType[Resource],
        /,
        *,
        namespace: str | None = None,
        options: ListOptions = _NO_OPTIONS,
        metadata_only: bool = False,
    ) -> ResourceList[Resource]:
        """Return one page of a list, of all namespaces if ``namespace`` is None.

        With ``metadata_only``, the items are ``PartialObjectMetadata``. Canceling closes the connection.

        Raises:
            UnreadableItemsError: If some items cannot be decoded. The error contains the others.
            ApiError: If the server rejects the request.
            TransportError: If no response arrives.
            MalformedObjectError: If the response cannot be decoded.
        """
        path = kind.path(namespace=namespace)
        limit = asyncio.timeout(self._request_timeout)
        get = Get(
            path=path,
            query=options.to_query(),
            connect_timeout=self._request_timeout,
            read_timeout=self._request_timeout,
            accept=list_accept(metadata_only=metadata_only, drop_managed_fields=options.drop_managed_fields),
        )
        try:
            async with limit, self._opened(get) as answer:
                body = b"".join([chunk async for chunk in answer.chunks])
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise self._late(path) from error
        drops = options.drop_managed_fields
        if not metadata_only:
            return decode_list(kind, body, drop_managed_fields=drops)
        try:
            return metadata_of_list(decode_list(kind, body, drop_managed_fields=drops))
        except UnreadableItemsError as error:
            raise UnreadableItemsError(metadata_of_list(error.page)) from None

    def watch(
        self,
        kind: ResourceType[Resource],
        /,
        *,
        namespace: str | None = None,
        options: ListOptions = _NO_OPTIONS,
        metadata_only: bool = False,
    ) -> AbstractAsyncContextManager[WatchStream]:
        """Open a watch, of all namespaces if ``namespace`` is None.

        The stream ends when the server closes it, with an error event, or at the client-side limits. Leaving the
        context closes the connection.
        """
        return self._watch(kind, kind.path(namespace=namespace), options, metadata_only)

    @asynccontextmanager
    async def _watch(
        self, kind: ResourceType[Resource], path: str, options: ListOptions, metadata_only: bool
    ) -> AsyncGenerator[WatchStream, None]:
        loop = asyncio.get_running_loop()
        started_at = loop.time()
        asked = options.timeout_seconds
        # The foreign client's own limit comes later than ours. It only frees a thread that is still blocked.
        silence = _LONGEST_SILENCE if asked is None else asked + 2 * _LIMITS.deadline_slack
        get = Get(
            path=path,
            query={**options.to_query(), "watch": "true"},
            connect_timeout=self._request_timeout,
            read_timeout=silence,
            accept=watch_accept(metadata_only=metadata_only, drop_managed_fields=options.drop_managed_fields),
        )
        opening = self._opened(get)
        limit = asyncio.timeout(self._request_timeout)
        try:
            async with limit:
                answer = await opening.__aenter__()
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise self._late(path) from error
        try:
            limits = WatchLimits(_LIMITS, now=started_at, timeout_seconds=asked)
            limits.saw_bytes(loop.time())  # the response headers
            yield WatchStream(
                answer.chunks,
                kind,
                path,
                limits,
                metadata_only=metadata_only,
                drop_managed_fields=options.drop_managed_fields,
            )
        finally:
            await opening.__aexit__(None, None, None)

    @asynccontextmanager
    async def _opened(self, get: Get) -> AsyncGenerator[StreamResponse, None]:
        """Send a GET request, and convert error responses and the package's exceptions."""
        manager = self._opener(get)
        answer: StreamResponse = await self._mapped(manager.__aenter__, get.path, in_stream=False)
        try:
            chunks = _Chunks(self, answer.chunks, get.path)
            if not is_success(answer.status):
                raise await _refusal(answer.status, answer.headers, chunks, get.path)
            yield StreamResponse(status=answer.status, headers=answer.headers, chunks=chunks)
        finally:
            close = getattr(answer.chunks, "aclose", None)
            if close is not None:
                await close()  # close now, instead of whenever the garbage collector runs
            await manager.__aexit__(None, None, None)

    async def _mapped(self, call: Callable[[], Awaitable[Any]], path: str, *, in_stream: bool) -> Any:
        try:
            return await call()
        except (DeltaloopError, StopAsyncIteration):
            raise
        except Exception as error:
            if not self._is_theirs(error):
                raise
            failure = self._failure(error, path, in_stream=in_stream)
        # Raised outside the except block, because foreign errors contain requests with credentials.
        raise failure

    def _is_theirs(self, error: Exception) -> bool:
        if isinstance(error, OSError | EOFError):
            return True
        return any(cls.__module__.partition(".")[0] in self._packages for cls in type(error).__mro__)

    def _failure(self, error: Exception, path: str, *, in_stream: bool) -> TransportError:
        refused = any(isinstance(each, ConnectionRefusedError) for each in _causes(error))
        if in_stream:
            why = f"GET {path}: the stream broke: {self._name}: {_short(error)}"
            return StreamEndedError(why, method="GET", path=path)
        why = "connection refused" if refused else _short(error)
        return TransportError(f"GET {path}: {self._name}: {why}", method="GET", path=path, refused=refused)

    def _late(self, path: str) -> RequestTimeoutError:
        return RequestTimeoutError(
            f"GET {path}: {self._name}: no response within {self._request_timeout:g} s", method="GET", path=path
        )

    def __repr__(self) -> str:
        return f"<AdaptedClient over {self._name}>"


@final
class _Chunks:
    """Response body with converted errors. After a canceled read, it cannot be read again, because data may be lost."""

    def __init__(self, client: AdaptedClient, chunks: AsyncIterator[bytes], path: str) -> None:
        self._client = client
        self._chunks = chunks
        self._path = path
        self._torn = False

    def __aiter__(self) -> _Chunks:
        return self

    async def __anext__(self) -> bytes:
        if self._torn:
            raise StreamEndedError(f"GET {self._path}: a read was canceled", method="GET", path=self._path)
        self._torn = True
        chunk: bytes = await self._client._mapped(self._chunks.__anext__, self._path, in_stream=True)  # noqa: SLF001
        self._torn = False
        return chunk


async def _refusal(status: int, headers: Headers, chunks: _Chunks, path: str) -> ApiError:
    body = bytearray()
    try:
        async for chunk in chunks:
            body += chunk
            if len(body) >= _ERROR_BODY:
                break
    except TransportError:
        pass  # a partial error body is more useful than the broken connection
    return error_from_answer(status, bytes(body), method="GET", path=path, retry_after=headers.get("retry-after"))


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Return an error with its causes, including those that packages store in other attributes."""
    seen: dict[int, BaseException] = {}
    waiting: list[object] = [error]
    while waiting and len(seen) < _DEEPEST:
        each = waiting.pop()
        if not isinstance(each, BaseException) or id(each) in seen:
            continue
        seen[id(each)] = each
        waiting += [each.__cause__, each.__context__, getattr(each, "reason", None), getattr(each, "os_error", None)]
    yield from seen.values()


def _short(error: BaseException) -> str:
    """Return the types of an error and its causes, without texts that can contain whole requests."""
    names = list(dict.fromkeys(type(each).__name__ for each in _causes(error)))
    texts = [each.strerror for each in _causes(error) if isinstance(each, OSError) and each.strerror]
    said = f" ({redact(texts[-1])})" if texts else ""
    return " from ".join(names) + said
