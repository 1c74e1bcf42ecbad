"""Sends a watch to its client, one line per chunk. Core: ``core/watching.py``.

Nothing is buffered for a client that does not read: the next events are taken from the store's window when the
connection has room, and a client that falls behind the window is told 410 Expired. One that takes nothing at all for
``WRITE_PATIENCE`` seconds is cut off.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
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
    response = web.StreamResponse(headers={**headers, "Content-Type": "application/json"})
    response.enable_chunked_encoding()
    stream = _Stream(exchange, response, watcher, rendering, epoch, settle)
    with signal.subscribe(resource) as changed:
        exchange.wake = changed.set
        try:
            await stream.begin()
            while not signal.closed:
                changed.clear()
                if not await stream.advance(changed, still_served):
                    break
            await stream.end()
        except TimeoutError:
            _cut(exchange.request)
        except ConnectionError:
            # The client has closed, and the cancellation that says so comes in the next turn of the loop.
            return response
    return response


@dataclass(frozen=True, slots=True)
class _Stream:
    """One answer that is being written."""

    exchange: Exchange
    response: web.StreamResponse
    watcher: Watcher
    rendering: WatchRendering
    epoch: Callable[[], float]
    settle: Callable[[], Awaitable[None]] | None

    async def begin(self) -> None:
        await self.response.prepare(self.exchange.request)
        # aiohttp holds headers back until there is a body; a watch may have none for an hour.
        await self.response.write(b"")
        self.exchange.started()

    async def advance(self, changed: asyncio.Event, still_served: Callable[[], bool]) -> bool:
        """Send what there is, or wait for more; tell whether the stream goes on."""
        loop, trouble, watcher = asyncio.get_running_loop(), self.exchange.trouble, self.watcher
        fate = trouble.fate(loop.time())
        if fate is Fate.WAIT:
            await _wait(changed, until=trouble.until)
            return True
        if fate is not Fate.SEND:
            return False
        # One at a time while a fault counts events.
        sightings = watcher.poll(loop.time(), limit=1) if trouble.counts else watcher.poll(loop.time())
        if self.settle is not None and sightings:
            await self.settle()
        for sighting in sightings:
            await self._send(sighting)
        if watcher.ended or not (sightings or still_served()):
            return False
        if not sightings:
            await _wait(changed, until=watcher.next_due())
        return True

    async def end(self) -> None:
        """End as a fault wants it, or properly."""
        fate = self.exchange.trouble.fate(asyncio.get_running_loop().time())
        if fate is Fate.CUT:
            _cut(self.exchange.request)
            return
        if fate is Fate.EXPIRE:
            await self._send(Sighting(None, status=expired()))
        await self.response.write_eof()

    async def _send(self, sighting: Sighting) -> None:
        async with asyncio.timeout(WRITE_PATIENCE):
            await self.response.write(self.rendering.line(sighting, now=self.epoch()))
        self.exchange.trouble.sent()


def _cut(request: web.BaseRequest) -> None:
    if request.transport is not None:
        request.transport.abort()


async def _wait(changed: asyncio.Event, *, until: float | None) -> None:
    try:
        async with asyncio.timeout_at(until):
            await changed.wait()
    except TimeoutError:
        return
