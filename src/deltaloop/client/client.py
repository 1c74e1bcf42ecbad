"""Client of an API server.

You can pass a kind as a ``ResourceType[T]``, which returns objects as ``T``, or as a name, which returns ``Resource``
objects. Names of built-in kinds, such as ``"apps/v1/Deployment"``, are known. Other names (``"deploy"``,
``"widgets.example.com"``) are looked up once by discovery.

For lists and watches, ``namespace=None`` means all namespaces. For verbs of one object, it means the object's namespace
or the client's.

All verbs raise ``ApiError`` for error responses, ``TransportError`` without a response, ``MalformedObjectError`` for
unreadable responses, ``UnknownResourceError`` for unknown names, and ``InvalidArgumentError`` for invalid arguments.
The server may execute a write that you cancel.
"""

from __future__ import annotations

from typing import Final, Self, final
from urllib.parse import urlsplit

from deltaloop.client.config import ClientConfig
from deltaloop.client.discovery import Discovery
from deltaloop.client.metrics import ClientStatistics
from deltaloop.client.options import AccessCheck, ClientOptions, WarningHandler, WriteCheck
from deltaloop.client.transport.http_transport import HttpTransport
from deltaloop.client.transport.protocol import Pool, Transport
from deltaloop.client.transport.sender import RequestSender
from deltaloop.client.verbs.server import Server, both_checks
from deltaloop.client.verbs.verbs import Verbs

_DEFAULTS: Final = ClientOptions()


@final
class Client(Verbs):
    """Client of one API server, which closes its connections when its context exits.

    Clients that ``with_...`` methods return share its connections, so closing any of them closes all.

    You can create it anywhere, and use it in any number of tasks on one event loop. ``timeout`` is in seconds and
    applies to a complete call with its retries. None means the client's timeout (30 s by default).
    """

    def __init__(
        self, config: ClientConfig, *, transport: Transport | None = None, options: ClientOptions = _DEFAULTS
    ) -> None:
        """Create a client without sending a request.

        Args:
            config: Server address and credentials.
            transport: Transport to the server. By default, HTTP according to ``config``.
            options: Client options, such as rate limit and field manager.

        Raises:
            ConfigError: If certificates or keys are not usable.
        """
        self._transport_is_given = transport is not None
        sender = RequestSender(
            transport if transport is not None else HttpTransport(config),
            default_timeout=config.request_timeout,
            host=urlsplit(config.server).netloc,
            options=options,
        )
        discovery = Discovery(sender)
        self._server = Server(config, sender, discovery, options)
        self._way = self._server
        self._kinds = discovery.kinds

    @property
    def drops_managed_fields(self) -> bool:
        """Whether ``ListOptions.drop_managed_fields`` works with all servers, which is always the case."""
        return True

    @property
    def config(self) -> ClientConfig:
        """Configuration of the client.

        Its ``repr`` contains no secrets.
        """
        return self._server.config

    @property
    def options(self) -> ClientOptions:
        """Options of the client."""
        return self._server.options

    def statistics(self) -> ClientStatistics:
        """Return the statistics of all clients that share these connections.

        Call it on the event loop.
        """
        ages = self._server.sender.throttled_ages()
        return ClientStatistics(
            throttled=len(ages),
            throttled_ago=min(ages, default=None),
            failed_groups=self._server.discovery.failed_groups,
        )

    def with_pool(self, pool: Pool) -> Self:
        """Return this client with a different connection pool for ordinary calls.

        Closing either client closes both.
        """
        return self._on_server(self._server.replaced(pool=pool))

    def with_write_check(self, check: WriteCheck) -> Self:
        """Return this client with a check before each write.

        The check runs directly before each attempt to send a write, after all waiting and after the connection is
        established. If it raises an exception, the verb raises it, and the write is not sent. Existing checks run
        first. Reads are not checked.

        Args:
            check: Function that receives the write, such as ``PUT /api/v1/...``. It runs on the client's event loop.
        """
        return self._on_server(self._server.replaced(write_check=both_checks(self._server.write_check, check)))

    def with_access_check(self, check: AccessCheck) -> Self:
        """Return this client with a permission check for each request.

        The check runs once per request, before it is sent. If it raises an exception, the verb raises it. Requests
        without a kind, such as discovery, are not checked.

        Args:
            check: Function that receives verb, kind, namespace and subresource. It runs on the client's event loop.
        """
        return self._on_server(self._server.replaced(access_check=check))

    def with_warnings(self, handler: WarningHandler | None) -> Self:
        """Return this client with a different handler for server warnings.

        For example, to collect the warnings of a few calls, use ``client.with_warnings(warned.append)`` for these
        calls.
        """
        return self._on_server(self._server.replaced(on_warning=handler))

    def with_field_manager(self, name: str) -> Self:
        """Return this client with a different field manager.

        Raises:
            InvalidArgumentError: If the name is longer than 128 characters or not printable.
        """
        return self._on_server(self._server.with_options(self.options.replace(field_manager=name)))

    def with_own_connections(self) -> Client | None:
        """Return a client of the same server with separate connections, for a different event loop.

        You must close it on that event loop. Checks are copied, and run on that event loop. The result is None if this
        client was created with ``transport``, because the transport cannot be copied.
        """
        if self._transport_is_given:
            return None
        other = Client(self.config, options=self.options)
        server = other._server.replaced(write_check=self._server.write_check, access_check=self._server.access_check)
        return other._on_server(server)

    def _on_server(self, server: Server) -> Self:
        other = object.__new__(type(self))
        vars(other).update(vars(self))  # faster than importing copy
        other._way = other._server = server
        return other

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections.

        You can call it repeatedly.
        """
        await self._server.sender.close()

    def __repr__(self) -> str:
        return f"<Client {self.config.server} namespace={self.namespace}>"
