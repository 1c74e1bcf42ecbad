"""Run a reflector, and pass the deltas of its queue to a function.

Source: client-go tools/cache/controller.go.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final, final

from deltaloop._internal.option_types import Options, check_types
from deltaloop._internal.pacing.checks import require_not_negative
from deltaloop._internal.tracebacks import ErrorSummaries
from deltaloop.api.resource import Resource
from deltaloop.cache.core.deltas import Deltas
from deltaloop.cache.core.reflector.reactions import Reaction
from deltaloop.cache.core.reflector.statistics import ReflectorStatistics
from deltaloop.cache.errors import RequeueError
from deltaloop.cache.listwatch import ListerWatcher
from deltaloop.cache.metrics import CacheMetrics
from deltaloop.cache.queue import Process, Queue
from deltaloop.cache.reflector import Reflector
from deltaloop.cache.reflector_options import ReflectorOptions

if TYPE_CHECKING:
    from deltaloop.api.shard_selector import ShardSelector

_logger: Final = logging.getLogger("deltaloop.cache")
_POPS_PER_TURN: Final = 100
_RETRY_DELAY: Final = 1.0
MINIMUM_RESYNC_PERIOD: Final = 1.0


class ControllerConfig(Options, frozen=True, kw_only=True):
    """Parts and settings of a controller.

    Attributes:
        lister_watcher: Source of the objects, usually a ``ListWatch``.
        queue: Queue between the reflector and ``process``.
        process: Function called with deltas of one key (``DeltaFIFO``) or of different keys (``RealFIFO``), and with
            whether they belong to the initial list. Its result is awaited unless it is None.
        name: Name in the log, by default ``str(lister_watcher)``.
        reflector_options: Page size, timeouts, backoff and similar settings.
        resync_period: Seconds between resyncs of all known objects. 0 disables resyncs; the minimum is 1.
        retry_on_error: Whether to requeue deltas and wait a second if ``process`` raises. By default, the error is
            logged and the deltas are dropped.
        on_error: Function called with each error of lists and watches.
        room: Function for backpressure, called before deltas are popped and before events are read. Its result is
            awaited unless it is None.
        receive: Function that the reflector applies to each received object first.
        metrics: Hooks for lists, watches and events, or None.
        random: Function that returns random numbers in [0, 1) for the jitter of delays and watch timeouts.
    """

    lister_watcher: ListerWatcher
    queue: Queue[Resource]
    process: Process[Resource]
    name: str = ""
    reflector_options: ReflectorOptions | None = None
    resync_period: float = 0.0
    retry_on_error: bool = False
    on_error: Callable[[Reaction], object] | None = None
    room: Callable[[], Awaitable[None] | None] | None = None
    receive: Callable[[Resource], Resource] | None = None
    metrics: CacheMetrics | None = None
    random: Callable[[], float] = random.random

    def __post_init__(self) -> None:
        check_types(self)
        require_not_negative("ControllerConfig", resync_period=self.resync_period)


@final
class Controller:
    """Reflector, queue and the loop that processes the queue."""

    def __init__(self, config: ControllerConfig) -> None:
        self._errors = ErrorSummaries()
        self._config = config
        self._queue = config.queue
        self._reflector = Reflector(
            config.lister_watcher,
            config.queue,
            name=config.name,
            options=config.reflector_options,
            on_error=config.on_error,
            room=config.room,
            receive=config.receive,
            metrics=config.metrics,
            random=config.random,
        )
        self.name: str = self._reflector.name
        self._process: Process[Resource] = self._process_again if config.retry_on_error else config.process
        self._until: Awaitable[None] | None = None  # to be awaited before the process loop continues
        self._has_room = False
        self._queue.consume = self._consume

    @property
    def has_synced(self) -> bool:
        """Whether the first full list has been processed."""
        return self._queue.has_synced

    @property
    def last_sync_resource_version(self) -> str:
        """Last version received by the reflector.

        Processed deltas may be older.
        """
        return self._reflector.last_sync_resource_version

    def statistics(self) -> ReflectorStatistics:
        """Return the statistics of the reflector."""
        return self._reflector.statistics()

    async def change_shard(self, shard: ShardSelector) -> None:
        """Let the reflector continue with another shard, and wait until its new ranges are in the queue."""
        await self._reflector.change_shard(shard)

    async def run(self) -> None:
        """Run until canceled.

        You can call it only once, because it closes the queue.

        When it returns, all tasks that it started have ended.
        """
        tasks = [
            asyncio.create_task(self._reflector.run(), name=f"reflector of {self.name}"),
            asyncio.create_task(self._process_loop(), name=f"process loop of {self.name}"),
        ]
        if self._config.resync_period > 0:
            tasks.append(asyncio.create_task(self._resync_loop(), name=f"resync of {self.name}"))
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._queue.close()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        for task in done:
            task.result()

    async def _process_loop(self) -> None:
        """Process the queue whenever ``_consume`` cannot process it directly during a write."""
        try:
            while True:
                until, self._until = self._until, None
                if until is None:
                    until = self._drain()
                if until is not None:
                    await until
                elif self._queue.closed:
                    return
                else:
                    await self._queue.arrival()
        finally:
            if (close := getattr(self._until, "close", None)) is not None:
                close()

    def _consume(self) -> bool:
        self._until = self._drain()
        return self._until is None

    def _drain(self) -> Awaitable[None] | None:
        """Process the queue, and return an awaitable if processing must pause."""
        queue, room, popped = self._queue, self._config.room, 0
        while queue.waiting:
            if popped == _POPS_PER_TURN:
                return asyncio.sleep(0)  # a long queue must not starve other tasks
            if room is not None and not self._has_room and (until_room := room()) is not None:
                return self._wait_for_room(until_room)
            self._has_room = False
            popped += 1
            try:
                unfinished = queue.process_next(self._process)
            except Exception as error:  # noqa: BLE001 - logged, so that processing continues
                self._lost(error)
                if self._config.retry_on_error:
                    return asyncio.sleep(_RETRY_DELAY)
            else:
                if unfinished is not None:
                    return self._finish(unfinished)
        return None

    async def _wait_for_room(self, until_room: Awaitable[None]) -> None:
        await until_room
        self._has_room = True

    async def _finish(self, unfinished: Awaitable[None]) -> None:
        try:
            await unfinished
        except Exception as error:  # noqa: BLE001 - logged, so that processing continues
            self._lost(error)
            if self._config.retry_on_error:
                await asyncio.sleep(_RETRY_DELAY)

    def _lost(self, error: Exception) -> None:
        extra = {"controller": self.name, "retried": self._config.retry_on_error}
        now = asyncio.get_running_loop().time()
        self._errors.log(_logger, logging.ERROR, "processing deltas failed", error, now=now, extra=extra)

    def _process_again(self, deltas: Deltas[Resource], is_in_initial_list: bool) -> Awaitable[None] | None:
        """Call ``process``, and requeue the deltas if it raises."""
        try:
            unfinished = self._config.process(deltas, is_in_initial_list)
        except RequeueError:
            raise
        except Exception as error:
            raise RequeueError(error) from error
        return None if unfinished is None else self._await_again(unfinished)

    async def _await_again(self, unfinished: Awaitable[None]) -> None:
        try:
            await unfinished
        except RequeueError:
            raise
        except Exception as error:
            raise RequeueError(error) from error

    async def _resync_loop(self) -> None:
        period = max(self._config.resync_period, MINIMUM_RESYNC_PERIOD)
        await self._queue.wait_for_sync()
        while True:
            await asyncio.sleep(period)
            self._queue.resync()

    def __repr__(self) -> str:
        return f"<Controller {self.name}: {self._queue!r}>"
