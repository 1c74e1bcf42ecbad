"""Delivers notifications to one handler, in order; core/sync_tracker.py says when the initial list has arrived there.

Each handler has a buffer of its own (core/notification_buffer.py) and a task of its own. A handler that waits holds up
itself; no other handler notices, unless its buffer is bounded and full: then its informer waits for it.

Source: client-go tools/cache/shared_informer.go, ``processorListener``.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Final, Generic, Protocol, TypeVar, final

from deltaloop._internal.loop_clock import loop_clock
from deltaloop._internal.tracebacks import ErrorSummaries
from deltaloop.api.errors import MalformedObjectError
from deltaloop.api.resource import Resource, as_it_came
from deltaloop.cache.core.notification_buffer import (
    BufferPolicy,
    NotificationBuffer,
    key_of,
    make_buffer,
)
from deltaloop.cache.core.process_deltas import AddNotification, Notification, UpdateNotification
from deltaloop.cache.core.sync_tracker import SingleFileTracker
from deltaloop.cache.handlers import HandlerOptions, ReceivedObjectHandler, ResourceEventHandler, takes_resources
from deltaloop.cache.metrics import GuardedCacheMetrics

T = TypeVar("T")

_logger: Final = logging.getLogger("deltaloop.cache")
_ITEMS_PER_TURN: Final = 100
_SLOW: Final = 0.1


class Registration(Protocol):
    """A handler's place at an informer, from ``add_event_handler`` until it is removed."""

    @property
    def name(self) -> str:
        """The handler's name, as in the log."""
        ...

    @property
    def has_synced(self) -> bool:
        """Whether every object of the initial list was delivered to this handler; a failed delivery counts, too."""
        ...

    @property
    def pending(self) -> int:
        """Notifications that wait for the handler."""
        ...

    @property
    def failures(self) -> int:
        """Deliveries that failed: the handler raised, or the object does not fit its class."""
        ...


@final
class Listener(Generic[T]):
    """One handler with its buffer. Everything is called on the informer's loop."""

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
        """Begin with an empty buffer.

        Args:
            handler: Gets the notifications.
            decode: Makes what the handler is given out of what the cache holds.
            name: The handler's name in the log.
            resource: What the informer watches, for the log.
            upstream_has_synced: Whether the informer has handed out its whole initial list.
            options: Its resync period, and how notifications wait while the handler is busy.
            on_room: Called whenever something was taken out of a bounded buffer that was full.
            metrics: Hooks for metrics; None for none.
        """
        self._errors = ErrorSummaries()
        self._handler: ResourceEventHandler[Any] = handler
        self._decode: Callable[[Resource], Any] | None = None  # for those who take objects as they came
        if decode is not as_it_came and not takes_resources(handler):
            self._decode = decode
        self._name = name
        self._resource = resource
        self._tracker = SingleFileTracker(upstream_has_synced)
        self._buffer: NotificationBuffer[Resource] = make_buffer(options.buffer, options.buffer_size)
        self._is_bounded = options.buffer is BufferPolicy.BOUNDED
        self._on_room = on_room
        self._metrics = metrics
        self._idle: asyncio.Event | None = None  # there while it waits for something to do
        self._closed = False
        self._failures = 0

    @property
    def name(self) -> str:
        """The handler's name, as in the log."""
        return self._name

    @property
    def has_synced(self) -> bool:
        """Whether every object of the initial list was delivered to this handler."""
        return self._tracker.has_synced

    @property
    def pending(self) -> int:
        """Notifications that wait for the handler."""
        return len(self._buffer)

    @property
    def failures(self) -> int:
        """Deliveries that failed."""
        return self._failures

    @property
    def is_full(self) -> bool:
        """Whether its bounded buffer has no room; never true once it is closed."""
        return self._buffer.is_full

    @property
    def room(self) -> int:
        """How many more notifications a bounded buffer takes before it is full; 0 for others."""
        return self._buffer.room

    def add_all(self, notifications: Sequence[Notification[Resource]], *, initial: int = 0) -> None:
        """Put notifications into the buffer, of which ``initial`` are items of the initial list."""
        if self._closed or not notifications:
            return
        if initial:
            self._tracker.start(initial)
        if lost := self._buffer.put_all(notifications):
            self._tracker.finished(lost)
        if self._idle is not None:
            self._idle.set()
            self._idle = None

    def resync(self, objects: Iterable[Resource]) -> None:
        """Tell objects again, except those for which something waits: that is newer, or the same."""
        waiting = self._buffer.keys()
        self.add_all([UpdateNotification(obj, obj) for obj in objects if obj.key not in waiting])

    def close(self) -> None:
        """Deliver nothing more; what waits is dropped. A call that the handler is in goes on to its end."""
        self._closed = True
        self._buffer.clear()
        if self._idle is not None:
            self._idle.set()
        self._on_room()

    async def run(self) -> None:
        """Deliver until closed or cancelled; cancellation reaches a handler that waits, and drops the rest."""
        buffer, counts, handled = self._buffer, self._metrics.counts, 0
        clock = loop_clock()
        began: float | None = None  # the end of the last call, if nothing but this has run since
        while not self._closed:
            if not buffer:
                self._idle = asyncio.Event()
                await self._idle.wait()
                began = None
                continue
            was_full = self._is_bounded and buffer.is_full
            notification = buffer.popleft()
            if was_full:
                self._on_room()
            failures = self._failures
            if began is None or counts:
                began = clock()
            try:
                waiting = self._tell(notification)
                ended = clock()
                if ended - began > _SLOW:
                    self._warn_of_blocking(notification, ended - began)
                if waiting is not None:
                    await self._wait(waiting, notification)
            finally:
                if counts:
                    self._metrics.handled(
                        handler=self._name,
                        seconds=clock() - began,
                        waiting=len(buffer),
                        failed=self._failures > failures,
                    )
            began = ended if waiting is None else None
            if notification.is_in_initial_list:  # not if a cancellation has broken it off: that was not delivered
                self._tracker.finished()
            handled += 1
            if handled % _ITEMS_PER_TURN == 0:
                await asyncio.sleep(0)  # a long buffer must not starve other tasks
                began = None

    def _tell(self, notification: Notification[Resource]) -> Awaitable[object] | None:
        """Call the handler; return its result if that must be awaited."""
        handler, decode = self._handler, self._decode
        try:
            if type(notification) is UpdateNotification:
                old: Any = notification.old
                new: Any = notification.new
                if decode is not None:
                    # A resync shows as the same object twice, to typed handlers too.
                    is_resync, old = old is new, decode(old)
                    new = old if is_resync else decode(new)
                result = handler.on_update(old, new)
            else:
                obj: Any = notification.obj if decode is None else decode(notification.obj)
                if type(notification) is AddNotification:
                    result = handler.on_add(obj, is_in_initial_list=notification.is_in_initial_list)
                else:
                    result = handler.on_delete(obj, final_state_known=notification.final_state_known)
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - a handler may raise anything; it is reported
            self._lost(notification, error)
            return None
        return result if result is not None and inspect.isawaitable(result) else None

    def _warn_of_blocking(self, notification: Notification[Resource], seconds: float) -> None:
        _logger.warning(
            "a handler blocked the event loop; make it quick, or async",
            extra=self._extra(notification) | {"seconds": round(seconds, 3)},
        )

    async def _wait(self, waiting: Awaitable[object], notification: Notification[Resource]) -> None:
        try:
            await waiting
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            self._lost(notification, error)  # a cancellation of the handler's own that it has let out
        except Exception as error:  # noqa: BLE001 - a handler may raise anything; it is reported
            self._lost(notification, error)

    def _lost(self, notification: Notification[Resource], error: BaseException) -> None:
        self._failures += 1
        message = "a handler raised; its notification is lost"
        if isinstance(error, MalformedObjectError):
            message = "an object does not fit, or a handler raised; its notification is lost"
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
