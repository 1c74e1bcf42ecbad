"""Sending of watch streams.

    CHANGE ──(change, fault, or time: ``look``)──▶ step ──▶ what it needs next: CHANGE, ROOM, DURABLE, CONVERSION or END

While the stream waits only for changes, ``look`` runs the step in the notification, so that a change for a hundred
watches does not wake a hundred tasks.

All available events are sent in one chunk, because each write is a TLS record and a system call. Chunks are encoded
here, because aiohttp's writer costs more than the encoding of a line. A client that falls behind the store's window
gets 410 Expired, and a client that reads nothing for ``WRITE_PATIENCE`` seconds is disconnected.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from enum import Enum, auto
from typing import Final

from aiohttp import web
from aiohttp.abc import AbstractStreamWriter

from deltaloop.apiserver.answering import Answering
from deltaloop.apiserver.conversions import UnconvertedError
from deltaloop.apiserver.core.answers.rendering import WatchRendering
from deltaloop.apiserver.core.external_answers import QuestionError
from deltaloop.apiserver.core.fault_rules import WatchFate, expired
from deltaloop.apiserver.core.storage.watching import Sighting, Watcher
from deltaloop.apiserver.direct_connections import DirectConnection
from deltaloop.apiserver.exchange import Exchange, add_warnings

WRITE_PATIENCE: Final = 60.0
WRITE_AT_ONCE: Final = 64 * 1024
SENT_AT_ONCE: Final = 200
"""Number of events, or KiB, that one stream sends before it yields."""
CONVERSION_PAUSE: Final = 1.0


async def send_watch(
    exchange: Exchange,
    answering: Answering,
    *,
    watcher: Watcher,
    rendering: WatchRendering,
    resource: str,
    still_served: Callable[[], bool],
    convert: Callable[[object], Awaitable[None]],
) -> web.StreamResponse:
    """Send a watch stream until its deadline, an error event, or the end of the server. Cancellation is safe."""
    response = web.StreamResponse(headers={**answering.headers, "Content-Type": "application/json"})
    if exchange.notes.deprecation:
        add_warnings(response, [exchange.notes.deprecation])
    response.enable_chunked_encoding()
    stream = _Stream(exchange, answering, response, watcher, rendering, still_served, convert)
    look = exchange.wake = stream.look
    with answering.signal.notify(resource, look):
        try:
            await stream.begin()
            await stream.run()
            await stream.end()
        except TimeoutError:
            _cut(exchange.request)
        except ConnectionError:
            # The client has disconnected, and the cancellation follows in the next iteration of the event loop.
            return response
        except Exception:
            # The response has started, so no error can be sent. Disconnect, so that the client does not wait for the
            # rest.
            _cut(exchange.request)
            raise
        finally:
            stream.alarm.at(None)
    return response


class _Need(Enum):
    CHANGE = auto()
    TURN = auto()
    ROOM = auto()
    DURABLE = auto()
    CONVERSION = auto()
    END = auto()


class _Stream:
    def __init__(
        self,
        exchange: Exchange,
        answering: Answering,
        response: web.StreamResponse,
        watcher: Watcher,
        rendering: WatchRendering,
        still_served: Callable[[], bool],
        convert: Callable[[object], Awaitable[None]],
    ) -> None:
        self._exchange = exchange
        self._response = response
        self._watcher = watcher
        self._rendering = rendering
        self._signal = answering.signal
        self._epoch = answering.epoch
        self._settle = answering.settle
        self._still_served = still_served
        self._convert = convert
        self._question: object = None
        self._convert_again_at = 0.0
        self._loop = asyncio.get_running_loop()
        self._protocol = exchange.request.protocol
        self._writer: AbstractStreamWriter | None = None
        self._taken: tuple[Sighting, ...] = ()
        self._parked: asyncio.Future[_Need] | None = None
        self.alarm = _Alarm(self._loop, self.look)

    async def begin(self) -> None:
        self._writer = await self._response.prepare(self._exchange.request)
        # aiohttp delays the headers until the first part of the body, which may not come for an hour.
        await self._response.write(b"")
        self._exchange.started()

    async def run(self) -> None:
        need = self._step()
        while need is not _Need.END:
            if need is _Need.CHANGE:
                need = await self._park()
                continue
            if need is _Need.TURN:
                await asyncio.sleep(0)
            elif need is _Need.DURABLE and self._settle is not None:
                await self._settle()
            elif need is _Need.ROOM:
                await self._drain()
            elif need is _Need.CONVERSION:
                await self._have_converted()
            need = self._step()

    async def end(self) -> None:
        """End the stream, cleanly or as a fault requires."""
        fate = self._exchange.trouble.fate(self._loop.time())
        if fate is WatchFate.CUT:
            _cut(self._exchange.request)
            return
        if fate is WatchFate.EXPIRE:
            line = self._rendering.line(Sighting(None, status=expired()), now=self._epoch())
            transport = self._transport()
            transport.write(_chunk(transport, line))
        async with asyncio.timeout(WRITE_PATIENCE):
            await self._response.write_eof()

    def look(self) -> None:
        """Continue if the stream waits only for changes. Otherwise it continues when its condition is met."""
        parked = self._parked
        if parked is None or parked.done():
            return
        try:
            need = self._step()
        except Exception as error:  # noqa: BLE001 - the stream's task raises it
            parked.set_exception(error)
            return
        if need is not _Need.CHANGE:
            parked.set_result(need)

    async def _park(self) -> _Need:
        self._parked = self._loop.create_future()
        try:
            return await self._parked
        finally:
            self._parked = None

    def _step(self) -> _Need:
        """Send the available events, and return the next condition."""
        trouble, watcher, sent = self._exchange.trouble, self._watcher, 0
        while True:
            now = self._loop.time()
            fate = trouble.fate(now)
            if self._signal.closed and (fate is WatchFate.WAIT or not self._taken):
                return _Need.END
            if fate is WatchFate.WAIT:
                self.alarm.at(trouble.until)
                return _Need.CHANGE
            if fate is not WatchFate.SEND:
                return _Need.END
            transport = self._transport()
            if self._protocol.writing_paused:
                return _Need.ROOM
            if sent >= SENT_AT_ONCE:
                return _Need.TURN
            if self._taken:
                sent += self._send(transport)
                continue
            # Send single events while a fault counts them.
            try:
                self._taken = watcher.poll(now, limit=1) if trouble.counts else watcher.poll(now)
            except QuestionError as asked:
                if now >= self._convert_again_at:
                    self._question = asked.question
                    return _Need.CONVERSION
                self.alarm.at(min(self._convert_again_at, watcher.next_due()))
                return _Need.CHANGE
            if not self._taken:
                if watcher.ended or not self._still_served():
                    return _Need.END
                self.alarm.at(watcher.next_due())
                return _Need.CHANGE
            if self._settle is not None:
                return _Need.DURABLE

    def _send(self, transport: asyncio.Transport) -> int:
        """Send the next events in one chunk, and return their cost: the number of events or KiB."""
        trouble, rendering = self._exchange.trouble, self._rendering
        # A fault may have been added while several events were pending.
        following = self._taken[:1] if trouble.counts else self._taken
        now = self._epoch() if rendering.shows_ages else 0.0
        lines, count = rendering.lines(following, now=now, size=WRITE_AT_ONCE)
        transport.write(_chunk(transport, lines))
        self._taken = self._taken[count:]
        if trouble.counts:
            trouble.sent()
        return max(count, len(lines) // 1024)

    def _transport(self) -> asyncio.Transport:
        """Return the connection, or raise ConnectionResetError if it is closed. A closed connection would stay full."""
        transport = self._exchange.request.transport
        if transport is None or transport.is_closing():
            raise ConnectionResetError("client disconnected")
        return transport

    async def _have_converted(self) -> None:
        try:
            await self._convert(self._question)
        except UnconvertedError:
            # Like on a real server, the watch waits until conversion succeeds, without an error.
            self._convert_again_at = self._loop.time() + CONVERSION_PAUSE

    async def _drain(self) -> None:
        assert self._writer is not None
        async with asyncio.timeout(WRITE_PATIENCE):
            await self._writer.drain()


class _Alarm:
    """Timer for a callback. Setting the same time again is free."""

    def __init__(self, loop: asyncio.AbstractEventLoop, ring: Callable[[], None]) -> None:
        self._loop = loop
        self._ring = ring
        self._when: float | None = None
        self._timer: asyncio.TimerHandle | None = None

    def at(self, when: float | None) -> None:
        """Set the time on the event loop's clock. None disables the timer."""
        if when == self._when:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._when = when
        self._timer = self._loop.call_at(when, self._rings) if when is not None else None

    def _rings(self) -> None:
        self._when = self._timer = None
        self._ring()


def _chunk(transport: asyncio.Transport, lines: bytes) -> bytes:
    if isinstance(transport, DirectConnection):
        return lines
    return b"%x\r\n%b\r\n" % (len(lines), lines)


def _cut(request: web.BaseRequest) -> None:
    if request.transport is not None:
        request.transport.abort()
