"""Adapter for ``kubernetes_asyncio`` (aiohttp)."""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Final, final

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.cache.adapters.adapted_client import AdaptedClient, Get
from deltaloop.cache.adapters.kubernetes import authorization
from deltaloop.client.transport.protocol import Headers, StreamResponse

_PACKAGES: Final = frozenset({"aiohttp", "kubernetes_asyncio"})


def from_kubernetes_asyncio(api_client: Any, *, request_timeout: float = 30.0) -> AdaptedClient:
    """Create a client for informers from a ``kubernetes_asyncio.client.ApiClient``, or an API object that has one.

    It uses the client's address, certificates, proxy, default headers, token and ``refresh_api_key_hook``. Each watch
    occupies a connection of its pool, which ``Configuration.connection_pool_maxsize`` limits.

    Args:
        api_client: ``ApiClient()``, or for example ``CoreV1Api()``.
        request_timeout: Timeout in seconds for a list request, and for the start of a watch.

    Raises:
        InvalidArgumentError: If ``api_client`` is another object.
    """
    api_client = getattr(api_client, "api_client", api_client)
    if not inspect.iscoroutinefunction(getattr(api_client, "close", None)) or not hasattr(api_client, "rest_client"):
        raise InvalidArgumentError(
            f"must be a kubernetes_asyncio ApiClient, got {type(api_client).__module__}.{type(api_client).__name__}.",
            argument="api_client",
        )

    def open_stream(get: Get) -> AbstractAsyncContextManager[StreamResponse]:
        return _opened(api_client, get)

    return AdaptedClient(open_stream, name="kubernetes_asyncio", packages=_PACKAGES, request_timeout=request_timeout)


@asynccontextmanager
async def _opened(api_client: Any, get: Get) -> AsyncGenerator[StreamResponse, None]:
    settings = api_client.configuration.auth_settings()
    if inspect.isawaitable(settings):
        settings = await settings
    response = await api_client.rest_client.request(
        "GET",
        f"{api_client.configuration.host.rstrip('/')}{get.path}",
        query_params=[*get.query.items()],
        headers={**api_client.default_headers, **get.headers, **authorization(settings)},
        _preload_content=False,
        _request_timeout=(get.connect_timeout, get.read_timeout),
    )
    try:
        yield StreamResponse(
            status=response.status, headers=Headers(response.headers.items()), chunks=_Chunks(response.content)
        )
    finally:
        response.close()


@final
class _Chunks:
    def __init__(self, content: Any) -> None:
        self._content = content

    def __aiter__(self) -> _Chunks:
        return self

    async def __anext__(self) -> bytes:
        chunk: bytes = await self._content.readany()
        if not chunk:
            raise StopAsyncIteration
        return chunk
