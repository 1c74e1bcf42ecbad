"""Deduplicate concurrent calls across event loops and threads.

If two loops sent the same refresh token, an issuer with rotation would revoke it.

While one loop calls, the run is a task of this loop. After a second loop has called, runs get a separate thread and
loop. A run is canceled when its last caller is canceled, unless it ``finishes``. If the loop of a run is closed, the
remaining callers start a new run.
"""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Final, Generic, TypeVar, final

from deltaloop._internal.fork_safety import fork_safe

T = TypeVar("T")

_LOOK_EVERY: Final = 0.2


class _LostError(Exception):
    """The event loop of a run was closed before the run ended."""


class _Flight(Generic[T]):
    def __init__(self, loop: asyncio.AbstractEventLoop | None) -> None:
        self.loop = loop
        self.task: asyncio.Task[T] | None = None
        self.outcome: Future[T] = Future()
        self.waiting = 0
        self.unwanted = False

    def begin(self, work: Callable[[], Coroutine[Any, Any, T]], name: str) -> None:
        """Start the run on the running loop, or in a thread."""
        if self.loop is not None:
            self._start(work, name)
        else:
            threading.Thread(target=self._run, args=(work, name), name=name, daemon=True).start()

    def _run(self, work: Callable[[], Coroutine[Any, Any, T]], name: str) -> None:
        async def run() -> None:
            self.loop = asyncio.get_running_loop()
            task = self._start(work, name)
            if self.unwanted:
                task.cancel()
            await asyncio.wait([task])

        try:
            asyncio.run(run())
        finally:
            if not self.outcome.done():
                self.outcome.set_exception(_LostError())

    def _start(self, work: Callable[[], Coroutine[Any, Any, T]], name: str) -> asyncio.Task[T]:
        self.task = asyncio.get_running_loop().create_task(work(), name=name)
        self.task.add_done_callback(self._ended)
        return self.task

    def _ended(self, task: asyncio.Task[T]) -> None:
        error = _LostError() if task.cancelled() else task.exception()
        if error is not None:
            self.outcome.set_exception(error)
        else:
            self.outcome.set_result(task.result())

    def cancel(self) -> None:
        self.unwanted = True
        loop, task = self.loop, self.task
        if loop is not None and task is not None:
            with suppress(RuntimeError):  # the loop is closed, which ends the run
                loop.call_soon_threadsafe(task.cancel)

    def is_lost(self) -> bool:
        """Return whether the run will never end, because its loop was closed."""
        return not self.outcome.done() and self.loop is not None and self.loop.is_closed()


@final
class SingleFlight(Generic[T]):
    def __init__(self, work: Callable[[], Coroutine[Any, Any, T]], *, name: str, finishes: bool = False) -> None:
        """Create the deduplication of ``work``. With ``finishes``, a run continues after all callers were canceled."""
        self._work = work
        self._name = name
        self._finishes = finishes
        self._lock = fork_safe(threading.Lock(), self._in_child)
        self._flight: _Flight[T] | None = None
        self._loops: weakref.WeakSet[asyncio.AbstractEventLoop] = weakref.WeakSet()

    async def join(self) -> T:
        """Join the current run, or start a run. Errors of the run are raised."""
        while True:
            flight = self._board(asyncio.get_running_loop())
            with suppress(_LostError):
                return await self._wait(flight)

    def _in_child(self, held: bool) -> None:
        """Forget the run of the parent process, whose threads do not exist in a fork."""
        del held
        self._flight = None
        self._loops = weakref.WeakSet()

    def _board(self, loop: asyncio.AbstractEventLoop) -> _Flight[T]:
        with self._lock:
            flight = self._flight
            self._loops.add(loop)
            open_loops = sum(not known.is_closed() for known in self._loops)
            if flight is None or flight.outcome.done() or flight.is_lost():
                flight = self._flight = _Flight(loop if open_loops == 1 else None)
                flight.begin(self._work, self._name)
            flight.waiting += 1
            return flight

    async def _wait(self, flight: _Flight[T]) -> T:
        try:
            await _until_done(flight)
        finally:
            with self._lock:
                flight.waiting -= 1
                last = not flight.waiting and not flight.outcome.done() and not self._finishes
                if last and self._flight is flight:
                    self._flight = None
            if last and not flight.is_lost():  # do not wait if the caller's loop was closed
                flight.cancel()
                await _until_done(flight)
        if not flight.outcome.done():
            raise _LostError
        return flight.outcome.result()


async def _until_done(flight: _Flight[Any]) -> None:
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()

    def tell(_: object) -> None:
        with suppress(RuntimeError):  # the caller's loop is closed
            loop.call_soon_threadsafe(ended.set)

    flight.outcome.add_done_callback(tell)
    while not ended.is_set() and not flight.is_lost():
        # Closing a loop sends no notification, so poll the loops of other threads.
        with suppress(TimeoutError):
            async with asyncio.timeout(None if flight.loop is loop else _LOOK_EVERY):
                await ended.wait()
