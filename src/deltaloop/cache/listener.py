"""Deliver notifications to one handler in order, and track the delivery of the initial list.

Source: client-go tools/cache/shared_informer.go, ``processorListener``.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, final

from msgspec.structs import replace

from deltaloop._internal.loop_clock import loop_clock
from deltaloop._internal.tracebacks import ErrorSummaries
from deltaloop.api.errors import MalformedObjectError
from deltaloop.api.resource import Resource, as_it_came
from deltaloop.cache.core.notification_buffer import BufferPolicy, SingleFileTracker, key_of, make_buffer
from deltaloop.cache.core.process_deltas import AddNotification, Notification, UpdateNotification
from deltaloop.cache.handlers import HandlerOptions, takes_resources
from deltaloop.cache.metrics import GuardedCacheMetrics

if TYPE_CHECKING:
    from deltaloop.cache.core.notification_buffer import NotificationBuffer
    from deltaloop.cache.interfaces import ReceivedObjectHandler, ResourceEventHandler

T = TypeVar("T")

_logger: Final = logging.getLogger("deltaloop.cache")
_ITEMS_PER_TURN: Final = 100
_SLOW: Final = 0.1


@final
class Listener(Generic[T]):
    """Handler with its buffer. Use it only on the informer's event loop."""

    def __init__(
        self,
        handler: ResourceEventHandler[T] | ReceivedObjectHandler,
        decode: Callable[[Resource], T],
        *,
        name: str,
        resource: str,
        upstream_has_synced: Callable[[], bool],
        options: HandlerOptions,
        on_room: Callable[[], None],
        metrics: GuardedCacheMetrics,
    ) -> None:
        self._errors = ErrorSummaries()
        self._handler: ResourceEventHandler[Any] = handler
        self._decode: Callable[[Resource], Any] | None = None  # None if the handler receives the cached objects
        if decode is not as_it_came and not takes_resources(handler):
            self._decode = decode
        self._name = name
        self._resource = resource
        self._tracker = SingleFileTracker(upstream_has_synced)
        self._buffer: NotificationBuffer[Resource] = make_buffer(options.buffer, options.buffer_size)
        self._is_bounded = options.buffer is BufferPolicy.BOUNDED
        self._on_room = on_room
        self._metrics = metrics
        self._clock: Callable[[], float] = self._first_time
        self._until: Awaitable[None] | None = None  # to be awaited before deliveries continue
        self._idle: asyncio.Event | None = None  # set while run waits for notifications
        self._closed = False
        self._failures = 0

    @property
    def name(self) -> str:
        return self._name

    @property
    def has_synced(self) -> bool:
        return self._tracker.has_synced

    @property
    def pending(self) -> int:
        return len(self._buffer)

    @property
    def failures(self) -> int:
        return self._failures

    @property
    def is_full(self) -> bool:
        """Whether the bounded buffer is full. Always False after ``close``."""
        return self._buffer.is_full

    @property
    def room(self) -> int:
        """Number of free places in a bounded buffer, or 0."""
        return self._buffer.room

    def add_all(self, notifications: Sequence[Notification[Resource]], *, initial: int = 0) -> None:
        """Add notifications, of which ``initial`` belong to the initial list."""
        if self._closed or not notifications:
            return
        if initial:
            self._tracker.start(initial)
        if lost := self._buffer.put_all(notifications):
            self._tracker.finished(lost)
        if self._idle is not None:
            idle, self._idle = self._idle, None
            self._until = self._deliver()
            if self._until is None and not self._closed:
                self._idle = idle
            else:
                idle.set()

    def resync(self, objects: Iterable[Resource]) -> None:
        """Notify of objects again, except those with pending notifications, which are newer or equal."""
        waiting = self._buffer.keys()
        self.add_all([UpdateNotification(obj, obj) for obj in objects if obj.key not in waiting])

    def close(self) -> None:
        """Stop deliveries and drop pending notifications. A current call still completes."""
        self._closed = True
        self._buffer.clear()
        if self._idle is not None:
            self._idle.set()
        self._on_room()

    async def run(self) -> None:
        """Deliver until closed or canceled; a cancel reaches a waiting handler and drops the rest."""
        try:
            while not self._closed:
                until, self._until = self._until or self._deliver(), None
                if until is not None:
                    await until
                else:
                    self._idle = asyncio.Event()
                    await self._idle.wait()
        finally:
            self._idle = None
            if (close := getattr(self._until, "close", None)) is not None:
                close()

    def _deliver(self) -> Awaitable[None] | None:
        """Call the handler for the pending notifications, and return an awaitable if deliveries must pause."""
        buffer, clock, counts, is_bounded = self._buffer, self._clock, self._metrics.counts, self._is_bounded
        handler, decoded = self._handler, None if self._decode is None else self._decoded
        initial = failures = 0
        ended = clock()
        try:
            for _ in range(_ITEMS_PER_TURN):
                if not buffer:  # ``close`` clears it
                    return None
                was_full = is_bounded and buffer.is_full
                notification = buffer.popleft()
                if was_full:
                    self._on_room()
                began = ended
                if counts:
                    failures, began = self._failures, clock()
                try:
                    told = notification if decoded is None else decoded(notification)
                    if type(told) is UpdateNotification:
                        result = handler.on_update(told.old, told.new)
                    elif type(told) is AddNotification:
                        result = handler.on_add(told.obj, is_in_initial_list=told.is_in_initial_list)
                    else:
                        result = handler.on_delete(told.obj, final_state_known=told.final_state_known)
                except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - handlers may raise anything
                    self._lost(notification, error)
                    result = None
                ended = clock()
                if ended - began > _SLOW:
                    self._warn_of_blocking(notification, ended - began)
                if result is not None and inspect.isawaitable(result):
                    return self._wait(result, notification, began)
                if counts:
                    self._handled(began, failed=self._failures > failures)
                initial += notification.is_in_initial_list
        finally:
            if initial:
                self._tracker.finished(initial)
        return asyncio.sleep(0) if buffer else None  # a long buffer must not starve other tasks

    def _first_time(self) -> float:
        self._clock = loop_clock()
        return self._clock()

    def _handled(self, began: float, *, failed: bool) -> None:
        seconds = self._clock() - began
        self._metrics.handled(handler=self._name, seconds=seconds, waiting=len(self._buffer), failed=failed)

    def _decoded(self, notification: Notification[Resource]) -> Notification[Any]:
        decode: Any = self._decode
        if type(notification) is UpdateNotification:
            # Typed handlers also receive the same object twice for a resync.
            old = decode(notification.old)
            return UpdateNotification(old, old if notification.old is notification.new else decode(notification.new))
        return replace(notification, obj=decode(notification.obj))

    def _warn_of_blocking(self, notification: Notification[Resource], seconds: float) -> None:
        _logger.warning(
            "handler blocked the event loop: use asyncio.to_thread or an async library",
            extra=self._extra(notification) | {"seconds": round(seconds, 3)},
        )

    async def _wait(self, waiting: Awaitable[object], notification: Notification[Resource], began: float) -> None:
        failures = self._failures
        try:
            await waiting
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            self._lost(notification, error)  # the handler itself raised CancelledError
        except Exception as error:  # noqa: BLE001 - a handler may raise any exception; reported
            self._lost(notification, error)
        finally:
            if self._metrics.counts:
                self._handled(began, failed=self._failures > failures)
        if notification.is_in_initial_list:  # not after a cancel, because the item was not delivered
            self._tracker.finished()

    def _lost(self, notification: Notification[Resource], error: BaseException) -> None:
        self._failures += 1
        message = "handler raised an exception, dropping the notification"
        if isinstance(error, MalformedObjectError):
            message = "handler or decoding raised an exception, dropping the notification"
        now = asyncio.get_running_loop().time()
        self._errors.log(_logger, logging.ERROR, message, error, now=now, extra=self._extra(notification))

    def _extra(self, notification: Notification[Resource]) -> dict[str, object]:
        return {
            "handler": self._name,
            "resource": self._resource,
            "key": key_of(notification),
            "notification": type(notification).__name__,
        }

    def __repr__(self) -> str:
        return f"<Listener {self._name}: {self.pending} pending, {self._failures} failures>"
