"""An event loop in a thread of its own, for programs that block.

Threads hand coroutines to the loop and wait. Ctrl-C in a waiting thread cancels the coroutine and goes on as usual.

Context managers entered by ``enter`` live on the loop, each in a task of its own, from its first step to its last: so
those that hold task groups or time limits work, too. ``close`` leaves them in reverse order, as nested ``async with``
blocks would.

A fork copies memory but no threads: in the child there is no loop behind this object, and a lock may be held for ever.
So each use compares the process id first, and raises.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any, TypeVar, final

from deltaloop.blocking.errors import BackgroundLoopError
from deltaloop.blocking.handoff import Handoff

T = TypeVar("T")

logger: logging.Logger = logging.getLogger("deltaloop.blocking")


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Guest:
    """A context manager that was entered on the loop: its task, and the sign for it to leave."""

    manager: AbstractAsyncContextManager[Any]
    leave: asyncio.Event
    task: asyncio.Task[None]


@final
class BackgroundLoop:
    """An event loop that runs in a thread until it is closed.

    ``with BackgroundLoop() as loop:`` does both.
    """

    def __init__(self, *, name: str = "deltaloop") -> None:
        """Prepare a loop; the thread begins with ``start`` or ``with``.

        Args:
            name: The thread's name.
        """
        self._name = name
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._stop = asyncio.Event()
        self._ended = False
        self._closed = False
        self._guests: list[_Guest] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._waiting_lock = threading.Lock()
        self._waiting: set[Handoff[Any]] = set()

    def start(self) -> None:
        """Begin the thread; return when the loop runs.

        Starting it again does nothing.

        Raises:
            BackgroundLoopError: If it was closed, or in a forked process.
        """
        self.check_process()
        with self._lock:
            if self._closed:
                raise BackgroundLoopError("the background loop is closed; make another one")
            if self._thread is not None:
                return
            started = Handoff[None]()
            # A daemon, so that a program that forgets to close it can end.
            self._thread = threading.Thread(target=self._run_loop, args=(started,), name=self._name, daemon=True)
            try:
                self._thread.start()
                started.wait()
                started.take()
            except BaseException as error:
                if isinstance(error, RuntimeError) and self._thread.ident is None:
                    self._thread = None  # the system has no thread left; it may be tried again
                else:  # no loop could be made, or Ctrl-C: whoever began it with `with` has no way to close it
                    self._closed = True
                    self._stop_soon()
                raise
        logger.debug("background loop started", extra={"loop": self._name})

    def close(self) -> None:
        """Leave what was entered, in reverse order, cancel everything else, and end the thread.

        Threads that wait for something get a ``BackgroundLoopError``. What leaving a context manager raises is raised
        when the thread has ended; of several, the first, and the others are logged.

        Closing it again waits for the end of the thread, if it has not ended yet. Interrupted (Ctrl-C), it waits no
        longer: what is still to be left is cancelled, and the thread ends by itself.

        Raises:
            BackgroundLoopError: If it is called on the loop's own thread, or in a forked process.
        """
        self.check_process()
        self._check_thread()
        with self._lock:
            failures: list[Exception] = []
            first = not self._closed
            if first:
                self._closed = True
                try:
                    failures = self._have_guests_leave()
                finally:
                    self._stop_soon()
            if self._thread is not None and self._thread.ident is not None:
                self._thread.join()
        if first:
            logger.debug("background loop closed", extra={"loop": self._name})
        for failure in failures[1:]:
            logger.error("leaving a context manager on the background loop failed", exc_info=failure)
        if failures:
            raise failures[0]

    def run(self, coroutine: Coroutine[Any, Any, T], *, timeout: float | None = None) -> T:
        """Run a coroutine on the loop and wait for what it returns or raises.

        Args:
            coroutine: What to run.
            timeout: Longest wait in seconds; the coroutine is cancelled then.

        Raises:
            TimeoutError: If it took longer.
            BackgroundLoopError: If the loop does not run, is closed meanwhile, or the caller runs on it.
        """
        return self.run_keeping(coroutine, timeout=timeout, unwanted=None)

    def run_keeping(
        self, coroutine: Coroutine[Any, Any, T], *, timeout: float | None, unwanted: Callable[[T], object] | None
    ) -> T:
        """Run a coroutine whose result must not be lost; otherwise as ``run``.

        Args:
            coroutine: What to run.
            timeout: Longest wait in seconds; the coroutine is cancelled then.
            unwanted: Called with a result that came when nobody waited for it any more.
        """
        handoff = Handoff[T]()
        tasks: list[asyncio.Task[None]] = []

        def begin() -> None:
            task = self._spawn(self._deliver(coroutine, handoff, unwanted))
            task.add_done_callback(lambda _: coroutine.close())  # cancelled before its first step, it was never awaited
            tasks.append(task)

        def cancel() -> None:
            for task in tasks:
                task.cancel()
            if not tasks:  # interrupted before it could begin
                coroutine.close()

        try:
            loop = self._loop_to_wait_for()
        except BaseException:
            coroutine.close()
            raise
        try:
            self._begin(loop, handoff, begin)
            if not handoff.wait(timeout):
                raise TimeoutError(f"it took longer than {timeout} seconds")
        except BackgroundLoopError:  # too late to begin
            coroutine.close()
            raise
        except BaseException:
            try:
                loop.call_soon_threadsafe(cancel)
            except RuntimeError:  # the loop is closed, and nothing runs there any more
                cancel()
            handoff.abandon_for(unwanted)
            raise
        finally:
            self._waiting.discard(handoff)
        try:
            return handoff.take()
        except BackgroundLoopError:
            coroutine.close()  # it may never have begun
            raise

    def enter(self, manager: AbstractAsyncContextManager[T]) -> T:
        """Enter an async context manager on the loop, and stay in it until ``close``.

        ``client = loop.enter(dl.connect())``, ``factory = loop.enter(dl.InformerFactory(client))``.

        Raises:
            BackgroundLoopError: If the loop does not run, or the caller runs on it.
            Exception: What entering raises.
        """
        entered = Handoff[T]()

        async def stay(leave: asyncio.Event) -> None:
            try:
                async with manager as value:
                    entered.deliver(value)
                    await leave.wait()
            except asyncio.CancelledError:
                entered.fail(BackgroundLoopError(self._why_cancelled()))
                raise
            except BaseException as error:
                if not entered.fail(error):
                    raise

        guests: list[_Guest] = []

        def begin() -> None:
            leave = asyncio.Event()
            guest = _Guest(manager, leave, self._spawn(stay(leave)))
            guests.append(guest)
            self._guests.append(guest)

        def forget() -> None:
            for guest in guests:
                guest.task.cancel()
                if guest in self._guests:
                    self._guests.remove(guest)

        loop = self._loop_to_wait_for()
        try:
            self._begin(loop, entered, begin)
            entered.wait()
        except BaseException:  # Ctrl-C: whoever waits will never know that it was entered
            with suppress(RuntimeError):  # the loop is closed, and has left it
                loop.call_soon_threadsafe(forget)
            raise
        finally:
            self._waiting.discard(entered)
        return entered.take()

    def leave(self, manager: AbstractAsyncContextManager[Any]) -> None:
        """Leave one context manager before ``close`` does it, and wait until it is left.

        One that is not entered, or was left already, is no error; nor is a loop that is closed, which has left it.

        Raises:
            BackgroundLoopError: If the caller runs on the loop, in a forked process, or the loop is closed meanwhile.
            Exception: What leaving raises.
        """
        self.check_process()
        self._check_thread()
        if self._loop is not None and not self._closed:
            self.run(self._leave(manager))

    def check(self) -> None:
        """Raise unless the loop runs.

        Raises:
            BackgroundLoopError: If it was not started, is closed, or is in another process.
        """
        self._running_loop()

    def check_process(self) -> None:
        """Raise in a forked process, where the thread of this loop does not exist and a lock may be held for ever.

        Raises:
            BackgroundLoopError: If this is not the process that made the loop.
        """
        if os.getpid() != self._process:
            raise BackgroundLoopError(
                f"the background loop belongs to process {self._process}, and this is a fork without its thread; "
                "make a new loop after the fork, and new clients and factories; multiprocessing avoids forks by the "
                "start method 'spawn'"
            )

    def __enter__(self) -> BackgroundLoop:
        self.start()
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self._closed else "new" if self._thread is None else "running"
        return f"<BackgroundLoop {self._name!r}, {state}>"

    # -- in any thread

    def _have_guests_leave(self) -> list[Exception]:
        loop = self._loop
        if loop is None:
            return []
        left = Handoff[list[Exception]]()
        try:
            self._begin(loop, left, lambda: self._spawn(self._leave_guests(left)))
            left.wait()
            return left.take()
        except BackgroundLoopError:  # the loop has ended by itself, by SystemExit say, and has left them
            return []

    def _stop_soon(self) -> None:
        if self._loop is not None:
            with suppress(RuntimeError):  # it is closed already
                self._loop.call_soon_threadsafe(self._stop.set)

    def _check_thread(self) -> None:
        if self._thread is threading.current_thread():
            raise BackgroundLoopError("this is the background loop's own thread, which must not wait for itself; await")

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        self.check_process()
        if self._closed:
            raise BackgroundLoopError("the background loop is closed; make another one")
        if self._loop is None:
            raise BackgroundLoopError("the background loop does not run yet; use `with` or call start()")
        return self._loop

    def _loop_to_wait_for(self) -> asyncio.AbstractEventLoop:
        loop = self._running_loop()
        self._check_thread()
        return loop

    def _begin(self, loop: asyncio.AbstractEventLoop, handoff: Handoff[Any], begin: Callable[[], object]) -> None:
        """Have ``begin`` called on the loop; if it comes too late for that, the handoff fails."""

        def begin_in_time() -> None:
            if self._stop.is_set() or self._ended:
                handoff.fail(BackgroundLoopError("the background loop was closed meanwhile"))
            else:
                begin()

        with self._waiting_lock:
            try:
                loop.call_soon_threadsafe(begin_in_time)
            except RuntimeError:  # the loop is closed, and its thread about to end
                raise BackgroundLoopError("the background loop was closed meanwhile") from None
            self._waiting.add(handoff)

    # -- in the loop's thread

    def _run_loop(self, started: Handoff[None]) -> None:
        try:
            with asyncio.Runner() as runner:
                try:
                    runner.run(self._live(started))
                finally:  # what begins from here on would not be among the tasks that the runner cancels
                    self._ended = True
        except BaseException as error:
            if not started.fail(error):
                raise
        finally:
            with self._waiting_lock:  # whoever comes after this finds the loop closed
                waiting = list(self._waiting)
            for handoff in waiting:  # what was cancelled before its first step could not say so
                handoff.fail(BackgroundLoopError("the background loop was closed meanwhile"))

    async def _live(self, started: Handoff[None]) -> None:
        self._loop = asyncio.get_running_loop()
        if self._closed:  # before it had begun, by whoever was interrupted: nobody saw the loop to stop it
            self._stop.set()
        started.deliver(None)
        await self._stop.wait()
        # The runner cancels what still runs, and waits for it.

    def _why_cancelled(self) -> str:
        if self._stop.is_set():
            return "the background loop was closed meanwhile"
        return "it was cancelled on the background loop, or the loop has ended by itself"

    def _spawn(self, coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(coroutine)
        self._tasks.add(task)  # the loop itself keeps only a weak reference
        task.add_done_callback(self._tasks.discard)
        return task

    async def _deliver(
        self, coroutine: Coroutine[Any, Any, T], handoff: Handoff[T], unwanted: Callable[[T], object] | None
    ) -> None:
        try:
            result = await coroutine
        except asyncio.CancelledError:
            handoff.fail(BackgroundLoopError(self._why_cancelled()))
            raise
        except BaseException as error:  # noqa: BLE001  # it is raised in the thread that waits
            handoff.fail(error)
        else:
            if not handoff.deliver(result) and unwanted is not None:
                unwanted(result)

    async def _leave(self, manager: AbstractAsyncContextManager[Any]) -> None:
        for guest in [guest for guest in self._guests if guest.manager is manager]:
            guest.leave.set()
            await asyncio.wait([guest.task])  # cancelled here, it goes on, and `close` still waits for it
            if guest in self._guests:
                self._guests.remove(guest)
            guest.task.result()

    async def _leave_guests(self, left: Handoff[list[Exception]]) -> None:
        failures: list[Exception] = []
        while self._guests:
            guest = self._guests.pop()
            guest.leave.set()
            results = await asyncio.gather(guest.task, return_exceptions=True)
            failures += [result for result in results if isinstance(result, Exception)]
        left.deliver(failures)
