"""The client's transport: HTTP/1.1 over asyncio's own connections.

A connection serves one request at a time. Of the kept connections, the one that was used last is used first.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import socket
import ssl
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final, final
from urllib.parse import SplitResult, quote, unquote, urlsplit

import msgspec

from deltaloop.client.config import ClientConfig
from deltaloop.client.core.connection_failures import (
    REPEATED,
    ConnectionFailure,
    FailureKind,
    of_breaking,
    of_connecting,
)
from deltaloop.client.core.credential import Credential
from deltaloop.client.core.http_answer import AnswerReader, MalformedAnswerError
from deltaloop.client.core.http_request import header_lines, target
from deltaloop.client.transport.base_transport import (
    CONNECT_INTERVAL,
    CONNECTS,
    IDLE_CONNECTION,
    READ_BUFFER,
    Attempt,
    BaseTransport,
    HttpAnswer,
    make_socket,
)
from deltaloop.client.transport.http_connection import BrokenOffError, ClosedWithoutAnswerError, HttpConnection
from deltaloop.client.transport.protocol import Headers, HttpRequest, Pool

_IN_PATH: Final = "/%:@!$&'()*+,;=~-._"
_MOST_PREPARED: Final = 64
_TIMER_SLACK: Final = 0.001
_WITH_BODY: Final = frozenset({"POST", "PUT", "PATCH"})


class ConnectingError(Exception):
    """No connection could be made.

    Attributes:
        failure: What went wrong.
        cause: The system's error, if there is one.
    """

    def __init__(self, failure: ConnectionFailure, cause: OSError | None = None) -> None:
        """Keep both."""
        super().__init__(failure)
        self.failure: ConnectionFailure = failure
        self.cause: OSError | None = cause


@final
class HttpTransport(BaseTransport):
    """Sends requests to the server of a ``ClientConfig`` over asyncio's connections.

    Made anywhere, used on one event loop.
    """

    breaks: ClassVar[tuple[type[Exception], ...]] = (
        ConnectingError,
        MalformedAnswerError,
        ClosedWithoutAnswerError,
        BrokenOffError,
        OSError,
    )

    def __init__(self, config: ClientConfig) -> None:
        """Read certificates and environment; connections are made when they are needed.

        Raises:
            ConfigError: If certificates or keys cannot be used.
        """
        super().__init__(config)
        self._buffer = bytearray(READ_BUFFER)
        self._kept: dict[str, list[HttpConnection]] = {}
        self._connections: set[HttpConnection] = set()
        self._prepared: dict[tuple[str, tuple[tuple[str, str], ...]], bytes] = {}
        self._authorized: tuple[Credential, bytes] | None = None
        self._sweep: asyncio.TimerHandle | None = None
        self._all_gone: asyncio.Future[None] | None = None
        server = urlsplit(config.server)
        host = _host_header(server, self._host)
        through = urlsplit(self._proxy) if self._proxy is not None else None
        self._through: SplitResult | None = through
        # A proxy is asked for the whole URL, but for a server with TLS, which it only connects to.
        plain_proxy = through is not None and self._tls is None
        self._prefix = (f"http://{host}" if plain_proxy else "") + quote(server.path.rstrip("/"), _IN_PATH)
        self._authority = f"{_bracketed(_ascii_host(self._host))}:{self._port}"
        fixed = [("Host", host), ("User-Agent", config.user_agent), *self._identity]
        if plain_proxy and through is not None:
            fixed += _proxy_authorization(through)
        self._fixed = header_lines(fixed)

    async def close(self) -> None:
        """Close all connections; requests that are under way fail."""
        self._closed = True
        self._kept.clear()
        if self._sweep is not None:
            self._sweep.cancel()
        for connection in tuple(self._connections):
            connection.abort()
        if self._connections:
            self._all_gone = asyncio.get_running_loop().create_future()
            await self._all_gone

    async def _open(
        self, request: HttpRequest, pool: str, encoding: str, credential: Credential, attempt: Attempt
    ) -> HttpAnswer:
        loop = asyncio.get_running_loop()
        now = loop.time()
        tls = self._tls.context(credential.certificate, now=now) if self._tls is not None else None
        head = self._head(request, encoding, credential)
        connection = self._take(pool, tls, now, quiet=request.method not in REPEATED)
        attempt.reused = connection is not None
        if connection is None:
            connection = await self._connect(loop, pool, tls)
        try:
            attempt.sends()
        except BaseException:
            self._give_back(connection, pool)
            raise
        try:
            answer = await connection.ask(request.method, head, request.body)
        except BaseException:
            connection.abort()
            raise
        return _Answer(answer, connection, self._done, pool)

    def _failure(self, error: Exception) -> tuple[ConnectionFailure, OSError | None]:
        match error:
            case ConnectingError():
                return error.failure, error.cause
            case MalformedAnswerError():
                return ConnectionFailure(FailureKind.MALFORMED, str(error)), None
            case ClosedWithoutAnswerError():
                return ConnectionFailure(FailureKind.NO_ANSWER, cut=True), None
            case _:  # whatever ends a connection that stood, what TLS says of it included, has cut it
                return msgspec.structs.replace(of_breaking(error), cut=True), None

    # -- what is sent

    def _head(self, request: HttpRequest, encoding: str, credential: Credential) -> bytes:
        line = f"{request.method} {self._prefix}{target(request.path, request.query)} HTTP/1.1\r\n".encode("ascii")
        headers = self._headers(encoding, request.headers)
        authorization = self._authorization(credential)
        if request.body is not None:
            length = b"Content-Length: %d\r\n\r\n" % len(request.body)
        else:
            length = b"Content-Length: 0\r\n\r\n" if request.method in _WITH_BODY else b"\r\n"
        return b"".join((line, self._fixed, headers, authorization, length))

    def _headers(self, encoding: str, headers: Mapping[str, str]) -> bytes:
        key = (encoding, tuple(headers.items()))
        lines = self._prepared.get(key)
        if lines is None:
            lines = header_lines([("Accept-Encoding", encoding), *headers.items()])
            if len(self._prepared) < _MOST_PREPARED:
                self._prepared[key] = lines
        return lines

    def _authorization(self, credential: Credential) -> bytes:
        if credential.authorization is None:
            return b""
        if self._authorized is None or self._authorized[0] is not credential:
            lines = header_lines([("Authorization", credential.authorization.reveal())])
            self._authorized = (credential, lines)
        return self._authorized[1]

    # -- connections

    def _take(self, pool: str, tls: ssl.SSLContext | None, now: float, *, quiet: bool) -> HttpConnection | None:
        """Return the kept connection that was used last, and close those that cannot be used.

        Args:
            pool: Name of the pool.
            tls: TLS context that the connection must have been made with.
            now: Time of the loop.
            quiet: Whether to look at the socket first, because the request is not sent again if the connection is dead.
        """
        kept = self._kept.get(pool)
        while kept:
            connection = kept.pop()
            if (
                connection.usable
                and connection.made_with is tls
                and now - connection.kept_at < IDLE_CONNECTION
                and self._reuse.is_allowed(now)
            ):
                if not quiet or connection.quiet:
                    return connection
                self._reuse.failed(now)
            connection.abort()
        return None

    def _give_back(self, connection: HttpConnection, pool: str) -> None:
        """Keep a connection that nobody uses now."""
        if self._closed or not connection.usable:
            connection.abort()
            return
        loop = asyncio.get_running_loop()
        connection.kept_at = loop.time()
        self._kept.setdefault(pool, []).append(connection)
        if self._sweep is None:
            self._sweep = loop.call_later(IDLE_CONNECTION, self._close_idle)

    def _done(self, connection: HttpConnection, pool: str) -> None:
        """Take a connection back whose request is over."""
        if connection.finish():
            self._give_back(connection, pool)

    def _close_idle(self) -> None:
        """Close connections that nobody has used for a while, and look again when the next one may be due."""
        loop = asyncio.get_running_loop()
        # A timer goes off a little early, and sums of instants are rounded: without room for that, the next look would
        # be at this very moment again, and again.
        until = loop.time() + _TIMER_SLACK
        due: list[float] = []
        for kept in self._kept.values():
            while kept and kept[0].kept_at + IDLE_CONNECTION <= until:
                kept.pop(0).abort()
            if kept:
                due.append(kept[0].kept_at + IDLE_CONNECTION)
        self._sweep = loop.call_at(min(due), self._close_idle) if due else None

    def _gone(self, connection: HttpConnection) -> None:
        self._connections.discard(connection)
        if not self._connections and self._all_gone is not None and not self._all_gone.done():
            self._all_gone.set_result(None)

    async def _connect(self, loop: asyncio.AbstractEventLoop, pool: str, tls: ssl.SSLContext | None) -> HttpConnection:
        """Make a connection.

        Raises:
            ConnectingError: If there is none to be had.
        """
        through = self._through
        connection = HttpConnection(loop, self._buffer, most_waiting=READ_BUFFER, made_with=tls, gone=self._gone)
        times = CONNECTS if pool == Pool.LEADER_ELECTION else 1
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
        """Connect to an address; with ``tls``, which a proxy may want, encrypted."""
        made = await _socket_to(loop, *address, times=times)
        name = self._server_name(address[0]) if tls is not None else None
        await loop.create_connection(lambda: connection, sock=made, ssl=tls, server_hostname=name)

    def _server_name(self, host: str) -> str:
        """Return the name that a certificate has to have."""
        return self._config.tls.server_name if self._config.tls.server_name and host == self._host else host.rstrip(".")

    async def _tunnel(self, connection: HttpConnection, through: SplitResult) -> None:
        """Have a proxy connect to the server."""
        lines = header_lines([("Host", self._authority), *_proxy_authorization(through)])
        head = b"CONNECT %b HTTP/1.1\r\n%b\r\n" % (self._authority.encode("ascii"), lines)
        try:
            answer = await connection.ask("CONNECT", head, None)
        except (MalformedAnswerError, ClosedWithoutAnswerError, BrokenOffError) as error:
            failure = ConnectionFailure(FailureKind.PROXY, str(error) or "it closed the connection")
            raise ConnectingError(failure) from None
        if not connection.finish() or not 200 <= answer.status < 300:
            connection.abort()
            raise ConnectingError(ConnectionFailure(FailureKind.PROXY, str(answer.status)))


@final
class _Answer:
    """An answer on one of our connections."""

    __slots__ = ("_answer", "_connection", "_done", "_headers", "_pool", "status")

    def __init__(
        self, answer: AnswerReader, connection: HttpConnection, done: Callable[[HttpConnection, str], object], pool: str
    ) -> None:
        self.status = answer.status
        self._answer = answer
        self._connection: HttpConnection | None = connection
        self._done = done
        self._pool = pool
        self._headers: Headers | None = None

    @property
    def headers(self) -> Headers:
        if self._headers is None:
            self._headers = Headers.of_lower_case(self._answer.headers)
        return self._headers

    @property
    def complete(self) -> bool:
        return self._answer.complete and not self._answer.pieces

    async def read(self) -> bytes:
        if self._connection is None:
            return b""
        return await self._connection.read()

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            self._done(connection, self._pool)


async def _socket_to(loop: asyncio.AbstractEventLoop, host: str, port: int, *, times: int) -> socket.socket:
    """Connect a socket to a host, over whichever of its addresses answers first.

    Raises:
        ConnectingError: If the name cannot be resolved.
        OSError: What the last address that was tried says; a refusal counts only if all refuse.
    """
    addresses = _literal(host, port)
    if addresses is None:
        try:
            found = await loop.getaddrinfo(_ascii_host(host), port, type=socket.SOCK_STREAM)
        except OSError as error:
            raise ConnectingError(ConnectionFailure(FailureKind.NAME), error) from None
        addresses = _in_turn([(entry[0], entry[4]) for entry in found])
    waiting, failed = [*addresses * times], list[OSError]()
    tries: set[asyncio.Task[socket.socket]] = set()
    try:
        while waiting or tries:
            if waiting:
                family, address = waiting.pop(0)
                tries.add(loop.create_task(_dialled(loop, family, address)))
            pause = CONNECT_INTERVAL if waiting else None
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
    """Return the address that a host is, if it is no name: nobody has to be asked then."""
    for family, address in ((socket.AF_INET, (host, port)), (socket.AF_INET6, (host, port, 0, 0))):
        with contextlib.suppress(OSError):
            socket.inet_pton(family, host)
            return [(family, address)]
    return None


def _in_turn(addresses: list[tuple[int, Any]]) -> list[tuple[int, Any]]:
    """Order addresses so that families take turns, as RFC 8305 asks: one of both may lead nowhere."""
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
