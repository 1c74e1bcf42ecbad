"""Runs one reconcile: a task of its own, which calls plain functions in a thread of the controller's pool.

A task of its own keeps what a reconciler does to its task (cancelling it, context variables, a ``CancelledError`` that
it lets out) away from the worker.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Executor
from typing import Any, Final, TypeAlias, cast, final

from deltaloop._internal.function_signatures import is_coroutine_function
from deltaloop._internal.tracebacks import defined_at
from deltaloop.runtime.controller import Controller
from deltaloop.runtime.core.outcomes import NotAwaitedError, Raised, Result, Returned
from deltaloop.runtime.core.requests import Request
from deltaloop.runtime.errors import ReconcileCancelledError
from deltaloop.runtime.reconcile.calls import forgotten, not_begun
from deltaloop.runtime.reconcile.context import Context

Function: TypeAlias = Callable[[Request, Context], object]
Steps: TypeAlias = "Callable[[Execution], Coroutine[Any, Any, Returned | Raised]]"
"""What a reconcile does beside calling functions; it calls them by ``Execution.call``."""

_running: Final[contextvars.ContextVar[Context | None]] = contextvars.ContextVar("deltaloop_reconcile", default=None)


def running_reconcile() -> Context | None:
    """Return the reconcile that the calling code runs in, its tasks and threads included; None outside of one."""
    return _running.get()


@final
class Execution:
    """One reconcile that runs. ``future`` is done when it has really ended, or its event loop ends, never before."""

    __slots__ = ("_in_thread", "_pool", "context", "future")

    def __init__(
        self, controller: Controller, context: Context, pool: Executor | None, steps: Steps | None = None
    ) -> None:
        """Start it.

        Args:
            controller: Whose function is called.
            context: With what.
            pool: Threads for plain functions.
            steps: What is done in place of the one call.
        """
        self.context: Context = context
        self._pool = pool
        self._in_thread = False
        work = self.call(controller.function) if steps is None else steps(self)
        name = f"reconcile {controller.name} {context.request}"
        outside = _running.set(context)
        try:
            self.future: asyncio.Task[Returned | Raised] = asyncio.create_task(work, name=name)
        finally:
            _running.reset(outside)

    async def call(self, function: Function) -> Returned | Raised:
        """Call a function, in a thread if it is plain, and return how it ended.

        Told to stop, a thread goes on, and is waited for; see ``Context.cancelled``. Cancelled otherwise, as when its
        event loop ends, it waits no longer.
        """
        try:
            returned = await self._called(function)
        except Exception as error:  # noqa: BLE001 - the table of outcomes decides what becomes of it
            not_awaited = await self._forgotten() if not_begun(self.context.client.not_awaited) else ()
            if not_awaited and isinstance(error, TypeError | AttributeError):
                error.add_note(str(NotAwaitedError(not_awaited)))  # a call is not what it would have returned
            return Raised(error)
        if inspect.iscoroutine(returned):
            returned.close()  # nothing awaits it, and it is refused; Python need not warn of it, too
        where = "" if returned is None or isinstance(returned, Result) else defined_at(function)
        return Returned(returned, await self._forgotten() if not_begun(self.context.client.not_awaited) else (), where)

    def stop(self) -> None:
        """Tell it to stop; it may take its time, or not do it at all."""
        self.context.cancelled.set()
        if not self._in_thread:
            self.future.cancel()

    def ended(self) -> Returned | Raised:
        """Return how it ended, once it has.

        Raises:
            BaseException: What is no ordinary error, such as ``SystemExit``, goes on.
        """
        if self.future.cancelled():
            error = ReconcileCancelledError("the reconciler let a CancelledError out, and nobody had cancelled it")
            return Raised(error)
        raised = self.future.exception()
        if raised is None:
            return self.future.result()
        if isinstance(raised, Exception):
            return Raised(raised)
        raise raised

    def raised(self) -> BaseException | None:
        """Return what it raised, once it has ended; None if it did not, or let the cancellation of ``stop`` out."""
        if self.future.cancelled():
            return None
        raised = self.future.exception()
        if raised is not None:
            return raised
        ended = self.future.result()
        return ended.error if isinstance(ended, Raised) else None

    async def _called(self, function: Function) -> object:
        if is_coroutine_function(function):
            return await cast("Awaitable[object]", function(self.context.request, self.context))
        here = contextvars.copy_context()
        self._in_thread = True
        try:
            future = asyncio.get_running_loop().run_in_executor(self._pool, _call, here, function, self.context)
            await asyncio.wait((future,))
        finally:
            self._in_thread = False
        return future.result()

    async def _forgotten(self) -> tuple[str, ...]:
        """Return the calls that were not awaited, and give them up."""
        await asyncio.sleep(0)  # one that was made a task has not begun yet
        return forgotten(self.context.client.not_awaited)


def _call(variables: contextvars.Context, function: Function, context: Context) -> object:
    try:
        return variables.run(function, context.request, context)
    except StopIteration as error:
        # A future cannot carry it, and would never be done.
        raise RuntimeError("the reconciler raised StopIteration") from error
