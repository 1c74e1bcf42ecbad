"""Sends a watch to its client, one line per chunk. Core: ``core/watching.py``.

Nothing is buffered for a client that does not read: the next events are taken from the store's window when the
connection has room, and a client that falls behind the window is told 410 Expired. One that takes nothing at all for
``WRITE_PATIENCE`` seconds is cut off.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Final

from aiohttp import web

from deltaloop.apiserver.change_signal import ChangeSignal
from deltaloop.apiserver.core.rendering import WatchRendering
from deltaloop.apiserver.core.watching import Watcher

WRITE_PATIENCE: Final = 60.0


async def send_watch(
    request: web.BaseRequest,
    *,
    watcher: Watcher,
    rendering: WatchRendering,
    signal: ChangeSignal,
    resource: str,
    epoch: Callable[[], float],
    still_served: Callable[[], bool],
    headers: Mapping[str, str],
) -> web.StreamResponse:
    """Answer a request with a watch stream, until its deadline, an error event, or the server's end.

    Args:
        request: The request.
        watcher: What its client sees.
        rendering: How it is written.
        signal: Tells when to look again.
        resource: The resource that is watched, plural and group.
        epoch: Seconds since 1970, for ages in Tables.
        still_served: Whether the resource is still there; the stream ends with its CRD.
        headers: Sent with the answer, at once.

    Cancellation (the client went away) leaves nothing behind.
    """
    loop = asyncio.get_running_loop()
    response = web.StreamResponse(headers={**headers, "Content-Type": "application/json"})
    response.enable_chunked_encoding()
    with signal.subscribe(resource) as changed:
        try:
            await response.prepare(request)
            # aiohttp holds headers back until there is a body; a watch may have none for an hour.
            await response.write(b"")
            while not signal.closed:
                changed.clear()
                sightings = watcher.poll(loop.time())
                for sighting in sightings:
                    async with asyncio.timeout(WRITE_PATIENCE):
                        await response.write(rendering.line(sighting, now=epoch()))
                if watcher.ended or not (sightings or still_served()):
                    break
                if not sightings:
                    await _wait(changed, until=watcher.next_due())
            await response.write_eof()
        except TimeoutError:
            if request.transport is not None:
                request.transport.abort()
        except ConnectionError:
            # The client has closed, and the cancellation that says so comes in the next turn of the loop.
            return response
    return response


async def _wait(changed: asyncio.Event, *, until: float) -> None:
    try:
        async with asyncio.timeout_at(until):
            await changed.wait()
    except TimeoutError:
        return
