"""Reads a watch stream: bytes to events. Core: ``core/framing.py`` (lines), ``core/watch_limits.py`` (giving up)."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final, final

from deltaloop.api.resource_type import ResourceType
from deltaloop.api.watch_event import EventType, MalformedEventError, WatchEvent, decode_watch_event
from deltaloop.client.core.framing import LineFramer
from deltaloop.client.core.metadata_only import WATCH_ACCEPT, metadata_of
from deltaloop.client.core.watch_limits import WatchLimitOptions, WatchLimits
from deltaloop.client.errors import StreamEndedError
from deltaloop.client.options import WarningHandler
from deltaloop.client.sender import JSON, RequestSender

_LIMITS: Final = WatchLimitOptions()


@asynccontextmanager
async def open_watch(
    sender: RequestSender,
    resource_type: ResourceType[Any],
    path: str,
    query: Mapping[str, str],
    *,
    timeout_seconds: int | None = None,
    timeout: float | None = None,
    limits: WatchLimitOptions = _LIMITS,
    on_warning: WarningHandler | None = None,
    metadata_only: bool = False,
) -> AsyncGenerator[WatchStream, None]:
    """Open a watch; leaving the context closes its connection, at any point of the stream.

    Args:
        sender: Sends the request.
        resource_type: What is watched.
        path: URL path of the collection.
        query: Query parameters; ``watch`` is added.
        timeout_seconds: After how long the server was asked to end the stream.
        timeout: Seconds until the server has accepted.
        limits: When to give up a stream that is silent.
        on_warning: Called with each warning of the answer.
        metadata_only: Whether the events carry ``PartialObjectMetadata``.

    Raises:
        ApiError: The server refused.
        TransportError: There was no answer.
    """
    started_at = asyncio.get_running_loop().time()
    asked = {**query, "watch": "true"}
    accept = WATCH_ACCEPT if metadata_only else JSON
    async with sender.stream(path, query=asked, accept=accept, timeout=timeout, on_warning=on_warning) as answer:
        watch_limits = WatchLimits(limits, now=started_at, timeout_seconds=timeout_seconds)
        watch_limits.saw_bytes(asyncio.get_running_loop().time())  # the answer's headers
        yield WatchStream(answer.chunks, resource_type, path, watch_limits, metadata_only=metadata_only)


@final
class WatchStream:
    """The events of one stream, in its order. One reader at a time.

    Iteration ends when the server ends the stream between two events. It raises ``ApiError`` for an ERROR event,
    ``MalformedEventError`` for a line that is no event, ``StreamEndedError`` when the stream breaks off in the middle
    or a limit has passed. Events that came before are always delivered first. Once it has ended, it stays so.

    Cancelling a read loses no event: what was received is kept, and the next read goes on.
    """

    def __init__(
        self,
        chunks: AsyncIterator[bytes],
        resource_type: ResourceType[Any],
        path: str,
        limits: WatchLimits,
        *,
        metadata_only: bool = False,
    ) -> None:
        """Read ``chunks``; ``path`` is named in errors. ``metadata_only`` cuts off what was not asked for."""
        self._chunks = chunks
        self._resource_type = resource_type
        self._path = path
        self._limits = limits
        self._metadata_only = metadata_only
        self._framer = LineFramer()
        self._lines: deque[bytes] = deque()
        self._ended = False

    @property
    def last_byte_at(self) -> float:
        """When the last byte came, be it in the middle of an event; on the event loop's clock.

        Bytes are seen when the stream is read: while nobody reads, nothing moves.
        """
        return self._limits.last_byte_at

    @property
    def pending_bytes(self) -> int:
        """How much has come of an event that is not complete."""
        return self._framer.pending

    def __aiter__(self) -> WatchStream:
        return self

    async def __anext__(self) -> WatchEvent:
        while True:
            while self._lines:
                line = self._lines.popleft()
                if not line or line.isspace():
                    continue
                return self._event(line)
            if self._ended:
                raise StopAsyncIteration
            await self._read()

    def _event(self, line: bytes) -> WatchEvent:
        try:
            event = decode_watch_event(line, self._resource_type)
            if self._metadata_only:
                event = WatchEvent(event.type, metadata_of(event.object))
        except BaseException:
            self._ended = True
            self._lines.clear()
            raise
        if event.type is EventType.BOOKMARK:
            self._limits.saw_bookmark()
        return event

    async def _read(self) -> None:
        loop = asyncio.get_running_loop()
        limit = asyncio.timeout_at(self._limits.give_up_at())
        try:
            async with limit:
                chunk = await anext(self._chunks, None)
        except TimeoutError:
            self._ended = True
            if not limit.expired():
                raise
            raise self._broken(self._limits.reason(loop.time())) from None
        except StreamEndedError:
            self._ended = True
            raise
        if chunk is not None:
            self._limits.saw_bytes(loop.time())
            self._lines.extend(self._framer.feed(chunk))
            return
        self._ended = True
        self._take_tail(self._framer.finish())

    def _take_tail(self, tail: bytes) -> None:
        """The stream has ended: what follows the last line feed is a whole event or the beginning of a lost one."""
        if not tail or tail.isspace():
            return
        try:
            decode_watch_event(tail, self._resource_type)
        except MalformedEventError:
            raise self._broken(f"the stream ended in the middle of an event, after {len(tail)} bytes of it") from None
        self._lines.append(tail)

    def _broken(self, why: str) -> StreamEndedError:
        return StreamEndedError(f"GET {self._path}: {why}", method="GET", path=self._path)
