"""HTTP servers with limited connections and memory, for ports that others can reach."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final, final

from aiohttp import web
from aiohttp.http import HttpProcessingError

UNREADABLE: Final = HttpProcessingError
IDLE: Final = 60.0
FIRST_REQUEST: Final = 10.0
HANDSHAKE: Final = 10.0
SENDING: Final = 30.0
"""Seconds within which a client must read a response."""
MOST_HANDSHAKES: Final = 50
_PIECE: Final = 64 * 1024
_UNBUFFERED: Final = 32 * 1024  # less than the high-water mark of a transport
_MOST_HEADERS: Final = 32  # each at most 8 KiB
_ACCEPTS: Final = "_accept_connection2"  # asyncio's coroutine for the TLS handshake of a new connection


@dataclass(slots=True)
class _Connection:
    transport: asyncio.Transport
    first_request: asyncio.TimerHandle
    answering: bool = False


@final
class BoundedServer(web.Server):
    """Server with a connection limit, in which a new connection replaces the longest-waiting idle connection."""

    def __init__(
        self, answer: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]], *, most: int, logger: logging.Logger
    ) -> None:
        # By default, aiohttp decompresses bodies that are never read, and keeps reading after the response.
        super().__init__(
            self._answered,
            handler_cancellation=True,
            access_log=None,
            keepalive_timeout=IDLE,
            auto_decompress=False,
            lingering_time=0.0,
            max_headers=_MOST_HEADERS,
            logger=logger,
        )
        self._answer = answer
        self._most = most
        self._open: dict[web.RequestHandler, _Connection] = {}
        self._handshakes: dict[asyncio.Task[Any], None] = {}

    def __call__(self) -> web.RequestHandler:
        """Create the protocol of a new connection, before its TLS handshake."""
        task = asyncio.current_task()
        if task is not None and getattr(task.get_coro(), "__name__", "") == _ACCEPTS:
            self._handshakes[task] = None
            task.add_done_callback(lambda done: self._handshakes.pop(done, None))
            if len(self._handshakes) > MOST_HANDSHAKES:
                next(iter(self._handshakes)).cancel()
        return super().__call__()

    async def _answered(self, request: web.BaseRequest) -> web.StreamResponse:
        connection = self._open.pop(request.protocol, None)
        if connection is None:
            raise ConnectionResetError
        connection.first_request.cancel()
        connection.answering = True
        self._open[request.protocol] = connection  # move it to the end of the eviction order
        try:
            return await self._answer(request)
        finally:
            connection.answering = False

    def connection_made(self, handler: web.RequestHandler, transport: asyncio.Transport) -> None:
        """Add a connection, and close a waiting connection if there are too many."""
        super().connection_made(handler, transport)
        timer = asyncio.get_running_loop().call_later(FIRST_REQUEST, transport.abort)
        self._open[handler] = _Connection(transport, timer)
        if len(self._open) > self._most:
            last = next((item for item, connection in self._open.items() if not connection.answering), handler)
            self._forget(last).abort()

    def connection_lost(self, handler: web.RequestHandler, exc: BaseException | None = None) -> None:
        super().connection_lost(handler, exc)
        if handler in self._open:
            self._forget(handler)

    def abort(self) -> None:
        """Abort all connections, because a TLS shutdown could outlast the loop."""
        for handler in tuple(self._open):
            self._forget(handler).abort()

    def _forget(self, handler: web.RequestHandler) -> asyncio.Transport:
        connection = self._open.pop(handler)
        connection.first_request.cancel()
        return connection.transport


async def send(request: web.BaseRequest, response: web.Response) -> web.StreamResponse:
    """Send a response, in chunks if it is large, and return the response that was sent."""
    body, transport = response.body, request.transport
    size = len(body) if isinstance(body, bytes) else 0
    if transport is not None and size <= _UNBUFFERED and not transport.get_write_buffer_size():
        await response.prepare(request)
        await response.write_eof()
        return response
    sent: web.StreamResponse = response
    try:
        async with asyncio.timeout(SENDING):
            if size > _PIECE and request.method != "HEAD":
                sent = web.StreamResponse(status=response.status, headers=response.headers)
                sent.content_length = size
                await sent.prepare(request)
                whole = memoryview(body if isinstance(body, bytes) else b"")
                for begin in range(0, size, _PIECE):
                    await sent.write(bytes(whole[begin : begin + _PIECE]))
                    await asyncio.sleep(0)
            else:
                await sent.prepare(request)
            await sent.write_eof()
    except TimeoutError:
        if transport is not None:
            transport.abort()
        raise ConnectionResetError("the client does not read the response") from None
    return sent
