"""Transport to an embedded server on the same loop, without sockets and without the text of HTTP."""

from __future__ import annotations

import asyncio
import weakref
from typing import ClassVar, final
from urllib.parse import urlsplit

import msgspec

from deltaloop.apiserver import ApiServer
from deltaloop.apiserver.embedding import DirectConnection
from deltaloop.client.config import ClientConfig
from deltaloop.client.core.connection_failures import ConnectionFailure, of_breaking, of_connecting
from deltaloop.client.core.credential import Credential
from deltaloop.client.core.http_request import target
from deltaloop.client.transport.base_transport import Attempt, BaseTransport, HttpAnswer
from deltaloop.client.transport.protocol import Headers, HttpRequest
from deltaloop.testing.deterministic_loop.memory_network import NetworkLoop


@final
class DirectTransport(BaseTransport):
    """Hands requests to an embedded server that runs on the same loop, without TLS."""

    breaks: ClassVar[tuple[type[Exception], ...]] = (OSError,)

    def __init__(self, config: ClientConfig, server: ApiServer) -> None:
        """Speak to a server.

        Args:
            config: Who is asking, and where the server says that it is.
            server: The server.
        """
        super().__init__(config)
        self._server = server
        self._open_ones: weakref.WeakSet[DirectConnection] = weakref.WeakSet()
        parts = urlsplit(config.server)
        self._fixed = [("Host", parts.netloc), ("User-Agent", config.user_agent), *self._identity]

    async def close(self) -> None:
        """Close all connections; requests that are under way fail."""
        self._closed = True
        for connection in tuple(self._open_ones):
            connection.abort()

    async def _open(
        self, request: HttpRequest, pool: str, encoding: str, credential: Credential, attempt: Attempt
    ) -> HttpAnswer:
        del pool, credential  # each request has its own connection, and without TLS none is sent
        door = self._server.door()
        attempt.sends()
        body = request.body
        headers = [*self._fixed, ("Accept-Encoding", encoding), *request.headers.items()]
        if body is not None:
            headers.append(("Content-Length", str(len(body))))
        connection = door.ask(request.method, target(request.path, request.query), headers, body)
        loop = asyncio.get_running_loop()
        if isinstance(loop, NetworkLoop):
            loop.accepted(connection)  # it ends with the process that has asked
        self._open_ones.add(connection)
        try:
            await connection.answered()
        except BaseException:
            connection.abort()
            raise
        return _Answer(connection)

    def _failure(self, error: Exception) -> tuple[ConnectionFailure, OSError | None]:
        if isinstance(error, ConnectionRefusedError):
            return of_connecting(error), error
        return msgspec.structs.replace(of_breaking(error), cut=True), None


@final
class _Answer:
    """An answer; its connection serves no other request."""

    __slots__ = ("_connection", "headers", "status")

    def __init__(self, connection: DirectConnection) -> None:
        self._connection = connection
        self.status = connection.status
        self.headers = Headers.of_lower_case(connection.headers)

    @property
    def complete(self) -> bool:
        return self._connection.complete

    async def read(self) -> bytes:
        return await self._connection.read()

    def close(self) -> None:
        self._connection.abort()
