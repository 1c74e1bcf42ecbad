"""The embedded API server as one object: sockets, TLS, token, controllers. Core: ``core/operations.py`` and its store.

It runs on the event loop that enters it, listens on loopback only, and speaks HTTP/1.1 over TLS with a random token
unless told otherwise. Everything is in memory and gone when it stops.
"""

from __future__ import annotations

import asyncio
import base64
import errno
import logging
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Final, Self, final

from aiohttp import web

from deltaloop.api.errors import DeltaloopError
from deltaloop.api.redaction import SecretText
from deltaloop.apiserver.authentication import Authenticator, is_loopback
from deltaloop.apiserver.change_signal import ChangeSignal
from deltaloop.apiserver.controllers.garbage_collector import collect_garbage
from deltaloop.apiserver.controllers.namespaces import clean_up_namespaces
from deltaloop.apiserver.core.operations import Operations
from deltaloop.apiserver.core.registry import Registry
from deltaloop.apiserver.core.store import Store
from deltaloop.apiserver.handlers import Handlers
from deltaloop.apiserver.tls import make_tls

_log: Final = logging.getLogger("deltaloop.apiserver")
CONTROLLERS: Final = frozenset({"gc", "namespace"})
_STOP_PATIENCE: Final = 5.0
_NAME: Final = "deltaloop"


class ServerStartError(DeltaloopError):
    """The server cannot listen; the message says where and what to do.

    Attributes:
        host: The address.
        port: The port.
    """

    def __init__(self, message: str, *, host: str, port: int) -> None:
        """Keep where."""
        super().__init__(message)
        self.host = host
        self.port = port


def _utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerOptions:
    """How an embedded server runs.

    Attributes:
        host: Address to listen on: ``localhost`` or a loopback address, nothing else.
        port: TCP port; 0 takes a free one.
        insecure_http: Plain HTTP and no token: everybody on this machine may do everything.
        token: The bearer token; None makes a random one. Not with ``insecure_http``.
        controllers: What runs beside the server: ``gc`` (owner references) and ``namespace`` (clean-up). The real
            server leaves both to the controller manager; without them, a deleted namespace stays Terminating.
        window: How many past changes are kept for watches, exact lists and continue tokens.
        window_bytes: How many bytes of objects these may hold.
        bookmark_interval: Seconds between bookmarks of a watch.
        wall_clock: The time that objects get; must return aware datetimes.
    """

    host: str = "127.0.0.1"
    port: int = 0
    insecure_http: bool = False
    token: SecretText | None = None
    controllers: frozenset[str] = CONTROLLERS
    window: int = 10_000
    window_bytes: int = 64 * 1024 * 1024
    bookmark_interval: float = 60.0
    wall_clock: Callable[[], datetime] = field(default=_utc_now, repr=False)

    def __post_init__(self) -> None:
        """Refuse what cannot work or is not safe."""
        if not is_loopback(self.host):
            raise ValueError(
                f"ServerOptions.host is {self.host!r}; this server listens on 127.0.0.1, ::1 or localhost only"
            )
        if not 0 <= self.port <= 65535:
            raise ValueError(f"ServerOptions.port is {self.port!r}; 0 to 65535 is needed")
        unknown = self.controllers - CONTROLLERS
        if unknown:
            raise ValueError(f"ServerOptions.controllers has {sorted(unknown)}; known are {sorted(CONTROLLERS)}")
        if self.token is not None and (self.insecure_http or not self.token):
            raise ValueError("ServerOptions.token must not be empty, and has no meaning with insecure_http")
        if self.window < 1 or self.window_bytes < 1:
            raise ValueError("ServerOptions.window and window_bytes must be 1 or more")
        if not self.bookmark_interval > 0:
            raise ValueError(f"ServerOptions.bookmark_interval is {self.bookmark_interval!r}; more than 0 is needed")


@final
class ApiServer:
    """An embedded API server, running while it is entered.

    Leaving ends open watches cleanly, closes the sockets and waits for what still runs; cancellation meanwhile leaves
    the sockets closed.
    """

    def __init__(self, options: ServerOptions | None = None) -> None:
        """Make a server that does not run yet; a store and a registry belong to it from now on."""
        self._options = options or ServerOptions()
        self._store = Store(window=self._options.window, window_bytes=self._options.window_bytes)
        self._operations = Operations(self._store, Registry())
        self._signal = ChangeSignal(self._store, stride=max(1, self._options.window // 4))
        self._token = None if self._options.insecure_http else self._options.token
        if self._token is None and not self._options.insecure_http:
            self._token = SecretText(secrets.token_urlsafe(32))
        self._ca_pem: bytes | None = None
        self._runner: web.ServerRunner | None = None
        self._controllers: list[asyncio.Task[None]] = []
        self._port = 0
        self._entered = False

    def __repr__(self) -> str:
        where = self.url if self._runner is not None else "not running"
        return f"<ApiServer {where}, {self._store!r}>"

    @property
    def url(self) -> str:
        """Address, such as ``https://127.0.0.1:41234``.

        Raises:
            RuntimeError: If the server does not run.
        """
        if self._runner is None:
            raise RuntimeError("the server has no address before it is entered: use `async with server:`")
        scheme = "http" if self._options.insecure_http else "https"
        host = f"[{self._options.host}]" if ":" in self._options.host else self._options.host
        return f"{scheme}://{host}:{self._port}"

    @property
    def ca_pem(self) -> bytes | None:
        """Certificate of the authority that signed the server's; None with plain HTTP."""
        return self._ca_pem

    @property
    def token(self) -> SecretText:
        """The bearer token; empty with plain HTTP."""
        return self._token or SecretText("")

    @property
    def revision(self) -> int:
        """Revision of the last write."""
        return self._store.revision

    def kubeconfig(self) -> dict[str, Any]:
        """Return a kubeconfig with one context, ``deltaloop``; it holds the token in the clear.

        Raises:
            RuntimeError: If the server does not run.
        """
        cluster: dict[str, Any] = {"server": self.url}
        user: dict[str, Any] = {}
        if self._ca_pem is not None:
            cluster["certificate-authority-data"] = base64.b64encode(self._ca_pem).decode()
        if self._token is not None:
            user["token"] = self._token.reveal()
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": _NAME,
            "clusters": [{"name": _NAME, "cluster": cluster}],
            "users": [{"name": _NAME, "user": user}],
            "contexts": [{"name": _NAME, "context": {"cluster": _NAME, "user": _NAME, "namespace": "default"}}],
        }

    def compact(self, revision: int | None = None) -> None:
        """Forget changes up to a revision, all of them by default: older watches, lists and tokens get 410 Expired."""
        self._store.compact(self._store.revision if revision is None else revision)

    async def __aenter__(self) -> Self:
        """Start to listen.

        Raises:
            ServerStartError: If the port is taken or the address cannot be used.
            MissingExtraError: If TLS is wanted and the extra ``server`` is not installed.
        """
        if self._entered:
            raise RuntimeError("a server runs once: make a new ApiServer")
        self._entered = True
        options = self._options
        context = None
        if not options.insecure_http:
            material = make_tls(host=options.host)
            context, self._ca_pem = material.context, material.ca_pem
        handlers = Handlers(
            self._operations,
            self._signal,
            Authenticator(self._token),
            host=options.host,
            wall_clock=options.wall_clock,
            bookmark_interval=options.bookmark_interval,
        )
        self._operations.ensure_namespaces(stamps=handlers.stamp)
        self._signal.publish()
        # Without cancellation a watch whose client is gone would live until its deadline.
        server = web.Server(handlers.handle, handler_cancellation=True, access_log=None)
        runner = web.ServerRunner(server, shutdown_timeout=_STOP_PATIENCE)
        await runner.setup()
        try:
            await web.TCPSite(runner, options.host, options.port, ssl_context=context).start()
        except OSError as error:
            await runner.cleanup()
            raise _start_error(error, options) from error
        except BaseException:
            await runner.cleanup()
            raise
        self._port = int(runner.addresses[0][1])
        self._runner = runner
        self._start_controllers(handlers)
        _log.info("the API server listens", extra={"url": self.url})
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Stop: end watches, end controllers, close sockets."""
        self._signal.close()
        for task in self._controllers:
            task.cancel()
        runner, self._runner = self._runner, None
        try:
            await asyncio.gather(*self._controllers, return_exceptions=True)
        finally:
            if runner is not None:
                await runner.cleanup()
        _log.info("the API server has stopped", extra={"revision": self._store.revision})

    def _start_controllers(self, handlers: Handlers) -> None:
        for name, run in (("gc", collect_garbage), ("namespace", clean_up_namespaces)):
            if name in self._options.controllers:
                work = run(self._operations, self._signal, stamp=handlers.stamp)
                task = asyncio.create_task(work, name=f"deltaloop-apiserver-{name}")
                task.add_done_callback(_report_failure)
                self._controllers.append(task)


def _report_failure(task: asyncio.Task[None]) -> None:
    error = None if task.cancelled() else task.exception()
    if error is not None:
        _log.error("a controller of the API server has died", exc_info=error, extra={"task": task.get_name()})


def _start_error(error: OSError, options: ServerOptions) -> ServerStartError:
    where = f"{options.host}:{options.port}"
    if error.errno == errno.EADDRINUSE:
        message = f"port {options.port} of {options.host} is in use; choose another, or 0 for any free one"
    elif error.errno == errno.EACCES:
        message = f"no permission to listen on {where}; ports below 1024 are reserved, choose a higher one"
    else:
        message = f"cannot listen on {where}: {error.strerror or type(error).__name__}"
    return ServerStartError(message, host=options.host, port=options.port)
