"""An event loop whose time is virtual: a wait of an hour takes no time, and ends at exactly one hour.

The loop asks its selector without waiting. If there is I/O, it is handled at the present time; if there is none, time
jumps to the next timer. When neither is left and no thread is at work for the loop, nothing can ever happen again, and
``StalledError`` says so at once instead of letting a test hang.

Sockets: peers on the same loop work, because a byte that was sent on loopback can be read before the loop next looks. A
peer in another thread or process does not: while it thinks, time would jump. Use the real clock for those.

Threads started through the loop (``run_in_executor``, ``asyncio.to_thread``) are waited for in real time.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Executor
from typing import Any, TypeVar, TypeVarTuple, final

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

_REAL_WAIT = 0.01
_WAITS_BEFORE_STALLED = 20


class StalledError(RuntimeError):
    """Nothing is scheduled, no I/O is ready and no thread is at work: the test waits for something that cannot come."""


class _VirtualSelector(selectors.BaseSelector):
    """Answers at once, and moves the loop's time instead of waiting."""

    def __init__(self) -> None:
        self._real = selectors.DefaultSelector()
        self.now = 0.0
        self.threads_at_work = 0
        self._empty_waits = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        events = self._real.select(0)
        if events or (timeout is not None and timeout <= 0):
            self._empty_waits = 0
            return events
        if self.threads_at_work:
            return self._real.select(_REAL_WAIT)
        if timeout is None:
            return self._wait_or_stall()
        self.now += timeout
        self._empty_waits = 0
        return []

    def _wait_or_stall(self) -> list[tuple[selectors.SelectorKey, int]]:
        # A callback from another thread may be on its way (call_soon_threadsafe); give it a moment of real time.
        events = self._real.select(_REAL_WAIT)
        if events:
            self._empty_waits = 0
            return events
        self._empty_waits += 1
        if self._empty_waits > _WAITS_BEFORE_STALLED:
            self._empty_waits = 0
            raise StalledError("nothing is left that could happen: no timer, no I/O, no thread")
        return []

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._real.register(fileobj, events, data)

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._real.unregister(fileobj)

    def modify(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._real.modify(fileobj, events, data)

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._real.get_map()

    def close(self) -> None:
        self._real.close()


@final
class VirtualLoop(asyncio.SelectorEventLoop):
    """An asyncio event loop in virtual time; ``time()`` begins at ``start`` and jumps from timer to timer."""

    def __init__(self, *, start: float = 0.0) -> None:
        """Make a loop whose clock shows ``start`` seconds."""
        self._virtual_selector = _VirtualSelector()
        self._virtual_selector.now = start
        super().__init__(self._virtual_selector)
        # Two timers within this distance are due together; the default of a real clock would merge exact times.
        self._clock_resolution = 1e-9

    def time(self) -> float:
        """Return the virtual time in seconds."""
        return self._virtual_selector.now

    def run_in_executor(self, executor: Executor | None, func: Callable[[*Ts], T], *args: *Ts) -> asyncio.Future[T]:
        """Run a function in a thread, holding virtual time until it has returned."""
        self._virtual_selector.threads_at_work += 1
        future = super().run_in_executor(executor, func, *args)
        future.add_done_callback(self._thread_done)
        return future

    def _thread_done(self, _: object) -> None:
        self._virtual_selector.threads_at_work -= 1


def run_virtual(main: Coroutine[Any, Any, T], *, start: float = 0.0, debug: bool = True) -> T:
    """Run a coroutine to its end in virtual time, as ``asyncio.run`` does in real time.

    Args:
        main: What to run.
        start: Virtual seconds at the beginning.
        debug: asyncio's debug mode; on by default, because this is for tests.

    Raises:
        StalledError: If it waits for something that cannot come.
    """

    def make_loop() -> asyncio.AbstractEventLoop:
        return VirtualLoop(start=start)

    with asyncio.Runner(debug=debug, loop_factory=make_loop) as runner:
        return runner.run(main)
