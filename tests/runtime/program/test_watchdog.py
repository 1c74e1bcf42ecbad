"""A real thread beside a real loop: what blocks is named while it blocks, and nothing else is."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from typing import Any

import pytest

from deltaloop._internal.tracebacks import waits_for_events
from deltaloop.runtime import Context, Request, controller
from deltaloop.runtime.program import watchdog as watchdog_module
from deltaloop.runtime.program.watchdog import LoopWatchdog, _processor_time_of_this_thread
from tests.runtime.worlds import until, world

BLOCKED = "event loop is blocked: use asyncio.to_thread or an async library for blocking calls"
AGAIN = "event loop is running again"


def block(seconds: float) -> None:
    threading.Event().wait(seconds)


def told(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    return [vars(record) for record in caplog.records if record.name == "deltaloop.runtime"]


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == "deltaloop-watchdog"]


@pytest.mark.real_time
async def test_blocked_loop_is_logged_with_task_and_stack(caplog: pytest.LogCaptureFixture) -> None:
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
async def test_unblocked_loop_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    async with LoopWatchdog(10.0):
        assert threads() == ["deltaloop-watchdog"]
        await asyncio.to_thread(block, 0.05)
    assert told(caplog) == []
    assert threads() == []


@pytest.mark.real_time
async def test_idle_loop_is_not_woken(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = list[bool]()

    def waits(thread_id: int) -> bool:
        seen.append(waits_for_events(thread_id))
        return seen[-1]

    monkeypatch.setattr(watchdog_module, "waits_for_events", waits)
    async with LoopWatchdog(0.02):
        await until(lambda: True in seen, timeout=5.0)


async def test_loop_in_virtual_time_has_no_watchdog() -> None:
    async with LoopWatchdog(0.1):
        assert threads() == []


@pytest.mark.real_time
async def test_watchdog_without_limit_starts_no_thread() -> None:
    watchdog = LoopWatchdog(None)
    async with watchdog as entered:
        assert entered is watchdog
        assert threads() == []


class ShiftedLoop(asyncio.SelectorEventLoop):
    """A loop whose clock shows another time than the machine's."""

    shift = 0.0

    def time(self) -> float:
        return super().time() + self.shift


@pytest.mark.real_time
@pytest.mark.parametrize(("shift", "watched"), [(0.0, 1), (4.5, 1), (-4.5, 1), (5.5, 0), (-5.5, 0)])
def test_watchdog_needs_loop_clock_within_five_seconds_of_machine(shift: float, watched: int) -> None:
    async def entered() -> int:
        async with LoopWatchdog(10.0):
            return len(threads())

    loop = ShiftedLoop()
    loop.shift = shift
    try:
        assert loop.run_until_complete(entered()) == watched
    finally:
        loop.close()


@pytest.mark.real_time
async def test_watchdog_thread_uses_little_cpu_and_ends_with_block() -> None:
    async with LoopWatchdog(8.0):
        [thread] = [each for each in threading.enumerate() if each.name == "deltaloop-watchdog"]
        assert thread.daemon
        begun = time.monotonic()
    assert time.monotonic() - begun < 1.0, "it does not wait for its next question"
    async with LoopWatchdog(0.04):
        [thread] = [each for each in threading.enumerate() if each.name == "deltaloop-watchdog"]
        await asyncio.sleep(0.4)
        assert thread.ident is not None
        used = time.clock_gettime(time.pthread_getcpuclockid(thread.ident))
        assert used < 0.04, "it asks some times for each limit, and does not spin"


@pytest.mark.real_time
async def test_a_callback_that_blocks_has_no_task(caplog: pytest.LogCaptureFixture) -> None:
    async with LoopWatchdog(0.1):
        asyncio.get_running_loop().call_soon(block, 0.3)
        await until(lambda: len(told(caplog)) == 2, timeout=5.0)
    blocked, again = told(caplog)
    assert blocked["task"] == ""
    assert [each["levelno"] for each in (blocked, again)] == [logging.WARNING, logging.WARNING]
    assert [round(each["seconds"], 3) for each in (blocked, again)] == [blocked["seconds"], again["seconds"]]


@pytest.mark.real_time
async def test_loop_that_continues_during_stack_lookup_is_not_logged(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks, goes_on, looked = threading.Event(), threading.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def look(thread_id: int) -> tuple[str, ...]:
        looks.set()
        goes_on.wait(5.0)
        loop.call_soon_threadsafe(looked.set)
        return ()

    monkeypatch.setattr(watchdog_module, "thread_frames", look)
    async with LoopWatchdog(0.04):
        assert looks.wait(5.0), "this blocks the loop"
        await asyncio.sleep(0)
        goes_on.set()
        await looked.wait()
    assert BLOCKED not in [record["message"] for record in told(caplog)]


@pytest.mark.real_time
def test_closed_loop_does_not_break_watchdog_thread() -> None:
    watchdog = LoopWatchdog(0.04)
    loop = asyncio.new_event_loop()
    loop.run_until_complete(watchdog.__aenter__())
    loop.close()
    block(0.15)
    assert threads() == ["deltaloop-watchdog"], "and nothing was raised there"
    asyncio.run(watchdog.__aexit__(None, None, None))
    assert threads() == []


@pytest.mark.real_time
def test_cpu_time_of_thread_is_readable_from_other_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    used = _processor_time_of_this_thread()
    before = used()
    sum(range(200_000))
    read: list[float] = []
    thread = threading.Thread(target=lambda: read.append(used()))
    thread.start()
    thread.join()
    assert before < read[0] <= used()
    assert used() < time.monotonic()

    def unknown(_: int) -> int:
        raise OSError("not on this platform")

    monkeypatch.setattr(time, "pthread_getcpuclockid", unknown)
    assert _processor_time_of_this_thread() is time.monotonic


@pytest.mark.real_time
async def test_blocking_reconciler_is_logged_without_leader_election(caplog: pytest.LogCaptureFixture) -> None:
    blocked = asyncio.Event()

    @controller("v1/ConfigMap")
    async def reconcile(request: Request, ctx: Context) -> None:
        if not blocked.is_set():
            block(0.3)
            blocked.set()

    async with world() as w:
        await w.put("a")
        async with w.running(reconcile, loop_block_threshold=0.1):
            await until(lambda: any(record["message"] == BLOCKED for record in told(caplog)), timeout=5.0)
    named = next(record for record in told(caplog) if record["message"] == BLOCKED)
    assert named["task"] == "reconcile configmap default/a"
    assert any(frame.endswith("in block: threading.Event().wait(seconds)") for frame in named["stack"])
    assert threads() == []
