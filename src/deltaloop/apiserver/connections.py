"""What the HTTP library does by itself with a connection, and what is done here instead.

No body is unpacked: the real server does not look at ``Content-Encoding`` either, and a few megabytes can be gigabytes
unpacked. After an answer that did not need all of a body, up to 3 MiB of the rest are read and thrown away, so that a
client that is still sending gets to see the answer; then the connection is closed.

A large answer goes out in pieces, the next one when the connection has room: the library would copy all of it into the
connection's buffer at once. A client that takes nothing for ``WRITE_PATIENCE`` seconds is cut off.

TLS ends with a word from both sides, for which the library would wait half a minute. Most clients in other processes
answer only when they use the connection next, so the server does not wait for it when it stops.
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
from deltaloop.apiserver.core.failures import MAX_BODY
from deltaloop.apiserver.core.wire.incoming import FREE, Incoming
from deltaloop.apiserver.core.wire.outgoing import LARGE, Outgoing

WRITE_PATIENCE: Final = 60.0
_DRAIN_PATIENCE: Final = 10.0
_ROUNDS: Final = 5
_PIECE: Final = 64 * 1024
Handle = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


def answering(handle: Handle, outgoing: Outgoing, incoming: Incoming) -> Handle:
    """Return a handler that does what is said above of bodies and of large answers, whatever requests come by."""

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
    """Return what makes a protocol for each connection and has a handler answer; it is bound to the running loop."""
    # Without cancellation a watch whose client is gone would live until its deadline.
    return web.Server(
        answered,
        handler_cancellation=True,
        access_log=None,
        auto_decompress=False,
        lingering_time=0.0,
        logger=http_logger("deltaloop.apiserver.http", unreadable=HttpProcessingError),
    )


async def close(runner: web.ServerRunner) -> None:
    """Close the sockets, once what is being answered has ended or its time is over; all are closed after this."""
    open_ones = runner.server.connections if runner.server is not None else []
    found = (getattr(connection, "transport", None) for connection in open_ones)
    transports: list[asyncio.WriteTransport] = [transport for transport in found if transport is not None]
    await runner.cleanup()
    for _ in range(_ROUNDS if transports else 0):
        # Clients on this loop answer within some rounds of it.
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
        # As flow control answers, which knows nothing of Status.
        text = "Too many requests, please try again later.\n"
        return web.Response(status=429, text=text, headers={"Retry-After": "1"})
    stream = web.StreamResponse(status=response.status, headers=response.headers)
    stream.content_length = len(copy)
    if response.keep_alive is False:
        stream.force_close()
    response.body = body = b""  # the copy is all that is held while it is sent
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
    """Send an answer, then read what is left of the body, within bounds.

    Source: Go's net/http server.go, which reads 256 KiB and waits half a second; clients here may send all of a body
    that the server would have taken.
    """
    left = MAX_BODY
    with suppress(ConnectionError, TimeoutError):
        await response.prepare(request)
        await response.write_eof()
        async with asyncio.timeout(_DRAIN_PATIENCE):
            while left > 0 and (part := await request.content.readany()):
                left -= len(part)
