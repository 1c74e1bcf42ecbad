"""What the HTTP library does by itself with a connection, and what is done here instead. No core.

No body is unpacked: the real server does not look at ``Content-Encoding`` either, and a few megabytes can be gigabytes
unpacked. After an answer that did not need all of a body, up to 3 MiB of the rest are read and thrown away, so that a
client that is still sending gets to see the answer; then the connection is closed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

from aiohttp import web

from deltaloop.apiserver.core.failures import MAX_BODY

_DRAIN_PATIENCE: Final = 10.0
Handle = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


def http_server(handle: Handle) -> web.Server:
    """Return what makes a protocol for each connection and answers its requests; it is bound to the running loop."""

    async def answered(request: web.BaseRequest) -> web.StreamResponse:
        response = await handle(request)
        if not request.content.is_eof():
            await _send_and_drain(request, response)
        return response

    # Without cancellation a watch whose client is gone would live until its deadline.
    return web.Server(answered, handler_cancellation=True, access_log=None, auto_decompress=False, lingering_time=0.0)


async def _send_and_drain(request: web.BaseRequest, response: web.StreamResponse) -> None:
    """Send an answer, then read what is left of the body, within bounds.

    Source: Go's net/http server.go, which reads 256 KiB and waits half a second; clients here may send all of a body
    that the server would have taken.
    """
    if (request.content_length or 0) > MAX_BODY and not response.prepared:
        response.force_close()
    left = MAX_BODY
    with suppress(ConnectionError, TimeoutError):
        await response.prepare(request)
        await response.write_eof()
        async with asyncio.timeout(_DRAIN_PATIENCE):
            while left > 0 and (part := await request.content.readany()):
                left -= len(part)
