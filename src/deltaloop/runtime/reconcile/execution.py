"""One reconcile that runs, and the calls of its controller's functions.

It runs in a task of its own. That keeps what a reconciler does to its task (cancelling it, context variables, a
``CancelledError`` that it lets out) away from all others.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast, final

from deltaloop._internal.function_signatures import is_coroutine_function
from deltaloop._internal.tracebacks import defined_at
from deltaloop.runtime.core.outcomes import NotAwaitedError, Raised, Result, Returned
from deltaloop.runtime.core.requests import Request
from deltaloop.runtime.core.running import Running
from deltaloop.runtime.errors import ReconcileStoppedError
from deltaloop.runtime.reconcile.calls import forgotten, not_begun
from deltaloop.runtime.reconcile.context import Context
from deltaloop.workqueue import Work

if TYPE_CHECKING:
    from opentelemetry.trace import Span

Function: TypeAlias = Callable[[Request, Context], object]

RECONCILE: Final[contextvars.ContextVar[Context | None]] = contextvars.ContextVar("deltaloop_reconcile", default=None)


def running_reconcile() -> Context | None:
    """Return the reconcile that the calling code runs in, its tasks and threads included; None outside of one."""
    return RECONCILE.get()


@final
class Execution(Running, eq=False):
    """One reconcile that runs.

    Attributes:
        work: The key, as the queue gave it.
        context: What the reconciler gets beside its request.
        task: The task that it runs in.
        pool: Threads for plain functions.
        span: Its span, if there is one.
    """

    work: Work[str] = cast("Work[str]", None)  # the loop sets this field and the next two before the run begins
    context: Context = cast("Context", None)
    task: asyncio.Task[None] = cast("asyncio.Task[None]", None)
    pool: Executor | None = None
    span: Span | None = None
    _in_thread: bool = False

    def check(self, action: str) -> None:
        """Refuse an action of a reconcile that was told to stop.

        Raises:
            ReconcileStoppedError: If it was.
        """
        if self.reason is not None:
            raise ReconcileStoppedError(self.key, self.reason, action)

    async def call(self, function: Function) -> Returned | Raised:
        """Call a function, in a thread if it is plain, and return how it ended.

        Told to stop, a thread goes on, and is waited for; see ``Context.cancelled``. Cancelled otherwise, as when its
        event loop ends, it waits no longer.
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
        """Return what a function returned, with the calls that it did not await."""
        if inspect.iscoroutine(returned):
            returned.close()  # nothing awaits it, and it is refused; Python need not warn of it, too
        where = "" if returned is None or isinstance(returned, Result) else defined_at(function)
        return Returned(returned, await self._forgotten(), where)

    async def raised(self, error: Exception) -> Raised:
        """Return what a function raised, with a note about the calls that it did not await."""
        not_awaited = await self._forgotten()
        if not_awaited and isinstance(error, TypeError | AttributeError):
            error.add_note(str(NotAwaitedError(not_awaited)))  # a call is not what it would have returned
        return Raised(error)

    def stop(self) -> None:
        """Tell it to stop; it may take its time, or not do it at all."""
        self.context.cancelled.set()
        if not self._in_thread:
            self.task.cancel()

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
        """Return the calls that were not awaited, and give them up."""
        if not not_begun(self.context.not_awaited):
            return ()
        await asyncio.sleep(0)  # one that was made a task has not begun yet
        return forgotten(self.context.not_awaited)


def _call(variables: contextvars.Context, function: Function, context: Context) -> Any:
    try:
        return variables.run(function, context.request, context)
    except StopIteration as error:
        # A future cannot carry it, and would never be done.
        raise RuntimeError("the reconciler raised StopIteration") from error
