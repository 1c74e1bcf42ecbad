"""Interface of a transport, with methods for requests and for streams."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol, final

import msgspec


class Pool(StrEnum):
    """Connection pool of a request.

    Separate pools keep queued requests from delaying lease renewals.
    """

    REQUESTS = "requests"
    LEADER_ELECTION = "leader-election"


@final
class Headers(msgspec.Struct, eq=False, gc=False):
    """Response headers with case-insensitive names, which can have several values.

    Attributes:
        pairs: Names and values.
    """

    pairs: Collection[tuple[str, str]] | Collection[tuple[bytes, bytes]] = ()

    def get(self, name: str, default: str = "") -> str:
        """Return the first value of a header."""
        return next(iter(self.get_all(name)), default)

    def get_all(self, name: str) -> list[str]:
        """Return all values of a header."""
        wanted = name.lower()
        either = wanted, wanted.encode()
        return [_text(value) for known, value in self.pairs if known.lower() in either]

    def __repr__(self) -> str:
        return f"<Headers {', '.join(dict.fromkeys(_text(name).lower() for name, _ in self.pairs))}>"


def _text(part: str | bytes) -> str:
    return part if isinstance(part, str) else part.rstrip(b" \t").decode("utf-8", "surrogateescape")


@final
class HttpRequest(msgspec.Struct, frozen=True):
    """HTTP request.

    Attributes:
        method: HTTP method.
        path: Quoted URL path below the server's address.
        query: Unquoted query parameters.
        headers: Headers, in addition to those of the transport (credentials, user agent, encoding).
        body: Body, or None.
        timeout: Timeout in seconds for the complete response, or for the headers of a stream. None means no limit.
        pool: Connection pool of ordinary calls. Streams have a separate pool.
        bounded: Whether a stream is finite, such as a list that is decoded while it arrives. It then uses ``pool`` and
            can be compressed.
        before_send: Function that the transport calls before each attempt, after the connection is established and
            before the first byte is sent. If it raises, the request is not sent. The client also calls it earlier,
            unless the transport has a true attribute ``checks_writes``.
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
class HttpResponse(msgspec.Struct, frozen=True, gc=False):
    """Complete HTTP response with any status.

    Attributes:
        status: HTTP status code.
        headers: Headers of the response.
        body: Decompressed body.
        may_warn: Whether the headers may contain a ``Warning``.
    """

    status: int
    headers: Headers = msgspec.field(default_factory=Headers)
    body: bytes = b""
    may_warn: bool = True

    def __repr__(self) -> str:
        return f"<HttpResponse {self.status} {self.headers}>"


@final
class StreamResponse(msgspec.Struct, frozen=True, kw_only=True):
    """HTTP response whose body is read as a stream.

    Attributes:
        status: HTTP status code.
        headers: Headers of the response.
        chunks: Body in chunks of any size. The iterator ends with the body, and raises ``StreamEndedError`` if the
            connection breaks.
    """

    status: int
    headers: Headers
    chunks: AsyncIterator[bytes]

    def __repr__(self) -> str:
        return f"<StreamResponse {self.status} {self.headers}>"


if TYPE_CHECKING:

    class ArrivingChunks(Protocol):
        """Chunks of a stream that can also be taken when they arrive."""

        def on_arrival(self, consume: Callable[[], bool]) -> None:
            """Call a function when data arrive while a task waits for a chunk."""
            ...

        def take(self) -> bytes | None:
            """Return the received data without waiting, or None if only a waiting task can process it."""
            ...


class Transport(Protocol):
    """Transport to one server."""

    def request(self, request: HttpRequest) -> Coroutine[Any, Any, HttpResponse]:
        """Send a request, and return the complete response.

        Raises:
            TransportError: If no response arrives. ``RequestTimeoutError`` after the timeout.
        """
        ...

    def stream(self, request: HttpRequest) -> AbstractAsyncContextManager[StreamResponse]:
        """Open a stream as a context manager, which closes its connection on exit.

        Raises:
            TransportError: If no response arrives when the context is entered.
        """
        ...

    async def close(self) -> None:
        """Close all connections permanently.

        You can call it repeatedly.
        """
        ...
