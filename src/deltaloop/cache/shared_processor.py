"""Distribute the notifications of an informer to its handlers, with a resync timer per handler.

Source: client-go tools/cache/shared_informer.go, ``sharedProcessor``.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, final

from deltaloop.api.resource import Resource
from deltaloop.cache.controller import MINIMUM_RESYNC_PERIOD
from deltaloop.cache.core.notification_buffer import BufferPolicy
from deltaloop.cache.core.process_deltas import AddNotification, Notification
from deltaloop.cache.core.real_fifo import TURN
from deltaloop.cache.handlers import HandlerOptions, handler_name
from deltaloop.cache.listener import Listener
from deltaloop.cache.metrics import GuardedCacheMetrics

if TYPE_CHECKING:
    from deltaloop.cache.interfaces import ReceivedObjectHandler, Registration, ResourceEventHandler

T = TypeVar("T")

_logger: Final = logging.getLogger("deltaloop.cache")
_UNBOUNDED: Final = sys.maxsize


def count_initial(notifications: Iterable[Notification[Resource]]) -> int:
    return sum([notification.is_in_initial_list for notification in notifications])


@final
class SharedProcessor(Generic[T]):
    def __init__(
        self,
        name: str,
        *,
        decode: Callable[[Resource], T],
        objects: Callable[[], Iterable[Resource]],
        upstream_has_synced: Callable[[], bool],
        resync_period: float,
        metrics: GuardedCacheMetrics,
    ) -> None:
        self._name = name
        self._decode = decode
        self._objects = objects
        self._upstream_has_synced = upstream_has_synced
        self._resync_period = resync_period
        self._metrics = metrics
        self._listeners: dict[Listener[T], asyncio.Task[None] | None] = {}
        self.listeners: tuple[Listener[T], ...] = ()  # a copy, because a handler can add and remove handlers
        self._ending: set[asyncio.Task[None]] = set()
        self._resyncs: dict[Listener[T], tuple[float, asyncio.TimerHandle | None]] = {}
        self._bounded: set[Listener[T]] = set()
        self._has_room = asyncio.Event()
        self._stalled = False
        self._started = False
        self._resyncing = False
        self._distributing = False
        self._postponed: dict[Listener[T], None] = {}

    def add(
        self, handler: ResourceEventHandler[T] | ReceivedObjectHandler, *, name: str, options: HandlerOptions
    ) -> Registration:
        listener = Listener(
            handler,
            self._decode,
            name=name or handler_name(handler),
            resource=self._name,
            upstream_has_synced=self._upstream_has_synced,
            options=options,
            on_room=self._has_room.set,
            metrics=self._metrics,
        )
        replay = [AddNotification(obj, is_in_initial_list=True) for obj in self._objects()]
        listener.add_all(replay, initial=len(replay))
        self._listeners[listener] = self._run(listener) if self._started else None
        self.listeners = tuple(self._listeners)
        if options.buffer is BufferPolicy.BOUNDED:
            self._bounded.add(listener)
        period = self._resync_period if options.resync_period is None else options.resync_period
        if period > 0:
            self._resyncs[listener] = (max(period, MINIMUM_RESYNC_PERIOD), None)
            if self._resyncing:
                self._schedule_resync(listener)
        return listener

    def remove(self, registration: Registration) -> None:
        for listener in [known for known in self._listeners if known is registration]:
            task = self._listeners.pop(listener)
            self.listeners = tuple(self._listeners)
            self._bounded.discard(listener)
            _, timer = self._resyncs.pop(listener, (0.0, None))
            if timer is not None:
                timer.cancel()
            listener.close()
            if task is not None:
                self._ending.add(task)
                task.add_done_callback(self._ending.discard)

    async def distribute_in_turns(self, notifications: Iterable[Notification[Resource]]) -> None:
        """Add notifications to the buffers of the current handlers, and let other tasks run in between."""
        listeners = self.listeners
        self._distributing = True
        try:
            to_come = iter(notifications)
            while True:
                together: list[Notification[Resource]] = []
                try:
                    together.extend(islice(to_come, TURN))  # keeps the notifications before an error
                finally:
                    initial = count_initial(together)
                    for listener in listeners:
                        listener.add_all(together, initial=initial)
                if len(together) < TURN:
                    break
                await asyncio.sleep(0)
                if (until_room := self.room()) is not None:
                    await until_room
        finally:
            self._distributing = False
            postponed, self._postponed = self._postponed, {}
            for listener in postponed:
                listener.resync(self._objects())

    def pending(self) -> dict[str, int]:
        """Return the number of pending notifications by handler name, from any thread."""
        waiting: dict[str, int] = {}
        for listener in self.listeners:
            waiting[listener.name] = waiting.get(listener.name, 0) + listener.pending
        return waiting

    # Full buffers

    @property
    def stalled_by(self) -> tuple[str, ...]:
        """Names of handlers whose full buffers currently stop the informer."""
        return tuple(listener.name for listener in self._bounded if listener.is_full)

    def room_left(self) -> int:
        """Return the smallest number of free places in the bounded buffers, or a very large number without them."""
        return min(listener.room for listener in self._bounded) if self._bounded else _UNBOUNDED

    def room(self) -> Awaitable[None] | None:
        """Return None if no handler has a bounded buffer, otherwise an awaitable that waits until all have room."""
        return self._wait_for_room() if self._bounded else None

    async def _wait_for_room(self) -> None:
        while full := self.stalled_by:
            if not self._stalled:
                self._stalled = True
                _logger.warning(
                    "pausing informer until a handler has caught up",
                    extra={"resource": self._name, "handlers": list(full)},
                )
            self._has_room.clear()
            await self._has_room.wait()
        if self._stalled:
            self._stalled = False
            _logger.info("resuming informer", extra={"resource": self._name})

    # Running

    def start(self, wait_for_sync: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Start deliveries. Resync periods start when ``wait_for_sync`` returns."""
        self._started = True
        resyncs = asyncio.create_task(self._begin_resyncs(wait_for_sync), name=f"begin of resyncs of {self._name}")
        self._ending.add(resyncs)
        resyncs.add_done_callback(self._ending.discard)
        for listener in self._listeners:
            self._listeners[listener] = self._run(listener)

    async def stop(self, *others: asyncio.Task[None]) -> None:
        """Cancel all deliveries and ``others``, wait for their end, and drop pending notifications."""
        for _, timer in self._resyncs.values():
            if timer is not None:
                timer.cancel()
        tasks = [task for task in (*self._listeners.values(), *self._ending, *others) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _run(self, listener: Listener[T]) -> asyncio.Task[None]:
        return asyncio.create_task(listener.run(), name=f"handler {listener.name} of {self._name}")

    async def _begin_resyncs(self, wait_for_sync: Callable[[], Coroutine[Any, Any, None]]) -> None:
        await wait_for_sync()
        self._resyncing = True
        for listener in self._resyncs:
            self._schedule_resync(listener)

    def _schedule_resync(self, listener: Listener[T]) -> None:
        period, _ = self._resyncs[listener]
        timer = asyncio.get_running_loop().call_later(period, self._resync, listener)
        self._resyncs[listener] = (period, timer)

    def _resync(self, listener: Listener[T]) -> None:
        if self._distributing:
            self._postponed[listener] = None
        else:
            listener.resync(self._objects())
        self._schedule_resync(listener)

    def __repr__(self) -> str:
        return f"<SharedProcessor of {self._name}: {len(self._listeners)} handlers>"
