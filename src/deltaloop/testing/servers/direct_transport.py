"""Transport to an embedded server on the same loop, without sockets and HTTP encoding."""

from __future__ import annotations

import asyncio
import math
import weakref
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import final
from urllib.parse import urlsplit

from deltaloop.apiserver import ApiServer
from deltaloop.apiserver.embedding import DirectConnection
from deltaloop.client.config import ClientConfig
from deltaloop.client.core.connection_failures import of_breaking, of_connecting
from deltaloop.client.core.http_request import target
from deltaloop.client.core.impersonation import impersonation_headers
from deltaloop.client.core.unpacking import TooLargeError
from deltaloop.client.errors import TransportError
from deltaloop.client.transport.http_transport import broke_off, failed, late, unusable
from deltaloop.client.transport.protocol import Headers, HttpRequest, HttpResponse, StreamResponse
from deltaloop.testing.deterministic_loop.memory_network import NetworkLoop


@final
class DirectTransport:
    """Transport to an embedded server on the same loop, without TLS and therefore without credentials."""

    def __init__(self, config: ClientConfig, server: ApiServer) -> None:
        self._server = server
        self._limit = config.max_response_bytes
        self._closed = False
        self._open_ones: weakref.WeakSet[DirectConnection] = weakref.WeakSet()
        parts = urlsplit(config.server)
        self._address = parts.netloc
        self._fixed = [("Host", parts.netloc), ("User-Agent", config.user_agent), ("Accept-Encoding", "identity")]
        if config.impersonate is not None:
            self._fixed += impersonation_headers(config.impersonate)

    async def request(self, request: HttpRequest) -> HttpResponse:
        pieces: list[bytes] = []
        connection = await self._opened(request, pieces)
        body = b"".join(pieces)
        if len(body) > self._limit:
            raise unusable(TooLargeError(f"the response must have at most {self._limit} bytes"), request)
        warns = "Warning" in dict(connection.headers)
        return HttpResponse(connection.status, Headers(connection.headers), body, warns)

    @asynccontextmanager
    async def stream(self, request: HttpRequest) -> AsyncGenerator[StreamResponse, None]:
        connection = await self._opened(request)
        try:
            chunks = _Chunks(connection, request, self._address, self._limit if request.bounded else math.inf)
            yield StreamResponse(status=connection.status, headers=Headers(connection.headers), chunks=chunks)
        finally:
            connection.abort()

    async def close(self) -> None:
        self._closed = True
        for connection in tuple(self._open_ones):
            connection.abort()

    async def _opened(self, request: HttpRequest, pieces: list[bytes] | None = None) -> DirectConnection:
        """Send a request, and return its connection after the headers; with ``pieces``, after the whole body."""
        limit, connection = asyncio.timeout(_finite(request.timeout)), None
        try:
            async with limit:
                connection = self._begun(request)
                await connection.answered()
                if pieces is not None:
                    while piece := await connection.read():
                        pieces.append(piece)
                return connection
        except BaseException as error:
            if connection is not None:
                connection.abort()
            if isinstance(error, TimeoutError) and limit.expired():
                raise late(request, self._address, sent=True) from None
            if not isinstance(error, OSError):
                raise
            sent = connection is not None
            how = of_connecting(error) if isinstance(error, ConnectionRefusedError) else of_breaking(error)
            cause = None if sent else error
            raise failed(request, how, how.describe(self._address), sent=sent, cause=cause) from cause

    def _begun(self, request: HttpRequest) -> DirectConnection:
        if self._closed:
            raise TransportError("the client is closed", method=request.method, path=request.path, sent=False)
        body = request.body
        headers = [*self._fixed, *request.headers.items()]
        if body is not None:
            headers.append(("Content-Length", str(len(body))))
        door, asked = self._server.door(), target(request.path, request.query)
        if request.before_send is not None:
            request.before_send()
        connection = door.ask(request.method, asked, headers, body)
        loop = asyncio.get_running_loop()
        if isinstance(loop, NetworkLoop):
            loop.accepted(connection)  # a crash of the sending process ends the connection
        self._open_ones.add(connection)
        return connection


@final
class _Chunks:
    __slots__ = ("_address", "_connection", "_left", "_request")

    def __init__(self, connection: DirectConnection, request: HttpRequest, address: str, limit: float) -> None:
        self._connection = connection
        self._request = request
        self._address = address
        self._left = limit

    def __aiter__(self) -> _Chunks:
        return self

    async def __anext__(self) -> bytes:
        try:
            chunk = await self._connection.read()
        except OSError as error:
            raise broke_off(self._request, of_breaking(error).describe(self._address)) from None
        if not chunk:
            raise StopAsyncIteration
        self._left -= len(chunk)
        if self._left < 0:
            raise unusable(TooLargeError("the response exceeds the limit of the client"), self._request)
        return chunk


def _finite(timeout: float | None) -> float | None:
    return None if timeout is None or math.isinf(timeout) else timeout
