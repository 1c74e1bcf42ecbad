"""Simulated processes on one event loop, whose crash takes away all that they started.

A *process* is a marker in the context of its first task, which tasks, timers, callbacks and connections inherit. A
crash cuts the connections, and the loop runs no marked callback any more. Tasks stay at their ``await``. Like in a
killed process, no ``finally``, ``except CancelledError`` or ``__aexit__`` runs.

``dispose`` closes the remains later. Their clean-up code runs then, but the loop rejects all its requests. ``pause``
stops the steps of a process for a while, like SIGSTOP. ``slow_down`` makes its clock slower than the loop's.

Unlike a real crash, a simulated one does not reset module state and does not end threads.
"""

# ruff: noqa: SLF001 - asyncio has no public way to take back what is scheduled
from __future__ import annotations

import asyncio
import contextvars
import logging
import selectors
import sys
import threading
import warnings
import weakref
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable
from functools import partial
from typing import Any, Final, TypeVar, TypeVarTuple, cast, final

from deltaloop.testing.deterministic_loop.core.task_orders import TaskOrder
from deltaloop.testing.deterministic_loop.memory_network import NetworkLoop

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

_MOST_WAITS: Final = 100
_ROUNDED: Final = 1e-6
_process: contextvars.ContextVar[Process | None] = contextvars.ContextVar("deltaloop_process", default=None)
_waiting_thread: contextvars.ContextVar[Process | None] = contextvars.ContextVar("deltaloop_thread", default=None)
_unclosable: Final[list[object]] = []


def _taken_note_of(process: Process, future: asyncio.Future[Any]) -> None:
    if process.crashed and not future.cancelled():
        future.exception()


class _Gone(BaseException):
    """Exception that ends coroutines of a crashed process."""


class ProcessLoop(NetworkLoop):
    """Event loop that supports processes; base class of ``VirtualLoop``."""

    _crashes = 0  # number of crashes; without any, the loop skips all checks
    _pauses = 0
    _slowed = False  # whether the clock of any process is slower
    _runs_in: int | None = None  # identifier of the loop's thread
    order: TaskOrder | None = None
    """Order of steps of ready tasks of processes; None is asyncio's order, first in, first out."""

    def run_forever(self) -> None:
        """Run until ``stop`` is called."""
        self._runs_in = threading.get_ident()
        try:
            super().run_forever()
        finally:
            self._runs_in = None

    def time(self) -> float:
        """Return the time in seconds, as the clock of the caller's process shows it."""
        return self.seen(super().time())

    def seen(self, at: float) -> float:
        """Convert a time of the loop to the clock of the caller's process."""
        process = _process.get() if self._slowed else None
        return at if process is None else process.seen(at)

    def _run_once(self) -> None:
        inherited: Any = super()
        if self.order is None and not self._pauses:
            inherited._run_once()
            return
        later = self._put_off()
        try:
            inherited._run_once()
        finally:
            inside: Any = self
            inside._ready.extend(later)

    def _put_off(self) -> list[Any]:
        """Reorder the ready steps, and return those that wait for the next turn."""
        inside: Any = self
        ready: list[Any] = [*inside._ready]
        steps: list[int] = []
        tasks: list[object] = []
        stay: set[int] = set()
        for place, handle in enumerate(ready):
            task: object = getattr(handle._callback, "__self__", None)
            context: contextvars.Context | None = handle._context
            if not isinstance(task, asyncio.Task) or context is None or handle.cancelled():
                continue
            process = context.get(_process)
            if process is None:
                continue
            if process.keep(handle):
                stay.add(place)
            else:
                steps.append(place)
                tasks.append(cast("object", task))
        now = [*range(len(steps))] if self.order is None or not steps else [*self.order.turn(tasks)]
        chosen = [ready[steps[index]] for index in now]
        waiting = [ready[steps[index]] for index in sorted({*range(len(steps))} - {*now})]
        at = iter([*chosen, *waiting])
        for place in steps:
            ready[place] = next(at)
        off = stay.union(steps[len(chosen) :])
        inside._ready.clear()
        inside._ready.extend(handle for place, handle in enumerate(ready) if place not in off)
        return waiting

    def call_soon(
        self, callback: Callable[[*Ts], object], *args: *Ts, context: contextvars.Context | None = None
    ) -> asyncio.Handle:
        if self._crashes and is_gone(context):
            if not _is_of_a_transport(callback):
                return self._never(callback, args)
            context = contextvars.Context()
        return super().call_soon(callback, *args, context=context)

    def call_soon_threadsafe(
        self, callback: Callable[[*Ts], object], *args: *Ts, context: contextvars.Context | None = None
    ) -> asyncio.Handle:
        """Schedule a callback from any thread.

        Raises:
            RuntimeError: If the caller is a thread of a crashed process, which could wait for the result forever.
        """
        process = _process.get() if context is None else None
        if process is None or threading.get_ident() == self._runs_in:
            return super().call_soon_threadsafe(callback, *args, context=context)
        if process.crashed:
            raise RuntimeError(f"{process!r} has ended")
        context = contextvars.copy_context()
        context.run(_process.set, None)
        context.run(_waiting_thread.set, process)
        return super().call_soon_threadsafe(callback, *args, context=context)

    def call_at(
        self, when: float, callback: Callable[[*Ts], object], *args: *Ts, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        """Schedule a callback at a time, unless its process has crashed."""
        if self._crashes and is_gone(context):
            handle = asyncio.TimerHandle(when, callback, args, self)
            handle.cancel()
            return handle
        process = _process.get() if self._slowed else None  # by the clock of the caller, not of the callback
        at = when if process is None else process.due(when)
        return super().call_at(at, callback, *args, context=context)

    def _never(self, callback: Callable[..., object], args: tuple[object, ...]) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self)
        handle.cancel()
        return handle

    def create_task(
        self, coro: Any, *, context: contextvars.Context | None = None, **keywords: Any
    ) -> asyncio.Task[Any]:
        """Start a task, which belongs to the process of its context."""
        task = super().create_task(coro, context=context, **keywords)
        process = _process.get() if context is None else context.get(_process)
        if process is not None:
            process.took(task)
        elif (waiting := _waiting_thread.get() if context is None else context.get(_waiting_thread)) is not None:
            waiting.took(task, for_thread=True)
        return task

    async def create_connection(self, *args: Any, **keywords: Any) -> Any:
        """Connect; the connection belongs to the caller's process."""
        transport, protocol = await super().create_connection(*args, **keywords)
        process = _process.get()
        if process is not None:
            process.connected(transport)
        return transport, protocol

    def _make_socket_transport(self, *args: Any, **keywords: Any) -> Any:
        inherited: Any = super()
        return self.accepted(inherited._make_socket_transport(*args, **keywords))

    def _make_ssl_transport(self, *args: Any, **keywords: Any) -> Any:
        inherited: Any = super()
        return self.accepted(inherited._make_ssl_transport(*args, **keywords))

    async def start_tls(self, *args: Any, **keywords: Any) -> Any:
        """Upgrade a connection to TLS; it ends with its process."""
        return self.accepted(await super().start_tls(*args, **keywords))

    def accepted(self, transport: T) -> T:
        """Assign an accepted connection to the current process, whose crash ends it."""
        process = _process.get()
        if process is not None and transport is not None:
            connection: Any = transport
            process.connected(connection)
        return transport

    async def create_server(self, *args: Any, **keywords: Any) -> Any:
        """Listen; the sockets belong to the caller's process."""
        server = await super().create_server(*args, **keywords)
        process = _process.get()
        if process is not None:
            process.connected(server)
        return server

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Report an error, unless its process has crashed."""
        if not (self._crashes and is_gone(None)):
            super().call_exception_handler(context)

    def has_slow_clocks(self) -> None:
        """Take the clocks of processes into account from now on; called by ``Process.slow_down``."""
        self._slowed = True

    def drop(self, process: Process) -> None:
        """Cancel all callbacks of a process; called by ``Process.crash``."""
        self._crashes += 1
        inside: Any = self
        for handle in (*inside._ready, *inside._scheduled):
            if _belongs(handle, process) and not _is_of_a_transport(handle._callback):
                handle.cancel()
        selected: list[selectors.SelectorKey] = [*(inside._selector.get_map() or {}).values()]
        for key in selected:
            reader, writer = key.data
            if reader is not None and _belongs(reader, process):
                inside._remove_reader(key.fd)
            if writer is not None and _belongs(writer, process):
                inside._remove_writer(key.fd)

    def not_missed(self, future: asyncio.Future[Any]) -> None:
        """Suppress the warning about an unretrieved exception if the caller's process has crashed."""
        process = _process.get()
        if process is not None:
            future.add_done_callback(partial(_taken_note_of, process), context=contextvars.Context())

    def go_on(self, handles: Iterable[asyncio.Handle], pauses: int) -> None:
        """Count a pause that begins or ends, and schedule the steps that it kept; called by processes."""
        self._pauses += pauses
        inside: Any = self
        inside._ready.extend(handles)

    def _asyncgen_firstiter_hook(self, agen: AsyncGenerator[Any, Any]) -> None:
        inherited: Any = super()
        inherited._asyncgen_firstiter_hook(agen)
        process = _process.get()
        if process is not None:
            process.iterates(agen)

    def forget_generators(self, generators: Iterable[AsyncGenerator[Any, Any]]) -> None:
        """Do not close these generators at the end of the loop; called by ``Process.dispose``."""
        inside: Any = self
        known: weakref.WeakSet[AsyncGenerator[Any, Any]] = inside._asyncgens
        for generator in generators:
            known.discard(generator)

    def _asyncgen_finalizer_hook(self, agen: AsyncGenerator[Any, Any]) -> None:
        process = _process.get()
        if process is not None and process.crashed:
            _close(agen.aclose())
        else:
            inherited: Any = super()
            inherited._asyncgen_finalizer_hook(agen)


def outside(context: contextvars.Context) -> contextvars.Context:
    """Return a copy of a context that belongs to no process."""
    copied = context.copy()
    copied.run(_process.set, None)
    copied.run(_waiting_thread.set, None)
    return copied


def is_gone(context: contextvars.Context | None) -> bool:
    """Return whether the process of a context, by default the caller's, has crashed."""
    process = _process.get() if context is None else context.get(_process)
    return process is not None and process.crashed


def _is_of_a_transport(callback: object) -> bool:
    """Return whether a callback belongs to a transport, which must still close its socket."""
    return isinstance(getattr(callback, "__self__", None), asyncio.BaseTransport)


def _belongs(handle: Any, process: Process) -> bool:
    context: contextvars.Context | None = handle._context  # `get_context` requires Python 3.12
    return context is not None and context.get(_process) is process


@final
class Process:
    """Simulated program on the running loop, which can crash."""

    def __init__(self, name: str) -> None:
        """Make a process without tasks."""
        loop = asyncio.get_running_loop()
        if not isinstance(loop, ProcessLoop):
            raise TypeError(
                f"the event loop must be a ProcessLoop, got {type(loop).__name__}. Use run_virtual, deltaloop's pytest "
                "plugin, or asyncio.Runner(loop_factory=ProcessLoop)."
            )
        self.name = name
        self.crashed: bool = False
        self.paused: bool = False
        self._kept: list[asyncio.Handle] = []
        self._rate = 1.0
        self._slowed_at = self._showed = 0.0
        self._loop = loop
        self._context = contextvars.copy_context()
        self._context.run(_process.set, self)
        # Ordered, so that a crash ends tasks in the order in which they started.
        self._tasks: weakref.WeakKeyDictionary[asyncio.Task[Any], None] = weakref.WeakKeyDictionary()
        self._for_threads: weakref.WeakKeyDictionary[asyncio.Task[Any], None] = weakref.WeakKeyDictionary()
        self._connections: weakref.WeakKeyDictionary[Any, None] = weakref.WeakKeyDictionary()
        self._generators: weakref.WeakKeyDictionary[AsyncGenerator[Any, Any], None] = weakref.WeakKeyDictionary()
        self._frozen: list[asyncio.Task[Any]] = []

    def start(self, coroutine: Coroutine[Any, Any, T], *, name: str = "") -> asyncio.Task[T]:
        return self._loop.create_task(coroutine, name=name or self.name, context=self._context)

    def view(self, function: Callable[[], T]) -> T:
        """Call a function that reads state of this process, with the clock of the process."""
        return self._context.copy().run(function)

    def crash(self) -> None:
        """End the process now without clean-up; a caller inside continues to its next ``await``, and never returns."""
        if self.crashed:
            return
        self.crashed = True
        self.resume()
        connections = tuple(self._connections)  # dropped callbacks may hold the last references
        for task in (*self._tasks, *self._for_threads, *self._made_beside()):
            self._end(task)
        self._loop.drop(self)
        for connection in connections:
            contextvars.Context().run(_cut, connection)  # outside the process, so that the loop runs the callbacks

    def pause(self) -> None:
        """Stop its tasks until ``resume``; a caller inside the process continues to its next ``await``."""
        if not self.paused and not self.crashed:
            self.paused = True
            self._loop.go_on((), 1)

    def resume(self) -> None:
        """Continue with the accumulated steps, if the process is paused."""
        if self.paused:
            self.paused = False
            kept, self._kept = self._kept, []
            self._loop.go_on([] if self.crashed else kept, -1)

    def slow_down(self, rate: float) -> None:
        """Change the rate of its clock from now on, for example to 0.5 for half the speed."""
        at = contextvars.Context().run(self._loop.time)
        self._showed, self._slowed_at, self._rate = self.seen(at), at, rate
        self._loop.has_slow_clocks()

    @property
    def is_current(self) -> bool:
        return _process.get() is self

    def cut_connections(self) -> None:
        """Abort all connections of this process, which gets the errors."""
        for connection in tuple(self._connections):
            if isinstance(connection, asyncio.WriteTransport):
                connection.abort()

    def dispose(self) -> None:
        """Close the remains of a crash; their clean-up reaches no other program and is not logged."""
        before = logging.root.manager.disable
        logging.disable(logging.CRITICAL)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self._context.run(self._close_all)
        finally:
            logging.disable(before)

    def _close_all(self) -> None:
        self._loop.forget_generators(tuple(self._generators))
        while self._frozen:
            _close(self._frozen.pop().get_coro())
        for generator in tuple(self._generators):
            _close(generator.aclose())

    def _made_beside(self) -> list[asyncio.Task[Any]]:
        """Return tasks not created through the loop: from Python 3.12 on, aiohttp's server starts tasks eagerly."""
        if sys.version_info < (3, 12):
            return []
        known = {*self._tasks, *self._for_threads}
        others = [task for task in asyncio.all_tasks(self._loop) if task not in known]
        found = [task for task in others if task.get_context().get(_process) is self]
        return sorted(found, key=lambda task: (len(task.get_name()), task.get_name()))

    # -- called by the loop

    def seen(self, at: float) -> float:
        return at if self._rate == 1.0 else self._showed + (at - self._slowed_at) * self._rate

    def due(self, shown: float) -> float:
        if self._rate == 1.0:
            return shown
        # Round up: a task that wakes before its clock shows the time would wait again and again without progress.
        return self._slowed_at + (shown - self._showed) / self._rate + _ROUNDED

    def keep(self, step: asyncio.Handle) -> bool:
        """Keep a step while the process is paused, and return whether it was kept."""
        if self.paused:
            self._kept.append(step)
        return self.paused

    def took(self, task: asyncio.Task[Any], *, for_thread: bool = False) -> None:
        """Register a task; tasks that a thread waits for are canceled on a crash, because threads cannot be ended."""
        tasks = self._for_threads if for_thread else self._tasks
        tasks[task] = None
        if self.crashed:
            self._end(task)

    def connected(self, connection: asyncio.BaseTransport | asyncio.AbstractServer) -> None:
        self._connections[connection] = None
        if self.crashed:
            contextvars.Context().run(_cut, connection)

    def iterates(self, generator: AsyncGenerator[Any, Any]) -> None:
        self._generators[generator] = None

    def _end(self, task: asyncio.Task[Any]) -> None:
        if task in self._for_threads:
            contextvars.Context().run(task.cancel)
        elif not task.done():
            self._frozen.append(task)
            asyncio._unregister_task(task)  # documented API for event loops
            task._log_destroy_pending = False  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
        elif not task.cancelled():
            task.exception()  # marks the exception as retrieved

    def __repr__(self) -> str:
        return f"<Process {self.name}, {'crashed' if self.crashed else 'alive'}>"


def _cut(connection: asyncio.BaseTransport | asyncio.AbstractServer) -> None:
    if isinstance(connection, asyncio.AbstractServer):
        connection.close()
    elif isinstance(connection, asyncio.WriteTransport):
        connection.set_protocol(asyncio.Protocol())  # the program must not be notified
        connection.abort()


def _close(awaitable: Any) -> None:
    """End a coroutine, or the closing of an asynchronous generator, even if it awaits during its clean-up."""
    for _ in range(_MOST_WAITS):
        try:
            awaitable.throw(_Gone())  # GeneratorExit would not reach into asynchronous generators
        except BaseException:  # noqa: BLE001 - errors of a crashed program are dropped
            return
    _unclosable.append(awaitable)  # garbage collection would close it again, with a warning
