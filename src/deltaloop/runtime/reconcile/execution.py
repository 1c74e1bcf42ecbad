"""Execution of one reconcile in its own task.

A separate task isolates other reconciles from changes to the task: cancellation, context variables, and a
``CancelledError`` that the function raises.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast, final

from deltaloop._internal.function_signatures import is_coroutine_function
from deltaloop._internal.tracebacks import call_frames, defined_at, task_frames
from deltaloop.runtime.core.outcomes import NotAwaitedError, Raised, Result, Returned
from deltaloop.runtime.core.requests import Request
from deltaloop.runtime.core.running import Running
from deltaloop.runtime.errors import ReconcileStoppedError
from deltaloop.runtime.reconcile.calls import forgotten, not_begun
from deltaloop.runtime.reconcile.context import Context
from deltaloop.workqueue.core.queue import Run

if TYPE_CHECKING:
    from opentelemetry.trace import Span

Function: TypeAlias = "Callable[[Request, Context], object]"

RECONCILE: Final[contextvars.ContextVar[Context | None]] = contextvars.ContextVar("deltaloop_reconcile", default=None)


def running_reconcile() -> Context | None:
    """Return the context of the reconcile that the calling task or thread belongs to; None outside of one."""
    return RECONCILE.get()


@final
class Execution(Running, eq=False):
    """One running reconcile; ``pool`` has the threads for plain functions."""

    taken: Run[str] = cast("Run[str]", None)  # the loop sets this field and the next two before the run begins
    context: Context = cast("Context", None)
    task: asyncio.Task[None] = cast("asyncio.Task[None]", None)
    pool: Executor | None = None
    span: Span | None = None
    _in_thread: bool = False

    def check(self, action: str) -> None:
        """Reject an action by ReconcileStoppedError if the reconcile was told to stop."""
        if self.reason is not None:
            raise ReconcileStoppedError(self.key, self.reason, action)

    async def call(self, function: Function) -> Returned | Raised:
        """Call a function, in a thread if it is plain, and return how it ended.

        A thread that is told to stop continues, and this method waits for it; see ``Context.cancelled``.
        """
        try:
            if is_coroutine_function(function):
                returned = await cast("Awaitable[object]", function(self.context.request, self.context))
            else:
                returned = await self._called_in_thread(function)
        except Exception as error:  # noqa: BLE001 - the table of outcomes decides what becomes of it
            return await self.raised(error)
        return await self.returned(function, returned)

    async def returned(self, function: Function, returned: object) -> Returned:
        """Return the function's result with the calls that it did not await."""
        if inspect.iscoroutine(returned):
            returned.close()  # the result is rejected, so avoid Python's additional warning
        where = "" if returned is None or isinstance(returned, Result) else defined_at(function)
        return Returned(returned, await self._forgotten(), where)

    async def raised(self, error: Exception) -> Raised:
        """Return the function's exception, with a note about calls that it did not await."""
        not_awaited = await self._forgotten()
        if not_awaited and isinstance(error, TypeError | AttributeError):
            error.add_note(str(NotAwaitedError(not_awaited)))  # the code may have used the coroutine like its result
        return Raised(error)

    def stop(self) -> None:
        self.context.cancelled.set()
        if not self._in_thread:
            self.task.cancel()

    def where(self) -> tuple[str, ...]:
        """Return the lines of the program at which the reconcile waits, the innermost last."""
        if self._in_thread:
            return tuple(call_frames(_call.__code__, "context", self.context))
        return tuple(task_frames(self.task))

    async def _called_in_thread(self, function: Function) -> object:
        here = contextvars.copy_context()
        self._in_thread = True
        try:
            future = asyncio.get_running_loop().run_in_executor(self.pool, _call, here, function, self.context)
            await asyncio.wait((future,))
        finally:
            self._in_thread = False
        return future.result()

    async def _forgotten(self) -> tuple[str, ...]:
        """Close and return the calls that were not awaited."""
        calls = self.context._not_awaited  # noqa: SLF001 - of the same family
        if not not_begun(calls):
            return ()
        await asyncio.sleep(0)  # let new tasks start first
        return forgotten(calls)


def _call(variables: contextvars.Context, function: Function, context: Context) -> Any:
    try:
        return variables.run(function, context.request, context)
    except StopIteration as error:
        # A future cannot carry StopIteration and would never be done.
        raise RuntimeError("the reconcile function raised StopIteration") from error
