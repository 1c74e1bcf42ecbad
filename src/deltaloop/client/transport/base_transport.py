"""What every transport over HTTP/1.1 does, whatever speaks it: credentials, time limits, repeats, bodies and errors.

Three pools of connections, none with a limit: ordinary calls, leader election, watches. Time limits are ours, one for
a call. Redirects are not followed, cookies are not kept, ``~/.netrc`` is not read, answers are unpacked within bounds.
A GET on a kept connection that turns out to be dead is sent once more: nothing can have happened.

Half-open connections: TCP keepalive from 30 s on, and where the system has it TCP_USER_TIMEOUT of 30 s, so that the
kernel ends a connection whose data nobody acknowledges.
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
import socket
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Iterator
from contextlib import asynccontextmanager
from typing import Any, ClassVar, Final, Generic, Protocol, TypeVar, final
from urllib.parse import urlsplit

import msgspec

from deltaloop.client.config import ClientConfig, check_proxy
from deltaloop.client.core.connection_failures import ConnectionFailure, FailureKind, Reuse, after_break
from deltaloop.client.core.credential import Credential
from deltaloop.client.core.impersonation import impersonation_headers
from deltaloop.client.core.proxy import proxy_for, proxy_variable
from deltaloop.client.core.unpacking import TooLargeError, Unpacker, UnpackingError
from deltaloop.client.errors import RequestTimeoutError, ResponseTooLargeError, StreamEndedError, TransportError
from deltaloop.client.transport.protocol import Headers, HttpRequest, HttpResponse, StreamResponse
from deltaloop.client.transport.tls import TlsContexts

_log = logging.getLogger("deltaloop.client")
_T = TypeVar("_T")

WATCHES: Final = "watches"
"""The pool of streams that end when their reader wants it."""

IDLE_CONNECTION: Final = 30.0
"""Seconds for which a connection is kept that nobody uses."""

READ_BUFFER: Final = 256 * 1024
"""About how many bytes of an answer wait for their reader before no more are taken from the connection."""

CONNECTS: Final = 4
"""How often leader election begins to connect, a quarter of a second apart; the connection that comes first is taken.
The system repeats a lost first packet after a second only, which a short renew deadline does not have. With its own
repeats after a second, there is one each quarter of a second for two."""

CONNECT_INTERVAL: Final = 0.25

_KEEPALIVE_IDLE: Final = 30
_KEEPALIVE_INTERVAL: Final = 10
_KEEPALIVE_PROBES: Final = 3
_USER_TIMEOUT_MS: Final = 30_000
_OF_THE_WAY: Final = (FailureKind.NAME, FailureKind.REFUSED, FailureKind.CONNECT)


class Attempt(msgspec.Struct):
    """How far one try has come, and what has to allow it to be sent.

    Attributes:
        before_send: Called right before the first byte is sent; what it raises ends the request unsent.
        sent: Whether the server may have got a part of the request.
        reused: Whether its connection had served another request before.
    """

    before_send: Callable[[], object] | None = None
    sent: bool = False
    reused: bool = False

    def sends(self) -> None:
        """The connection stands, and the next thing is the first byte."""
        if self.before_send is not None:
            self.before_send()
        self.sent = True


class HttpAnswer(Protocol):
    """An answer whose head has come."""

    @property
    def status(self) -> int:
        """HTTP status code."""
        ...

    @property
    def headers(self) -> Headers:
        """Its headers."""
        ...

    @property
    def complete(self) -> bool:
        """Whether its body has been read to the end."""
        ...

    async def read(self) -> bytes:
        """Return the next slice of the body as it came; empty at the end. Cancelling loses nothing."""
        ...

    def close(self) -> None:
        """Give the connection back if the answer was read to its end, and close it otherwise."""
        ...


class BaseTransport(ABC):
    """Sends requests to the server of a ``ClientConfig``.

    Made anywhere, used on one event loop.
    """

    breaks: ClassVar[tuple[type[Exception], ...]]
    """What is raised when a connection cannot be made, or breaks."""

    def __init__(self, config: ClientConfig) -> None:
        """Read certificates and environment; connections are made when they are needed.

        Raises:
            ConfigError: If certificates, keys or the proxy of the environment cannot be used.
        """
        self._config = config
        self._tls = TlsContexts(config) if config.is_tls else None
        parts = urlsplit(config.server)
        self._host = parts.hostname or ""
        self._port = parts.port or (443 if config.is_tls else 80)
        self._address = f"{self._host}:{self._port}"
        self._proxy = config.proxy_url or proxy_for(parts.scheme, self._host, self._port, os.environ)
        if self._proxy is not None:
            check_proxy(self._proxy, "proxy-url" if config.proxy_url else proxy_variable(parts.scheme, os.environ))
        self._credentials = config.credentials if config.is_tls else None
        if config.credentials is not None and not config.is_tls:
            _log.warning("credentials are not sent: the connection is not encrypted", extra={"server": config.server})
        self._identity = impersonation_headers(config.impersonate) if config.impersonate is not None else []
        self._encoding = "gzip" if config.compression else "identity"
        self._reuse = Reuse()
        self._closed = False

    # -- of what speaks HTTP

    @abstractmethod
    async def _open(
        self, request: HttpRequest, pool: str, encoding: str, credential: Credential, attempt: Attempt
    ) -> HttpAnswer:
        """Send a request once, on a connection of a pool, and return its answer when the head is there.

        Raises:
            Exception: One of ``breaks`` if there is none.
        """

    @abstractmethod
    def _failure(self, error: Exception) -> tuple[ConnectionFailure, OSError | None]:
        """Tell what one of ``breaks`` means, and which of the system's errors is the cause, if one is to be named."""

    @abstractmethod
    async def close(self) -> None:
        """Close all connections; requests that are under way fail."""

    # -- Transport

    async def request(self, request: HttpRequest) -> HttpResponse:
        """Send a request and return the whole answer.

        Cancelling closes its connection.

        Raises:
            TransportError: If there is no answer.
            ConfigError: If the credentials cannot be read.
        """
        attempt = Attempt(request.before_send)
        limit = asyncio.timeout(_finite(request.timeout))
        try:
            async with limit:
                answer = await self._answer(request, request.pool, self._encoding, attempt, limit)
                try:
                    body = await _Body(answer, limit=self._config.max_response_bytes).read()
                    return HttpResponse(status=answer.status, headers=answer.headers, body=body)
                except UnpackingError as error:
                    failure = _unusable(error, request)
                except self.breaks as error:
                    failure, _ = self._error(error, request, attempt)
                finally:
                    answer.close()
                raise failure
        except TimeoutError:
            if not limit.expired():
                raise
            raise self._timeout(request, attempt) from None

    @asynccontextmanager
    async def stream(self, request: HttpRequest) -> AsyncGenerator[StreamResponse, None]:
        """Open a stream; its connection is closed when the context is left.

        Raises:
            TransportError: If there is no answer.
            ConfigError: If the credentials cannot be read.
        """
        attempt = Attempt()
        limit = asyncio.timeout(_finite(request.timeout))
        try:
            async with limit:
                pool, encoding = (request.pool, self._encoding) if request.bounded else (WATCHES, "identity")
                answer = await self._answer(request, pool, encoding, attempt, limit)
        except TimeoutError:
            if not limit.expired():
                raise
            raise self._timeout(request, attempt) from None
        most = self._config.max_response_bytes if request.bounded else None
        try:
            yield StreamResponse(
                status=answer.status,
                headers=answer.headers,
                chunks=_Chunks(_Body(answer, limit=most), request, self.breaks, self._broke_off),
            )
        finally:
            answer.close()

    # -- how

    async def _answer(
        self, request: HttpRequest, pool: str, encoding: str, attempt: Attempt, limit: asyncio.Timeout
    ) -> HttpAnswer:
        """Send a request; once more with other credentials if the first ones are refused and there are others."""
        if self._credentials is None:
            return await self._send(request, pool, encoding, Credential(), attempt)
        credential = await _Outside(limit, self._credentials.credential())
        answer = await self._send(request, pool, encoding, credential, attempt)
        if answer.status != 401:
            return answer
        try:
            renewed = await _Outside(limit, self._credentials.renew(credential))
        except BaseException:
            answer.close()
            raise
        if renewed is None:
            return answer
        answer.close()
        _log.info("credentials were refused and have been renewed", extra={"server": self._address})
        return await self._send(request, pool, encoding, renewed, attempt)

    async def _send(
        self, request: HttpRequest, pool: str, encoding: str, credential: Credential, attempt: Attempt
    ) -> HttpAnswer:
        while True:
            if self._closed:
                raise TransportError("the client is closed", method=request.method, path=request.path, sent=False)
            attempt.sent = attempt.reused = False
            try:
                return await self._open(request, pool, encoding, credential, attempt)
            except self.breaks as error:
                failure, how = self._error(error, request, attempt)
                tls, now = self._tls, asyncio.get_running_loop().time()
                if attempt.reused and how.cut:
                    self._reuse.failed(now)
                then = after_break(
                    request.method,
                    reused=attempt.reused,
                    tls=tls is not None,
                    in_handshake=how.in_handshake,
                    cut=how.cut,
                )
                if then.again or (then.reload and tls is not None and tls.reload(now)):
                    continue
                if then.suspect and tls is not None:
                    tls.suspect()
            raise failure

    def _timeout(self, request: HttpRequest, attempt: Attempt) -> RequestTimeoutError:
        what = "answer" if attempt.sent else "connection"
        return RequestTimeoutError(
            f"{request.method} {request.path}: no {what} from {self._address} within {request.timeout:g} s",
            method=request.method,
            path=request.path,
            sent=attempt.sent,
        )

    def _error(
        self, error: Exception, request: HttpRequest, attempt: Attempt
    ) -> tuple[TransportError, ConnectionFailure]:
        how, cause = self._failure(error)
        failure = TransportError(
            f"{request.method} {request.path}: {self._describe(how)}",
            method=request.method,
            path=request.path,
            refused=how.kind is FailureKind.REFUSED,
            sent=attempt.sent,
            cut=how.cut,
        )
        # What speaks HTTP may hold the request's headers in its errors, credentials among them; they are neither cause
        # nor context.
        failure.__cause__ = cause
        return failure, how

    def _describe(self, failure: ConnectionFailure) -> str:
        """Say what happened, and where."""
        if self._proxy is not None and failure.kind in _OF_THE_WAY:
            proxy = urlsplit(self._proxy)
            return failure.describe(
                f"the proxy {proxy.hostname}:{proxy.port or (443 if proxy.scheme == 'https' else 80)}"
            )
        return failure.describe(self._address)

    def _broke_off(self, error: Exception, request: HttpRequest) -> StreamEndedError:
        """Return the error of a stream whose connection broke."""
        how, _ = self._failure(error)
        method, path = request.method, request.path
        return StreamEndedError(
            f"{method} {path}: the stream broke off: {self._describe(how)}", method=method, path=path
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._config.server}>"


@final
class _Body:
    """The body of one answer, unpacked piece by piece; cancelling a read loses nothing."""

    __slots__ = ("_answer", "_gave", "_limit", "_pieces", "_unpacker")

    def __init__(self, answer: HttpAnswer, *, limit: int | None) -> None:
        self._answer = answer
        self._limit = limit
        self._unpacker: Unpacker | None = None
        self._pieces: Iterator[bytes] = iter(())
        self._gave = False  # a piece of the slice that came last

    def _begun(self) -> Unpacker:
        if self._unpacker is None:
            self._unpacker = Unpacker(self._answer.headers.get("content-encoding"), limit=self._limit)
        return self._unpacker

    async def read(self) -> bytes:
        """Return all of it."""
        unpacker, answer = self._begun(), self._answer
        pieces: list[bytes] = []
        if unpacker.is_packed:
            while piece := await self.next():
                pieces.append(piece)
        else:
            while not answer.complete and (piece := await answer.read()):
                unpacker.count_plain(len(piece))
                pieces.append(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    async def next(self) -> bytes:
        """Return the next piece; empty at the end."""
        unpacker = self._begun()
        if self._gave and unpacker.is_packed:
            await asyncio.sleep(0)  # a slice of the network may be a thousand times as much: others have their turn
        while (piece := next(self._pieces, None)) is None:
            self._gave = False
            chunk = b"" if self._answer.complete else await self._answer.read()
            if not chunk:
                unpacker.finish()
                return b""
            self._pieces = unpacker.feed(chunk)
        self._gave = True
        return piece


@final
class _Chunks:
    """The body of a stream, slice by slice."""

    def __init__(
        self,
        body: _Body,
        request: HttpRequest,
        breaks: tuple[type[Exception], ...],
        broke_off: Callable[[Exception, HttpRequest], StreamEndedError],
    ) -> None:
        self._body = body
        self._request = request
        self._breaks = breaks
        self._broke_off = broke_off

    def __aiter__(self) -> _Chunks:
        return self

    async def __anext__(self) -> bytes:
        try:
            chunk = await self._body.next()
        except UnpackingError as error:
            failure = _unusable(error, self._request)
        except self._breaks as error:
            failure = self._broke_off(error, self._request)
        else:
            if not chunk:
                raise StopAsyncIteration
            return chunk
        raise failure


@final
class _Outside(Generic[_T]):
    """Waits for credentials while the request's clock stands still: a login may take a person, and has its own limit.

    Most credentials are at hand, and nothing waits: then the clock is not touched.
    """

    __slots__ = ("_limit", "_login")

    def __init__(self, limit: asyncio.Timeout, login: Coroutine[Any, Any, _T]) -> None:
        self._limit = limit
        self._login = login

    def __await__(self) -> Generator[Any, Any, _T]:
        steps = self._login.__await__()
        try:
            awaited = next(steps)
            ends_at, began_at = self._limit.when(), asyncio.get_running_loop().time()
            self._limit.reschedule(None)
            try:
                while True:
                    try:
                        given = yield awaited
                    except BaseException as error:  # noqa: BLE001 - a cancellation, too, is the login's to deal with
                        awaited = steps.throw(error)
                    else:
                        awaited = steps.send(given)
            finally:
                if ends_at is not None:
                    self._limit.reschedule(ends_at + asyncio.get_running_loop().time() - began_at)
        except StopIteration as ended:
            return ended.value  # type: ignore[no-any-return]  # a generator's value has no type here


def _unusable(error: UnpackingError, request: HttpRequest) -> TransportError:
    kind = ResponseTooLargeError if isinstance(error, TooLargeError) else TransportError
    cure = "; ask for less, or raise ClientConfig.max_response_bytes" if kind is ResponseTooLargeError else ""
    why = f"{request.method} {request.path}: {error}{cure}"
    return kind(why, method=request.method, path=request.path)


def _finite(timeout: float | None) -> float | None:
    return None if timeout is None or math.isinf(timeout) else timeout


def make_socket(family: int, kind: int, protocol: int) -> socket.socket:
    """Make a socket that notices a peer which is gone."""
    made = socket.socket(family, kind, protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    # Linux has all of these; macOS calls the first one TCP_KEEPALIVE, and lacks the last one.
    idle = getattr(socket, "TCP_KEEPIDLE", None) or getattr(socket, "TCP_KEEPALIVE", None)
    for option, value in (
        (idle, _KEEPALIVE_IDLE),
        (getattr(socket, "TCP_KEEPINTVL", None), _KEEPALIVE_INTERVAL),
        (getattr(socket, "TCP_KEEPCNT", None), _KEEPALIVE_PROBES),
        (getattr(socket, "TCP_USER_TIMEOUT", None), _USER_TIMEOUT_MS),
    ):
        if option is not None:
            made.setsockopt(socket.IPPROTO_TCP, option, value)
    return made
