"""Requests from the same event loop, without sockets, HTTP parsing and TLS."""

from __future__ import annotations

import asyncio
import contextvars
import errno
import os
from collections.abc import Awaitable, Callable
from typing import Any, Final, final

from aiohttp import EMPTY_PAYLOAD, HttpVersion11, StreamReader, web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http_parser import RawRequestMessage
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

_HIGH_WATER: Final = 256 * 1024
_PART: Final = 64 * 1024
_CODE: Final = slice(9, 12)  # of "HTTP/1.1 200 OK"
_HERE: Final = ("127.0.0.1", 0)
Handle = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


@final
class DirectConnection(asyncio.Transport):
    """One request and its response; the transport of the request for the server. ``status`` is 0 before the head."""

    def __init__(self, loop: asyncio.AbstractEventLoop, context: contextvars.Context) -> None:
        super().__init__({"peername": _HERE, "sockname": _HERE})
        self.status: int = 0
        self.headers: tuple[tuple[str, str], ...] = ()
        self.handler: asyncio.Task[None] | None = None
        self._loop = loop
        self._context = context
        self._head: tuple[int, tuple[tuple[str, str], ...]] | None = None
        self._sent: list[bytes] = []
        self._arrived: list[bytes] = []
        self._waiting = 0  # bytes in both lists
        self._sent_end = self._broken = self._scheduled = False
        self._ends = self._breaks = False  # take effect after the arrived data
        self._reader: asyncio.Future[None] | None = None
        self._writer: asyncio.Future[None] | None = None

    # -- client side

    async def answered(self) -> None:
        """Wait for the head of the response, or raise ConnectionResetError if the connection breaks."""
        while not self.status:
            await self._news()

    @property
    def complete(self) -> bool:
        return self._ends and not self._arrived

    async def read(self) -> bytes:
        """Return the next part of the body, or empty bytes at its end.

        Raises ConnectionResetError. Cancellation loses no data.
        """
        while not self._arrived:
            if self._ends:
                return b""
            await self._news()
        data = self._arrived[0] if len(self._arrived) == 1 else b"".join(self._arrived)
        self._arrived.clear()
        self._waiting -= len(data)
        self._tell(self._writer)
        return data

    async def _news(self) -> None:
        if self._breaks:
            raise _reset()
        self._reader = self._loop.create_future()
        try:
            await self._reader
        finally:
            self._reader = None

    def _arrives(self) -> None:
        """Deliver sent data in the next iteration of the event loop."""
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._deliver, context=self._context)

    def _deliver(self) -> None:
        self._scheduled = False
        if self._head is not None:
            (self.status, self.headers), self._head = self._head, None
        self._arrived += self._sent
        self._sent.clear()
        self._ends, self._breaks = self._sent_end, self._broken
        self._tell(self._reader)

    @staticmethod
    def _tell(waiter: asyncio.Future[None] | None) -> None:
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    # -- server side

    @property
    def full(self) -> bool:
        return self._waiting > _HIGH_WATER

    def begin(self, status: int, headers: tuple[tuple[str, str], ...]) -> None:
        self._head = (status, headers)
        self._arrives()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if data and not self._broken:
            self._sent.append(bytes(data))
            self._waiting += len(data)
            self._arrives()

    def end(self) -> None:
        if not self._broken:
            self._sent_end = True
            self._arrives()

    async def room(self) -> None:
        """Wait until more data can be sent, or raise ConnectionResetError if the connection is broken."""
        while self.full and not self._broken:
            self._writer = self._loop.create_future()
            try:
                await self._writer
            finally:
                self._writer = None
        if self._broken:
            raise _reset()

    # -- both sides

    def is_closing(self) -> bool:
        return self._broken

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        """Do nothing, because there is no protocol."""

    def close(self) -> None:
        self.abort()

    def abort(self) -> None:
        """Break the connection and cancel the running handler, unless it is complete."""
        if self._broken or self._sent_end:
            return
        self._broken = True
        self._arrives()
        self._tell(self._writer)
        if self.handler is not None:
            self._loop.call_soon(self.handler.cancel, context=self._context)


@final
class _Writer(AbstractStreamWriter):
    def __init__(self, connection: DirectConnection) -> None:
        self._connection = connection

    @property
    def transport(self) -> asyncio.WriteTransport:
        return self._connection

    async def write_headers(self, status_line: str, headers: CIMultiDict[str]) -> None:
        self._connection.begin(int(status_line[_CODE]), tuple(headers.items()))

    async def write(self, chunk: bytes | bytearray | memoryview) -> None:
        self.output_size += len(chunk)
        self._connection.write(chunk)
        await self._connection.room()

    async def write_eof(self, chunk: bytes = b"") -> None:
        if chunk:
            self.output_size += len(chunk)
            self._connection.write(chunk)
        if self._connection.is_closing():
            raise _reset()
        self._connection.end()

    async def drain(self) -> None:
        await self._connection.room()

    def enable_compression(self, encoding: str = "deflate", strategy: int | None = None) -> None:
        raise NotImplementedError("responses within one process must not be compressed")

    def enable_chunking(self) -> None:
        pass


@final
class _Protocol:
    """Protocol with the attributes that an aiohttp request uses."""

    ssl_context = None
    peername = sockname = _HERE
    _reading_paused = False

    def __init__(self, transport: DirectConnection) -> None:
        self.transport = transport

    @property
    def writing_paused(self) -> bool:
        return self.transport.full

    def pause_reading(self, **_: object) -> None:
        """Do nothing, because the body has already arrived."""

    def resume_reading(self, **_: object) -> None:
        """Do nothing."""


@final
class DirectDoor:
    def __init__(self, handle: Handle) -> None:
        """Use a handler, which must also respond to failures."""
        self._handle = handle
        self._loop = asyncio.get_running_loop()
        self._context = contextvars.copy_context()
        self._open: dict[DirectConnection, None] = {}

    def ask(self, method: str, target: str, headers: list[tuple[str, str]], body: bytes | None) -> DirectConnection:
        """Send a request."""
        connection = DirectConnection(self._loop, self._context.copy())
        self._open[connection] = None
        self._loop.call_soon(self._begin, connection, method, target, headers, body, context=self._context)
        return connection

    def _begin(
        self,
        connection: DirectConnection,
        method: str,
        target: str,
        headers: list[tuple[str, str]],
        body: bytes | None,
    ) -> None:
        if connection.is_closing():
            del self._open[connection]
            return
        protocol: Any = _Protocol(connection)
        payload = EMPTY_PAYLOAD
        if body:
            payload = StreamReader(protocol, _PART, loop=self._loop)
            payload.feed_data(body)
            payload.feed_eof()
        named, url = CIMultiDictProxy(CIMultiDict(headers)), URL(target, encoded=True)
        message = RawRequestMessage(method, target, HttpVersion11, named, (), False, None, False, False, url)
        answer = self._answer(connection, message, payload, protocol)
        connection.handler = self._loop.create_task(answer, context=self._context.copy())

    async def _answer(
        self, connection: DirectConnection, message: RawRequestMessage, payload: StreamReader, protocol: Any
    ) -> None:
        task: Any = asyncio.current_task()
        request = web.BaseRequest(message, payload, protocol, _Writer(connection), task, self._loop)
        try:
            response = await self._handle(request)
            await response.prepare(request)
            await response.write_eof()
        except ConnectionError:
            pass  # the client has disconnected
        finally:
            connection.handler = None
            del self._open[connection]
            connection.abort()  # has no effect on a complete response

    def cut(self) -> None:
        for connection in tuple(self._open):
            connection.abort()

    async def close(self, *, patience: float) -> None:
        """Wait up to ``patience`` seconds for running handlers, then break the remaining connections."""
        tasks = [connection.handler for connection in self._open if connection.handler is not None]
        if tasks:
            await asyncio.wait(tasks, timeout=patience)
        self.cut()


def _reset() -> ConnectionResetError:
    return ConnectionResetError(errno.ECONNRESET, os.strerror(errno.ECONNRESET))
