"""Runs one reconciler call: a coroutine in a task of its own, a plain function in a thread of the controller's pool.

A task of its own keeps what a reconciler does to its task (cancelling it, context variables, a ``CancelledError`` that
it lets out) away from the worker. Core: ``runtime/core/running.py`` says when it is told to stop.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Executor
from typing import Any, cast, final

from deltaloop.runtime.calls import forgotten
from deltaloop.runtime.context import Context
from deltaloop.runtime.controller import Controller
from deltaloop.runtime.core.outcomes import Ended, NotAwaitedError, Raised, Returned
from deltaloop.runtime.core.requests import Request
from deltaloop.runtime.errors import ReconcileCancelledError
from deltaloop.runtime.mapping import is_coroutine_function


@final
class Execution:
    """One call of a reconciler that runs. ``future`` is done when it has really ended, never before."""

    __slots__ = ("_context", "_task", "future")

    def __init__(
        self,
        controller: Controller,
        context: Context,
        pool: Executor | None,
        work: Coroutine[Any, Any, object] | None = None,
    ) -> None:
        """Start the call; in ``pool`` if its function is plain.

        Args:
            controller: Whose function is called.
            context: With what.
            pool: Threads for plain functions.
            work: What is awaited in place of the call, and makes it itself.
        """
        self._context = context
        self._task: asyncio.Task[object] | None = None
        self.future: asyncio.Future[object]
        if work is not None or controller.is_async:
            name = f"reconcile {controller.name} {context.request}"
            call = _await_call(controller.function, context) if work is None else work
            self._task = asyncio.create_task(call, name=name)
            self.future = self._task
        else:
            self.future = _in_thread(controller.function, context, pool)

    def stop(self) -> None:
        """Tell it to stop; it may take its time, or not do it at all."""
        self._context.cancelled.set()
        if self._task is not None:
            self._task.cancel()

    def ended(self) -> Ended:
        """Return how it ended, once it has.

        Raises:
            BaseException: What is no ordinary error, such as ``SystemExit``, goes on.
        """
        if self.future.cancelled():
            error = ReconcileCancelledError("the reconciler let a CancelledError out, and nobody had cancelled it")
            return Raised(error)
        raised = self.future.exception()
        not_awaited = forgotten(self._context.client.not_awaited)
        if raised is None:
            returned = self.future.result()
            if inspect.iscoroutine(returned):
                returned.close()  # nothing awaits it, and it is refused; Python need not warn of it, too
            return Returned(returned, not_awaited)
        if not_awaited and isinstance(raised, TypeError | AttributeError):
            raised.add_note(str(NotAwaitedError(not_awaited)))  # a call is not what it would have returned
        if isinstance(raised, Exception):
            return Raised(raised)
        raise raised

    def raised(self) -> BaseException | None:
        """Return what it raised, once it has ended; None if it did not, or let the cancellation of ``stop`` out."""
        return None if self.future.cancelled() else self.future.exception()


async def call_to_end(
    function: Callable[[Request, Context], object], context: Context, pool: Executor | None
) -> object:
    """Call a function as a reconciler is called, and return what it returned.

    Cancelled, it waits until a thread has really ended; what that raised goes before the cancellation. Cancelled once
    more, it waits no longer: the loop itself ends, with the thread left behind.
    """
    if is_coroutine_function(function):
        return await _await_call(function, context)
    future = _in_thread(function, context, pool)
    cancelled: asyncio.CancelledError | None = None
    while not future.done():
        try:
            await asyncio.wait((future,))
        except asyncio.CancelledError as error:
            if cancelled is not None:
                raise
            cancelled = error
    if cancelled is not None and future.exception() is None:
        raise cancelled
    return future.result()


async def _await_call(function: Callable[[Request, Context], object], context: Context) -> object:
    return await cast("Awaitable[object]", function(context.request, context))


def _in_thread(
    function: Callable[[Request, Context], object], context: Context, pool: Executor | None
) -> asyncio.Future[object]:
    here = contextvars.copy_context()
    return asyncio.get_running_loop().run_in_executor(pool, _call, here, function, context)


def _call(variables: contextvars.Context, function: Callable[[Request, Context], object], context: Context) -> object:
    try:
        return variables.run(function, context.request, context)
    except StopIteration as error:
        # A future cannot carry it, and would never be done.
        raise RuntimeError("the reconciler raised StopIteration") from error
