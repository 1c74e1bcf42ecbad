"""HTTP/1.1 connection for asyncio."""

from __future__ import annotations

import asyncio
import errno
import math
import os
import select
import socket
import ssl
import struct
from asyncio import Future
from collections.abc import Callable
from typing import Any, Final, final

from deltaloop.client.core.http_answer import AnswerReader, MalformedAnswerError
from deltaloop.client.core.unpacking import TooLargeError
from deltaloop.client.transport.protocol import Headers, HttpResponse

READ_BUFFER: Final = 256 * 1024
"""Maximum size of a read, and approximate size of unread stream data before reading pauses."""

RECORD: Final = 16 * 1024

SLICE: Final = 256 * 1024
"""Maximum size of a body that is written at once."""

_NEVER: Final = math.inf
_NOTHING: Final = ssl.MemoryBIO()
_poll: Final[Any] = getattr(select, "poll", None)  # missing on Windows


class ClosedWithoutAnswerError(Exception):
    """The connection was closed before a response arrived."""


class BrokenOffError(Exception):
    """The connection was closed in the middle of a response."""


class DeadlinePassedError(Exception):
    """The deadline of the request has passed."""


_NO_LINGER: Final = struct.pack("ii", 1, 0)


@final
class HttpConnection(asyncio.BufferedProtocol):
    """Connection that serves one request at a time."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        buffers: tuple[memoryview, memoryview],
        made_with: ssl.SSLContext | None,
        *,
        clock: Callable[[], float],
        keep: Callable[[HttpConnection, list[HttpConnection]], object],
        lost: Callable[[HttpConnection, list[HttpConnection] | None], object],
    ) -> None:
        """Create an unconnected connection."""
        self.transport: asyncio.Transport
        self.kept_at: float = 0.0
        self.made_with: ssl.SSLContext | None = made_with
        self.has_input: Callable[[int], object] = _no_input
        self.reader: AnswerReader = AnswerReader()
        self.error: Exception | None = None
        self.until: float = math.inf
        self.consume: Callable[[], bool] | None = None
        self._loop = loop
        self._clock, self._keep, self._tell_lost = clock, keep, lost
        self._feed = self.reader.feed
        self._buffer, self._plain = buffers
        self._tls: ssl.SSLObject | None = None
        self._incoming, self._outgoing = _NOTHING, _NOTHING
        self._shakes_hands = False
        self._stands = False
        self.pool: list[HttpConnection] | None = None
        self.limit: int = 0
        self.asked: asyncio.Future[HttpResponse | None] | None = None
        self._whole = False
        self._size = 0  # bytes of the response, or of the part of a stream that its reader has not taken
        self._waiter: asyncio.Future[None] | None = None
        self._sends = self._is_full = self._is_paused = self._lost = False

    # -- asyncio.BufferedProtocol

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self._stands = True
        made = transport.get_extra_info("socket")
        if made is not None:
            self.has_input = _input_check(made)

    def get_buffer(self, sizehint: int) -> memoryview:
        del sizehint
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:  # noqa: C901 - one function, so that a read costs few calls
        data, tls = self._buffer[:nbytes], self._tls
        if tls is not None:
            incoming, plain, nbytes = self._incoming, self._plain, 0
            incoming.write(data)
            if self._shakes_hands:
                self._wake()
                return
            data = plain
            try:
                while True:  # each read returns one complete record
                    length: int = tls.read(RECORD, data)  # type: ignore[assignment]
                    if not length:  # close_notify
                        self._loop.call_soon(self.transport.close)
                        break
                    nbytes += length
                    if not incoming.pending:
                        break
                    data = plain[nbytes:]
            except ssl.SSLWantReadError:
                pass
            except ssl.SSLError as error:
                self._loop.call_soon(self.fail, error)  # after the data that precedes the error
            if self._outgoing.pending:
                self.transport.write(self._outgoing.read())
            if not nbytes:
                return
            data = plain[:nbytes]
        reader = self.reader
        if reader.complete or self.error is not None:
            self.abort()  # unexpected data
            return
        try:
            self._feed(data)
        except MalformedAnswerError as error:
            self.fail(error)
            return
        self._size += nbytes
        answer = self.asked
        if answer is None:
            if self._waiter is None or self._waiter.done() or self.consume is None or not self.consume():
                self._wake()
            if self._size > READ_BUFFER and not self.reader.complete and not self._is_paused:
                self._is_paused = True
                self.transport.pause_reading()
        elif reader.status:
            if reader.complete and self._whole and not reader.is_special and self._size <= self.limit:
                self._completed(answer)
            else:
                self._answered(answer)

    def _answered(self, answer: asyncio.Future[HttpResponse | None]) -> None:
        """Complete the request if its response is complete, or if it must be read as a stream."""
        reader = self.reader
        self._wake()  # a large body is not sent to its end
        if not self._whole or reader.encoding or reader.status == 401:
            self.asked = None
            if not self._whole:
                self.until = math.inf
            if answer.done():  # canceled, so the response has no reader
                self.abort()
            else:
                answer.set_result(None)
        elif self._size > self.limit and sum(map(len, reader.pieces)) > self.limit:
            self.fail(TooLargeError(f"the answer has more than {self.limit} bytes"))
        elif reader.complete:
            self._completed(answer)

    def _completed(self, answer: asyncio.Future[HttpResponse | None]) -> None:
        reader, pool = self.reader, self.pool
        pieces = reader.pieces
        body = pieces.pop() if len(pieces) == 1 else reader.taken()
        response = HttpResponse(reader.status, Headers(reader.headers), body, reader.warns)
        self.asked, self.until = None, _NEVER
        if self._sends or not reader.keeps_alive:
            self.abort()
        elif pool is not None:
            self.kept_at = self._clock()
            pool.append(self)
        if not answer.done():
            answer.set_result(response)

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost = True
        reader = self.reader
        if self.error is None:
            if self._shakes_hands:
                exc = exc or ConnectionResetError(errno.ECONNRESET, os.strerror(errno.ECONNRESET))
            if exc is not None or not reader.end():
                self.error = exc or (BrokenOffError() if reader.status else ClosedWithoutAnswerError())
        answer = self.asked
        if answer is not None:
            if self.error is None:
                self._answered(answer)
            else:
                self.asked = None
                if not answer.done():
                    answer.set_result(None)
        self._wake()
        self._tell_lost(self, self.pool)

    def fail(self, error: Exception) -> None:
        if self.error is None:
            self.error = error
        self._reset()
        answer, self.asked = self.asked, None
        if answer is not None and not answer.done():
            answer.set_result(None)
        self._wake()

    def pause_writing(self) -> None:
        self._is_full = True

    def resume_writing(self) -> None:
        self._is_full = False
        self._wake()

    # -- requests

    def ask(
        self,
        method: str,
        data: bytes,
        whole: bool,
        until: float,
    ) -> asyncio.Future[HttpResponse | None]:
        """Send a request, and return a future of its response.

        For a complete response, the connection has been returned to ``pool`` or closed. The result is None if ``error``
        is set, or if the response must be read as a stream: without ``whole``, if it is compressed, or for a 401.
        """
        self.reader.begin(method)
        self._whole, self.until, self._size = whole, until, 0
        answer: asyncio.Future[HttpResponse | None] = Future(loop=self._loop)
        self.asked = answer
        tls = self._tls
        try:
            if tls is None:
                self.transport.write(data)
            else:
                tls.write(data)
                self.transport.write(self._outgoing.read())
        except OSError as error:
            self.fail(error)
        return answer

    async def send(self, body: bytes) -> None:
        """Send a large body until its end, or until a response arrives."""
        view = memoryview(body)
        self._sends = True
        for start in range(0, len(body), SLICE):
            while self._is_full and self.asked is not None and not self.reader.status:
                await self._wait()
            if self.asked is None or self.reader.status:
                return
            self._write(view[start : start + SLICE])
        self._sends = False

    def give_up(self, answer: asyncio.Future[HttpResponse | None]) -> None:
        """Close the connection, unless the response is complete and the connection may serve another request."""
        if self.asked is answer or (not answer.cancelled() and answer.result() is None):
            self._reset()

    async def read(self) -> bytes | None:
        """Return the received part of a stream, or None at its end, or raise its error.

        The part can be empty, for example if ``consume`` took the data. Canceling loses no data.
        """
        reader = self.reader
        if not (reader.pieces or reader.complete or self.error):
            self._waiter = asyncio.Future(loop=self._loop)
            try:
                await self._waiter
            finally:
                self._waiter = None
        if not reader.pieces:
            if reader.complete:
                return None
            if self.error is not None:
                raise self.error
        return self.taken()

    def taken(self) -> bytes:
        """Return the received part of a stream without waiting."""
        self._size = 0
        if self._is_paused:
            self._is_paused = False
            self.transport.resume_reading()
        return self.reader.taken()

    def finish(self) -> None:
        """End a stream, and keep the connection if the response was read completely."""
        reader, self.consume = self.reader, None
        usable = reader.complete and reader.keeps_alive and not reader.pieces and not self._sends
        if usable and self.pool is not None and self.error is None and not self._lost:
            self._keep(self, self.pool)
        else:
            self.abort()

    def restart(self) -> None:
        """Start a new connection state after a proxy has created a tunnel."""
        self.reader = AnswerReader()
        self._feed = self.reader.feed

    def abort(self) -> None:
        if self._stands:
            self.transport.abort()

    def _reset(self) -> None:
        """Abort so that the system drops unsent data. Otherwise a canceled write can arrive after a long time."""
        made = self.transport.get_extra_info("socket") if self._stands else None
        if made is not None:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
        self.abort()

    # -- TLS

    async def encrypt(self, context: ssl.SSLContext, server_name: str) -> None:
        """Start TLS on the connection, or raise OSError if the handshake fails."""
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        # Encoding a str would import the IDNA codec, which takes a millisecond.
        name = server_name.encode() if server_name.isascii() else server_name
        self._tls = tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=name)
        self._shakes_hands = True
        try:
            while True:
                try:
                    tls.do_handshake()
                    break
                except ssl.SSLWantReadError:
                    self.transport.write(self._outgoing.read())
                    await self._wait()
        finally:
            self._shakes_hands = False
            if self._outgoing.pending and not self._lost:
                self.transport.write(self._outgoing.read())  # inform the peer about the reason of a failure

    # -- helpers

    def _write(self, data: bytes | memoryview) -> None:
        tls = self._tls
        if tls is None:
            self.transport.write(data)
        else:
            tls.write(data)
            self.transport.write(self._outgoing.read())

    async def _wait(self) -> None:
        if self.error is not None:
            raise self.error
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _wake(self) -> None:
        waiter = self._waiter
        if waiter is not None and not waiter.done():
            waiter.set_result(None)


def _no_input(timeout: int) -> bool:
    del timeout
    return False


def _input_check(made: Any) -> Callable[[int], object]:
    if _poll is None:
        return lambda timeout: select.select([made.fileno()], [], [], timeout)[0]
    # Reusing a poll object is seven times faster than creating one, and this runs before every write.
    registered = _poll()
    registered.register(made.fileno(), select.POLLIN)
    poll: Callable[[int], object] = registered.poll
    return poll
