"""Watchdog thread that reports calls that block the event loop."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Self, final

from deltaloop._internal.pacing import Wait
from deltaloop._internal.tracebacks import thread_frames, waits_for_events
from deltaloop.runtime.core.watchdog import Blocked, Ping, Watchdog

if TYPE_CHECKING:
    from deltaloop.runtime.core.diagnosis import BlockedLoop

_logger: Final = logging.getLogger("deltaloop.runtime")

_SAME_CLOCK: Final = 5.0
_REMEMBERED: Final = 300.0


@final
class LoopWatchdog:
    """Log a warning with the stack while the running loop is blocked for longer than a limit."""

    def __init__(self, limit: float | None) -> None:
        """Keep the limit in seconds. None disables the watchdog."""
        self._limit = limit
        self._thread: threading.Thread | None = None
        self._ended = False
        self._changed = threading.Event()
        self._answered_at: float | None = None
        self.while_blocked: Callable[[float], object] | None = None
        self._block: tuple[str, tuple[str, ...], float, float | None] | None = None  # task, frames, begin, end

    @property
    def is_watching(self) -> bool:
        """Return whether the thread runs."""
        return self._thread is not None

    def block(self) -> BlockedLoop | None:
        """Return the call that blocks the loop, or that blocked it within the last minutes. Thread-safe."""
        known, now = self._block, time.monotonic()
        if known is None:
            return None
        task, where, since, until = known
        if until is not None and now - until > _REMEMBERED:
            return None
        from deltaloop.runtime.core.diagnosis import BlockedLoop

        return BlockedLoop(
            task=task,
            where=where,
            seconds=(now if until is None else until) - since,
            ended_ago=None if until is None else now - until,
        )

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        real = abs(loop.time() - time.monotonic()) < _SAME_CLOCK and not getattr(loop, "is_virtual", False)
        if self._limit is not None and real:
            watchdog = Watchdog(time.monotonic(), limit=self._limit)
            arguments = (watchdog, loop, threading.get_ident(), _processor_time_of_this_thread())
            self._thread = threading.Thread(target=self._watch, args=arguments, name="deltaloop-watchdog", daemon=True)
            self._thread.start()
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        self._ended = True
        self._changed.set()
        if self._thread is not None:
            self._thread.join()

    def _watch(
        self, watchdog: Watchdog, loop: asyncio.AbstractEventLoop, thread_id: int, used: Callable[[], float]
    ) -> None:
        while not self._ended:
            answered_at, self._answered_at = self._answered_at, None
            if answered_at is not None:
                blocked_for = watchdog.answered(answered_at)
                if blocked_for is not None:
                    if self._block is not None:
                        self._block = (*self._block[:3], answered_at)
                    _logger.warning("event loop is running again", extra={"seconds": round(blocked_for, 3)})
            match watchdog.ask(time.monotonic(), used()):
                case Ping() if waits_for_events(thread_id):
                    self._answered_at = time.monotonic()
                case Ping():
                    with contextlib.suppress(RuntimeError):  # the loop was closed before the watchdog ended
                        loop.call_soon_threadsafe(self._answer)
                case Blocked(seconds):
                    self._name(loop, thread_id, seconds)
                case Wait(until):
                    seconds, answer = max(0.0, until - time.monotonic()), self.while_blocked
                    if answer is not None and self._block is not None and self._block[3] is None:
                        answer(seconds)
                    else:
                        self._changed.wait(seconds)
                        self._changed.clear()

    def _answer(self) -> None:
        self._answered_at = time.monotonic()
        self._changed.set()

    def _name(self, loop: asyncio.AbstractEventLoop, thread_id: int, seconds: float) -> None:
        stack = thread_frames(thread_id)
        task = asyncio.current_task(loop)
        if self._answered_at is not None:
            return  # the loop continued meanwhile, so the stack belongs to another call
        own = thread_frames(thread_id, own=True)
        name = "" if task is None else task.get_name()
        began_at = time.monotonic() - seconds
        if self._block is None or self._block[3] is not None:
            self._block = name, tuple(own), began_at, None
        _logger.warning(
            "event loop is blocked: use asyncio.to_thread or an async library for blocking calls",
            extra={"seconds": round(seconds, 3), "task": name, "stack": stack},
        )


def _processor_time_of_this_thread() -> Callable[[], float]:
    """Return a function that returns this thread's processor time in seconds, callable from any thread."""
    try:
        clock = time.pthread_getcpuclockid(threading.get_ident())
    except (AttributeError, OSError):  # not supported on this platform, so every late response counts as blocking
        return time.monotonic
    return lambda: time.clock_gettime(clock)
