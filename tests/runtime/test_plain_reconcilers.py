"""Reconcilers that are plain functions: threads that cannot be cancelled. On the real clock, because threads are."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest

from deltaloop.api.status import NotFoundError
from deltaloop.errors import ReconcileStoppedError, WaitOnLoopError
from deltaloop.runtime import Context, Request, Result, controller
from deltaloop.workqueue import ItemExponentialFailureRateLimiter
from tests.runtime.worlds import CM, until, world

pytestmark = pytest.mark.real_time


def quick_limiter() -> ItemExponentialFailureRateLimiter:
    return ItemExponentialFailureRateLimiter(base_delay=0.01, max_delay=0.01)


async def test_plain_function_can_read_write_and_requeue() -> None:
    threads: set[str] = set()
    ends: list[str] = []

    @controller("v1/ConfigMap", workers=2, rate_limiter=quick_limiter)
    def reconcile(request: Request, ctx: Context) -> Result | None:
        threads.add(threading.current_thread().name)
        found = ctx.wait(ctx.client.get(CM, request.name, namespace=request.namespace))
        assert found in ctx.wait(ctx.client.list(CM, namespace=request.namespace))
        runs = int(found["data"].get("runs", "0")) + 1
        if runs <= 2:
            fields = found.edit()
            fields["data"]["runs"] = str(runs)
            ctx.wait(ctx.client.update(CM, fields))
            assert ctx.wait(ctx.client.get(CM, request.name))["data"]["runs"] == str(runs)
            return Result(requeue_after=0.0)
        if ctx.attempts == 1:
            raise StopIteration  # no future can carry it
        ends.append(request.name)
        return None

    async with world() as w, w.running(reconcile):
        for name in ("a", "b", "c"):
            await w.put(name, of=name)
        await until(lambda: len(ends) == 3, timeout=5.0)
        assert await w.data_of("a") == {"of": "a", "runs": "2"}
    assert all(name.startswith("configmap-") for name in threads)
    assert len(threads) <= 2


async def test_plain_function_that_returns_coroutine_is_parked(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def later(request: Request, ctx: Context) -> None:
        raise AssertionError("nothing awaits it")

    @controller("v1/ConfigMap", rate_limiter=quick_limiter)
    def plain(request: Request, ctx: Context) -> Any:
        return later(request, ctx)

    async with world() as w, w.running(plain) as manager:
        await w.put("a")
        await until(manager.loops[0].queue.dead_letters, timeout=5.0)
    raised = [vars(record)["raised"] for record in caplog.records if "raised" in vars(record)]
    assert len(raised) == 1
    assert raised[0].startswith("InvalidResultError: ")


async def test_plain_function_over_timeout_keeps_key_and_worker_and_must_not_write() -> None:
    told = threading.Event()
    may_end = threading.Event()
    refused: list[str] = []
    began: list[tuple[str, int]] = []

    @controller("v1/ConfigMap", workers=1, timeout=0.1, rate_limiter=quick_limiter)
    def reconcile(request: Request, ctx: Context) -> None:
        began.append((request.name, ctx.attempts))
        if request.name != "slow" or ctx.attempts > 1:
            return
        assert ctx.cancelled.wait(5.0)
        told.set()
        may_end.wait(5.0)
        try:
            ctx.wait(ctx.client.delete(CM, "other", namespace="default"))
        except ReconcileStoppedError as error:
            refused.append(error.reason.name)

    async with world() as w, w.running(reconcile) as manager:
        await w.put("slow")
        await until(lambda: began, timeout=5.0)
        await w.put("other")
        await until(told.is_set, timeout=5.0)
        await asyncio.sleep(0.2)
        assert began == [("slow", 1)]  # the only slot is taken
        assert [run.key for run in manager.loops[0].runs.lingering()] == ["default/slow"]
        may_end.set()
        await until(lambda: ("slow", 2) in began, timeout=5.0)
        assert refused == ["TIMEOUT"]
        await w.client.get(CM, "other", namespace="default")


async def test_shutdown_waits_for_plain_function() -> None:
    running = threading.Event()

    @controller("v1/ConfigMap")
    def reconcile(request: Request, ctx: Context) -> None:
        running.set()
        ctx.cancelled.wait(60.0)
        with pytest.raises(ReconcileStoppedError):
            ctx.wait(ctx.client.delete(CM, "a", namespace="default"))

    async with world() as w:
        async with w.running(reconcile, drain_timeout=0.05, shutdown_timeout=5.0):
            await w.put("a")
            await until(running.is_set, timeout=5.0)
            began = time.monotonic()
        assert time.monotonic() - began < 30.0, "it was told, and did not wait to the end"


async def test_wait_on_event_loop_raises_error() -> None:
    errors: list[str] = []

    @controller("v1/ConfigMap")
    async def reconcile(request: Request, ctx: Context) -> None:
        try:
            ctx.wait(ctx.client.get(CM, request.name))
        except WaitOnLoopError as error:
            errors.append(error.call)
        with pytest.raises(NotFoundError):
            await ctx.client.get(CM, "no")

    async with world() as w, w.running(reconcile):
        await w.put("a")
        await until(lambda: errors, timeout=5.0)
    assert errors == ["ctx.wait(...)"]
