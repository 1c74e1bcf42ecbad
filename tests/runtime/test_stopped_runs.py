"""What a reconcile raises after it was told to stop decides nothing, and is not lost."""

from __future__ import annotations

import asyncio
import logging

import pytest

from deltaloop.errors import ShutdownTimeoutError
from deltaloop.runtime import Context, Request, controller
from tests.runtime.reconcile.test_loop import slow_limiter
from tests.runtime.worlds import CM, until, world

MESSAGE = "reconcile raised an exception after it was stopped"


def told(caplog: pytest.LogCaptureFixture, level: int = logging.WARNING) -> list[str]:
    found = [record for record in caplog.records if record.getMessage() == MESSAGE and record.levelno == level]
    return [f"{record.__dict__['key']}, {record.__dict__['reason']}: {record.__dict__['raised']}" for record in found]


async def fails_when_cancelled(_: Request, ctx: Context) -> None:
    try:
        await asyncio.sleep(60.0)
    except asyncio.CancelledError:
        raise ValueError("while it cleaned up") from None


async def test_error_after_timeout_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    slow = controller("v1/ConfigMap", timeout=5.0, rate_limiter=slow_limiter)(fails_when_cancelled)
    async with world() as w, w.running(slow):
        await w.put("a")
        await asyncio.sleep(5.5)
        assert told(caplog) == ["default/a, its timeout expired: ValueError: while it cleaned up"]


async def test_error_after_interruption_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    slow = controller("v1/ConfigMap")(fails_when_cancelled)
    async with world() as w, w.running(slow, drain_timeout=1.0):
        await w.put("a")
        await asyncio.sleep(0.5)
    assert told(caplog) == ["default/a, leadership was lost, or the program is ending: ValueError: while it cleaned up"]


async def test_error_of_abandoned_reconcile_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    free = asyncio.Event()

    @controller("v1/ConfigMap")
    async def reconcile(_: Request, ctx: Context) -> None:
        while not free.is_set():
            try:
                await free.wait()
            except asyncio.CancelledError:
                continue
        raise ValueError("at last")

    async with world() as w:
        manager = w.manager(reconcile, drain_timeout=1.0, shutdown_timeout=2.0)
        task = asyncio.create_task(manager.run())
        await w.put("a")
        await until(lambda: manager.loops and len(manager.loops[0].runs))
        manager.stop()
        with pytest.raises(ShutdownTimeoutError):
            await task
        assert told(caplog) == []
        free.set()
        await asyncio.sleep(0.1)
        assert told(caplog) == ["default/a, leadership was lost, or the program is ending: ValueError: at last"]


@pytest.mark.parametrize("in_a_group", [False, True])
async def test_rejected_write_of_stopped_reconcile_is_not_logged(
    caplog: pytest.LogCaptureFixture, in_a_group: bool
) -> None:
    caplog.set_level(logging.DEBUG, logger="deltaloop.runtime")

    @controller("v1/ConfigMap", timeout=5.0, rate_limiter=slow_limiter)
    async def reconcile(request: Request, ctx: Context) -> None:
        try:
            await asyncio.sleep(60.0)
        except asyncio.CancelledError:
            async with asyncio.TaskGroup() as group:
                if in_a_group:
                    group.create_task(ctx.client.live.delete(CM, request.name, namespace=request.namespace))
            await ctx.client.live.delete(CM, request.name, namespace=request.namespace)

    async with world() as w, w.running(reconcile):
        await w.put("a")
        await until(lambda: told(caplog, logging.DEBUG))
        assert told(caplog) == []
        assert (await w.data_of("a")) == {}
