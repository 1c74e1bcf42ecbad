"""One run for all who wait, in all event loops and threads of the process: the first one starts it, the others join.

The renewal of a lease has a loop in a thread of its own, and shares the credentials with the work's loop; a refresh
token that both sent would be sent twice, for which an issuer with rotation revokes it.

While one loop asks, the run is a task of that loop. Once a second one has asked, runs have a thread and a loop of their
own, so that no loop waits for another one that is blocked. A run goes on while anybody waits, and is cancelled, and
waited for, with the last one; a run that ``finishes`` goes on all the same. One whose loop ended under it is begun
again by those who still wait. A forked process has runs of its own.
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
    """The loop of a run ended before the run did."""


class _Flight(Generic[T]):
    """A run: where it is, who waits, and what came of it."""

    def __init__(self, loop: asyncio.AbstractEventLoop | None) -> None:
        self.loop = loop
        self.task: asyncio.Task[T] | None = None
        self.outcome: Future[T] = Future()
        self.waiting = 0
        self.unwanted = False

    def begin(self, work: Callable[[], Coroutine[Any, Any, T]], name: str) -> None:
        """Begin on the running loop, or in a thread."""
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
        """End the run; from any thread."""
        self.unwanted = True
        loop, task = self.loop, self.task
        if loop is not None and task is not None:
            with suppress(RuntimeError):  # the loop is closed, and the run with it
                loop.call_soon_threadsafe(task.cancel)

    def is_lost(self) -> bool:
        """Tell whether the run will never end, because its loop was closed."""
        return not self.outcome.done() and self.loop is not None and self.loop.is_closed()


@final
class SingleFlight(Generic[T]):
    """Shares the runs of one piece of work."""

    def __init__(self, work: Callable[[], Coroutine[Any, Any, T]], *, name: str, finishes: bool = False) -> None:
        """Share ``work``.

        Args:
            work: What to run.
            name: Name of its task, and of its thread.
            finishes: Whether a run goes on when nobody waits for it any more, because it cannot be done twice.
        """
        self._work = work
        self._name = name
        self._finishes = finishes
        self._lock = fork_safe(threading.Lock(), self._in_child)
        self._flight: _Flight[T] | None = None
        self._loops: weakref.WeakSet[asyncio.AbstractEventLoop] = weakref.WeakSet()

    async def join(self) -> T:
        """Wait for the run that is under way, or start one. Raises what the work raises."""
        while True:
            flight = self._board(asyncio.get_running_loop())
            with suppress(_LostError):
                return await self._wait(flight)

    def _in_child(self, held: bool) -> None:
        """Forget the run of the parent's, whose threads are not in a forked process."""
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
            if last and not flight.is_lost():  # nothing can be waited for when who waits is dropped with its loop
                flight.cancel()
                await _until_done(flight)
        if not flight.outcome.done():
            raise _LostError
        return flight.outcome.result()


async def _until_done(flight: _Flight[Any]) -> None:
    """Wait until a run has ended, wherever it is, or its loop was closed under it."""
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()

    def tell(_: object) -> None:
        with suppress(RuntimeError):  # who waited is gone
            loop.call_soon_threadsafe(ended.set)

    flight.outcome.add_done_callback(tell)
    while not ended.is_set() and not flight.is_lost():
        # Nothing tells of a loop that was closed with a run on it. One's own is not.
        with suppress(TimeoutError):
            async with asyncio.timeout(None if flight.loop is loop else _LOOK_EVERY):
                await ended.wait()
