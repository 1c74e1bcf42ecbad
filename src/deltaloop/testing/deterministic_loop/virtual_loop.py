"""Event loop in virtual time: a sleep of an hour takes no real time, and ends after exactly one hour.

Without ready I/O, time jumps to the next timer. Without timers and working threads, the loop raises ``StalledError``,
which names the waiting tasks, instead of hanging.

Sockets work between peers on the same loop. Peers in other threads or processes do not work, because time would jump
while they compute. The clock stops while threads work that the loop started.
"""

# ruff: noqa: SLF001 - asyncio has no public way to take a turn

from __future__ import annotations

import asyncio
import contextvars
import math
import selectors
import threading
from collections import deque
from collections.abc import Callable, Coroutine, Generator, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from heapq import heapify, heappop, heappush
from typing import Any, Final, TypeVar, TypeVarTuple, final

from deltaloop.testing.deterministic_loop.memory_network import MemoryNetwork
from deltaloop.testing.deterministic_loop.processes import ProcessLoop, is_gone
from deltaloop.testing.deterministic_loop.thread_turns import ThreadTurns

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

_REAL_WAIT = 0.01
_WAITS_BEFORE_STALLED = 20
_ROOM_WITHIN = 0.1
_CANCELLED_TIMERS = 50  # canceled timers that are kept before a clean-up


class StalledError(RuntimeError):
    """Error of a test that waits forever: no timer is set, no I/O is ready and no thread works."""


class _ThreadCount:
    """Thread-safe number of threads that work for the loop."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._count = 0

    def __bool__(self) -> bool:
        return self._count > 0

    def add(self, change: int) -> None:
        with self._lock:
            self._count += change

    def running(self, func: Callable[[*Ts], T]) -> Callable[[*Ts], T]:
        def counted(*args: *Ts) -> T:
            self.add(1)
            try:
                return func(*args)
            finally:
                self.add(-1)

        return counted


class _VirtualSelector(selectors.BaseSelector):
    """Selector that returns immediately, and advances the loop's time instead of waiting."""

    def __init__(self, now: float) -> None:
        self._real = selectors.DefaultSelector()
        self._files = 0
        self._empty_waits = 0
        self._turns = self._answer_at = 0
        self._waiters: list[tuple[asyncio.Future[bool], int]] = []  # futures of ``idle``, and the turn of their timeout
        self._senders: set[int] = set()  # descriptors that wait for buffer space
        self._stuck: set[int] = set()  # senders that did not get buffer space
        self.now = now
        self.resolution = _resolution(now)
        self.threads = _ThreadCount()
        self.next_timer_at: Callable[[], float | None] = lambda: None
        self.who_waits: Callable[[], str] = lambda: ""
        self.notes: list[str] = []
        self._stalled_with: list[str] = []

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        # Only threads write to the loop's own descriptor, and their callbacks are ready anyway, so skip the poll.
        waits = timeout is None or timeout > 0
        events = self._real.select(0) if waits or self._files > 1 else []
        if events:
            self._stuck = set()
        elif waits and self._senders != self._stuck:
            events = self._real.select(_ROOM_WITHIN)
            self._stuck = set() if events else set(self._senders)
        if events or not waits:
            self._empty_waits = 0
            self._turns += 1
            if self._waiters and self._turns >= self._answer_at:
                self._answer(idle=False)
            return events
        if self.threads:
            self._empty_waits = 0
            return self._real.select(_REAL_WAIT)
        if self._waiters:
            self._answer(idle=True)
            return []
        if timeout is None:
            return self._wait_or_stall()
        self._jump(timeout)
        self._empty_waits = 0
        return []

    def wait(self, waiter: asyncio.Future[bool], turns: int) -> None:
        """Set a future to True when the loop is idle, or to False after a number of turns."""
        self._waiters.append((waiter, self._turns + turns))
        self._answer_at = min(until for _, until in self._waiters)

    def not_idle(self) -> None:
        self._waiters = [(waiter, self._turns) for waiter, _ in self._waiters]
        self._answer(idle=False)

    def _answer(self, *, idle: bool) -> None:
        due = [waiter for waiter, until in self._waiters if idle or until <= self._turns]
        self._waiters = [entry for entry in self._waiters if entry[0] not in due]
        self._answer_at = min((until for _, until in self._waiters), default=0)
        for waiter in due:
            if not waiter.done():
                waiter.set_result(idle)

    def _jump(self, timeout: float) -> None:
        # Jump to the timer's own time, because adding the timeout could miss it by a rounding error, and the loop
        # limits timeouts to a day.
        timer_at = self.next_timer_at()
        self.now = max(self.now, self.now + timeout if timer_at is None else timer_at)
        self.resolution = _resolution(self.now)

    def _wait_or_stall(self) -> list[tuple[selectors.SelectorKey, int]]:
        # Give callbacks from other threads (call_soon_threadsafe) a moment of real time to arrive.
        events = self._real.select(_REAL_WAIT)
        if events:
            self._empty_waits = 0
            return events
        self._empty_waits += 1
        if self._empty_waits > _WAITS_BEFORE_STALLED:
            self._empty_waits = 0
            error = StalledError(f"the test cannot continue: no timer, I/O or thread is pending{self.who_waits()}")
            self._stalled_with = [*self.notes] or self._stalled_with  # the clean-up after an error can stall as well
            for note in self._stalled_with:
                error.add_note(note)
            raise error
        return []

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        self._files += 1
        return self._noted(self._real.register(fileobj, events, data))

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        key = self._real.unregister(fileobj)
        self._files -= 1
        self._senders.discard(key.fd)
        return key

    def modify(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._noted(self._real.modify(fileobj, events, data))

    def _noted(self, key: selectors.SelectorKey) -> selectors.SelectorKey:
        if key.events & selectors.EVENT_WRITE:
            self._senders.add(key.fd)
        else:
            self._senders.discard(key.fd)
        return key

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._real.get_map()

    def close(self) -> None:
        self._real.close()


@final
class _Handle(asyncio.TimerHandle):
    """Handle of a step or, with ``when``, of a timer. A loop without debug mode makes it with one call."""

    __slots__ = ()
    _context: contextvars.Context
    _loop: Any
    _repr: str | None
    _scheduled: bool
    _source_traceback: Any
    _when: Any

    def __init__(
        self, callback: Any, args: Any, loop: Any, context: contextvars.Context | None, when: float | None = None
    ) -> None:
        self._context = contextvars.copy_context() if context is None else context
        self._loop, self._callback, self._args, self._when = loop, callback, args, when
        self._cancelled, self._scheduled = False, when is not None
        self._repr = self._source_traceback = None

    def __lt__(self, other: Any) -> bool:
        is_first: bool = self._when < other._when
        return is_first


@final
class VirtualLoop(ProcessLoop):
    """asyncio event loop in virtual time; ``time()`` begins at ``start`` and jumps from timer to timer.

    Attributes:
        is_virtual: True, so the clock cannot measure slow or blocking code.
        turns: Schedule by which threads take turns (``thread_turns.py``); None runs threads in parallel to the loop.
    """

    is_virtual: Final = True
    _debug: bool  # asyncio's own attribute, like the next two
    _ready: deque[asyncio.Handle]
    _scheduled: list[Any]

    def __init__(self, *, start: float = 0.0, network: MemoryNetwork | None = None) -> None:
        """Make a loop.

        Args:
            start: Initial virtual time in seconds.
            network: In-memory network for its TCP connections; None uses the machine's.
        """
        self.network = network
        self.turns: ThreadTurns | None = None
        self._virtual_selector = _VirtualSelector(start)
        super().__init__(self._virtual_selector)
        self._virtual_selector.next_timer_at = self._next_timer_at
        self._virtual_selector.who_waits = self._who_waits

    @property
    def _clock_resolution(self) -> float:
        """Distance in seconds within which two timers are due together; asyncio reads it in every turn."""
        return self._virtual_selector.resolution

    @_clock_resolution.setter
    def _clock_resolution(self, _: float) -> None:
        """Ignore the value that asyncio sets."""

    def time(self) -> float:
        """Return the virtual time in seconds, as the clock of the caller's process shows it."""
        now = self._virtual_selector.now
        return self.seen(now) if self._slowed else now

    async def idle(self, *, turns: int = 10_000) -> bool:
        """Wait until the loop is idle before its next timer, and return whether that happened.

        Virtual time does not advance meanwhile.

        Args:
            turns: Maximum number of turns of the loop, because a task that keeps waking itself never becomes idle.
        """
        waiter: asyncio.Future[bool] = self.create_future()
        self._virtual_selector.wait(waiter, turns)
        return await waiter

    def not_idle(self) -> None:
        """Make the current calls of ``idle`` return False."""
        self._virtual_selector.not_idle()

    @contextmanager
    def noted(self, note: str) -> Generator[None, None, None]:
        """Add a note to a ``StalledError`` that ends this block; code in the block cannot catch that error."""
        self._virtual_selector.notes.append(note)
        try:
            yield
        finally:
            self._virtual_selector.notes.remove(note)

    def call_soon(
        self, callback: Callable[[*Ts], object], *args: *Ts, context: contextvars.Context | None = None
    ) -> asyncio.Handle:
        """Schedule a callback; unlike asyncio, reject calls from other threads without debug mode as well.

        Raises:
            RuntimeError: If the loop runs in a different thread.
        """
        if self._runs_in is not None and self._runs_in != threading.get_ident():
            raise _wrong_thread("call_soon")
        if self._runs_in is None or self._debug or (self._crashes and is_gone(context)):
            return super().call_soon(callback, *args, context=context)
        # Inlined from asyncio to avoid five calls, because this is the loop's most frequent operation.
        handle = _Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    def call_at(
        self, when: float, callback: Callable[[*Ts], object], *args: *Ts, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        """Schedule a callback at a time; like ``call_later``, reject calls from other threads.

        Raises:
            RuntimeError: If the loop runs in a different thread.
        """
        if self._runs_in is not None and self._runs_in != threading.get_ident():
            raise _wrong_thread("call_at")
        if self._runs_in is None or self._debug or self._slowed or (self._crashes and is_gone(context)):
            return super().call_at(when, callback, *args, context=context)
        timer = _Handle(callback, args, self, context, when)
        heappush(self._scheduled, timer)
        return timer

    def run_in_executor(self, executor: Executor | None, func: Callable[[*Ts], T], *args: *Ts) -> asyncio.Future[T]:
        """Run a function in a thread; virtual time stops until it returns, or it takes turns with the loop."""
        if self.turns is not None and self.turns.takes(executor):
            in_turn = self.turns.start(executor, func, *args)
            self.not_missed(in_turn)
            return in_turn
        # Count twice: the loop until it has the result, and the thread until it has returned, which is later if the
        # caller was canceled. Functions in process pools cannot count themselves.
        threads = self._virtual_selector.threads
        if executor is None or isinstance(executor, ThreadPoolExecutor):
            func = threads.running(func)
        # Use a context outside all processes, because a crashed process would never count down.
        context = contextvars.Context()
        start = super().run_in_executor
        future = context.run(lambda: start(executor, func, *args))
        threads.add(1)
        future.add_done_callback(lambda _: threads.add(-1), context=context)
        return future

    def _run_once(self) -> None:
        """Run one turn like asyncio; simulations spend most of their time in this function."""
        if self.turns is not None and self.turns.resting:
            self.turns.go_on()
        inside: Any = self
        selector, ready, timers = self._virtual_selector, inside._ready, self._scheduled
        later = self._put_off() if self.order is not None or self._pauses else []
        try:
            if inside._timer_cancelled_count > _CANCELLED_TIMERS and 2 * inside._timer_cancelled_count > len(timers):
                timers[:] = [timer for timer in timers if not timer._cancelled]
                heapify(timers)
                inside._timer_cancelled_count = 0
            while timers and timers[0]._cancelled:
                heappop(timers)._scheduled = False
                inside._timer_cancelled_count -= 1
            idle = not (ready or inside._stopping)
            events = selector.select((timers[0]._when - selector.now if timers else None) if idle else 0)
            if events:
                inside._process_events(events)
            until = selector.now + selector.resolution
            while timers and timers[0]._when < until:
                timer = heappop(timers)
                timer._scheduled = False
                # The clock shows the timer's time: a task that sleeps until a deadline would otherwise sleep again.
                selector.now = max(selector.now, timer._when)
                ready.append(timer)
            for _ in range(len(ready)):
                handle = ready.popleft()
                if not handle._cancelled:
                    handle._run()
        finally:
            ready.extend(later)

    async def shutdown_default_executor(self, *_: object, **__: object) -> None:
        """Wait in real time for the default executor, because a virtual timeout would expire at once."""
        self._virtual_selector.threads.add(1)
        try:
            await super().shutdown_default_executor()
        finally:
            self._virtual_selector.threads.add(-1)

    def _next_timer_at(self) -> float | None:
        return self._scheduled[0].when() if self._scheduled else None

    def _who_waits(self) -> str:
        waiting = sorted(f"{task.get_name()} ({_place_of(task)})" for task in asyncio.all_tasks(self))
        shown = "; ".join(waiting[:10]) + ("; ..." if len(waiting) > 10 else "")
        return f"; waiting: {shown}" if waiting else ""


def _resolution(now: float) -> float:
    """Return the distance in seconds within which two times are equal.

    Below the spacing of floats, timers never end.
    """
    return max(1e-9, 2 * math.ulp(now))


def _wrong_thread(name: str) -> RuntimeError:
    return RuntimeError(f"{name} must be called from the thread of the loop. Use call_soon_threadsafe.")


def _place_of(task: asyncio.Task[Any]) -> str:
    frames = task.get_stack(limit=1)
    code = frames[0].f_code if frames else None
    return f"{code.co_name}, line {frames[0].f_lineno}" if code is not None else "not started"


def run_virtual(
    main: Coroutine[Any, Any, T],
    *,
    start: float = 0.0,
    debug: bool | None = None,
    network: MemoryNetwork | None = None,
) -> T:
    """Run a coroutine in virtual time, as ``asyncio.run`` does in real time.

    Args:
        main: Coroutine to run.
        start: Initial virtual time in seconds.
        debug: Whether to enable asyncio's debug mode; None uses asyncio's default (``PYTHONASYNCIODEBUG``,
            ``python -X dev``).
        network: In-memory network for connections, ``MemoryNetwork()``; None uses the machine's TCP.

    Raises:
        StalledError: If the coroutine waits forever.
    """

    def make_loop() -> asyncio.AbstractEventLoop:
        return VirtualLoop(start=start, network=network)

    with asyncio.Runner(debug=debug, loop_factory=make_loop) as runner:
        return runner.run(main)
