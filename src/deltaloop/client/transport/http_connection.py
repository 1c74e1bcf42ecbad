"""One HTTP/1.1 connection: bytes out, and one answer in at a time.

An answer that waits to be read holds the server back, as full buffers do. Cancelling a read loses nothing.

TLS is OpenSSL's, between two buffers in memory (``ssl.SSLObject``), which is what asyncio's own transports do, too;
but these keep a quarter of a MiB for each connection, and here all connections share what bytes are received into.
"""

from __future__ import annotations

import asyncio
import errno
import os
import select
import ssl
from collections.abc import Callable
from typing import Final, cast, final

from deltaloop.client.core.http_answer import AnswerReader, MalformedAnswerError

_SLICE: Final = 256 * 1024
_RECORD: Final = 16 * 1024
"""The most that one record of TLS holds."""


class ClosedWithoutAnswerError(Exception):
    """The connection was closed before an answer came."""


class BrokenOffError(Exception):
    """The connection was closed in the middle of an answer."""


_NOTHING: Final = ssl.MemoryBIO()
_poll = getattr(select, "poll", None)  # missing on Windows


@final
class HttpConnection(asyncio.BufferedProtocol):
    """A connection that serves one request after the other.

    Attributes:
        transport: What bytes go over; there is one once the connection stands.
        kept_at: When it was last given back, on the loop's clock.
        made_with: What it was encrypted by; None without TLS.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        buffer: bytearray,
        *,
        most_waiting: int,
        made_with: object,
        gone: Callable[[HttpConnection], object],
    ) -> None:
        """Make one that is not connected.

        Args:
            loop: The loop that it is on.
            buffer: What bytes are received into; connections of one loop may share it.
            most_waiting: About how many bytes wait for their reader before no more are taken.
            made_with: What it is encrypted by; None for nothing.
            gone: Called once the connection, having stood, is no more.
        """
        self.transport: asyncio.Transport
        self.kept_at: float = 0.0
        self.made_with: object = made_with
        self._loop = loop
        self._buffer = memoryview(buffer)
        self._tls: ssl.SSLObject | None = None
        self._incoming, self._outgoing = _NOTHING, _NOTHING
        self._shakes_hands = False
        self._tell_gone = gone
        self._stands = False
        self._most_waiting = most_waiting
        self._answer: AnswerReader | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._error: Exception | None = None
        self._writes = True  # there is room for more
        self._reads = True
        self._lost = False
        self._has_input: Callable[[], bool] | None = None

    # -- asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection stands."""
        self.transport = cast("asyncio.Transport", transport)
        self._stands = True

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return where the next bytes go."""
        del sizehint
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Take what has come."""
        tls = self._tls
        if tls is None:
            self._take(bytes(self._buffer[:nbytes]))
            return
        self._incoming.write(self._buffer[:nbytes])
        if self._shakes_hands:
            self._wake()
            return
        try:
            while self._incoming.pending or tls.pending():
                data = tls.read(_RECORD)
                if not data:  # close_notify
                    self.transport.close()
                    break
                self._take(data)
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLError as error:
            self._fail(error)
        if self._outgoing.pending:
            self.transport.write(self._outgoing.read())

    def _take(self, data: bytes) -> None:
        """Take a slice of the answer."""
        answer = self._answer
        if answer is None or self._error is not None:
            self.abort()  # nobody has asked for anything
            return
        try:
            answer.feed(data)
        except MalformedAnswerError as error:
            self._fail(error)
        if answer.waiting > self._most_waiting and self._reads and not answer.complete:
            self._reads = False
            self.transport.pause_reading()
        self._wake()

    def _fail(self, error: Exception) -> None:
        if self._error is None:
            self._error = error
        self.abort()
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        """There is no connection any more."""
        self._lost = True
        answer = self._answer
        if self._error is None and not (answer is not None and exc is None and answer.end()):
            begun = answer is not None and answer.status
            self._error = exc or (BrokenOffError() if begun else ClosedWithoutAnswerError())
        if exc is None and self._shakes_hands:
            self._error = ConnectionResetError(errno.ECONNRESET, os.strerror(errno.ECONNRESET))
        self._wake()
        self._tell_gone(self)

    def pause_writing(self) -> None:
        """The other end takes no more for now."""
        self._writes = False

    def resume_writing(self) -> None:
        """There is room again."""
        self._writes = True
        self._wake()

    async def encrypt(self, context: ssl.SSLContext, server_name: str) -> None:
        """Speak TLS from now on.

        Args:
            context: How, and with which certificates.
            server_name: Name that the server's certificate must have.

        Raises:
            OSError: If that fails, or the connection is closed meanwhile; ``ssl.CertificateError`` among them.
        """
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=server_name)
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
                self.transport.write(self._outgoing.read())  # the other side learns why, if it has failed

    # -- one request

    async def ask(self, method: str, head: bytes, body: bytes | None) -> AnswerReader:
        """Send a request, and return its answer when the head is there; ``read`` gives the body.

        A server may answer before it has all of a request, such as to say that it is too large: then the rest is not
        sent, and the connection is not kept.

        Raises:
            Exception: The system's error, or one of this module or of the core, if there is no answer.
        """
        if self._error is not None:
            raise self._error
        answer = self._answer = AnswerReader(method)
        if body is None:
            self._write(head)
        elif len(body) <= _SLICE:
            self._write(head + body)
        else:
            self._write(head)
            await self._send(answer, body)
        while not answer.status:
            await self._wait()
        return answer

    async def read(self) -> bytes:
        """Return what has come of the body; empty at its end.

        Raises:
            Exception: As ``ask``.
        """
        answer = self._answer
        assert answer is not None
        while not answer.pieces:
            if answer.complete:
                return b""
            await self._wait()
        pieces = answer.pieces
        data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        pieces.clear()
        answer.waiting = 0
        if not self._reads:
            self._reads = True
            self.transport.resume_reading()
        return data

    def finish(self) -> bool:
        """The request is over; return whether the connection can serve another one, and close it if it cannot."""
        answer, self._answer = self._answer, None
        if self.usable and answer is not None and answer.complete and answer.keeps_alive and not answer.pieces:
            return True
        self.abort()
        return False

    @property
    def usable(self) -> bool:
        """Whether a request can be sent: nobody has closed it, and nothing came that nobody had asked for."""
        return not self._lost and self._error is None and not self.transport.is_closing()

    @property
    def quiet(self) -> bool:
        """Whether the socket of a usable connection has no input, such as its end, that the loop has not seen yet."""
        if self._has_input is None:
            self._has_input = _input_check(self.transport)
        return not self._has_input()

    def abort(self) -> None:
        """Close the connection at once, without saying goodbye; nothing happens if there is none."""
        if self._stands:
            self.transport.abort()

    # -- how

    async def _send(self, answer: AnswerReader, body: bytes) -> None:
        view = memoryview(body)
        for start in range(0, len(body), _SLICE):
            while not self._writes and not answer.status:
                await self._wait()
            if answer.status:
                answer.keeps_alive = False
                return
            self._write(view[start : start + _SLICE])

    def _write(self, data: bytes | memoryview) -> None:
        tls = self._tls
        if tls is None:
            self.transport.write(data)
        else:
            tls.write(data)
            self.transport.write(self._outgoing.read())

    async def _wait(self) -> None:
        """Wait for whatever happens next.

        Raises:
            Exception: What has ended the connection.
        """
        if self._error is not None:
            raise self._error
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _wake(self) -> None:
        waiter = self._waiter
        if waiter is not None and not waiter.done():
            waiter.set_result(None)


def _input_check(transport: asyncio.BaseTransport) -> Callable[[], bool]:
    """Return a function that reports whether a socket has input that the event loop has not read yet.

    Input is data, the end of the connection, or an error. Between two requests, all of these mean that the server does
    not read from the connection any more.
    """
    made = transport.get_extra_info("socket")
    if made is None:
        return _no_input
    if _poll is None:
        return lambda: bool(select.select([made.fileno()], [], [], 0)[0])
    # A poll object that is made once costs a seventh of a new one: this runs before every write.
    registered = _poll()
    registered.register(made.fileno(), select.POLLIN)
    return lambda: bool(registered.poll(0))


def _no_input() -> bool:
    return False
