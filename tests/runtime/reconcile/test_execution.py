"""One call of a reconciler: how it ends, and what that is taken for."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import pytest

from deltaloop.runtime import Context, Request, Result
from deltaloop.runtime.core.outcomes import Raised, Returned
from deltaloop.runtime.reconcile.execution import Execution
from tests.runtime.reconcile.test_context import context

VARIABLE: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="unset")


class Ends(BaseException):
    """No ordinary error."""


def execution(function: Callable[[Request, Context], Any], pool: ThreadPoolExecutor | None = None) -> Execution:
    made = Execution("default/a", 7, 0.0, None, context=context(), pool=pool)
    made.task = cast("asyncio.Task[None]", asyncio.create_task(made.call(function)))  # the loop's task returns None
    return made


async def ended(made: Execution) -> Any:
    return await made.task


async def test_execution_reports_result_or_error() -> None:
    async def returns(request: Request, ctx: Context) -> Result:
        assert (request, ctx.controller) == (Request("default", "a"), "maps")
        return Result(requeue_after=1.0)

    async def raises(request: Request, ctx: Context) -> None:
        raise error

    error = ValueError("planted")
    assert await ended(execution(returns)) == Returned(Result(requeue_after=1.0))
    assert await ended(execution(raises)) == Raised(error)


async def test_base_exception_is_propagated() -> None:
    async def raises(request: Request, ctx: Context) -> None:
        raise Ends

    with pytest.raises(Ends):
        await ended(execution(raises))


async def test_returned_coroutine_is_closed() -> None:
    async def later() -> None: ...

    coroutine = later()

    async def returns(request: Request, ctx: Context) -> Any:
        return coroutine

    taken_for = await ended(execution(returns))
    assert isinstance(taken_for, Returned)
    assert taken_for.value is coroutine
    assert taken_for.where.endswith("in test_returned_coroutine_is_closed.<locals>.returns")
    assert inspect.getcoroutinestate(coroutine) == inspect.CORO_CLOSED


@pytest.mark.real_time
async def test_plain_function_runs_in_pool_with_context_variables() -> None:
    begun, told = threading.Event(), threading.Event()

    def plain(request: Request, ctx: Context) -> Any:
        begun.set()
        if ctx.cancelled.wait(5.0):
            told.set()
        return VARIABLE.get(), threading.current_thread().name, request.key, ctx.controller

    def stops(request: Request, ctx: Context) -> None:
        raise StopIteration

    VARIABLE.set("of the caller")
    with ThreadPoolExecutor(1, thread_name_prefix="pool") as pool:
        made = execution(plain, pool)
        assert await asyncio.to_thread(begun.wait, 5.0)
        made.stop()
        taken_for = await ended(made)
        assert told.is_set()
        assert isinstance(taken_for, Returned)
        assert taken_for.value == ("of the caller", "pool_0", "default/a", "maps")
        taken_for = await asyncio.wait_for(ended(execution(stops, pool)), 5.0)
    assert isinstance(taken_for, Raised)
    assert isinstance(taken_for.error, RuntimeError)
    assert "StopIteration" in str(taken_for.error)


@pytest.mark.real_time
async def test_thread_is_awaited_unless_event_loop_ends() -> None:
    go, begun = threading.Event(), threading.Event()

    def lingers(request: Request, ctx: Context) -> None:
        begun.set()
        go.wait(5.0)

    made = execution(lingers)
    try:
        assert await asyncio.to_thread(begun.wait, 5.0)
        made.stop()
        await asyncio.wait((made.task,), timeout=0.05)
        assert not made.task.done(), "it is told to stop, and has not ended"
        made.task.cancel()
        await asyncio.wait((made.task,), timeout=1.0)
        assert made.task.cancelled(), "asyncio.run cancels what is left, and waits for it"
    finally:
        go.set()
