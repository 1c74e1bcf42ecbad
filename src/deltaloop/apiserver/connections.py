"""Override aiohttp's connection handling.

Bodies are not decompressed, because a few megabytes can become gigabytes. After an early response, up to 3 MiB of the
remaining body are discarded, so that a client that is still sending can read the response.

A large response is sent in chunks, because aiohttp would copy it completely into the buffer. A client that reads
nothing for ``WRITE_PATIENCE`` seconds is disconnected.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final, TypeGuard

from aiohttp import web
from aiohttp.http import HttpProcessingError

from deltaloop.api.logs import http_logger
from deltaloop.apiserver.body import LEASE
from deltaloop.apiserver.core.status_errors import MAX_BODY
from deltaloop.apiserver.core.wire.incoming import FREE, LARGE, Incoming, Outgoing

WRITE_PATIENCE: Final = 60.0
_DRAIN_PATIENCE: Final = 10.0
_ROUNDS: Final = 5
_PIECE: Final = 64 * 1024
Handle = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


def answering(handle: Handle, outgoing: Outgoing, incoming: Incoming) -> Handle:
    async def answered(request: web.BaseRequest) -> web.StreamResponse:
        length = request.content_length
        if not request.body_exists or (length is not None and length <= FREE):
            return await _answered(request, length or 0)
        request[LEASE] = lease = incoming.lease()
        try:
            return await _answered(request, length or 0)
        finally:
            lease.end()

    async def _answered(request: web.BaseRequest, length: int) -> web.StreamResponse:
        response = await handle(request)
        if length > MAX_BODY and not response.prepared:
            response.force_close()
        if isinstance(response, web.Response) and _is_large(response.body, request):
            response = await _send_large(request, response, response.body, outgoing)
        if not request.content.is_eof():
            await _send_and_drain(request, response)
        return response

    return answered


def http_server(answered: Handle) -> web.Server:
    """Return the factory of the connections' protocols, which is bound to the running event loop."""
    # Without cancellation, the watch of a disconnected client would live until its deadline.
    return web.Server(
        answered,
        handler_cancellation=True,
        access_log=None,
        auto_decompress=False,
        lingering_time=0.0,
        logger=http_logger("deltaloop.apiserver.http", unreadable=HttpProcessingError),
    )


async def close(runner: web.ServerRunner) -> None:
    """Close the sockets after pending responses have ended or timed out."""
    open_ones = runner.server.connections if runner.server is not None else []
    found = (getattr(connection, "transport", None) for connection in open_ones)
    transports: list[asyncio.WriteTransport] = [transport for transport in found if transport is not None]
    await runner.cleanup()
    for _ in range(_ROUNDS if transports else 0):
        # Clients on this event loop respond within a few iterations.
        await asyncio.sleep(0)
    for transport in transports:
        transport.abort()
    await asyncio.sleep(0)


def _is_large(body: object, request: web.BaseRequest) -> TypeGuard[bytes]:
    return request.method != "HEAD" and isinstance(body, bytes) and len(body) >= LARGE


async def _send_large(
    request: web.BaseRequest, response: web.Response, body: bytes, outgoing: Outgoing
) -> web.StreamResponse:
    copy = outgoing.take(body)
    if copy is None:
        # Flow control responds without a Status.
        text = "Too many requests, please try again later.\n"
        return web.Response(status=429, text=text, headers={"Retry-After": "1"})
    stream = web.StreamResponse(status=response.status, headers=response.headers)
    stream.content_length = len(copy)
    if response.keep_alive is False:
        stream.force_close()
    response.body = body = b""  # keep only the shared copy while it is sent
    try:
        with suppress(ConnectionError):
            await stream.prepare(request)
            for start in range(0, len(copy), _PIECE):
                async with asyncio.timeout(WRITE_PATIENCE):
                    await stream.write(copy[start : start + _PIECE])
            await stream.write_eof()
    except TimeoutError:
        if request.transport is not None:
            request.transport.abort()
    finally:
        outgoing.give_back(copy)
    return stream


async def _send_and_drain(request: web.BaseRequest, response: web.StreamResponse) -> None:
    """Send a response, then read a limited rest of the body, more than Go's net/http server.go reads."""
    left = MAX_BODY
    with suppress(ConnectionError, TimeoutError):
        await response.prepare(request)
        await response.write_eof()
        async with asyncio.timeout(_DRAIN_PATIENCE):
            while left > 0 and (part := await request.content.readany()):
                left -= len(part)
