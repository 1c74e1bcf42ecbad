"""Adapter for ``kr8s`` (httpx, asyncio)."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Final

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.cache.adapters.adapted_client import AdaptedClient, Get
from deltaloop.client.transport.protocol import Headers, StreamResponse

_PACKAGES: Final = frozenset({"httpx", "httpcore", "anyio", "kr8s"})


def from_kr8s(api: Any, *, request_timeout: float = 30.0) -> AdaptedClient:
    """Create a client for informers from a kr8s API object of its asyncio side.

    If the server rejects the credentials, kr8s logs in again.

    Args:
        api: Result of ``await kr8s.asyncio.api()``.
        request_timeout: Timeout in seconds for a list request, and for the start of a watch.

    Raises:
        InvalidArgumentError: If ``api`` is another object, such as the blocking ``kr8s.api()``.
    """
    if not hasattr(api, "call_api"):
        raise InvalidArgumentError(
            f"must be a kr8s API object, got {type(api).__module__}.{type(api).__name__}.", argument="api"
        )
    if not getattr(api, "_asyncio", True):
        raise InvalidArgumentError("must be asyncio: api = await kr8s.asyncio.api().", argument="api")

    def open_stream(get: Get) -> AbstractAsyncContextManager[StreamResponse]:
        return _opened(api, get)

    return AdaptedClient(open_stream, name="kr8s", packages=_PACKAGES, request_timeout=request_timeout)


@asynccontextmanager
async def _opened(api: Any, get: Get) -> AsyncGenerator[StreamResponse, None]:
    base, _, last = get.path.rpartition("/")
    silence = get.read_timeout
    call = api.call_api(
        "GET",
        version="",
        base=base,
        url=last,
        stream=True,
        params=dict(get.query),
        headers=get.headers,
        timeout=(get.connect_timeout, silence, silence, get.connect_timeout),
    )
    try:
        response = await call.__aenter__()
    except Exception as error:
        refused = getattr(error, "response", None)
        status = getattr(refused, "status_code", None)
        if refused is None or status is None:
            raise
        # kr8s raises for each error status, and has already read the body.
        yield StreamResponse(status=status, headers=Headers(refused.headers.items()), chunks=_once(refused.content))
        return
    try:
        yield StreamResponse(
            status=response.status_code,
            headers=Headers(response.headers.items()),
            chunks=response.aiter_bytes(),
        )
    finally:
        await call.__aexit__(None, None, None)


async def _once(body: bytes) -> AsyncIterator[bytes]:
    if body:
        yield body
