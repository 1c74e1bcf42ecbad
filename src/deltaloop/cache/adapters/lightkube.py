"""Adapter for ``lightkube`` (httpx): its ``AsyncClient``, or its blocking ``Client`` with threads."""

from __future__ import annotations

import inspect
import socket
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Final, final

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.cache.adapters.adapted_client import AdaptedClient, Get
from deltaloop.cache.adapters.blocking import in_thread
from deltaloop.client.transport.protocol import Headers, StreamResponse

_PACKAGES: Final = frozenset({"httpx", "httpcore", "httpx2", "httpcore2", "anyio", "lightkube"})


def from_lightkube(client: Any, *, request_timeout: float = 30.0) -> AdaptedClient:
    """Create a client for informers from a ``lightkube.AsyncClient`` or a ``lightkube.Client``.

    It uses the client's address, certificates, proxy and credentials.

    Args:
        client: lightkube client. With a blocking client, each list and watch has its own thread.
        request_timeout: Timeout in seconds for a list request, and for the start of a watch.

    Raises:
        InvalidArgumentError: If ``client`` is another object.
    """
    http: Any = getattr(getattr(client, "_client", None), "_client", None)
    if not hasattr(http, "build_request"):
        raise InvalidArgumentError(
            "must be a lightkube.Client or lightkube.AsyncClient, "
            f"got {type(client).__module__}.{type(client).__name__}.",
            argument="client",
        )

    def open_stream(get: Get) -> AbstractAsyncContextManager[StreamResponse]:
        if inspect.iscoroutinefunction(http.send):
            return _opened(http, get)
        return in_thread(lambda: _Answer(http.send(_request(http, get), stream=True)), name=f"lightkube GET {get.path}")

    return AdaptedClient(open_stream, name="lightkube", packages=_PACKAGES, request_timeout=request_timeout)


def _request(http: Any, get: Get) -> Any:
    timeout = (get.connect_timeout, get.read_timeout, get.read_timeout, get.connect_timeout)
    return http.build_request("GET", get.path, params=dict(get.query), headers=get.headers, timeout=timeout)


@asynccontextmanager
async def _opened(http: Any, get: Get) -> AsyncGenerator[StreamResponse, None]:
    response = await http.send(_request(http, get), stream=True)
    try:
        yield StreamResponse(
            status=response.status_code, headers=Headers(response.headers.items()), chunks=response.aiter_bytes()
        )
    finally:
        await response.aclose()


@final
class _Answer:
    def __init__(self, response: Any) -> None:
        self._response = response
        self._chunks = response.iter_bytes()

    @property
    def status(self) -> int:
        return int(self._response.status_code)

    @property
    def headers(self) -> Headers:
        return Headers(self._response.headers.items())

    def read(self) -> bytes:
        data: bytes = next(self._chunks, b"")
        return data

    def abort(self) -> None:
        stream = self._response.extensions.get("network_stream")
        opened = stream.get_extra_info("socket") if stream is not None else None
        if opened is not None:
            opened.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._response.close()
