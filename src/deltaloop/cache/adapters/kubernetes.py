"""Adapter for the official ``kubernetes`` client (urllib3, blocking), with the threads of ``blocking.py``."""

from __future__ import annotations

import importlib
import inspect
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, final
from urllib.parse import urlencode

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.cache.adapters.adapted_client import AdaptedClient, Get
from deltaloop.cache.adapters.blocking import in_thread
from deltaloop.client.transport.protocol import Headers, StreamResponse

_SLICE: Final = 256 * 1024
_PACKAGES: Final = frozenset({"urllib3", "kubernetes", "http"})


def from_kubernetes(api_client: Any, *, request_timeout: float = 30.0) -> AdaptedClient:
    """Create a client for informers from a ``kubernetes.client.ApiClient``, or an API object that has one.

    It uses the client's address, certificates, proxy, default headers, token and ``refresh_api_key_hook``. Each list
    and watch has its own thread and connection.

    Args:
        api_client: ``ApiClient()``, or for example ``CoreV1Api()``.
        request_timeout: Timeout in seconds for a list request, and for the start of a watch.

    Raises:
        InvalidArgumentError: If ``api_client`` is another object.
    """
    api_client = getattr(api_client, "api_client", api_client)
    if not hasattr(api_client, "rest_client") or inspect.iscoroutinefunction(getattr(api_client, "close", None)):
        raise InvalidArgumentError(
            f"must be a kubernetes.client.ApiClient, got {type(api_client).__module__}.{type(api_client).__name__}.",
            argument="api_client",
        )

    def open_stream(get: Get) -> AbstractAsyncContextManager[StreamResponse]:
        return in_thread(lambda: _Answer(_send(api_client, get)), name=f"kubernetes GET {get.path}")

    return AdaptedClient(open_stream, name="kubernetes", packages=_PACKAGES, request_timeout=request_timeout)


def _send(api_client: Any, get: Get) -> Any:
    configuration = api_client.configuration
    headers = {**api_client.default_headers, **get.headers, **authorization(configuration.auth_settings())}
    if getattr(api_client, "cookie", None):
        headers["Cookie"] = api_client.cookie
    timeout = importlib.import_module("urllib3").Timeout(connect=get.connect_timeout, read=get.read_timeout)
    url = f"{configuration.host.rstrip('/')}{get.path}"
    return api_client.rest_client.pool_manager.request(
        "GET",
        f"{url}?{urlencode(get.query)}" if get.query else url,
        headers=headers,
        timeout=timeout,
        preload_content=False,
        retries=False,
        redirect=False,
    )


def authorization(settings: Any) -> dict[str, str]:
    """Return the headers for a generated client's ``auth_settings``."""
    return {
        str(each["key"]): str(each["value"])
        for each in settings.values()
        if each.get("in") == "header" and each.get("value")
    }


@final
class _Answer:
    def __init__(self, response: Any) -> None:
        self._response = response

    @property
    def status(self) -> int:
        return int(self._response.status)

    @property
    def headers(self) -> Headers:
        return Headers(self._response.headers.items())

    def read(self) -> bytes:
        # read1 returns the available bytes, while read waits for a full slice. Older versions lack read1, but their
        # stream yields the server's chunks.
        if hasattr(self._response, "read1"):
            data: bytes = self._response.read1(_SLICE)
            return data
        return next(self._older, b"")

    @property
    def _older(self) -> Any:
        if not hasattr(self, "_chunks"):
            self._chunks = self._response.stream(_SLICE)
        return self._chunks

    def abort(self) -> None:
        if hasattr(self._response, "shutdown"):
            self._response.shutdown()
        else:
            self._response.close()

    def close(self) -> None:
        self._response.close()
        self._response.release_conn()
