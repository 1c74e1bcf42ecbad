"""The transport over aiohttp, the only place of the client where aiohttp is known.

What every transport does is in ``transport_http.py``. Off is what aiohttp does unasked: its own limits of time and of
connections, sending a PUT or DELETE once more when a kept connection turns out to be dead, unpacking without a bound.
"""

from __future__ import annotations

import asyncio
import io
import socket
from types import SimpleNamespace
from typing import Any, ClassVar, Final, final

import aiohttp
import msgspec
from yarl import URL

from deltaloop.api.redaction import redact
from deltaloop.client.config import ClientConfig
from deltaloop.client.core.broken_tries import Reuse
from deltaloop.client.core.connection_failures import (
    CUTS,
    ConnectionFailure,
    FailureKind,
    of_breaking,
    of_connecting,
)
from deltaloop.client.core.credential import Credential
from deltaloop.client.transport.http_transport import (
    CONNECTS,
    IDLE_CONNECTION,
    READ_BUFFER,
    Attempt,
    HttpAnswer,
    HttpTransport,
    make_socket,
)
from deltaloop.client.transport.kept_sockets import input_check
from deltaloop.client.transport.protocol import Headers, HttpRequest, Pool

_NO_LIMITS: Final = aiohttp.ClientTimeout()
_LARGE_BODY: Final = 1024 * 1024


@final
class AiohttpTransport(HttpTransport):
    """Sends requests to the server of a ``ClientConfig`` by aiohttp.

    Made anywhere, used on one event loop.
    """

    breaks: ClassVar[tuple[type[Exception], ...]] = (aiohttp.ClientError, OSError)

    def __init__(self, config: ClientConfig) -> None:
        """Read certificates and environment; connections are made when they are needed.

        Raises:
            ConfigError: If certificates or keys cannot be used.
        """
        super().__init__(config)
        self._base = str(URL(config.server)).rstrip("/")
        self._sessions: dict[str, aiohttp.ClientSession] = {}

    async def close(self) -> None:
        """Close all connections; requests that are under way fail."""
        self._closed = True
        sessions, self._sessions = list(self._sessions.values()), {}
        await asyncio.gather(*(session.close() for session in sessions))  # cancelled, each has begun to

    async def _open(
        self, request: HttpRequest, pool: str, encoding: str, credential: Credential, attempt: Attempt
    ) -> HttpAnswer:
        now = asyncio.get_running_loop().time()
        answer = await self._session(pool).request(
            request.method,
            URL(self._base + request.path, encoded=True).with_query(request.query),
            headers=[*_headers(request, encoding, credential), *self._identity],
            data=_payload(request.body),
            allow_redirects=False,
            proxy=self._proxy,
            ssl=self._tls.context(credential.certificate, now=now) if self._tls is not None else True,
            server_hostname=self._config.tls.server_name,
            trace_request_ctx=attempt,
        )
        return _Answer(answer)

    def _failure(self, error: Exception) -> tuple[ConnectionFailure, OSError | None]:
        cause = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else None
        return failure_of(error), cause

    def _session(self, pool: str) -> aiohttp.ClientSession:
        session = self._sessions.get(pool)
        if session is None:
            session = self._sessions[pool] = self._make_session(pool)
        return session

    def _make_session(self, pool: str) -> aiohttp.ClientSession:
        make_connector = _PersistentConnector if pool == Pool.LEADER_ELECTION else _Connector
        connector = make_connector(
            reuse=self._reuse,
            limit=0,
            keepalive_timeout=IDLE_CONNECTION,
            resolver=aiohttp.ThreadedResolver(),
            socket_factory=_socket,
        )
        session = aiohttp.ClientSession(
            connector=connector,
            timeout=_NO_LIMITS,
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"User-Agent": self._config.user_agent},
            read_bufsize=READ_BUFFER,
            trace_configs=[_tracing()],
            trust_env=False,
            auto_decompress=False,
        )
        # No public switch; aiohttp's own test client does the same. The reason stands at the top of this file.
        session._retry_connection = False  # noqa: SLF001
        return session


@final
class _Answer:
    """One of aiohttp's answers."""

    __slots__ = ("_answer", "_headers")

    def __init__(self, answer: aiohttp.ClientResponse) -> None:
        self._answer = answer
        self._headers: Headers | None = None

    @property
    def status(self) -> int:
        return self._answer.status

    @property
    def headers(self) -> Headers:
        if self._headers is None:
            self._headers = Headers(self._answer.headers.items())
        return self._headers

    @property
    def complete(self) -> bool:
        return self._answer.content.at_eof()

    async def read(self) -> bytes:
        return await self._answer.content.readany()

    def close(self) -> None:
        self._answer.close()  # a complete answer has given its connection back already


class _Connector(aiohttp.TCPConnector):
    """Reuse a kept connection only if its socket has no input, such as the end of the connection."""

    def __init__(self, *, reuse: Reuse, **keywords: Any) -> None:
        super().__init__(**keywords)  # pyright: ignore[reportUnknownMemberType]  # of addresses
        self._reuse = reuse

    async def _get(self, key: Any, traces: Any) -> Any:
        # There is no public way to look at a connection before a request is sent on it.
        while (found := await super()._get(key, traces)) is not None:
            now = asyncio.get_running_loop().time()
            if self._reuse.is_allowed(now):
                if found.transport is not None and not input_check(found.transport)():
                    return found
                self._reuse.failed(now)
            found.close()
        return None


class _PersistentConnector(_Connector):
    """Begins to connect several times, a quarter of a second apart; see ``CONNECTS``."""

    async def _wrap_create_connection(self, *args: Any, addr_infos: list[Any], **kwargs: Any) -> Any:
        return await super()._wrap_create_connection(  # pyright: ignore[reportUnknownMemberType]  # of addresses
            *args, addr_infos=addr_infos * CONNECTS, **kwargs
        )


def _headers(request: HttpRequest, encoding: str, credential: Credential) -> list[tuple[str, str]]:
    headers = {"Accept-Encoding": encoding, **request.headers}
    if credential.authorization is not None:
        headers["Authorization"] = credential.authorization.reveal()
    return list(headers.items())


def _payload(body: bytes | None) -> bytes | io.BytesIO | None:
    # aiohttp sends large bytes in one piece, and warns about it; a file it sends in pieces.
    return io.BytesIO(body) if body is not None and len(body) >= _LARGE_BODY else body


def _tracing() -> aiohttp.TraceConfig:
    async def headers_sent(_: object, context: SimpleNamespace, __: object) -> None:
        # aiohttp calls this before it writes: the connection stands, and nothing has gone out yet.
        _attempt(context).sends()

    async def connection_made(_: object, context: SimpleNamespace, __: object) -> None:
        _attempt(context).reused = False

    async def connection_reused(_: object, context: SimpleNamespace, __: object) -> None:
        _attempt(context).reused = True

    tracing: Any = aiohttp.TraceConfig()
    tracing.on_request_headers_sent.append(headers_sent)
    tracing.on_connection_create_start.append(connection_made)
    tracing.on_connection_reuseconn.append(connection_reused)
    return tracing  # type: ignore[no-any-return]  # its signals are typed for each kind of context


def _attempt(context: SimpleNamespace) -> Attempt:
    attempt = context.trace_request_ctx
    assert isinstance(attempt, Attempt)
    return attempt


def _socket(address: tuple[Any, ...]) -> socket.socket:
    return make_socket(address[0], address[1], address[2])


def failure_of(error: Exception) -> ConnectionFailure:
    """Tell what one of aiohttp's errors means, or one of the system's."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        cause = error.certificate_error
        reason = getattr(cause, "verify_message", "") or str(cause)
        return ConnectionFailure(FailureKind.CERTIFICATE, redact(reason))
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return ConnectionFailure(FailureKind.NAME)
    if isinstance(error, aiohttp.ClientConnectorError):
        return of_connecting(error.os_error)
    if isinstance(error, aiohttp.ClientHttpProxyError):
        return ConnectionFailure(FailureKind.PROXY, str(error.status))
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return ConnectionFailure(FailureKind.NO_ANSWER, cut=True)
    failure = of_breaking(error)
    return msgspec.structs.replace(failure, cut=isinstance(error, (aiohttp.ClientOSError, *CUTS)))
