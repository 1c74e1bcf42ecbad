"""HTTP server for health, readiness, metrics and explanations.

By default it listens on loopback. With ``token_review`` it serves only clients whose bearer token the API server
accepts and authorizes for the path. A page with ``post`` accepts POST requests, but not from other sites.

Anyone who can reach the port can send requests, so resources are limited: GET and HEAD of known paths, no bodies, at
most 100 connections (a new connection replaces the one that has been idle for longest), 10 s until the first request,
60 s between requests, 30 s for reading a response, and 16 MiB of responses in progress.

Source: controller-runtime pkg/healthz, pkg/metrics/server, pkg/metrics/filters.
"""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import logging
import socket
import ssl
from collections.abc import Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final, Self, final

from aiohttp import web

from deltaloop._internal.http_connections import HANDSHAKE, SENDING, UNREADABLE, BoundedServer, send
from deltaloop.api.errors import DeltaloopError, InvalidArgumentError
from deltaloop.api.logs import http_logger
from deltaloop.runtime.program.bind_address import BindAddress
from deltaloop.runtime.program.errors import HealthServerError
from deltaloop.runtime.program.pages import ACTION_HEADER, TOKEN_HEADER, HttpPage, LocalRoute, Route, StreamRoute

if TYPE_CHECKING:
    from deltaloop.runtime.program.pages import MayAsk, MayGet

_logger: Final = logging.getLogger("deltaloop.runtime")

_MOST_CONNECTIONS: Final = 100
_MOST_BYTES: Final = 16 * 1024 * 1024
_MOST_STREAMS: Final = 8
_STOP_PATIENCE: Final = 1.0


@final
class HealthServer:
    """HTTP server for a few pages, which runs while its context is entered."""

    def __init__(
        self,
        listen: BindAddress,
        routes: Mapping[str, Route],
        *,
        may_get: MayGet | None = None,
        may_ask: MayAsk | None = None,
    ) -> None:
        """Create a server that is not running yet; routes also receive the paths below their own."""
        self._listen = listen
        self._routes = dict(routes)
        self._may_get = may_get
        self._may_ask = may_ask
        self._sending = 0
        self._streams: set[asyncio.Task[Any]] = set()
        self._server: BoundedServer | None = None
        self._listener: asyncio.Server | None = None
        self._port = 0
        self._adopting: asyncio.Task[object] | None = None
        if listen.token_review and may_get is None:
            raise InvalidArgumentError("must be set together with may_get.", argument="BindAddress.token_review")

    @property
    def port(self) -> int:
        """Port of the running server; 0 before it listens."""
        return self._port

    @property
    def url(self) -> str:
        """URL of the running server, such as ``http://127.0.0.1:8080``, or RuntimeError."""
        if self._listener is None:
            raise RuntimeError("the health server has no address before it is started")
        host = self._listen.host or "0.0.0.0"  # noqa: S104 - shown, not listened on
        shown = f"[{host}]" if ":" in host else host
        return f"{'http' if self._listen.certificate is None else 'https'}://{shown}:{self._port}"

    async def __aenter__(self) -> Self:
        """Start to listen, or raise HealthServerError for an unusable address or certificate."""
        listen = self._listen
        context = self._tls()
        server = BoundedServer(
            self._handle, most=_MOST_CONNECTIONS, logger=http_logger("deltaloop.runtime.http", unreadable=UNREADABLE)
        )
        try:
            listener = await asyncio.get_running_loop().create_server(
                server,
                listen.host or None,
                listen.port,
                ssl=context,
                ssl_handshake_timeout=None if context is None else HANDSHAKE,
            )
        except OSError as error:
            raise self._error(error) from error
        self._port = int(listener.sockets[0].getsockname()[1])
        self._server, self._listener = server, listener
        _logger.info("health server is listening", extra={"url": self.url, "paths": sorted(self._routes)})
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        listener, self._listener = self._listener, None
        if listener is not None and self._server is not None:
            listener.close()
            for stream in self._streams:
                stream.cancel()
            self._server.pre_shutdown()
            await self._server.shutdown(_STOP_PATIENCE)

    def copies_of_sockets(self) -> list[socket.socket]:
        """Return copies of the listening sockets, which the caller must close; none with TLS."""
        plain = self._listener is not None and self._listen.certificate is None
        return [each.dup() for each in self._listener.sockets] if plain and self._listener is not None else []

    def adopt(self, connection: socket.socket) -> None:
        """Serve a connection that another thread accepted."""
        if self._listener is None or self._server is None:
            connection.close()
            return
        accepting = asyncio.get_running_loop().connect_accepted_socket(self._server, connection)
        self._adopting = asyncio.create_task(accepting)  # the loop keeps only a weak reference

    def _tls(self) -> ssl.SSLContext | None:
        if self._listen.certificate is None:
            return None
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        try:
            context.load_cert_chain(self._listen.certificate, self._listen.key)
        except (OSError, ssl.SSLError) as error:
            raise HealthServerError(
                f"cannot use the certificate {self._listen.certificate}: {error.strerror or type(error).__name__}",
                host=self._listen.host,
                port=self._listen.port,
            ) from error
        return context

    def _error(self, error: OSError) -> HealthServerError:
        listen = self._listen
        where = f"{listen.host or '*'}:{listen.port}"
        if error.errno == errno.EADDRINUSE:
            message = f"{where} is in use. Choose another port for health or metrics, or 0 to disable it."
        else:
            message = f"cannot listen on {where} for health or metrics: {error.strerror or type(error).__name__}"
        return HealthServerError(message, host=listen.host, port=listen.port)

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        page = await self._page(request)
        if isinstance(page, StreamRoute):
            return await self._stream(request, page)
        size = len(page.body)
        if self._sending and self._sending + size > _MOST_BYTES:
            page = HttpPage(b"too many responses are being sent\n", status=503)
            size = len(page.body)
        headers = {"Content-Type": page.content_type, "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"}
        headers |= page.headers
        if page.status == 401:
            headers["WWW-Authenticate"] = "Bearer"
        if page.status == 503:
            headers["Retry-After"] = "1"
        self._sending += size
        try:
            return await send(request, web.Response(body=page.body, status=page.status, headers=headers))
        finally:
            self._sending -= size

    async def _stream(self, request: web.BaseRequest, route: StreamRoute) -> web.StreamResponse:
        """Send events until the client or the server closes the connection, or the client does not read them."""
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store"})
        task = asyncio.current_task()
        assert task is not None
        self._streams.add(task)
        try:
            await response.prepare(request)
            async with aclosing(route.events()) as events:
                async for event in events:
                    async with asyncio.timeout(SENDING):
                        await response.write(event)
        except TimeoutError:
            if request.transport is not None:
                request.transport.abort()
        finally:
            self._streams.discard(task)
        return response

    async def _page(self, request: web.BaseRequest) -> HttpPage | StreamRoute:
        path, is_post = request.path, request.method == "POST"
        if request.method not in ("GET", "HEAD", "POST"):
            return HttpPage(b"method not allowed\n", status=405)
        for known, route in self._routes.items():
            if path == known or path.startswith(f"{known}/"):
                post = route.post if is_post and isinstance(route, LocalRoute) else None
                if is_post and post is None:
                    return HttpPage(b"method not allowed\n", status=405)
                no_action = is_post and ACTION_HEADER not in request.headers
                if isinstance(route, LocalRoute) and (no_action or _is_from_other_site(request)):
                    return HttpPage(b"forbidden: the request comes from another site\n", status=403)
                user: str | HttpPage = "a local user"
                if isinstance(route, LocalRoute) and not _is_local(request):
                    user = await self._user(request)
                refused = user if isinstance(user, HttpPage) else await self._refusal(request)
                if refused is not None:
                    return refused
                inner = route.route if isinstance(route, LocalRoute) else route
                if isinstance(inner, StreamRoute) and path == known and request.method == "GET":
                    full = len(self._streams) >= _MOST_STREAMS
                    return HttpPage(b"too many pages are open\n", status=503) if full else inner
                query = {name: request.query.getall(name) for name in request.query}
                rest = path[len(known) :].strip("/")
                try:
                    return await (route(rest, query) if post is None else post(rest, query, str(user)))
                except Exception:
                    _logger.exception("page of the health server failed", extra={"path": known})
                    return HttpPage(b"internal error\n", status=500)
        return HttpPage(b"not found\n", status=404)

    async def _user(self, request: web.BaseRequest) -> str | HttpPage:
        token = request.headers.get(TOKEN_HEADER, "")
        if not token or self._may_ask is None:
            return HttpPage(b"forbidden: this page is for requests from the same machine\n", status=403)
        try:
            user = await self._may_ask(token, request.path, "post" if request.method == "POST" else "get")
        except DeltaloopError as error:
            _logger.warning("cannot review token", extra={"error": type(error).__name__})
            return HttpPage(b"the program cannot review tokens\n", status=503)
        return user or HttpPage(b"forbidden: RBAC does not allow this path to the token\n", status=403)

    async def _refusal(self, request: web.BaseRequest) -> HttpPage | None:
        if not self._listen.token_review or self._may_get is None:
            return None
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            return HttpPage(b"unauthorized\n", status=401)
        try:
            allowed = await self._may_get(token.strip(), request.path)
        except DeltaloopError as error:
            _logger.warning("cannot review token", extra={"error": type(error).__name__})
            return HttpPage(b"tokens cannot be reviewed now\n", status=503)
        return None if allowed else HttpPage(b"forbidden\n", status=403)


def _is_local(request: web.BaseRequest) -> bool:
    return is_local(request.headers.get("Host", ""), request.remote or "")


def is_local(host: str, remote: str) -> bool:
    """Return whether a request comes from this machine and names it as the host."""
    name = host.partition("]")[0].lstrip("[") if host.startswith("[") else host.partition(":")[0]
    return _is_loopback(remote) and (name == "localhost" or _is_loopback(name))


def _is_from_other_site(request: web.BaseRequest) -> bool:
    """Return whether a page of another origin sent the request; a link to the page itself is allowed."""
    headers = request.headers
    origin, site = headers.get("Origin"), headers.get("Sec-Fetch-Site", "none")
    if origin is not None and origin.partition("://")[2] != headers.get("Host", ""):
        return True
    is_link = (headers.get("Sec-Fetch-Mode"), headers.get("Sec-Fetch-Dest")) == ("navigate", "document")
    return site not in ("none", "same-origin") and not (is_link and request.path == "/" and request.method == "GET")


def _is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False
