"""Where the health server listens, and what its pages are; what serves them is in ``health_server.py``."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Final, Protocol, Self, final

import msgspec

from deltaloop._internal.option_types import Options, check_types
from deltaloop.api.errors import InvalidArgumentError

_TEXT: Final = "text/plain; charset=utf-8"


@final
class BindAddress(Options, frozen=True, kw_only=True):
    """Where a server listens, and to whom it answers.

    Attributes:
        host: Address; loopback by default.
        port: TCP port; 0 takes a free one.
        certificate: PEM file of the certificate, with what leads to its authority; None speaks plain HTTP.
        key: PEM file of its key.
        token_review: Whether a request needs a bearer token that the API server knows, and allows to get the path. The
            program itself must be allowed to create ``tokenreviews`` and ``subjectaccessreviews``.
    """

    host: str = "127.0.0.1"
    port: int = 0
    certificate: Path | None = None
    key: Path | None = None
    token_review: bool = False

    def __post_init__(self) -> None:
        """Refuse what cannot work, or would show tokens to everybody on the way."""
        check_types(self)
        if not 0 <= self.port <= 65535:
            raise InvalidArgumentError(f"port {self.port!r} is none; 0 to 65535 is needed")
        if (self.certificate is None) != (self.key is None):
            raise InvalidArgumentError("certificate and key are needed together, or neither of them")
        if self.token_review and self.certificate is None:
            raise InvalidArgumentError("a token review needs certificate and key: tokens must not travel in the clear")

    @classmethod
    def parse(cls, address: str, **options: Any) -> Self | None:
        """Read an address such as ``127.0.0.1:8080``, ``:8080`` (all interfaces), ``[::1]:0``; ``0`` or empty is None.

        Raises:
            InvalidArgumentError: If it is none.
        """
        if address in ("", "0"):
            return None
        host, colon, port = address.rpartition(":")
        if not colon or not (port.isascii() and port.isdigit()):
            raise InvalidArgumentError(
                f"{address!r} is no address; write HOST:PORT, :PORT for all interfaces, or 0 for none"
            )
        return cls(host=host.strip("[]"), port=int(port), **options)


@final
class HttpPage(msgspec.Struct, frozen=True):
    """What is answered."""

    body: bytes
    content_type: str = _TEXT
    status: int = 200


Route = Callable[[str, Mapping[str, list[str]]], Awaitable[HttpPage]]
"""Called with what follows the route's path, without slashes around it, and the query."""


class MayGet(Protocol):
    """Says whether the bearer of a token may get a path."""

    async def __call__(self, token: str, path: str) -> bool:
        """Tell; False for a token that nobody knows."""
        ...


def only_local(route: Route) -> Route:
    """Mark a route as one for people on this machine: it answers loopback addresses only, whatever is listened on.

    The name that the request asks for must be one of loopback, too, so that no page in somebody's browser can read it
    by a name that leads here.
    """
    return LocalRoute(route)


@final
class LocalRoute(msgspec.Struct, frozen=True):
    """A route that answers loopback addresses only; made by ``only_local``."""

    route: Route

    async def __call__(self, rest: str, query: Mapping[str, list[str]]) -> HttpPage:
        """Answer as the route does."""
        return await self.route(rest, query)
