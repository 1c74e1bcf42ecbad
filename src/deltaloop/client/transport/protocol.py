"""The protocol of a transport: one call for a request with its response, and one for a stream.

Verbs, pager, watches and discovery use ``Transport`` only, so tests can use a fake, and programs another HTTP client.
``deltaloop.client.transport.http_transport`` is the client's own.

A transport adds the credentials, once more after a 401 if they could be renewed, and turns each failure of the
connection into a ``TransportError`` that tells whether the server may have carried out the request.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from enum import StrEnum
from typing import Any, Protocol, final

import msgspec


class Pool(StrEnum):
    """Which connections a request may use: lists that pile up must not keep a leader from renewing its lease."""

    REQUESTS = "requests"
    LEADER_ELECTION = "leader-election"


@final
class Headers:
    """The headers of a response: names without regard to case, possibly several values of one name."""

    __slots__ = ("_given", "_known")

    def __init__(self, pairs: Iterable[tuple[str, str]] | Iterable[tuple[bytes, bytes]] = ()) -> None:
        """Keep name and value pairs, in order; they are decoded on the first use."""
        self._given = pairs
        self._known: list[tuple[str, str]] | None = None

    def get(self, name: str, default: str = "") -> str:
        """Return the first value of a name."""
        return next(iter(self.get_all(name)), default)

    def get_all(self, name: str) -> list[str]:
        """Return all values of a name."""
        wanted = name.lower()
        return [value for known, value in self._pairs() if known == wanted]

    def _pairs(self) -> list[tuple[str, str]]:
        if self._known is None:
            self._known = [(_text(name).lower(), _text(value)) for name, value in self._given]
        return self._known

    def __repr__(self) -> str:
        return f"<Headers {', '.join(dict.fromkeys(name for name, _ in self._pairs()))}>"


def _text(part: str | bytes) -> str:
    return part if isinstance(part, str) else part.rstrip(b" \t").decode("utf-8", "surrogateescape")


@final
class HttpRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request.

    Attributes:
        method: HTTP method.
        path: URL path below the server's address, already quoted.
        query: Query parameters, not yet quoted.
        headers: Headers besides those of the transport (credentials, user agent, encoding).
        body: Body, or None.
        timeout: Seconds until the response is complete; of a stream, until its headers have come. None means no limit.
        pool: Connections of an ordinary call; streams have their own.
        bounded: Whether a stream ends by itself, such as a list that is decoded while it arrives; it uses ``pool`` and
            may be compressed, like an ordinary call.
        before_send: Function that a transport calls once the connection is made, right before the first byte, each time
            that the request is sent. If it raises, the request is not sent. The client calls it earlier as well, unless
            the transport has a true attribute ``checks_writes``.
    """

    method: str
    path: str
    query: Mapping[str, str] = {}
    headers: Mapping[str, str] = {}
    body: bytes | None = None
    timeout: float | None = None
    pool: Pool = Pool.REQUESTS
    bounded: bool = False
    before_send: Callable[[], object] | None = None

    def __repr__(self) -> str:
        shown = f"method={self.method!r}, path={self.path!r}, query={self.query!r}, timeout={self.timeout!r}"
        return f"HttpRequest({shown}, pool={self.pool!r}, bounded={self.bounded!r})"


@final
class HttpResponse(msgspec.Struct, frozen=True):
    """A complete response, whatever its status.

    Attributes:
        status: HTTP status code.
        headers: Headers of the response.
        body: Decompressed body.
        may_warn: Whether there may be a ``Warning`` among the headers.
    """

    status: int
    headers: Headers = msgspec.field(default_factory=Headers)
    body: bytes = b""
    may_warn: bool = True

    def __repr__(self) -> str:
        return f"<HttpResponse {self.status} {self.headers}>"


@final
class StreamResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A response whose body is still coming.

    Attributes:
        status: HTTP status code.
        headers: Headers of the response.
        chunks: Body in slices of any size. The iterator ends when the server ends the body, and raises
            ``StreamEndedError`` if the body breaks off.
    """

    status: int
    headers: Headers
    chunks: AsyncIterator[bytes]

    def __repr__(self) -> str:
        return f"<StreamResponse {self.status} {self.headers}>"


class Transport(Protocol):
    """Sends requests to one server."""

    def request(self, request: HttpRequest) -> Coroutine[Any, Any, HttpResponse]:
        """Send a request and return the whole answer.

        Raises:
            TransportError: If there is none; ``RequestTimeoutError`` if it did not come in time.
        """
        ...

    def stream(self, request: HttpRequest) -> AbstractAsyncContextManager[StreamResponse]:
        """Send a request on entering and read its answer bit by bit; leaving ends the connection.

        Raises:
            TransportError: On entering, as ``request``.
        """
        ...

    async def close(self) -> None:
        """Close all connections; the transport cannot be used afterwards.

        A second call does nothing.
        """
        ...
