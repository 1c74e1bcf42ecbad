"""The transport over HTTP/1.1 with aiohttp, the only place of the client where aiohttp is known.

Three pools of connections, none with aiohttp's limits: ordinary calls, leader election, watches. Time limits are ours,
one per call; aiohttp's own (5 minutes for everything) are off. Also off is what aiohttp does unasked: sending a PUT or
DELETE once more when a kept connection turns out to be dead, reading ``~/.netrc``, following redirects, cookies, and
unpacking without a bound (``core/unpacking.py`` does it). A GET on a dead kept connection is sent once more here:
nothing can have happened.

Half-open connections: TCP keepalive from 30 s on, and where the system has it TCP_USER_TIMEOUT of 30 s, so that the
kernel ends a connection whose data nobody acknowledges.
"""

from __future__ import annotations

import asyncio
import io
import logging
import math
import os
import socket
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Final, TypeVar, final
from urllib.parse import urlsplit

import aiohttp
from yarl import URL

from deltaloop.api.redaction import redact
from deltaloop.client.config import ClientConfig
from deltaloop.client.core.broken_tries import after_break
from deltaloop.client.core.credential import Credential
from deltaloop.client.core.impersonation import impersonation_headers
from deltaloop.client.core.proxy import proxy_for
from deltaloop.client.core.unpacking import TooLargeError, Unpacker, UnpackingError
from deltaloop.client.errors import AnswerTooLargeError, RequestTimeoutError, StreamEndedError, TransportError
from deltaloop.client.tls import TlsContexts
from deltaloop.client.transport import Headers, HttpRequest, HttpResponse, Pool, StreamResponse

_log = logging.getLogger("deltaloop.client")
_T = TypeVar("_T")

_WATCHES: Final = "watches"
_NO_LIMITS: Final = aiohttp.ClientTimeout()
_IDLE_CONNECTION: Final = 30.0
_READ_BUFFER: Final = 256 * 1024
_LARGE_BODY: Final = 1024 * 1024
_KEEPALIVE_IDLE: Final = 30
_KEEPALIVE_INTERVAL: Final = 10
_KEEPALIVE_PROBES: Final = 3
_USER_TIMEOUT_MS: Final = 30_000
_CONNECTS: Final = 4  # with the system's own repeats after a second, there is one each quarter of a second for two


@dataclass(slots=True)
class _Progress:
    """How far one try has come, and what has to allow it to be sent."""

    before_send: Callable[[], object] | None = None
    sent: bool = False
    reused: bool = False


@final
class AiohttpTransport:
    """Sends requests to the server of a ``ClientConfig``.

    Made anywhere, used on one event loop.
    """

    def __init__(self, config: ClientConfig) -> None:
        """Read certificates and environment; connections are made when they are needed.

        Raises:
            ConfigError: If certificates or keys cannot be used.
        """
        self._config = config
        self._tls = TlsContexts(config) if config.is_tls else None
        self._base = str(URL(config.server)).rstrip("/")
        parts = urlsplit(config.server)
        port = parts.port or (443 if config.is_tls else 80)
        self._address = f"{parts.hostname}:{port}"
        self._proxy = config.proxy_url or proxy_for(parts.scheme, parts.hostname or "", port, os.environ)
        self._credentials = config.credentials if config.is_tls else None
        if config.credentials is not None and not config.is_tls:
            _log.warning("credentials are not sent: the connection is not encrypted", extra={"server": config.server})
        self._identity = impersonation_headers(config.impersonate) if config.impersonate is not None else []
        self._encoding = "gzip" if config.compression else "identity"
        self._sessions: dict[str, aiohttp.ClientSession] = {}
        self._closed = False

    async def request(self, request: HttpRequest) -> HttpResponse:
        """Send a request and return the whole answer.

        Cancelling closes its connection.

        Raises:
            TransportError: If there is no answer.
            ConfigError: If the credentials cannot be read.
        """
        progress = _Progress(request.before_send)
        limit = asyncio.timeout(_finite(request.timeout))
        try:
            async with limit:
                answer = await self._answer(request, request.pool, self._encoding, progress, limit)
                try:
                    body = await _Body(answer, limit=self._config.max_answer_bytes).read()
                    return HttpResponse(status=answer.status, headers=Headers(answer.headers.items()), body=body)
                except UnpackingError as error:
                    failure = _unusable(error, request)
                except (aiohttp.ClientError, OSError) as error:
                    failure = self._failure(error, request, progress)
                finally:
                    answer.close()  # a complete answer has given its connection back already
                raise failure
        except TimeoutError:
            if not limit.expired():
                raise
            raise self._timeout(request, progress) from None

    @asynccontextmanager
    async def stream(self, request: HttpRequest) -> AsyncGenerator[StreamResponse, None]:
        """Open a stream; its connection is closed when the context is left.

        Raises:
            TransportError: If there is no answer.
            ConfigError: If the credentials cannot be read.
        """
        progress = _Progress()
        limit = asyncio.timeout(_finite(request.timeout))
        try:
            async with limit:
                pool, encoding = (request.pool, self._encoding) if request.bounded else (_WATCHES, "identity")
                answer = await self._answer(request, pool, encoding, progress, limit)
        except TimeoutError:
            if not limit.expired():
                raise
            raise self._timeout(request, progress) from None
        most = self._config.max_answer_bytes if request.bounded else None
        try:
            yield StreamResponse(
                status=answer.status,
                headers=Headers(answer.headers.items()),
                chunks=_Chunks(_Body(answer, limit=most), request, self._address),
            )
        finally:
            answer.close()

    async def close(self) -> None:
        """Close all connections; requests that are under way fail."""
        self._closed = True
        sessions, self._sessions = list(self._sessions.values()), {}
        await asyncio.gather(*(session.close() for session in sessions))  # cancelled, each has begun to

    async def _answer(
        self, request: HttpRequest, pool: str, encoding: str, progress: _Progress, limit: asyncio.Timeout
    ) -> aiohttp.ClientResponse:
        """Send a request; once more with other credentials if the first ones are refused and there are others."""
        if self._credentials is None:
            return await self._send(request, pool, encoding, Credential(), progress)
        credential = await _outside(limit, self._credentials.credential())
        answer = await self._send(request, pool, encoding, credential, progress)
        if answer.status != 401:
            return answer
        try:
            renewed = await _outside(limit, self._credentials.renew(credential))
        except BaseException:
            answer.close()
            raise
        if renewed is None:
            return answer
        answer.close()
        _log.info("credentials were refused and have been renewed", extra={"server": self._address})
        return await self._send(request, pool, encoding, renewed, progress)

    async def _send(
        self, request: HttpRequest, pool: str, encoding: str, credential: Credential, progress: _Progress
    ) -> aiohttp.ClientResponse:
        session = self._session(pool, request)
        loop = asyncio.get_running_loop()
        headers = [*_headers(request, encoding, credential), *self._identity]
        url = URL(self._base + request.path, encoded=True).with_query(request.query)
        while True:
            progress.sent = progress.reused = False
            try:
                return await session.request(
                    request.method,
                    url,
                    headers=headers,
                    data=_payload(request.body),
                    allow_redirects=False,
                    proxy=self._proxy,
                    ssl=self._tls.context(credential.certificate, now=loop.time()) if self._tls is not None else True,
                    server_hostname=self._config.tls.server_name,
                    trace_request_ctx=progress,
                )
            except (aiohttp.ClientError, OSError) as error:
                tls = self._tls
                then = after_break(
                    request.method,
                    reused=progress.reused,
                    tls=tls is not None,
                    in_handshake=isinstance(error, aiohttp.ClientSSLError),
                    cut=_is_cut(error),
                )
                if then.again or (then.reload and tls is not None and tls.reload(loop.time())):
                    continue
                if then.suspect and tls is not None:
                    tls.suspect()
                failure = self._failure(error, request, progress)
            raise failure

    def _session(self, pool: str, request: HttpRequest) -> aiohttp.ClientSession:
        if self._closed:
            raise TransportError("the client is closed", method=request.method, path=request.path, sent=False)
        session = self._sessions.get(pool)
        if session is None:
            session = self._sessions[pool] = self._make_session(pool)
        return session

    def _make_session(self, pool: str) -> aiohttp.ClientSession:
        make_connector = _PersistentConnector if pool == Pool.LEADER_ELECTION else aiohttp.TCPConnector
        connector = make_connector(
            limit=0,
            keepalive_timeout=_IDLE_CONNECTION,
            resolver=aiohttp.ThreadedResolver(),
            socket_factory=_make_socket,
        )
        session = aiohttp.ClientSession(
            connector=connector,
            timeout=_NO_LIMITS,
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"User-Agent": self._config.user_agent},
            read_bufsize=_READ_BUFFER,
            trace_configs=[_tracing()],
            trust_env=False,
            auto_decompress=False,
        )
        # No public switch; aiohttp's own test client does the same. The reason stands at the top of this file.
        session._retry_connection = False  # noqa: SLF001
        return session

    def _timeout(self, request: HttpRequest, progress: _Progress) -> RequestTimeoutError:
        what = "answer" if progress.sent else "connection"
        return RequestTimeoutError(
            f"{request.method} {request.path}: no {what} from {self._address} within {request.timeout:g} s",
            method=request.method,
            path=request.path,
            sent=progress.sent,
        )

    def _failure(self, error: Exception, request: HttpRequest, progress: _Progress) -> TransportError:
        failure = TransportError(
            f"{request.method} {request.path}: {_why(error, self._address)}",
            method=request.method,
            path=request.path,
            refused=_is_refused(error),
            sent=progress.sent,
            cut=_is_cut(error),
        )
        # aiohttp's own errors hold the request's headers, credentials among them; they are neither cause nor context.
        failure.__cause__ = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else None
        return failure

    def __repr__(self) -> str:
        return f"<AiohttpTransport {self._config.server}>"


@final
class _Body:
    """The body of one answer, unpacked piece by piece; cancelling a read loses nothing."""

    def __init__(self, answer: aiohttp.ClientResponse, *, limit: int | None) -> None:
        self._answer = answer
        self._limit = limit
        self._unpacker: Unpacker | None = None
        self._pieces: Iterator[bytes] = iter(())
        self._gave = False  # a piece of the slice that came last

    async def read(self) -> bytes:
        """Return all of it."""
        body = bytearray()
        while piece := await self.next():
            body += piece
        return bytes(body)

    async def next(self) -> bytes:
        """Return the next piece; empty at the end."""
        if self._unpacker is None:
            self._unpacker = Unpacker(self._answer.headers.get("Content-Encoding", ""), limit=self._limit)
        if self._gave:
            await asyncio.sleep(0)  # a slice of the network may be a thousand times as much: others have their turn
        while (piece := next(self._pieces, None)) is None:
            self._gave = False
            chunk = await self._answer.content.readany()
            if not chunk:
                self._unpacker.finish()
                return b""
            self._pieces = self._unpacker.feed(chunk)
        self._gave = True
        return piece


class _PersistentConnector(aiohttp.TCPConnector):
    """Begins to connect several times, a quarter of a second apart, and takes the connection that comes first.

    The system repeats a lost first packet after a second only, which a short renew deadline does not have.
    """

    async def _wrap_create_connection(self, *args: Any, addr_infos: list[Any], **kwargs: Any) -> Any:
        return await super()._wrap_create_connection(  # pyright: ignore[reportUnknownMemberType]  # of addresses
            *args, addr_infos=addr_infos * _CONNECTS, **kwargs
        )


@final
class _Chunks:
    """The body of a stream, slice by slice."""

    def __init__(self, body: _Body, request: HttpRequest, address: str) -> None:
        self._body = body
        self._request = request
        self._address = address

    def __aiter__(self) -> _Chunks:
        return self

    async def __anext__(self) -> bytes:
        try:
            chunk = await self._body.next()
        except UnpackingError as error:
            failure = _unusable(error, self._request)
        except (aiohttp.ClientError, OSError) as error:
            method, path = self._request.method, self._request.path
            why = f"{method} {path}: the stream broke off: {_why(error, self._address)}"
            failure = StreamEndedError(why, method=method, path=path)
        else:
            if not chunk:
                raise StopAsyncIteration
            return chunk
        raise failure


def _unusable(error: UnpackingError, request: HttpRequest) -> TransportError:
    kind = AnswerTooLargeError if isinstance(error, TooLargeError) else TransportError
    cure = "; ask for less, or raise ClientConfig.max_answer_bytes" if kind is AnswerTooLargeError else ""
    why = f"{request.method} {request.path}: {error}{cure}"
    return kind(why, method=request.method, path=request.path)


async def _outside(limit: asyncio.Timeout, login: Awaitable[_T]) -> _T:
    """Wait for credentials while the request's clock stands still: a login may take a person, and has its own limit."""
    loop = asyncio.get_running_loop()
    ends_at, began_at = limit.when(), loop.time()
    limit.reschedule(None)
    try:
        return await login
    finally:
        if ends_at is not None:
            limit.reschedule(ends_at + loop.time() - began_at)


def _headers(request: HttpRequest, encoding: str, credential: Credential) -> list[tuple[str, str]]:
    headers = {"Accept-Encoding": encoding, **request.headers}
    if credential.authorization is not None:
        headers["Authorization"] = credential.authorization.reveal()
    return list(headers.items())


def _payload(body: bytes | None) -> bytes | io.BytesIO | None:
    # aiohttp sends large bytes in one piece, and warns about it; a file it sends in pieces.
    return io.BytesIO(body) if body is not None and len(body) >= _LARGE_BODY else body


def _finite(timeout: float | None) -> float | None:
    return None if timeout is None or math.isinf(timeout) else timeout


def _tracing() -> aiohttp.TraceConfig:
    async def headers_sent(_: object, context: SimpleNamespace, __: object) -> None:
        # aiohttp calls this before it writes: the connection stands, and nothing has gone out yet.
        progress = _progress(context)
        if progress.before_send is not None:
            progress.before_send()
        progress.sent = True

    async def connection_reused(_: object, context: SimpleNamespace, __: object) -> None:
        _progress(context).reused = True

    tracing: Any = aiohttp.TraceConfig()
    tracing.on_request_headers_sent.append(headers_sent)
    tracing.on_connection_reuseconn.append(connection_reused)
    return tracing  # type: ignore[no-any-return]  # its signals are typed for each kind of context


def _progress(context: SimpleNamespace) -> _Progress:
    progress = context.trace_request_ctx
    assert isinstance(progress, _Progress)
    return progress


def _make_socket(address: tuple[Any, ...]) -> socket.socket:
    made = socket.socket(address[0], address[1], address[2])
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


def _is_refused(error: Exception) -> bool:
    if not isinstance(error, aiohttp.ClientConnectorError):
        return False
    return isinstance(error.os_error, ConnectionRefusedError)


def _is_cut(error: Exception) -> bool:
    """Tell whether a connection was cut that was there, or nearly: the next one may hold."""
    if isinstance(error, aiohttp.ClientConnectorError):
        return isinstance(error.os_error, ConnectionResetError | BrokenPipeError | ConnectionAbortedError)
    return isinstance(
        error,
        aiohttp.ServerDisconnectedError
        | aiohttp.ClientOSError
        | ConnectionResetError
        | BrokenPipeError
        | ConnectionAbortedError,
    )


def _why(error: Exception, address: str) -> str:
    """Say what happened, in words that help whoever has to mend it."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        cause = error.certificate_error
        reason = getattr(cause, "verify_message", "") or str(cause)
        return (
            f"the certificate of {address} is not accepted: {redact(reason)}; "
            "check the CA, and tls-server-name where the server is reached by another name"
        )
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return f"the host name of {address} cannot be resolved"
    if isinstance(error, aiohttp.ClientConnectorError):
        if isinstance(error.os_error, ssl.SSLError):
            # Only what OpenSSL itself found wrong has a reason.
            fault = getattr(error.os_error, "reason", None) or type(error.os_error).__name__
            return f"no TLS connection to {address}: {fault}"
        if _is_refused(error):
            return f"nothing listens at {address} (connection refused)"
        return f"no connection to {address}: {error.os_error.strerror or error.os_error}"
    if isinstance(error, aiohttp.ClientHttpProxyError):
        return f"the proxy refused to connect to {address}: {error.status}"
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return f"{address} closed the connection without an answer"
    reason = getattr(error, "strerror", None) or type(error).__name__
    return f"the connection to {address} broke: {redact(str(reason))}"
