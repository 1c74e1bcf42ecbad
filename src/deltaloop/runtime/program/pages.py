"""Addresses and pages of the health server."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Protocol, Self, final

import msgspec

from deltaloop._internal.option_types import Options, check_types
from deltaloop.api.errors import InvalidArgumentError

_TEXT: Final = "text/plain; charset=utf-8"


@final
class BindAddress(Options, frozen=True, kw_only=True):
    """Address of a server, and access to it.

    Attributes:
        host: Address, by default loopback.
        port: TCP port. 0 selects a free port.
        certificate: PEM file of the certificate and its intermediate certificates. None means plain HTTP.
        key: PEM file of the private key.
        token_review: Whether a request needs a bearer token that the API server accepts and authorizes for the path.
            The program must be allowed to create ``tokenreviews`` and ``subjectaccessreviews``.
    """

    host: str = "127.0.0.1"
    port: int = 0
    certificate: Path | None = None
    key: Path | None = None
    token_review: bool = False

    def __post_init__(self) -> None:
        check_types(self)
        if not 0 <= self.port <= 65535:
            raise InvalidArgumentError(f"must be from 0 to 65535, got {self.port!r}.", argument="BindAddress.port")
        if (self.certificate is None) != (self.key is None):
            raise InvalidArgumentError("must be set together with key.", argument="BindAddress.certificate")
        if self.token_review and self.certificate is None:
            raise InvalidArgumentError("requires certificate and key for TLS.", argument="BindAddress.token_review")

    @classmethod
    def parse(cls, address: str, **options: Any) -> Self | None:
        """Parse an address such as ``127.0.0.1:8080``, ``:8080`` (all interfaces) or ``[::1]:0``.

        ``0`` and an empty address return None.

        Raises:
            InvalidArgumentError: If the address is invalid.
        """
        if address in ("", "0"):
            return None
        host, colon, port = address.rpartition(":")
        if not colon or not (port.isascii() and port.isdigit()):
            raise InvalidArgumentError(
                f"must be HOST:PORT, :PORT for all interfaces, or 0 to disable it, got {address!r}.", argument="address"
            )
        return cls(host=host.strip("[]"), port=int(port), **options)


@final
class HttpPage(msgspec.Struct, frozen=True):
    body: bytes
    content_type: str = _TEXT
    status: int = 200
    headers: Mapping[str, str] = MappingProxyType({})


Route = Callable[[str, Mapping[str, list[str]]], Awaitable[HttpPage]]
"""Page function, called with the path below the route (without slashes around it) and the query."""


if TYPE_CHECKING:

    class MayGet(Protocol):
        """Function that returns whether the bearer of a token may get a path."""

        async def __call__(self, token: str, path: str) -> bool: ...


if TYPE_CHECKING:

    class MayAsk(Protocol):
        """Function that returns the name of a token's bearer, or an empty string if RBAC does not allow the request."""

        async def __call__(self, token: str, path: str, verb: str) -> str: ...


Action = Callable[[str, Mapping[str, list[str]], str], Awaitable[HttpPage]]
"""Function for POST requests, called like a ``Route`` and with the name of the user."""

TOKEN_HEADER: Final = "X-Deltaloop-Token"
"""Header with a token for ``TOKEN_AUDIENCE``. The API server's proxy removes the ordinary header."""
TOKEN_AUDIENCE: Final = "deltaloop.dev"
ACTION_HEADER: Final = "X-Deltaloop-Action"
"""Header of POST requests. Browsers do not send it to other sites without permission."""


@final
class LocalRoute(msgspec.Struct, frozen=True):
    """Route for clients on this machine, and for other clients with a token that RBAC allows.

    The Host header of local clients must also name loopback, against DNS rebinding. ``post`` handles POST requests.
    """

    route: Route
    post: Action | None = None

    async def __call__(self, rest: str, query: Mapping[str, list[str]]) -> HttpPage:
        return await self.route(rest, query)


@final
class StreamRoute(msgspec.Struct, frozen=True):
    """Route of server-sent events, which end when the client or the server closes the connection."""

    events: Callable[[], AsyncGenerator[bytes]]

    async def __call__(self, rest: str, query: Mapping[str, list[str]]) -> HttpPage:
        """Answer a request that is not for the stream."""
        del rest, query
        return HttpPage(b"not found\n", status=404)
