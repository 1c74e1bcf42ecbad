"""Transport that reports requests that may write."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Final, final

import msgspec

from deltaloop.apiserver.embedding import describe_request
from deltaloop.client.transport.protocol import HttpRequest, HttpResponse, StreamResponse, Transport
from deltaloop.testing.injected_faults.core.program_writes import is_object_write, key_of, object_of, verb_of

_READS: Final = frozenset({"GET", "HEAD", "OPTIONS"})


def _nothing(_: HttpRequest) -> None:
    return


@final
class NotingTransport:
    """Transport that calls ``writes``, which can replace a request, before a write, and ``wrote`` after it."""

    def __init__(self, inner: Transport, wrote: Callable[[HttpRequest], object] = _nothing) -> None:
        self.writes: Callable[[HttpRequest], HttpRequest | None] = _nothing
        self.wrote: Callable[[HttpRequest], object] = wrote
        self._inner = inner

    async def request(self, request: HttpRequest) -> HttpResponse:
        if request.method in _READS:
            return await self._inner.request(request)
        request = self.writes(request) or request
        try:
            return await self._inner.request(request)
        finally:
            self.wrote(request)

    def stream(self, request: HttpRequest) -> AbstractAsyncContextManager[StreamResponse]:
        return self._inner.stream(request)

    async def close(self) -> None:
        await self._inner.close()


def text_of(request: HttpRequest) -> str:
    """Return a description of a write; empty if the request does not write an object."""
    info = describe_request(request.method, request.path, request.query)
    if info.resource is None or not is_object_write(info, request.query):
        return ""
    verb = verb_of(info, request.headers.get("Content-Type", ""))
    part = f"/{info.resource.subresource}" if info.resource.subresource else ""
    return f"{verb} {info.group_resource}{part} {key_of(info, object_of(request.body or b''))}"


def in_foreground(request: HttpRequest) -> HttpRequest:
    """Return a deletion with foreground propagation, unless the request specifies a policy."""
    options: dict[str, object] = msgspec.json.decode(request.body, type=dict[str, object]) if request.body else {}
    if options.get("propagationPolicy") or "propagationPolicy" in request.query or "orphanDependents" in options:
        return request
    body = msgspec.json.encode({**options, "propagationPolicy": "Foreground"})
    return msgspec.structs.replace(request, body=body, headers={**request.headers, "Content-Type": "application/json"})
