"""A real thread beside a real loop: what blocks is named while it blocks, and nothing else is."""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import Any

import pytest

from deltaloop.runtime import Context, Request, controller
from deltaloop.runtime.watchdog import LoopWatchdog
from tests.runtime.worlds import until, world

BLOCKED = "the event loop is blocked: call what blocks in a thread (asyncio.to_thread), or use an async library"
AGAIN = "the event loop runs again"


def block(seconds: float) -> None:
    threading.Event().wait(seconds)


def told(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    return [vars(record) for record in caplog.records if record.name == "deltaloop.runtime"]


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == "deltaloop-watchdog"]


@pytest.mark.real_time
async def test_a_block_is_named_with_its_task_and_place(caplog: pytest.LogCaptureFixture) -> None:
    async with LoopWatchdog(0.1):
        asyncio.current_task().set_name("reconcile foo default/a")  # type: ignore[union-attr]
        block(0.4)
        await until(lambda: len(told(caplog)) == 2, timeout=5.0)
    blocked, again = told(caplog)
    assert (blocked["message"], blocked["levelno"]) == (BLOCKED, logging.WARNING)
    assert blocked["task"] == "reconcile foo default/a"
    assert 0.05 < blocked["seconds"] < 0.4
    assert any("in block: threading.Event().wait(seconds)" in frame for frame in blocked["stack"])
    assert again["message"] == AGAIN
    assert again["seconds"] >= 0.2
    assert threads() == []


@pytest.mark.real_time
async def test_a_loop_that_is_not_blocked_is_not_named(caplog: pytest.LogCaptureFixture) -> None:
    async with LoopWatchdog(10.0):
        assert threads() == ["deltaloop-watchdog"]
        await asyncio.to_thread(block, 0.05)
    assert told(caplog) == []
    assert threads() == []


async def test_a_loop_in_virtual_time_is_not_watched() -> None:
    async with LoopWatchdog(0.1):
        assert threads() == []


@pytest.mark.real_time
async def test_no_limit_watches_nothing() -> None:
    async with LoopWatchdog(None):
        assert threads() == []


@pytest.mark.real_time
async def test_a_reconciler_that_blocks_is_named_without_leader_election(caplog: pytest.LogCaptureFixture) -> None:
    blocked = asyncio.Event()

    @controller("v1/ConfigMap")
    async def reconcile(request: Request, ctx: Context) -> None:
        if not blocked.is_set():
            block(0.3)
            blocked.set()

    async with world() as w:
        await w.put("a")
        async with w.running(reconcile, blocked_after=0.1):
            await until(lambda: any(record["message"] == BLOCKED for record in told(caplog)), timeout=5.0)
    named = next(record for record in told(caplog) if record["message"] == BLOCKED)
    assert named["task"] == "reconcile configmap default/a"
    assert any(frame.endswith("in block: threading.Event().wait(seconds)") for frame in named["stack"])
    assert threads() == []
