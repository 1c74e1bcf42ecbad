"""Decode a watch stream into events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, final

from deltaloop._internal.loop_clock import loop_clock
from deltaloop.api.managed_fields import decode_stripped, strip_managed_fields
from deltaloop.api.resource import decode_plain
from deltaloop.api.resource_type import ResourceType
from deltaloop.api.watch_event import (
    BEGINNINGS,
    EventType,
    MalformedEventError,
    WatchEvent,
    decode_watch_event,
)
from deltaloop.client.core.accept import watch_accept
from deltaloop.client.core.framing import LONGEST_LINE, LineFramer, LineTooLongError
from deltaloop.client.core.watch_limits import WatchLimitOptions, WatchLimits
from deltaloop.client.errors import ResponseTooLargeError, StreamEndedError
from deltaloop.client.options import WarningHandler
from deltaloop.client.transport.sender import RequestSender

if TYPE_CHECKING:
    from deltaloop.client.transport.protocol import ArrivingChunks

_LIMITS: Final = WatchLimitOptions()
_LARGEST_BATCH: Final = 100
_BOOKMARK: Final = EventType.BOOKMARK
_OPEN, _CLOSE = b"{", b"}"[0]
_SHORTEST, _LONGEST = 20, 30  # bounds on the position of the object in an event
_USUAL: Final = next((each, begin, len(begin)) for begin, each in BEGINNINGS.items() if each is EventType.MODIFIED)
_TIMER_EARLY: Final = 1e-6


@asynccontextmanager
async def open_watch(
    sender: RequestSender,
    resource_type: ResourceType[Any],
    path: str,
    query: Mapping[str, str],
    *,
    timeout_seconds: int | None,
    timeout: float | None,
    on_warning: WarningHandler | None,
    metadata_only: bool,
    drop_managed_fields: bool,
    max_event_bytes: int,
) -> AsyncGenerator[WatchStream, None]:
    """Open a watch. Leaving the context closes its connection."""
    started_at = asyncio.get_running_loop().time()
    asked = {**query, "watch": "true"}
    accept = watch_accept(metadata_only=metadata_only, drop_managed_fields=drop_managed_fields)
    async with sender.stream(path, query=asked, accept=accept, timeout=timeout, on_warning=on_warning) as answer:
        limits = WatchLimits(_LIMITS, now=started_at, timeout_seconds=timeout_seconds)
        limits.saw_bytes(asyncio.get_running_loop().time())  # the response headers
        stream = WatchStream(
            answer.chunks,
            resource_type,
            path,
            limits,
            metadata_only=metadata_only,
            drop_managed_fields=drop_managed_fields,
            max_event_bytes=max_event_bytes,
        )
        try:
            yield stream
        finally:
            stream.close()


@final
class _ReadLimit:
    """Deadline of the reads of one stream, which uses one timer for many reads."""

    __slots__ = ("_canceling", "_expired", "_give_up_at", "_timer", "task")

    def __init__(self, give_up_at: Callable[[], float | None]) -> None:
        self.task: asyncio.Task[Any] | None = None
        self._give_up_at = give_up_at
        self._timer: asyncio.TimerHandle | None = None
        self._canceling = 0
        self._expired = False

    def begin(self) -> None:
        """Start a read of the current task, and cancel it at its deadline."""
        self.task = task = asyncio.current_task()
        self._expired = False
        if task is not None:
            self._canceling = task.cancelling()
        if self._timer is None:
            self.arm()

    def arm(self) -> None:
        """Set the timer. Received data only extend the deadline, and do not change the timer."""
        at = self._give_up_at()
        self.close()
        if at is not None:
            self._timer = asyncio.get_running_loop().call_at(at, self._due)

    def ended_read(self) -> bool:
        """Return whether only this deadline canceled the read."""
        task = self.task
        return self._expired and task is not None and task.uncancel() <= self._canceling

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _due(self) -> None:
        self._timer, ends_at, task = None, self._give_up_at(), self.task
        if task is None or ends_at is None:
            return  # the next read sets the timer
        if asyncio.get_running_loop().time() + _TIMER_EARLY < ends_at:
            self.arm()
        else:
            self._expired = True
            task.cancel()


@final
class WatchStream:
    """Events of one watch stream, in order, for one reader at a time.

    Iteration ends when the server ends the stream between two events. It raises ``ApiError`` for an ERROR event,
    ``MalformedEventError`` for an invalid line, and ``StreamEndedError`` if the stream breaks or a limit expires.
    Earlier events are delivered first. After the end, no further events are delivered. Canceling a read loses no event.
    """

    def __init__(
        self,
        chunks: AsyncIterator[bytes],
        resource_type: ResourceType[Any],
        path: str,
        limits: WatchLimits,
        *,
        metadata_only: bool,
        drop_managed_fields: bool,
        max_event_bytes: int = LONGEST_LINE,
    ) -> None:
        """Create a stream of ``chunks``. ``path`` is used in error messages."""
        self._chunks = chunks
        self._resource_type = resource_type
        self._path = path
        self._limits = limits
        self._metadata_only = metadata_only
        self._drop_managed_fields = drop_managed_fields
        self._max_event_bytes = max_event_bytes
        self._framer = LineFramer(longest=max_event_bytes)
        self._clock = loop_clock()
        self._limit = _ReadLimit(limits.give_up_at)
        self._failure: Exception | None = None  # raised by the next read
        self._ended = False
        self.consume: Callable[[], bool] | None = None
        arriving: Any = chunks if hasattr(chunks, "on_arrival") else None  # isinstance costs a hundred calls
        self._arriving: ArrivingChunks | None = arriving
        if self._arriving is not None:
            self._arriving.on_arrival(self._arrived)

    @property
    def last_byte_at(self) -> float:
        """Event loop time of the last byte received by a read."""
        return self._limits.last_byte_at

    @property
    def pending_bytes(self) -> int:
        """Number of received bytes of an incomplete event."""
        return self._framer.pending

    def close(self) -> None:
        self._limit.close()

    def __aiter__(self) -> WatchStream:
        return self

    async def __anext__(self) -> WatchEvent:
        while not (events := self.received(1)):
            if self._ended:
                self._raise_failure()
                raise StopAsyncIteration
            await self._read()
        return events[0]

    async def batch(self) -> list[WatchEvent]:
        """Wait for the next event, and return it with up to 99 further received events, or no events at the end."""
        while not (events := self.received()):
            if self._ended:
                self._raise_failure()
                break
            await self._read()
        return events

    def _raise_failure(self) -> None:
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure

    def _arrived(self) -> bool:
        """Pass received data on while a task waits for them, or return False to wake the task."""
        if self.consume is None or self._arriving is None or (chunk := self._arriving.take()) is None:
            return False
        self._limits.saw_bytes(self._clock())
        self._framer.push(chunk)
        try:
            consumed = self.consume()
        except Exception as error:  # noqa: BLE001 - raised by the task's read
            self._ended, self._failure, consumed = True, error, False
            self._framer = LineFramer()
        return consumed and not self._ended

    def received(self, limit: int = _LARGEST_BATCH) -> list[WatchEvent]:
        """Return received events without waiting. ``batch`` raises the error after the last one."""
        resource_type, drops, metadata_only = self._resource_type, self._drop_managed_fields, self._metadata_only
        decode = decode_stripped if drops else decode_plain
        events: list[WatchEvent] = []
        event_type: EventType | None
        event_type, beginning, length = _USUAL
        try:
            for data, start, end in self._framer.lines() if self._framer.unread else ():
                if event_type is None or data[start : start + length] != beginning:  # unlike the previous line
                    head = data[start : start + _LONGEST]
                    length = head.find(_OPEN, _SHORTEST)
                    beginning = head[:length]
                    event_type = BEGINNINGS[beginning] if length > 0 and beginning in BEGINNINGS else None
                obj, last = None, end - 1
                if event_type is not None and data[last] == _CLOSE:  # usual
                    obj = decode(data[start + length : last], resource_type)
                if event_type is not None and obj is not None:
                    event = WatchEvent(event_type, obj)
                elif start == end or data[start:end].isspace():
                    continue
                else:  # raises an error for invalid lines
                    event = decode_watch_event(data[start:end], resource_type)
                    event = WatchEvent(event.type, strip_managed_fields(event.object)) if drops else event
                if metadata_only:
                    from deltaloop.client.core.metadata_only import metadata_of

                    event = WatchEvent(event.type, metadata_of(event.object))
                if event.type is _BOOKMARK and self._limits.saw_bookmark():
                    self._limit.arm()
                events += (event,)
                limit -= 1
                if not limit:
                    break
        except Exception as error:  # noqa: BLE001 - raised by the read after the earlier events
            self._ended, self._framer = True, LineFramer()
            self._failure = self._oversized() if isinstance(error, LineTooLongError) else error
        return events

    async def _read(self) -> None:
        limits, limit = self._limits, self._limit
        limit.begin()
        try:
            chunk = await anext(self._chunks, None)
        except asyncio.CancelledError:
            if not limit.ended_read():
                raise
            self._ended = True
            raise self._broken(limits.reason(self._clock())) from None
        except (StreamEndedError, TimeoutError):
            self._ended = True
            raise
        finally:
            limit.task = None
        if chunk is not None:
            limits.saw_bytes(self._clock())
            self._framer.push(chunk)
            return
        limit.close()
        self._ended = True
        self._take_tail(self._framer.finish())

    def _take_tail(self, tail: bytes) -> None:
        """Process the data after the last line feed, which is a complete event or a part of a lost event."""
        if not tail or tail.isspace():
            return
        try:
            decode_watch_event(tail, self._resource_type)
        except MalformedEventError:
            raise self._broken(f"the stream ended in the middle of an event, after {len(tail)} bytes") from None
        self._framer.push(tail + b"\n")

    def _oversized(self) -> ResponseTooLargeError:
        why = f"an event has more than {self._max_event_bytes} bytes. Increase ClientConfig.max_event_bytes."
        return ResponseTooLargeError(f"GET {self._path}: {why}", method="GET", path=self._path)

    def _broken(self, why: str) -> StreamEndedError:
        return StreamEndedError(f"GET {self._path}: {why}", method="GET", path=self._path)
