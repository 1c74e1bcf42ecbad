"""Sends a watch to its client, one line per chunk. Core: ``core/watching.py``.

Nothing is buffered for a client that does not read: the next events are taken from the store's window when the
connection has room, and a client that falls behind the window is told 410 Expired. One that takes nothing at all for
``WRITE_PATIENCE`` seconds is cut off.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from aiohttp import web

from deltaloop.apiserver.change_signal import ChangeSignal
from deltaloop.apiserver.core.fault_rules import Fate, expired
from deltaloop.apiserver.core.rendering import WatchRendering
from deltaloop.apiserver.core.watching import Sighting, Watcher
from deltaloop.apiserver.exchange import Exchange

WRITE_PATIENCE: Final = 60.0


async def send_watch(
    exchange: Exchange,
    *,
    watcher: Watcher,
    rendering: WatchRendering,
    signal: ChangeSignal,
    resource: str,
    epoch: Callable[[], float],
    still_served: Callable[[], bool],
    headers: Mapping[str, str],
    settle: Callable[[], Awaitable[None]] | None = None,
) -> web.StreamResponse:
    """Answer a request with a watch stream, until its deadline, an error event, or the server's end.

    Args:
        exchange: The request, and what faults do to it.
        watcher: What its client sees.
        rendering: How it is written.
        signal: Tells when to look again.
        resource: The resource that is watched, plural and group.
        epoch: Seconds since 1970, for ages in Tables.
        still_served: Whether the resource is still there; the stream ends with its CRD.
        headers: Sent with the answer, at once.
        settle: Waits until what is sent is durable; None if nothing is kept.

    Cancellation (the client went away) leaves nothing behind.
    """
    loop = asyncio.get_running_loop()
    request, trouble = exchange.request, exchange.trouble
    response = web.StreamResponse(headers={**headers, "Content-Type": "application/json"})
    response.enable_chunked_encoding()

    async def send(line: bytes) -> None:
        async with asyncio.timeout(WRITE_PATIENCE):
            await response.write(line)
        trouble.sent()

    with signal.subscribe(resource) as changed:
        exchange.wake = changed.set
        try:
            await response.prepare(request)
            # aiohttp holds headers back until there is a body; a watch may have none for an hour.
            await response.write(b"")
            exchange.started()
            while not signal.closed:
                changed.clear()
                fate = trouble.fate(loop.time())
                if fate is Fate.WAIT:
                    await _wait(changed, until=trouble.until)
                    continue
                if fate is not Fate.SEND:
                    break
                # One at a time while a fault counts events.
                sightings = watcher.poll(loop.time(), limit=1) if trouble.counts else watcher.poll(loop.time())
                if settle is not None and sightings:
                    await settle()
                for sighting in sightings:
                    await send(rendering.line(sighting, now=epoch()))
                if watcher.ended or not (sightings or still_served()):
                    break
                if not sightings:
                    await _wait(changed, until=watcher.next_due())
            if trouble.fate(loop.time()) is Fate.CUT:
                _cut(request)
                return response
            if trouble.fate(loop.time()) is Fate.EXPIRE:
                await send(rendering.line(Sighting(None, status=expired()), now=epoch()))
            await response.write_eof()
        except TimeoutError:
            _cut(request)
        except ConnectionError:
            # The client has closed, and the cancellation that says so comes in the next turn of the loop.
            return response
    return response


def _cut(request: web.BaseRequest) -> None:
    if request.transport is not None:
        request.transport.abort()


async def _wait(changed: asyncio.Event, *, until: float | None) -> None:
    try:
        async with asyncio.timeout_at(until):
            await changed.wait()
    except TimeoutError:
        return
