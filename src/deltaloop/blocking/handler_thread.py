"""Thread that calls one event handler.

    informer ──▶ its listener (buffer, task on the loop) ──▶ HandlerThread ──▶ the handler, in its thread
                                                  ▲───────── returned or raised ─────────┘

For the informer, this is an ``async def`` handler that waits for the thread, so a handler that blocks only delays its
own buffer.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from queue import SimpleQueue
from typing import Any, Final, Generic, TypeVar, final

from deltaloop.blocking.errors import HandlerStillRunningError
from deltaloop.cache import ReceivedObjectHandler, ResourceEventHandler
from deltaloop.cache.handlers import takes_resources

T = TypeVar("T")

_logger: Final = logging.getLogger("deltaloop.blocking")
_WARNING_INTERVAL: Final = 5.0


@dataclass(frozen=True, slots=True, eq=False)
class _Call:
    function: Callable[[], object]
    loop: asyncio.AbstractEventLoop
    answer: asyncio.Future[object]


@final
class HandlerThread(Generic[T]):
    """Handler for an informer that calls another handler in a thread."""

    def __init__(self, handler: ResourceEventHandler[T] | ReceivedObjectHandler, *, name: str) -> None:
        """Create the handler without starting its thread."""
        self.name = name
        self._handler: ResourceEventHandler[Any] = handler
        self.takes_resources: bool = takes_resources(handler)
        self._calls = SimpleQueue[_Call | None]()
        # A daemon, so that the program can exit even if a handler never returns.
        self._thread = threading.Thread(target=self._work, name=f"deltaloop handler {name}", daemon=True)

    # On the loop

    async def on_add(self, obj: T, *, is_in_initial_list: bool) -> None:
        await self._call(partial(self._handler.on_add, obj, is_in_initial_list=is_in_initial_list))

    async def on_update(self, old: T, new: T) -> None:
        await self._call(partial(self._handler.on_update, old, new))

    async def on_delete(self, obj: T, *, final_state_known: bool) -> None:
        await self._call(partial(self._handler.on_delete, obj, final_state_known=final_state_known))

    async def _call(self, function: Callable[[], object]) -> None:
        loop = asyncio.get_running_loop()
        call = _Call(function, loop, loop.create_future())
        self._calls.put(call)
        result = await call.answer
        if inspect.isawaitable(result):
            await result

    # From any thread

    def start(self) -> None:
        self._thread.start()

    def end(self) -> None:
        """Stop after the current call. You can call it repeatedly."""
        self._calls.put(None)

    def join(self, timeout: float | None = None) -> bool:
        """Wait until the thread has ended, with a warning every 5 s."""
        if self._thread is threading.current_thread():
            return True
        until = None if timeout is None else time.monotonic() + timeout
        while True:
            left = _WARNING_INTERVAL if until is None else min(_WARNING_INTERVAL, max(0.0, until - time.monotonic()))
            self._thread.join(left)
            if not self._thread.is_alive():
                return True
            if until is not None and time.monotonic() >= until:
                return False
            _logger.warning("waiting for a handler that has not returned", extra={"handler": self.name})

    def __repr__(self) -> str:
        return f"<HandlerThread {self.name}, {'running' if self._thread.is_alive() else 'not running'}>"

    # In the thread

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            if call.answer.cancelled():  # the informer has stopped
                continue
            try:
                result, error = call.function(), None
            except Exception as raised:  # noqa: BLE001 - the informer reports it
                result, error = None, raised
            except BaseException as raised:  # noqa: BLE001 - SystemExit must not end the loop's thread
                result, error = None, _as_exception(raised)
            with suppress(RuntimeError):  # the loop is closed
                call.loop.call_soon_threadsafe(self._settle, call.answer, result, error)
            del call, result, error  # otherwise they stay alive until the next call

    def _settle(self, answer: asyncio.Future[object], result: object, error: Exception | None) -> None:
        if not answer.done():
            if error is None:
                answer.set_result(result)
            else:
                answer.set_exception(_as_exception(error) if isinstance(error, StopIteration) else error)
            return
        if inspect.iscoroutine(result):
            result.close()
        if error is not None:
            _logger.error(
                "handler raised after its informer had stopped",
                exc_info=error,
                extra={"handler": self.name},
            )


def _as_exception(error: BaseException) -> RuntimeError:
    """Wrap an exception that must not pass through a future or the event loop."""
    wrapped = RuntimeError(f"a handler raised {type(error).__name__}")
    wrapped.__cause__ = error
    return wrapped


def join_all(threads: Iterable[HandlerThread[T]], timeout: float | None) -> None:
    """Wait until all threads have ended, or raise HandlerStillRunningError after ``timeout`` seconds."""
    until = None if timeout is None else time.monotonic() + timeout
    late = [
        thread.name
        for thread in threads
        if not thread.join(None if until is None else max(0.0, until - time.monotonic()))
    ]
    if late:
        raise HandlerStillRunningError(late, waited=timeout or 0.0)
