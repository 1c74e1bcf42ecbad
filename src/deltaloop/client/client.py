"""The client: all verbs of the API on one server's connections.

A resource is named by a ``ResourceType[T]``, and objects come as ``T``; or by a text, and objects come as ``Resource``.
``"apps/v1/Deployment"`` and the like are known for the built-in kinds; any other text (``"deploy"``,
``"widgets.example.com"``) is looked up by discovery, once. Objects are given as ``Resource``, mapping or typed object.

``namespace=None`` means all namespaces for list and watch. For verbs of one object it means the object's own
namespace, else the client's. ``timeout`` is in seconds; None is the configured default (30).

All verbs raise ``ApiError`` if the server refuses, ``TransportError`` if there is no answer, ``MalformedObjectError``
if an answer cannot be read, ``UnknownResourceError`` if a text names nothing, and ``InvalidArgumentError`` for what
cannot be asked. A cancelled write may have been carried out.

The verbs are in ``verbs/verbs.py``, what they ask in ``verbs/server.py``.
"""

from __future__ import annotations

import copy
from types import TracebackType
from typing import Final, Self, final
from urllib.parse import urlsplit

from deltaloop.client.config import ClientConfig
from deltaloop.client.discovery import Discovery
from deltaloop.client.options import AccessCheck, ClientOptions, WarningHandler, WriteCheck
from deltaloop.client.transport.http_transport import HttpTransport
from deltaloop.client.transport.protocol import Pool, Transport
from deltaloop.client.transport.sender import RequestSender
from deltaloop.client.verbs.server import Server, both_checks
from deltaloop.client.verbs.verbs import Verbs

_DEFAULTS: Final = ClientOptions()


@final
class Client(Verbs):
    """A client of one API server; ``async with`` closes its connections at the end.

    Made anywhere, used on one event loop. Safe for any number of tasks.

    ``timeout`` is in seconds, for a whole call with its repeats; None is the client's own limit (30 s).
    """

    def __init__(
        self, config: ClientConfig, *, transport: Transport | None = None, options: ClientOptions = _DEFAULTS
    ) -> None:
        """Make a client; nothing is sent yet.

        Args:
            config: Where the server is and who is asking.
            transport: The way to the server; by default HTTP as ``config`` says.
            options: Its manners: rate, field manager, warnings, metrics.

        Raises:
            ConfigError: If certificates or keys cannot be used.
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
        super().__init__(self._server, discovery.kinds)

    @property
    def drops_managed_fields(self) -> bool:
        """Whether ``ListOptions.drop_managed_fields`` holds whatever the server sends: it does."""
        return True

    @property
    def config(self) -> ClientConfig:
        """The configuration; its ``repr`` shows no secret."""
        return self._server.config

    @property
    def options(self) -> ClientOptions:
        """The manners of this client."""
        return self._server.options

    def with_pool(self, pool: Pool) -> Self:
        """Return the same client with other connections for its ordinary calls; closing either closes both."""
        return self._on_server(self._server.replaced(pool=pool))

    def with_write_check(self, check: WriteCheck) -> Self:
        """Return the same client with a check before each write; closing either closes both.

        Every request that is not a read asks it right before it is sent, each time that it is sent: once the
        connection stands, after all waiting. What it raises is what the verb raises, and nothing is sent. A check that
        this client has already is asked first and stays. Reads are not checked.

        Args:
            check: Called on the client's event loop with what is to be sent, such as ``PUT /api/v1/...``.
        """
        return self._on_server(self._server.replaced(write_check=both_checks(self._server.write_check, check)))

    def with_access_check(self, check: AccessCheck) -> Self:
        """Return the same client with a check of what each request needs to be allowed; closing either closes both.

        It is asked once for each request, before anything is sent, and what it raises is what the verb raises. Requests
        about no particular kind, such as those that find out which kinds there are, are not checked.

        Args:
            check: Called on the client's event loop with verb, kind, namespace and subresource.
        """
        return self._on_server(self._server.replaced(access_check=check))

    def with_warnings(self, handler: WarningHandler | None) -> Self:
        """Return the same client with another handler of the server's warnings; closing either closes both.

        To have the warnings of a few calls: ``warned = []``, then ``client.with_warnings(warned.append)`` for those.
        """
        return self._on_server(self._server.replaced(on_warning=handler))

    def with_field_manager(self, name: str) -> Self:
        """Return the same client with another field manager for its writes; closing either closes both.

        Raises:
            InvalidArgumentError: If the name is longer than 128 characters, or not printable.
        """
        return self._on_server(self._server.with_options(self.options.replace(field_manager=name)))

    def with_own_connections(self) -> Client | None:
        """Return a client of the same server with connections of its own, for another event loop; close it there.

        None if this client has a transport that was given to it: nothing says how to make another. Checks go with it,
        and are called on that event loop.
        """
        if self._transport_is_given:
            return None
        other = Client(self.config, options=self.options)
        server = other._server.replaced(write_check=self._server.write_check, access_check=self._server.access_check)
        return other._on_server(server)

    def _on_server(self, server: Server) -> Self:
        """Return the same client in another manner; closing either closes both."""
        other = copy.copy(self)
        other._way = other._server = server  # noqa: SLF001 - of the same class
        return other

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections; a second call does nothing."""
        await self._server.sender.close()

    def __repr__(self) -> str:
        return f"<Client {self.config.server} namespace={self.namespace}>"
