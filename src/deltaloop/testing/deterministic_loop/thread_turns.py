"""Threads of an event loop take turns: one runs at a time, while the loop and the other threads wait.

    loop:     … a turn of the loop ─┐                    ┌─▶ … a turn of the loop ─┐
    thread 1:                       └─▶ until it waits ──┤                         │
    thread 2:                          (ready)           └─▶ until it waits ──▶ …  │

Ready threads run before the next turn of the loop, in order. A thread yields its turn when it ends or waits:
``ctx.wait``, ``Future.result``, ``Event.wait``, ``Queue.get``, ``Condition.wait``, and in a simulation ``time.sleep``.

Only threads that the loop starts take turns, each call in a separate thread. A thread that waits in another way (a
lock, a socket, a process) keeps the turn. After some seconds of real time, the loop logs a warning and continues in
parallel to it.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
from collections import deque
from collections.abc import Callable, Generator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from time import monotonic
from typing import Any, Final, TypeVar, TypeVarTuple, cast, final

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

_PATIENCE: Final = 5.0
_DEFAULT_SIZE: Final = 32  # size of the default pool, as on a machine with many processors
_log: Final = logging.getLogger("deltaloop.testing")
_own: Final = threading.local()
_wait: Final = threading.Condition.wait
_start: Final = threading.Thread.start  # the original method, before instrumentation replaces it


class _OverError(RuntimeError):
    """Error of a thread that waits for an event loop that has ended."""

    def __init__(self) -> None:
        super().__init__("the event loop has ended, so the wait of this thread cannot end")


@final
class _Turn:
    """One call in a separate thread."""

    def __init__(self, turns: ThreadTurns) -> None:
        self.turns: ThreadTurns = turns
        self.gate: threading.Lock = threading.Lock()
        self.gate.acquire()
        self.woken: threading.Lock | None = None  # unlocked by a notification
        self.late: bool = False  # whether its wait has timed out
        self.over: bool = False

    @property
    def ready(self) -> bool:
        """Whether it can continue; read by the loop while all threads wait."""
        return self.over or self.late or self.woken is None or not self.woken.locked()

    def wait(self, condition: Any, timeout: float | None) -> bool:
        """Wait for a condition like ``Condition.wait``, and let others run meanwhile."""
        if not condition._is_owned():  # noqa: SLF001
            raise RuntimeError("cannot wait on un-acquired lock")
        if self.over or self.turns.closed:
            raise _OverError
        self.woken = threading.Lock()
        self.woken.acquire()
        self.late = timeout is not None and timeout <= 0
        condition._waiters.append(self.woken)  # noqa: SLF001
        state = condition._release_save()  # noqa: SLF001
        try:
            self.rest(timeout)
            notified = not self.woken.locked()
            if not notified:
                condition._waiters.remove(self.woken)  # noqa: SLF001
        finally:
            self.woken = None
            condition._acquire_restore(state)  # noqa: SLF001
        if self.over and not notified:
            raise _OverError
        return notified

    def rest(self, timeout: float | None) -> None:
        if timeout is not None and not self.late:
            self.turns.tell_loop(self._wake_after, timeout)
        self.turns.give_back(self)
        self.gate.acquire()

    def sleep(self, seconds: float) -> None:
        condition = threading.Condition()
        with condition:
            self.wait(condition, seconds)

    def _wake_after(self, timeout: float) -> None:
        woken = self.woken

        def wake() -> None:
            if self.woken is woken:
                self.late = True

        self.turns.loop.call_later(timeout, wake)


@final
class _Pool:
    def __init__(self, executor: Executor | None) -> None:
        self.size: int = _DEFAULT_SIZE if executor is None else cast("int", vars(executor)["_max_workers"])
        self.running = 0
        self.queued: deque[Callable[[], None]] = deque()


@final
class ThreadTurns:
    """Scheduler by which the threads of one event loop take turns."""

    def __init__(self, loop: asyncio.AbstractEventLoop, *, patience: float = _PATIENCE) -> None:
        """Make a scheduler; a thread may keep the turn for ``patience`` seconds of real time."""
        self.loop: asyncio.AbstractEventLoop = loop
        self.closed: bool = False
        self.resting: deque[_Turn] = deque()
        self._patience = patience
        self._pools: dict[Executor | None, _Pool] = {}
        self._back = threading.Semaphore(0)
        self._freed: set[_Turn] = set()
        self._changing = threading.Lock()  # guards freed turns and pools, which freed threads also change

    def takes(self, executor: Executor | None) -> bool:
        """Return whether calls for an executor can take turns, which requires threads without an initializer."""
        if executor is None:
            return True
        if not isinstance(executor, ThreadPoolExecutor):
            return False
        own = vars(executor)
        return own.get("_initializer") is None and not own.get("_shutdown") and "_max_workers" in own

    def start(self, executor: Executor | None, function: Callable[[*Ts], T], *args: *Ts) -> asyncio.Future[T]:
        """Call a function in a thread at its first turn, once the pool has space; return a future of the result."""
        called: Future[T] = Future()

        def begin() -> None:
            turn = _Turn(self)
            thread = threading.Thread(target=self._run, args=(turn, executor, called, function, args), daemon=True)
            self.resting.append(turn)
            _start(thread)

        with self._changing:
            pool = self._pools.get(executor)
            if pool is None:
                pool = self._pools[executor] = _Pool(executor)
            full = pool.running >= pool.size
            if full:
                pool.queued.append(begin)
            else:
                pool.running += 1
        if not full:
            begin()
        return asyncio.wrap_future(called, loop=self.loop)

    def _run(
        self,
        turn: _Turn,
        executor: Executor | None,
        called: Future[Any],
        function: Callable[..., Any],
        args: tuple[Any, ...],
    ) -> None:
        _own.turn = turn
        turn.gate.acquire()
        try:
            if turn.over or not called.set_running_or_notify_cancel():
                return
            try:
                result = function(*args)
            except BaseException as error:  # noqa: BLE001 - raised where the result is read
                _settle(called.set_exception, error)
            else:
                _settle(called.set_result, result)
        finally:
            _own.turn = None  # the clean-up below waits in real time, but only briefly
            self._ended(executor)
            self.hand_back(turn)

    def _ended(self, executor: Executor | None) -> None:
        with self._changing:
            pool = self._pools[executor]
            begin = pool.queued.popleft() if pool.queued and not self.closed else None
            if begin is None:
                pool.running -= 1
                if pool.running == 0:
                    del self._pools[executor]
        if begin is not None:
            begin()

    def go_on(self) -> None:
        """Run the ready threads one after the other, each until it waits or ends; called by the loop."""
        ready = True
        while ready:
            ready = False
            for turn in tuple(self.resting):
                if turn.ready:
                    ready = True
                    self.resting.remove(turn)
                    self._let(turn)

    def _let(self, turn: _Turn) -> None:
        turn.gate.release()
        if self._back.acquire(timeout=self._patience):
            return
        with self._changing:
            if self._back.acquire(blocking=False):  # it returned at the last moment
                return
            self._freed.add(turn)
        _log.warning("thread waits outside of virtual time, so its order is no longer deterministic")

    def give_back(self, turn: _Turn) -> None:
        self.resting.append(turn)
        self.hand_back(turn)

    def hand_back(self, turn: _Turn) -> None:
        """Let the loop continue, or make it check for ready threads if it has continued already."""
        with self._changing:
            freed = turn in self._freed
            if freed:
                self._freed.discard(turn)
            else:
                self._back.release()
        if freed:
            self.tell_loop(_nothing)  # makes the loop check for ready threads

    def tell_loop(self, callback: Callable[[*Ts], object], *args: *Ts) -> None:
        """Schedule a callback on the loop, unless it is closed."""
        with suppress(RuntimeError):  # the loop is closed, but the thread still runs
            self.loop.call_soon_threadsafe(callback, *args)

    def close(self) -> None:
        """End waiting threads: their calls raise, and queued calls never start."""
        self.closed = True
        while self.resting:
            turn = self.resting.popleft()
            turn.over = True
            self._let(turn)


def _nothing() -> None:
    """Do nothing, so that the loop takes a turn."""


def _settle(put: Callable[[Any], None], value: object) -> None:
    try:
        put(value)
    except RuntimeError:  # the event loop is closed
        _log.debug("thread ended after its event loop")


def current_turn() -> _Turn | None:
    return cast("_Turn | None", getattr(_own, "turn", None))


def sleep(seconds: float, /) -> None:
    """Replace ``time.sleep``: wait in virtual time in a thread that takes turns; elsewhere return immediately."""
    if seconds < 0:
        raise ValueError("sleep length must be non-negative")
    turn = current_turn()
    if turn is not None:
        turn.sleep(seconds)


@contextmanager
def thread_turns(loop: asyncio.AbstractEventLoop, *, patience: float = _PATIENCE) -> Generator[ThreadTurns, None, None]:
    """Make threads take turns, for at most ``patience`` seconds of real time, by replacing ``Condition.wait``."""
    turns = ThreadTurns(loop, patience=patience)

    def wait(condition: threading.Condition, timeout: float | None = None) -> bool:
        turn = current_turn()
        return _wait(condition, timeout) if turn is None else turn.wait(condition, timeout)

    def now() -> float:
        return monotonic() if current_turn() is None else loop.time()

    replaced: tuple[tuple[Any, str, object], ...] = (
        (threading.Condition, "wait", wait),
        (threading, "_time", now),  # of Condition.wait_for
        (queue, "time", now),  # of Queue.get
    )
    before = [getattr(owner, name) for owner, name, _ in replaced]
    for owner, name, value in replaced:
        setattr(owner, name, value)
    try:
        yield turns
    finally:
        turns.close()
        for (owner, name, _), value in zip(replaced, before, strict=True):
            setattr(owner, name, value)
