"""An HTTP server whose connections are bounded, for servers that anybody may reach who reaches the port; no core.

A new connection takes the place of the one that has waited longest for a request, so that connections on which nothing
is asked keep nobody away. A connection without a request ends after a while, and so does one that is kept.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, final

from aiohttp import web
from aiohttp.http import HttpProcessingError

from deltaloop.api.logs import http_logger

IDLE: Final = 60.0
FIRST_REQUEST: Final = 10.0
HANDSHAKE: Final = 10.0


@dataclass(slots=True)
class _Connection:
    transport: asyncio.Transport
    first_request: asyncio.TimerHandle
    answering: bool = False


@final
class BoundedServer(web.Server):
    """Bounds the number of connections: a new one ends the one that has waited longest for a request."""

    def __init__(
        self, answer: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]], *, most: int, logger: str
    ) -> None:
        """Make the factory of protocols for ``create_server``.

        Args:
            answer: Answers a request.
            most: Most connections at a time.
            logger: Name of the logger of what cannot be read.
        """
        # Unasked, the library would unpack a body that nobody reads, gigabytes of it, and read on after the answer.
        super().__init__(
            self._answered,
            handler_cancellation=True,
            access_log=None,
            keepalive_timeout=IDLE,
            auto_decompress=False,
            lingering_time=0.0,
            logger=http_logger(logger, unreadable=HttpProcessingError),
        )
        self._answer = answer
        self._most = most
        self._open: dict[web.RequestHandler, _Connection] = {}

    async def _answered(self, request: web.BaseRequest) -> web.StreamResponse:
        connection = self._open.pop(request.protocol, None)
        if connection is None:
            raise ConnectionResetError
        connection.first_request.cancel()
        connection.answering = True
        self._open[request.protocol] = connection  # from now on the last that has to go
        try:
            return await self._answer(request)
        finally:
            connection.answering = False

    def connection_made(self, handler: web.RequestHandler, transport: asyncio.Transport) -> None:
        """Take a connection, in place of another one if there are too many."""
        super().connection_made(handler, transport)
        timer = asyncio.get_running_loop().call_later(FIRST_REQUEST, transport.abort)
        self._open[handler] = _Connection(transport, timer)
        if len(self._open) > self._most:
            last = next((item for item, connection in self._open.items() if not connection.answering), handler)
            self._forget(last).abort()

    def connection_lost(self, handler: web.RequestHandler, exc: BaseException | None = None) -> None:
        """Forget a connection."""
        super().connection_lost(handler, exc)
        if handler in self._open:
            self._forget(handler)

    def abort(self) -> None:
        """Cut what connections there are: the end of TLS would be waited for after the loop has gone."""
        for handler in tuple(self._open):
            self._forget(handler).abort()

    def _forget(self, handler: web.RequestHandler) -> asyncio.Transport:
        connection = self._open.pop(handler)
        connection.first_request.cancel()
        return connection.transport
