"""A transport that says when something may have been written by it; all else is what another transport does."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Final, final

import msgspec

from deltaloop.client.transport.protocol import HttpRequest, HttpResponse, StreamResponse, Transport

_READS: Final = frozenset({"GET", "HEAD", "OPTIONS"})


def _nothing(_: HttpRequest) -> None:
    return


@final
class NotingTransport:
    """Sends requests by another transport.

    Attributes:
        writes: Called before each request that may write something; a request that it returns is sent in its place.
        wrote: Called after it, answered or not.
    """

    def __init__(self, inner: Transport, wrote: Callable[[HttpRequest], object] = _nothing) -> None:
        """Send by ``inner``."""
        self.writes: Callable[[HttpRequest], HttpRequest | None] = _nothing
        self.wrote: Callable[[HttpRequest], object] = wrote
        self._inner = inner

    async def request(self, request: HttpRequest) -> HttpResponse:
        """Send a request and return the whole answer.

        Raises:
            TransportError: If there is none.
        """
        if request.method in _READS:
            return await self._inner.request(request)
        request = self.writes(request) or request
        try:
            return await self._inner.request(request)
        finally:
            self.wrote(request)

    def stream(self, request: HttpRequest) -> AbstractAsyncContextManager[StreamResponse]:
        """Open a stream.

        Raises:
            TransportError: On entering, if there is no answer.
        """
        return self._inner.stream(request)

    async def close(self) -> None:
        """Close all connections."""
        await self._inner.close()


def in_foreground(request: HttpRequest) -> HttpRequest:
    """Return a deletion that is one in the foreground, if it has no other policy."""
    options: dict[str, object] = msgspec.json.decode(request.body, type=dict[str, object]) if request.body else {}
    if options.get("propagationPolicy") or "propagationPolicy" in request.query or "orphanDependents" in options:
        return request
    body = msgspec.json.encode({**options, "propagationPolicy": "Foreground"})
    return replace(request, body=body, headers={**request.headers, "Content-Type": "application/json"})
