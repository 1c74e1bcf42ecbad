"""Event loop in a background thread, for programs that use threads.

Each context manager that ``enter`` opens lives in a single task on the loop, because task groups and timeouts require
that. A forked process has no background thread, so each use first compares the process id.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass
from typing import Any, TypeVar, final

from deltaloop.blocking.errors import BackgroundLoopError
from deltaloop.blocking.handoff import Handoff

T = TypeVar("T")

logger: logging.Logger = logging.getLogger("deltaloop.blocking")


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Guest:
    """Context manager that was entered on the loop, with its task and the event that makes it exit."""

    manager: AbstractAsyncContextManager[Any]
    leave: asyncio.Event
    task: asyncio.Task[None]


@final
class BackgroundLoop:
    """Event loop that runs in a thread until it is closed.

    ``with BackgroundLoop() as loop:`` starts and closes it.
    """

    def __init__(self, *, name: str = "deltaloop") -> None:
        """Create the loop. ``start`` or ``with`` starts the thread.

        Args:
            name: Name of the thread.
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
        """Start the thread and wait until the loop runs.

        You can call it repeatedly.

        Raises:
            BackgroundLoopError: If the loop was closed, or in a forked process.
        """
        self.check_process()
        with self._lock:
            if self._closed:
                raise BackgroundLoopError("the background loop is closed. Create a new loop.")
            if self._thread is not None:
                return
            started = Handoff[None]()
            # A daemon, so that a program can exit without closing it.
            self._thread = threading.Thread(target=self._run_loop, args=(started,), name=self._name, daemon=True)
            try:
                self._thread.start()
                started.wait()
                started.take()
            except BaseException as error:
                if isinstance(error, RuntimeError) and self._thread.ident is None:
                    self._thread = None  # the system cannot create a thread now, so start() can be called again
                else:  # no loop, or Ctrl-C: a `with` block cannot close it
                    self._closed = True
                    self._stop_soon()
                raise
        logger.debug("background loop started", extra={"loop": self._name})

    def close(self) -> None:
        """Exit the entered context managers in reverse order, cancel all other coroutines, and stop the thread.

        Waiting threads get a ``BackgroundLoopError``. If context managers raise on exit, this method raises the first
        exception after the thread has ended, and logs the others.

        A second call waits until the thread has ended. After an interruption (Ctrl-C), it stops waiting, cancels the
        remaining exits, and the thread ends on its own.

        Raises:
            BackgroundLoopError: If it is called on the loop's thread, or in a forked process.
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
        """Run a coroutine on the loop, and return its result.

        Ctrl-C in the waiting thread cancels the coroutine.

        Args:
            coroutine: Coroutine to run.
            timeout: Timeout in seconds after which the coroutine is canceled, or None.

        Raises:
            TimeoutError: If the timeout expires.
            BackgroundLoopError: If the loop is not running or is closed while waiting, or if the caller runs on the
                loop.
        """
        return self.run_keeping(coroutine, timeout=timeout, unwanted=None)

    def run_keeping(
        self, coroutine: Coroutine[Any, Any, T], *, timeout: float | None, unwanted: Callable[[T], object] | None
    ) -> T:
        """Run a coroutine whose result must not be lost.

        Otherwise like ``run``.

        Args:
            coroutine: Coroutine to run.
            timeout: Timeout in seconds after which the coroutine is canceled, or None.
            unwanted: Function called with a result that arrives after the caller stopped waiting.
        """
        handoff = Handoff[T]()
        tasks: list[asyncio.Task[None]] = []

        def begin() -> None:
            task = self._spawn(self._deliver(coroutine, handoff, unwanted))
            task.add_done_callback(lambda _: coroutine.close())  # it may never have started
            tasks.append(task)

        def cancel() -> None:
            for task in tasks:
                task.cancel()
            if not tasks:  # interrupted before the start
                coroutine.close()

        try:
            loop = self._loop_to_wait_for()
        except BaseException:
            coroutine.close()
            raise
        try:
            self._begin(loop, handoff, begin)
            if not handoff.wait(timeout):
                raise TimeoutError(f"the call took longer than {timeout} seconds")
        except BackgroundLoopError:  # the loop stopped before the start
            coroutine.close()
            raise
        except BaseException:
            try:
                loop.call_soon_threadsafe(cancel)
            except RuntimeError:  # the loop is closed
                cancel()
            handoff.abandon_for(unwanted)
            raise
        finally:
            self._waiting.discard(handoff)
        try:
            return handoff.take()
        except BackgroundLoopError:
            coroutine.close()  # it may never have started
            raise

    def enter(self, manager: AbstractAsyncContextManager[T]) -> T:
        """Enter an async context manager on the loop.

        ``close`` exits it.

        For example, ``client = loop.enter(dl.connect())`` or ``factory = loop.enter(dl.InformerFactory(client))``.

        Raises:
            BackgroundLoopError: If the loop is not running, or if the caller runs on the loop.
            Exception: If entering raises it.
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
        except BaseException:  # Ctrl-C: the caller cannot exit it later
            with suppress(RuntimeError):  # the loop is closed and has exited it
                loop.call_soon_threadsafe(forget)
            raise
        finally:
            self._waiting.discard(entered)
        return entered.take()

    def leave(self, manager: AbstractAsyncContextManager[Any]) -> None:
        """Exit one context manager before ``close``, and wait until it has ended.

        It does nothing if the context manager is not entered or the loop is closed.

        Raises:
            BackgroundLoopError: If the caller runs on the loop, in a forked process, or if the loop is closed while
                waiting.
            Exception: If the exit raises it.
        """
        self.check_process()
        self._check_thread()
        if self._loop is not None and not self._closed:
            self.run(self._leave(manager))

    def check(self) -> None:
        """Check that the loop is running.

        Raises:
            BackgroundLoopError: If it was not started, is closed, or belongs to another process.
        """
        self._running_loop()

    def check_process(self) -> None:
        """Check that this process created the loop, because a forked process has no thread for it.

        Raises:
            BackgroundLoopError: If another process created the loop.
        """
        if os.getpid() != self._process:
            raise BackgroundLoopError(
                f"the background loop belongs to process {self._process}. Create loop, clients and factories after the "
                "fork, or use the multiprocessing start method 'spawn'."
            )

    def __enter__(self) -> BackgroundLoop:
        self.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
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
        except BackgroundLoopError:  # the loop has ended, for example by SystemExit
            return []

    def _stop_soon(self) -> None:
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._stop.set)

    def _check_thread(self) -> None:
        if self._thread is threading.current_thread():
            raise BackgroundLoopError("the thread of the background loop must not wait for itself. Use await.")

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        self.check_process()
        if self._closed:
            raise BackgroundLoopError("the background loop is closed. Create a new loop.")
        if self._loop is None:
            raise BackgroundLoopError("the background loop is not running. Use `with`, or call start().")
        return self._loop

    def _loop_to_wait_for(self) -> asyncio.AbstractEventLoop:
        loop = self._running_loop()
        self._check_thread()
        return loop

    def _begin(self, loop: asyncio.AbstractEventLoop, handoff: Handoff[Any], begin: Callable[[], object]) -> None:
        """Schedule ``begin`` on the loop. If the loop stops first, the handoff fails."""

        def begin_in_time() -> None:
            if self._stop.is_set() or self._ended:
                handoff.fail(BackgroundLoopError("the background loop was closed during the call"))
            else:
                begin()

        with self._waiting_lock:
            try:
                loop.call_soon_threadsafe(begin_in_time)
            except RuntimeError:  # the loop is closed
                raise BackgroundLoopError("the background loop was closed during the call") from None
            self._waiting.add(handoff)

    # -- in the loop's thread

    def _run_loop(self, started: Handoff[None]) -> None:
        try:
            with asyncio.Runner() as runner:
                try:
                    runner.run(self._live(started))
                finally:  # the runner would not cancel tasks that start after this point
                    self._ended = True
        except BaseException as error:
            if not started.fail(error):
                raise
        finally:
            with self._waiting_lock:  # later callers see that the loop is closed
                waiting = list(self._waiting)
            for handoff in waiting:  # tasks that were canceled before their first step
                handoff.fail(BackgroundLoopError("the background loop was closed during the call"))

    async def _live(self, started: Handoff[None]) -> None:
        self._loop = asyncio.get_running_loop()
        if self._closed:  # closed by an interrupted start(), before the loop existed
            self._stop.set()
        started.deliver(None)
        await self._stop.wait()
        # The runner cancels the remaining tasks and waits for them.

    def _why_cancelled(self) -> str:
        if self._stop.is_set():
            return "the background loop was closed during the call"
        return "it was cancelled on the background loop, or the loop has ended by itself"

    def _spawn(self, coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(coroutine)
        self._tasks.add(task)  # the loop only keeps a weak reference
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
        except BaseException as error:  # noqa: BLE001  # the waiting thread raises it
            handoff.fail(error)
        else:
            if not handoff.deliver(result) and unwanted is not None:
                unwanted(result)

    async def _leave(self, manager: AbstractAsyncContextManager[Any]) -> None:
        for guest in [guest for guest in self._guests if guest.manager is manager]:
            guest.leave.set()
            await asyncio.wait([guest.task])  # a cancellation does not reach the task, and `close` waits for it
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
