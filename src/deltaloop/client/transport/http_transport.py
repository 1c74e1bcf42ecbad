"""HTTP/1.1 transport of the client, based on asyncio.

Three pools without limits separate ordinary calls, leader election and watches. The transport ignores redirects,
cookies and ``~/.netrc``.

One timer serves the deadlines of all requests and closes idle connections. A deadline starts when the credential is
available, and a renewal extends it. TCP keepalive starts after 30 s, and TCP_USER_TIMEOUT of 30 s (if the system
supports it) ends connections with unacknowledged data.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import logging
import math
import os
import socket
import ssl
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from types import MappingProxyType
from typing import Any, ClassVar, Final, TypeAlias, final
from urllib.parse import SplitResult, quote, unquote, urlsplit

import msgspec

from deltaloop._internal.loop_clock import loop_clock
from deltaloop.client.config import ClientConfig, check_proxy
from deltaloop.client.core.connection_failures import (
    REPEATED,
    ConnectionFailure,
    Reuse,
    after_break,
    of_breaking,
    of_connecting,
)
from deltaloop.client.core.credential import Credential
from deltaloop.client.core.http_answer import MalformedAnswerError
from deltaloop.client.core.http_request import IN_PATH, header_lines, target
from deltaloop.client.core.impersonation import impersonation_headers
from deltaloop.client.core.proxy import proxy_for, proxy_variable
from deltaloop.client.core.tls_files import TlsFilesState
from deltaloop.client.core.unpacking import TooLargeError, Unpacker, UnpackingError
from deltaloop.client.credentials.sources import BasicAuth, Credentials, StaticToken
from deltaloop.client.errors import RequestTimeoutError, ResponseTooLargeError, StreamEndedError, TransportError
from deltaloop.client.transport.http_connection import (
    READ_BUFFER,
    RECORD,
    SLICE,
    BrokenOffError,
    ClosedWithoutAnswerError,
    DeadlinePassedError,
    HttpConnection,
)
from deltaloop.client.transport.protocol import Headers, HttpRequest, HttpResponse, Pool, StreamResponse
from deltaloop.client.transport.tls import TlsContexts

_log = logging.getLogger("deltaloop.client")

_WATCHES: Final = "watches"
_IDLE_CONNECTION: Final = 30.0
"""Time in seconds for which an unused connection is kept."""

_CONNECTS: Final = 4
"""Number of connection attempts of leader election, a quarter of a second apart.

The system repeats a lost first packet only after a second, which is too late for a short renew deadline.
"""

_CONNECT_INTERVAL: Final = 0.25
_KEEPALIVE_IDLE: Final = 30
_KEEPALIVE_INTERVAL: Final = 10
_KEEPALIVE_PROBES: Final = 3
_USER_TIMEOUT_MS: Final = 30_000
_OF_THE_WAY: Final = ("name", "refused", "connect")
_IN_PATH: Final = "/%:@!$&'()*+,;=~-._"
_MOST_PREPARED: Final = 256
_TIMER_SLACK: Final = 0.001
_TIMER_EARLY: Final = 1e-6
_WITH_BODY: Final = frozenset({"POST", "PUT", "PATCH"})
_NOBODY: Final = Credential()
_NEVER: Final = math.inf
_Head: TypeAlias = "tuple[bytes, bytes, tuple[Mapping[str, str], Mapping[str, str]]]"
"""Formats of a request without and with a body, with the query and the headers in them."""

_BREAKS: Final = (MalformedAnswerError, ClosedWithoutAnswerError, BrokenOffError, DeadlinePassedError, OSError)


class ConnectingError(Exception):
    """A connection cannot be established because of ``failure``; ``cause`` is the operating system's error, or None."""

    def __init__(self, failure: ConnectionFailure, cause: OSError | None = None) -> None:
        super().__init__(failure)
        self.failure: ConnectionFailure = failure
        self.cause: OSError | None = cause


@final
class HttpTransport:
    """Transport to the server of a ``ClientConfig``.

    You can create it anywhere, and use it on one event loop.
    """

    checks_writes: ClassVar[bool] = True
    """Whether the transport calls ``HttpRequest.before_send``."""

    def __init__(self, config: ClientConfig) -> None:
        """Read certificates and the environment. Connections are established on demand.

        Raises:
            ConfigError: If certificates, keys or the proxy from the environment are not usable.
        """
        # The previous read may have left an incomplete record.
        self._buffers = memoryview(bytearray(READ_BUFFER)), memoryview(bytearray(READ_BUFFER + 2 * RECORD))
        self._clock: Callable[[], float] = self._first_time
        self._config = config
        self._limit = config.max_response_bytes
        self._tls = TlsContexts(config) if config.is_tls else None
        server = urlsplit(config.server)
        self._host = server.hostname or ""
        self._port = server.port or (443 if config.is_tls else 80)
        self._address = f"{self._host}:{self._port}"
        proxy = config.proxy_url or proxy_for(server.scheme, self._host, self._port, os.environ)
        if proxy is not None:
            check_proxy(proxy, "proxy-url" if config.proxy_url else proxy_variable(server.scheme, os.environ))
        self._through = urlsplit(proxy) if proxy is not None else None
        credentials = config.credentials if config.is_tls else None
        self._credential = credentials.fixed if isinstance(credentials, StaticToken | BasicAuth) else _NOBODY
        self._credentials: Credentials | None = credentials if self._credential is _NOBODY else None
        if config.credentials is not None and not config.is_tls:
            _log.warning(
                "sending no credentials, because the connection is not encrypted", extra={"server": config.server}
            )
        self._encoding = "gzip" if config.compression else "identity"
        self._reuse = Reuse()
        self._closed = False
        self._kept: dict[str, list[HttpConnection]] = {pool: [] for pool in (*Pool, _WATCHES)}
        self._connections: set[HttpConnection] = set()
        self._all_gone: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._look_at = math.inf
        host = _host_header(server, self._host)
        # A proxy receives the complete URL. For a TLS server, it only creates a tunnel.
        plain_proxy = self._through is not None and self._tls is None
        self._prefix = (f"http://{host}" if plain_proxy else "") + quote(server.path.rstrip("/"), _IN_PATH)
        self._authority = f"{_bracketed(_ascii_host(self._host))}:{self._port}"
        fixed = [("Host", host), ("User-Agent", config.user_agent)]
        if config.impersonate is not None:
            fixed += impersonation_headers(config.impersonate)
        if plain_proxy and self._through is not None:
            fixed += _proxy_authorization(self._through)
        self._fixed = header_lines(fixed)
        self._heads: dict[object, _Head] = {}
        self._shown: Credential | None = None  # to which the heads and the context belong
        self._context: ssl.SSLContext | None = None
        self._files = self._tls.files if self._tls is not None else TlsFilesState(None)

    # -- Transport

    @asynccontextmanager
    async def stream(self, request: HttpRequest) -> AsyncGenerator[StreamResponse, None]:
        """Open a stream, and close its connection when the context exits.

        Raises:
            TransportError: If no response arrives.
            ConfigError: If the credentials are not readable.
        """
        streams: list[HttpConnection] = []
        response = await self.request(request, streams)
        limit = self._limit if request.bounded else None
        body = _Body(streams[0], request, limit, partial(self._broke_off, request=request))
        try:
            yield StreamResponse(
                status=response.status,
                headers=response.headers,
                chunks=body,
            )
        finally:
            body.close()

    async def close(self) -> None:
        """Close all connections.

        Active requests fail.
        """
        self._closed, self._shown = True, None
        for kept in self._kept.values():
            kept.clear()
        if self._timer is not None:
            self._timer.cancel()
        for connection in tuple(self._connections):
            connection.abort()
        if self._connections:
            self._all_gone = asyncio.get_running_loop().create_future()
            await self._all_gone

    def __repr__(self) -> str:
        return f"<HttpTransport {self._config.server}>"

    # -- requests

    async def request(  # noqa: C901 - one function, so that a request costs few calls
        self, request: HttpRequest, streams: list[HttpConnection] | None = None
    ) -> HttpResponse:
        """Send a request, and return the complete response.

        Canceling closes the connection. The request is repeated once with renewed credentials after a 401, and as
        ``after_break`` decides. If ``streams`` is given, the response has only a head, and the list receives its
        connection.

        Raises:
            TransportError: If no response arrives.
            ConfigError: If the credentials are not readable.
        """
        credentials, check, whole = self._credentials, request.before_send, streams is None
        method, path, body, timeout = request.method, request.path, request.body, request.timeout
        credential = self._credential if credentials is None else await credentials.credential()
        now = self._clock()
        until = _NEVER if timeout is None else now + timeout
        pool = request.pool if whole or request.bounded else _WATCHES
        kept = self._kept[pool]
        while True:
            if credential is not self._shown or now >= self._files.due_at:
                self._check(request, credential, now)
            context = self._context
            # Only constants, which the cache keeps alive, are found by their identities.
            head = self._heads.get((method, id(request.headers), id(request.query))) if whole else None
            bare, full, _ = head or self._head(request, credential, "identity" if pool is _WATCHES else self._encoding)
            quoted = path.encode("utf-8", "surrogatepass")
            if quoted.translate(None, IN_PATH):
                target(path, {})  # raises
            rest: bytes | None = None
            if body is None:
                data = bare % quoted
            elif len(body) <= SLICE:
                data = full % (quoted, len(body), body)
            else:
                data, rest = full % (quoted, len(body), b""), body
            connection = None
            while kept:
                connection = kept.pop()
                if (
                    connection.made_with is context
                    and self._reuse.begins_at <= now < connection.kept_at + _IDLE_CONNECTION
                    and not connection.transport.is_closing()
                ):
                    if method in REPEATED or not connection.has_input(0):
                        break
                    self._reuse.failed(now)
                connection.abort()
                connection = None
            reused = connection is not None
            if connection is None:
                if check is not None:
                    check()  # a rejected request must not open a connection
                made = await self._connected(request, pool, context, until)
                if isinstance(made, ConnectingError):
                    self._failed(made, request, sent=False, reused=False)
                    now = self._clock()
                    continue
                connection = made
            if check is not None:
                try:
                    check()
                except BaseException:
                    self._keep(connection, kept)
                    raise
            answer = connection.ask(method, data, whole, until)
            look_at = self._look_at
            if until < look_at or now + _IDLE_CONNECTION < look_at:
                self._look_by(min(now + _IDLE_CONNECTION, until))
            try:
                if rest is not None:
                    await connection.send(rest)
                response = await answer
            except BaseException:
                connection.give_up(answer)
                raise
            if response is not None and (response.status != 401 or credentials is None):
                return response
            stands = response is None
            if response is None:
                if connection.error is not None:
                    answered = connection.reader.status > 0
                    self._failed(connection.error, request, sent=True, reused=reused, answered=answered)
                    now = self._clock()
                    continue
                reader = connection.reader
                response = HttpResponse(reader.status, Headers(reader.headers), b"", reader.warns)
            if response.status == 401 and credentials is not None:
                connection.until, began_at = math.inf, self._clock()
                try:
                    renewed = await credentials.renew(credential)
                except BaseException:
                    if stands:
                        connection.finish()
                    raise
                now, credentials = self._clock(), None
                until += now - began_at
                if renewed is not None:
                    if stands:
                        connection.finish()
                    _log.info("renewed credentials after the server rejected them", extra={"server": self._address})
                    credential = renewed
                    continue
            if stands and whole:
                connection.until = until
                return await self._unpacked(connection, request, response)
            if streams is not None:
                streams.append(connection)
            return response

    async def _unpacked(self, connection: HttpConnection, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        def failure(error: Exception) -> TransportError:
            if isinstance(error, DeadlinePassedError):
                return self._late(request, sent=True)
            return self._error(error, request, sent=True)

        body = _Body(connection, request, self._limit, failure)
        try:
            pieces = [piece async for piece in body]
        finally:
            body.close()
        return msgspec.structs.replace(response, body=b"".join(pieces))

    def _check(self, request: HttpRequest, credential: Credential, now: float) -> None:
        """Prepare for another credential, check due TLS files, or raise if closed."""
        if self._closed:
            raise TransportError("the client is closed", method=request.method, path=request.path, sent=False)
        if credential is not self._shown:
            self._heads, self._shown = {}, credential
        tls = self._tls
        if tls is not None:
            self._context = tls.context(credential.certificate, now=now)

    def _head(self, request: HttpRequest, credential: Credential, encoding: str) -> _Head:
        """Return and cache the formats of a request."""
        method, query, headers = request.method, request.query, request.headers
        if len(self._heads) >= _MOST_PREPARED:
            self._heads.clear()
        key: object = method, encoding, *headers, None, *headers.values(), *query, *query.values()
        head = self._heads.get(key)
        if head is None:
            lines = [("Accept-Encoding", encoding), *headers.items()]
            if credential.authorization is not None:
                lines.append(("Authorization", credential.authorization.reveal()))
            after = f"{target('', query)} HTTP/1.1\r\n".encode("ascii") + self._fixed + header_lines(lines)
            around = f"{method} {self._prefix}".encode("ascii").replace(b"%", b"%%"), after.replace(b"%", b"%%")
            bare = b"%b%%b%b%b" % (*around, b"Content-Length: 0\r\n\r\n" if method in _WITH_BODY else b"\r\n")
            head = bare, b"%b%%b%bContent-Length: %%d\r\n\r\n%%b" % around, (query, headers)
            self._heads[key] = head
        if type(query) is type(headers) is MappingProxyType and encoding == self._encoding:
            self._heads[method, id(headers), id(query)] = *head[:2], (query, headers)
        return head

    # -- errors

    def _failed(
        self, error: Exception, request: HttpRequest, *, sent: bool, reused: bool, answered: bool = False
    ) -> None:
        """Return if the request must be sent again, otherwise raise the error."""
        if isinstance(error, DeadlinePassedError):
            raise self._late(request, sent=sent)
        if isinstance(error, UnpackingError):
            raise unusable(error, request)
        if answered:  # the response has started, so the connection was not dead before
            raise self._error(error, request, sent=sent)
        how, _ = _meaning(error)
        tls, now = self._tls, self._clock()
        if reused and how.cut:
            self._reuse.failed(now)
        then = after_break(
            request.method, reused=reused, tls=tls is not None, in_handshake=how.in_handshake, cut=how.cut
        )
        if then.again:
            return
        if then.reload and tls is not None and tls.reload(now):
            self._context = tls.current
            return
        if then.suspect and tls is not None:
            tls.suspect()
        raise self._error(error, request, sent=sent)

    def _late(self, request: HttpRequest, *, sent: bool) -> RequestTimeoutError:
        return late(request, self._address, sent=sent)

    def _error(self, error: Exception, request: HttpRequest, *, sent: bool) -> TransportError:
        how, cause = _meaning(error)
        return failed(request, how, self._describe(how), sent=sent, cause=cause)

    def _broke_off(self, error: Exception, request: HttpRequest) -> StreamEndedError:
        return broke_off(request, self._describe(_meaning(error)[0]))

    def _describe(self, failure: ConnectionFailure) -> str:
        proxy = self._through
        if proxy is not None and failure.kind in _OF_THE_WAY:
            port = proxy.port or (443 if proxy.scheme == "https" else 80)
            return failure.describe(f"the proxy {proxy.hostname}:{port}")
        return failure.describe(self._address)

    # -- connections

    def _keep(self, connection: HttpConnection, kept: list[HttpConnection]) -> None:
        if self._closed or connection.transport.is_closing():
            connection.abort()
            return
        connection.kept_at = self._clock()
        kept.append(connection)
        if connection.kept_at + _IDLE_CONNECTION < self._look_at:
            self._look_by(connection.kept_at + _IDLE_CONNECTION)

    def _lost(self, connection: HttpConnection, kept: list[HttpConnection] | None) -> None:
        if kept is not None:
            with contextlib.suppress(ValueError):
                kept.remove(connection)
        self._connections.discard(connection)
        if not self._connections and self._all_gone is not None and not self._all_gone.done():
            self._all_gone.set_result(None)

    def _first_time(self) -> float:
        """Return the event loop time, and set ``_clock`` to the loop's clock."""
        self._clock = loop_clock()
        return self._clock()

    def _look_by(self, at: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._look_at = at
        self._timer = asyncio.get_running_loop().call_at(at, self._look)

    def _look(self) -> None:
        """End late requests and idle connections, and set the timer again."""
        self._look_at, self._timer = math.inf, None
        now = self._clock()
        due = math.inf
        for connection in tuple(self._connections):
            if connection.until <= now + _TIMER_EARLY:
                connection.fail(DeadlinePassedError())
            elif connection.asked is not None:
                due = min(due, connection.until, now + _IDLE_CONNECTION)
            else:
                due = min(due, connection.until)
        for kept in self._kept.values():
            # Timers may fire slightly early, and sums of times are rounded. Without slack, the timer would fire
            # repeatedly at the same time.
            while kept and kept[0].kept_at + _IDLE_CONNECTION <= now + _TIMER_SLACK:
                kept.pop(0).abort()
            if kept:
                due = min(due, kept[0].kept_at + _IDLE_CONNECTION)
        if due < math.inf and not self._closed:
            self._look_by(due)

    async def _connected(
        self, request: HttpRequest, pool: str, tls: ssl.SSLContext | None, until: float
    ) -> HttpConnection | ConnectingError:
        limit = asyncio.timeout_at(None if math.isinf(until) else until)
        try:
            async with limit:
                return await self._connect(pool, tls)
        except ConnectingError as error:
            return error
        except TimeoutError:
            if not limit.expired():
                raise
        raise self._late(request, sent=False)

    async def _connect(self, pool: str, tls: ssl.SSLContext | None) -> HttpConnection:
        loop, through = asyncio.get_running_loop(), self._through
        connection = HttpConnection(loop, self._buffers, tls, clock=self._clock, keep=self._keep, lost=self._lost)
        times = _CONNECTS if pool == Pool.LEADER_ELECTION else 1
        try:
            if through is None:
                await self._reach(loop, connection, (self._host, self._port), None, times)
            else:
                secure = through.scheme == "https"
                port = through.port or (443 if secure else 80)
                context = (tls or ssl.create_default_context()) if secure else None
                await self._reach(loop, connection, (through.hostname or "", port), context, times)
                if tls is not None:
                    await self._tunnel(connection, through)
            if tls is not None:
                await connection.encrypt(tls, self._server_name(self._host))
        except BaseException as error:
            connection.abort()
            if isinstance(error, OSError):
                raise ConnectingError(of_connecting(error), error) from None
            raise
        self._connections.add(connection)
        connection.pool, connection.limit = self._kept[pool], self._limit
        if self._closed:
            connection.abort()
        return connection

    async def _reach(
        self,
        loop: asyncio.AbstractEventLoop,
        connection: HttpConnection,
        address: tuple[str, int],
        tls: ssl.SSLContext | None,
        times: int,
    ) -> None:
        """Connect to an address. ``tls`` encrypts the connection to an HTTPS proxy."""
        made = await _socket_to(loop, *address, times=times)
        name = self._server_name(address[0]) if tls is not None else None
        await loop.create_connection(lambda: connection, sock=made, ssl=tls, server_hostname=name)

    def _server_name(self, host: str) -> str:
        return self._config.tls.server_name if self._config.tls.server_name and host == self._host else host.rstrip(".")

    async def _tunnel(self, connection: HttpConnection, through: SplitResult) -> None:
        lines = header_lines([("Host", self._authority), *_proxy_authorization(through)])
        head = b"CONNECT %b HTTP/1.1\r\n%b\r\n" % (self._authority.encode("ascii"), lines)
        answer = await connection.ask("CONNECT", head, True, math.inf)
        if answer is None:
            error = connection.error
            reason = str(error) or "the proxy closed the connection"
            if isinstance(error, OSError):
                raise error
        elif 200 <= answer.status < 300 and not answer.body:
            connection.restart()
            return
        else:
            reason = str(answer.status)
        raise ConnectingError(ConnectionFailure("proxy", reason))


@final
class _Body:
    """Decompressed body of a stream. Canceling a read loses no data."""

    __slots__ = ("_connection", "_failure", "_gave", "_limit", "_pieces", "_request", "_size", "_unpacker")

    def __init__(
        self,
        connection: HttpConnection,
        request: HttpRequest,
        limit: int | None,
        failure: Callable[[Exception], TransportError],
    ) -> None:
        self._connection: HttpConnection | None = connection
        self._request = request
        self._limit = limit
        self._failure = failure
        self._size = 0
        self._unpacker: Unpacker | None = None
        self._pieces: Iterator[bytes] | None = None  # decompressed pieces of the last chunk
        self._gave = False

    def __aiter__(self) -> _Body:
        return self

    async def __anext__(self) -> bytes:
        connection = self._connection
        if connection is None:
            raise StopAsyncIteration
        try:
            while True:
                if self._pieces is not None:
                    if self._gave:
                        await asyncio.sleep(0)  # a chunk can grow a thousandfold, so let other tasks run
                    piece = next(self._pieces, None)
                    if piece is not None:
                        self._gave = True
                        return piece
                    self._pieces, self._gave = None, False
                data = await connection.read()
                if data == b"":
                    return data
                if data and not connection.reader.encoding:
                    self._size += len(data)
                    if self._limit is not None and self._size > self._limit:
                        raise TooLargeError(f"the response has more than {self._limit} bytes")
                    return data
                if self._unpacker is None:
                    self._unpacker = Unpacker(connection.reader.encoding, limit=self._limit)
                if not data:
                    self._unpacker.finish()
                    break
                self._pieces = self._unpacker.feed(data)
        except UnpackingError as error:
            failure: TransportError = unusable(error, self._request)
        except _BREAKS as error:
            failure = self._failure(error)
        else:
            raise StopAsyncIteration
        raise failure

    def on_arrival(self, consume: Callable[[], bool]) -> None:
        if self._connection is not None:
            self._connection.consume = consume

    def take(self) -> bytes | None:
        connection = self._connection
        if connection is None or connection.reader.complete or connection.reader.encoding or self._limit is not None:
            return None
        return connection.taken()

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.finish()


def late(request: HttpRequest, address: str, *, sent: bool) -> RequestTimeoutError:
    what = "response" if sent else "connection"
    return RequestTimeoutError(
        f"{request.method} {request.path}: no {what} from {address} within {request.timeout:g} s",
        method=request.method,
        path=request.path,
        sent=sent,
    )


def failed(
    request: HttpRequest, how: ConnectionFailure, description: str, *, sent: bool, cause: OSError | None = None
) -> TransportError:
    failure = TransportError(
        f"{request.method} {request.path}: {description}",
        method=request.method,
        path=request.path,
        refused=how.kind == "refused",
        sent=sent,
        cut=how.cut,
    )
    failure.__cause__ = cause
    return failure


def broke_off(request: HttpRequest, description: str) -> StreamEndedError:
    method, path = request.method, request.path
    return StreamEndedError(f"{method} {path}: the stream broke: {description}", method=method, path=path)


def unusable(error: UnpackingError, request: HttpRequest) -> TransportError:
    kind = ResponseTooLargeError if isinstance(error, TooLargeError) else TransportError
    cure = ". Request less data, or increase ClientConfig.max_response_bytes." if kind is ResponseTooLargeError else ""
    why = f"{request.method} {request.path}: {error}{cure}"
    return kind(why, method=request.method, path=request.path)


def _meaning(error: Exception) -> tuple[ConnectionFailure, OSError | None]:
    """Return the failure for one of ``_BREAKS``, and the cause from the operating system, if any."""
    match error:
        case ConnectingError():
            return error.failure, error.cause
        case MalformedAnswerError():
            return ConnectionFailure("malformed", str(error)), None
        case ClosedWithoutAnswerError():
            return ConnectionFailure("no_answer", cut=True), None
        case _:
            return of_breaking(error), None


def make_socket(family: int, kind: int, protocol: int) -> socket.socket:
    made = socket.socket(family, kind, protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    # Linux supports all options. macOS calls the first one TCP_KEEPALIVE and lacks the last one.
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


async def _socket_to(loop: asyncio.AbstractEventLoop, host: str, port: int, *, times: int) -> socket.socket:
    """Connect a socket to the address of a host that accepts the connection first."""
    addresses = _literal(host, port)
    if addresses is None:
        try:
            found = await loop.getaddrinfo(_ascii_host(host), port, type=socket.SOCK_STREAM)
        except OSError as error:
            raise ConnectingError(ConnectionFailure("name"), error) from None
        addresses = _in_turn([(entry[0], entry[4]) for entry in found])
    waiting, failed = [*addresses * times], list[OSError]()
    tries: set[asyncio.Task[socket.socket]] = set()
    try:
        while waiting or tries:
            if waiting:
                family, address = waiting.pop(0)
                tries.add(loop.create_task(_dialled(loop, family, address)))
            pause = _CONNECT_INTERVAL if waiting else None
            done, tries = await asyncio.wait(tries, timeout=pause, return_when=asyncio.FIRST_COMPLETED)
            for ended in done:
                why = ended.exception()
                if why is None:
                    tries |= done - {ended}
                    return ended.result()
                if not isinstance(why, OSError):
                    raise why
                failed.append(why)
    finally:
        for left in tries:
            left.add_done_callback(_close_unused)
            left.cancel()
    raise next((why for why in failed if not isinstance(why, ConnectionRefusedError)), failed[-1])


def _close_unused(dial: asyncio.Task[socket.socket]) -> None:
    if not dial.cancelled() and dial.exception() is None:
        dial.result().close()


async def _dialled(loop: asyncio.AbstractEventLoop, family: int, address: Any) -> socket.socket:
    made = make_socket(family, socket.SOCK_STREAM, 0)
    try:
        made.setblocking(False)
        await loop.sock_connect(made, address)
    except BaseException:
        made.close()
        raise
    return made


def _literal(host: str, port: int) -> list[tuple[int, Any]] | None:
    """Return the address if ``host`` is an IP address, which needs no name resolution."""
    for family, address in ((socket.AF_INET, (host, port)), (socket.AF_INET6, (host, port, 0, 0))):
        with contextlib.suppress(OSError):
            socket.inet_pton(family, host)
            return [(family, address)]
    return None


def _in_turn(addresses: list[tuple[int, Any]]) -> list[tuple[int, Any]]:
    """Alternate between address families (RFC 8305), because one family may be unreachable."""
    first = [entry for entry in addresses if entry[0] == addresses[0][0]]
    others = [entry for entry in addresses if entry[0] != addresses[0][0]]
    ordered: list[tuple[int, Any]] = []
    while first or others:
        ordered += [queue.pop(0) for queue in (first, others) if queue]
    return ordered


def _ascii_host(host: str) -> str:
    return host if host.isascii() else host.encode("idna").decode("ascii")


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _host_header(server: SplitResult, host: str) -> str:
    name = _bracketed(_ascii_host(host).partition("%")[0])
    usual = 443 if server.scheme == "https" else 80
    return name if server.port in (None, usual) else f"{name}:{server.port}"


def _proxy_authorization(proxy: SplitResult) -> list[tuple[str, str]]:
    if proxy.username is None and proxy.password is None:
        return []
    user = f"{unquote(proxy.username or '')}:{unquote(proxy.password or '')}"
    return [("Proxy-Authorization", f"Basic {base64.b64encode(user.encode()).decode('ascii')}")]
