"""The way to the server, as a protocol of two calls: one request with its answer, and one stream.

Everything above this module (verbs, pager, watch, discovery) speaks ``Transport`` only, so that tests give a fake and
other HTTP clients can be put in. The real one is ``deltaloop.client.transport.http_transport``.

A transport adds the credentials, once more after a 401 if they could be renewed, and turns every failure of the way
into a ``TransportError`` that says whether the request was refused and whether it may have been carried out. It does
not look at what the server answers otherwise.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol, Self, final

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.json_writing import is_unicode


class Pool(StrEnum):
    """Which connections a request may use: lists that pile up must not keep a leader from renewing its lease."""

    REQUESTS = "requests"
    LEADER_ELECTION = "leader-election"


@final
class Headers:
    """The headers of an answer: names without regard to case, several values of one name possible."""

    __slots__ = ("_pairs",)

    def __init__(self, pairs: Iterable[tuple[str, str]] = ()) -> None:
        """Keep name and value pairs, in order."""
        self._pairs = tuple([(name.lower(), value) for name, value in pairs])

    @classmethod
    def of_lower_case(cls, pairs: tuple[tuple[str, str], ...]) -> Self:
        """Keep pairs whose names are in lower case already."""
        headers = cls()
        headers._pairs = pairs
        return headers

    def get(self, name: str, default: str = "") -> str:
        """Return the first value of a name."""
        wanted = name.lower()
        for known, value in self._pairs:
            if known == wanted:
                return value
        return default

    def get_all(self, name: str) -> list[str]:
        """Return all values of a name."""
        wanted = name.lower()
        return [value for known, value in self._pairs if known == wanted]

    def __repr__(self) -> str:
        return f"<Headers {', '.join(dict.fromkeys(name for name, _ in self._pairs))}>"


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpRequest:
    """What to send.

    Attributes:
        method: HTTP method.
        path: URL path below the server's address, already quoted.
        query: Query parameters, not yet quoted.
        headers: Headers besides those of the transport (credentials, user agent, encoding).
        body: Body, or None.
        timeout: Seconds until the answer is complete; of a stream, until its headers are there. None waits for ever.
        pool: Connections to use for an ordinary call; streams have their own.
        bounded: Of a stream: it ends by itself, as a list does that is decoded while it arrives; it goes over ``pool``
            and may be compressed, like an ordinary call.
        before_send: Called when the connection stands, right before the first byte is sent, and again if the request
            is sent again; what it raises ends the request unsent. Called by ``RequestSender`` before the transport is,
            too, so a transport that does not know it only checks earlier.
    """

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict[str, str])
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    body: bytes | None = field(default=None, repr=False)
    timeout: float | None = None
    pool: Pool = Pool.REQUESTS
    bounded: bool = False
    before_send: Callable[[], object] | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Refuse a query with what is no Unicode: it would be left out, and a selector without it selects more."""
        for name, value in self.query.items():
            if not value.isascii() and not is_unicode(value):
                raise InvalidArgumentError(
                    f"{self.method} {self.path}: the query parameter {name} has a lone surrogate in it, "
                    "which is no Unicode; decode the text anew"
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpResponse:
    """A complete answer, whatever its status."""

    status: int
    headers: Headers = field(default_factory=Headers)
    body: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamResponse:
    """An answer whose body is still coming.

    Attributes:
        status: HTTP status code.
        headers: The answer's headers, by name without regard to case.
        chunks: The body in slices of any size; ends when the server ends it, raises ``StreamEndedError`` when it
            breaks off.
    """

    status: int
    headers: Headers
    chunks: AsyncIterator[bytes] = field(repr=False)


class Transport(Protocol):
    """Sends requests to one server."""

    async def request(self, request: HttpRequest) -> HttpResponse:
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
