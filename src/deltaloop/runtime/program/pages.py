"""Pages of the health server."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Protocol, final

import msgspec

_TEXT: Final = "text/plain; charset=utf-8"


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
