"""One call of a reconciler: how it ends, and what that is taken for."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextvars
import inspect
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from deltaloop.errors import ReconcileCancelledError
from deltaloop.runtime import Context, Request, Result, controller
from deltaloop.runtime.core.outcomes import Raised, Returned
from deltaloop.runtime.reconcile.execution import Execution, running_reconcile
from tests.runtime.reconcile.test_context import context

VARIABLE: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="unset")


class Ends(BaseException):
    """No ordinary error."""


def execution(function: Callable[[Request, Context], Any], pool: ThreadPoolExecutor | None = None) -> Execution:
    return Execution(controller("v1/ConfigMap", name="maps")(function), context(), pool)


async def settled(function: Callable[[Request, Context], Any]) -> Execution:
    made = execution(function)
    await asyncio.wait([made.future])
    return made


async def test_what_is_returned_or_raised_is_how_it_ended() -> None:
    async def returns(request: Request, ctx: Context) -> Result:
        assert (request, ctx.controller) == (Request("default", "a"), "maps")
        return Result(requeue_after=1.0)

    async def raises(request: Request, ctx: Context) -> None:
        raise error

    error = ValueError("planted")
    ended = await settled(returns)
    assert (ended.ended(), ended.raised()) == (Returned(Result(requeue_after=1.0)), None)
    ended = await settled(raises)
    assert (ended.ended(), ended.raised()) == (Raised(error), error)


async def test_code_can_tell_which_reconcile_it_runs_in() -> None:
    seen: list[Context | None] = []

    async def beside() -> None:
        seen.append(running_reconcile())

    async def awaits(_: Request, __: Context) -> None:
        await asyncio.gather(beside(), asyncio.to_thread(lambda: seen.append(running_reconcile())))

    first = execution(awaits)
    await asyncio.wait([first.future])
    with ThreadPoolExecutor(max_workers=1) as pool:
        second = execution(lambda _, __: seen.append(running_reconcile()), pool)
        await asyncio.wait([second.future])
    assert seen == [first.context, first.context, second.context]
    assert running_reconcile() is None


async def test_what_is_no_ordinary_error_goes_on() -> None:
    async def raises(request: Request, ctx: Context) -> None:
        raise Ends

    ended = await settled(raises)
    assert isinstance(ended.raised(), Ends)
    with pytest.raises(Ends):
        ended.ended()


async def test_a_cancellation_that_nobody_asked_for_is_an_error() -> None:
    async def cancels(request: Request, ctx: Context) -> None:
        raise asyncio.CancelledError

    ended = await settled(cancels)
    assert ended.raised() is None
    taken_for = ended.ended()
    assert isinstance(taken_for, Raised)
    assert isinstance(taken_for.error, ReconcileCancelledError)
    assert "nobody had cancelled it" in str(taken_for.error)


@pytest.mark.real_time
async def test_a_cancellation_that_a_plain_function_lets_out_is_an_error() -> None:
    def cancels(request: Request, ctx: Context) -> None:
        raise concurrent.futures.CancelledError  # what `ctx.wait` raises if a task was cancelled

    taken_for = (await settled(cancels)).ended()
    assert isinstance(taken_for, Raised)
    assert isinstance(taken_for.error, ReconcileCancelledError)


async def test_it_runs_in_a_task_of_its_own_that_is_told_to_stop() -> None:
    seen: list[str] = []

    async def waits(request: Request, ctx: Context) -> None:
        task = asyncio.current_task()
        assert task is not None
        seen.append(task.get_name())
        try:
            await asyncio.sleep(60.0)
        finally:
            seen.append(f"told {ctx.cancelled.is_set()}")

    made = execution(waits)
    await asyncio.sleep(1.0)
    assert not made.future.done()
    made.stop()
    await asyncio.wait([made.future])
    assert seen == ["reconcile maps default/a", "told True"]
    assert made.raised() is None


async def test_a_coroutine_that_was_returned_is_closed() -> None:
    async def later() -> None: ...

    coroutine = later()

    async def returns(request: Request, ctx: Context) -> Any:
        return coroutine

    ended = (await settled(returns)).ended()
    assert isinstance(ended, Returned)
    assert ended.value is coroutine
    assert ended.where.endswith("in test_a_coroutine_that_was_returned_is_closed.<locals>.returns")
    assert inspect.getcoroutinestate(coroutine) == inspect.CORO_CLOSED


@pytest.mark.real_time
async def test_a_plain_function_runs_in_the_pool_with_the_callers_variables() -> None:
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
        await asyncio.wait([made.future])
        assert told.is_set()
        ended = made.ended()
        assert isinstance(ended, Returned)
        assert ended.value == ("of the caller", "pool_0", "default/a", "maps")
        made = execution(stops, pool)
        await asyncio.wait([made.future], timeout=5.0)
        ended = made.ended()
    assert isinstance(ended, Raised)
    assert isinstance(ended.error, RuntimeError)
    assert "StopIteration" in str(ended.error)


@pytest.mark.real_time
async def test_a_thread_is_waited_for_unless_the_loop_itself_ends() -> None:
    go, begun = threading.Event(), threading.Event()

    def lingers(request: Request, ctx: Context) -> None:
        begun.set()
        go.wait(5.0)

    made = execution(lingers)
    try:
        assert await asyncio.to_thread(begun.wait, 5.0)
        made.stop()
        await asyncio.wait((made.future,), timeout=0.05)
        assert not made.future.done(), "it is told to stop, and has not ended"
        made.future.cancel()
        await asyncio.wait((made.future,), timeout=1.0)
        assert made.future.cancelled(), "asyncio.run cancels what is left, and waits for it"
    finally:
        go.set()
