from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltaloop.testing import StalledError, VirtualLoop, run_virtual
from deltaloop.testing.deterministic_loop import virtual_loop
from tests.nightly import by_day

DAY = 86400.0


async def test_sleep_ends_at_exact_time() -> None:
    loop = asyncio.get_running_loop()
    assert loop.time() == 0.0
    began = time.process_time()
    await asyncio.sleep(3600)
    assert loop.time() == 3600.0
    await asyncio.sleep(10.5 * DAY)
    assert loop.time() == 3600.0 + 10.5 * DAY
    assert time.process_time() - began < 2


@given(st.lists(st.floats(0, 1e9), min_size=1, max_size=12, unique=True), st.sampled_from([0.0, 0.1, 1e6]))
def test_timers_run_in_order_at_exact_times(delays: list[float], start: float) -> None:
    async def main() -> list[tuple[float, float]]:
        loop = asyncio.get_running_loop()
        seen: list[tuple[float, float]] = []
        done = loop.create_future()
        moments = sorted({start + round(delay, 3) for delay in delays})

        def ring(moment: float) -> None:
            seen.append((moment, loop.time()))
            if len(seen) == len(moments):
                done.set_result(None)

        for moment in reversed(moments):
            loop.call_at(moment, ring, moment)
        await done
        return seen

    seen = run_virtual(main(), start=start)
    assert seen == sorted(seen)
    assert all(moment == now for moment, now in seen)


def test_timer_time_has_no_rounding_error() -> None:
    now, due = 0.901, 3.932
    assert now + (due - now) != due

    async def main() -> float:
        loop = asyncio.get_running_loop()
        done: asyncio.Future[float] = loop.create_future()
        loop.call_at(due, lambda: done.set_result(loop.time()))
        return await done

    assert run_virtual(main(), start=now) == due


def test_task_that_waits_until_a_deadline_does_not_wait_again() -> None:
    until = 11.29
    start = until - 2.7e-14  # nearer than the resolution of timers
    assert start < until

    async def main() -> tuple[float, int]:
        loop, waits = asyncio.get_running_loop(), 0
        while loop.time() < until and waits < 10:
            waits += 1
            other = asyncio.ensure_future(asyncio.sleep(60))  # its first step prevents a jump of the clock
            await asyncio.wait([other], timeout=until - loop.time())
            other.cancel()
        return loop.time(), waits

    assert run_virtual(main(), start=start) == (until, 1)


async def test_timeouts_expire_on_time() -> None:
    loop = asyncio.get_running_loop()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(30):
            await loop.create_future()
    assert loop.time() == 30.0


async def test_canceled_timer_does_not_advance_clock() -> None:
    loop = asyncio.get_running_loop()
    loop.call_later(5, lambda: None).cancel()
    sleeper = asyncio.create_task(asyncio.sleep(100))
    await asyncio.sleep(0)
    sleeper.cancel()
    await asyncio.sleep(10)
    assert loop.time() == 10.0
    assert sleeper.cancelled()


def test_start_time_is_configurable() -> None:
    async def now() -> float:
        await asyncio.sleep(0.25)
        return asyncio.get_running_loop().time()

    assert run_virtual(now(), start=1e6) == 1e6 + 0.25


def test_stall_is_detected_with_waiting_tasks() -> None:
    async def wait_for_ever() -> None:
        await asyncio.get_running_loop().create_future()

    async def main() -> None:
        task = asyncio.create_task(wait_for_ever(), name="the lost one")
        await task

    began = time.process_time()
    with pytest.raises(StalledError, match=r"waiting: .*the lost one \(wait_for_ever, line"):
        run_virtual(main())
    assert time.process_time() - began < 2


def test_cleanup_runs_after_stall() -> None:
    cleaned: list[float] = []

    async def main() -> None:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            await asyncio.sleep(5)
            cleaned.append(asyncio.get_running_loop().time())

    with pytest.raises(StalledError):
        run_virtual(main())
    assert cleaned == [5.0]


async def test_clock_stops_while_thread_works() -> None:
    loop = asyncio.get_running_loop()
    timer = asyncio.create_task(asyncio.sleep(0.001))
    assert await asyncio.to_thread(lambda: "done") == "done"
    release = threading.Event()
    threading.Timer(0.05, release.set).start()
    async with asyncio.timeout(0.0005):
        assert await asyncio.to_thread(release.wait, 5)
    assert loop.time() == 0.0
    await timer
    assert loop.time() == 0.001


async def test_clock_stops_until_canceled_thread_returns() -> None:
    loop = asyncio.get_running_loop()
    started, release, ended = threading.Event(), threading.Event(), threading.Event()

    def work() -> None:
        started.set()
        release.wait(5)
        ended.set()

    task = asyncio.create_task(asyncio.to_thread(work))
    while not started.is_set():  # noqa: ASYNC110  # a thread cannot set an asyncio event
        await asyncio.sleep(0)
    task.cancel()
    threading.Timer(0.05, release.set).start()
    await asyncio.sleep(60)
    assert ended.is_set()
    assert loop.time() == 60.0
    assert task.cancelled()


async def test_custom_executor_is_awaited() -> None:
    loop = asyncio.get_running_loop()
    release = threading.Event()
    with ThreadPoolExecutor(1) as executor:
        threading.Timer(0.05, release.set).start()
        async with asyncio.timeout(1):
            assert await loop.run_in_executor(executor, release.wait, 5)
    assert loop.time() == 0.0


async def test_error_of_thread_is_raised_and_clock_continues() -> None:
    with pytest.raises(ZeroDivisionError):
        await asyncio.to_thread(lambda: 1 // 0)
    await asyncio.sleep(5)
    assert asyncio.get_running_loop().time() == 5.0


async def test_plain_thread_can_wake_loop() -> None:
    loop = asyncio.get_running_loop()
    future: asyncio.Future[int] = loop.create_future()
    thread = threading.Timer(0.03, lambda: loop.call_soon_threadsafe(future.set_result, 7))
    thread.start()
    assert await future == 7
    assert loop.time() == 0.0
    thread.join()


async def test_peers_on_same_loop_communicate_without_advancing_clock() -> None:
    loop = asyncio.get_running_loop()
    alarm = asyncio.create_task(asyncio.sleep(3600))

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            writer.write(line)
        writer.close()
        await writer.wait_closed()

    async with await asyncio.start_server(echo, "127.0.0.1", 0, limit=2**21) as server:
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        for number in range(1000):
            writer.write(b"%d\n" % number)
            assert await reader.readline() == b"%d\n" % number
            assert loop.time() == 0.0
        writer.write(b"x" * 1_000_000 + b"\n")
        received = 0
        while received < 1_000_001:
            received += len(await reader.read(65536))
        writer.close()
        await writer.wait_closed()
        while await reader.read():
            pass
    assert loop.time() == 0.0
    await asyncio.sleep(1800)
    assert not alarm.done()
    alarm.cancel()
    await asyncio.gather(alarm, return_exceptions=True)


def test_slow_callbacks_are_measured_in_virtual_time(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> bool:
        began = time.process_time()
        while time.process_time() - began < 0.15:
            pass
        await asyncio.sleep(1)
        return asyncio.get_running_loop().get_debug()

    assert run_virtual(main(), debug=True)
    assert not [record for record in caplog.records if "took" in record.message]


async def test_debug_mode_follows_asyncio(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> bool:
        return asyncio.get_running_loop().get_debug()

    assert isinstance(asyncio.get_running_loop(), VirtualLoop)
    for wanted in ("", "1"):
        monkeypatch.setenv("PYTHONASYNCIODEBUG", wanted)
        assert await asyncio.to_thread(lambda: run_virtual(main())) is (wanted == "1")


def test_cancellation_reaches_main_task() -> None:
    async def main() -> float:
        task = asyncio.current_task()
        assert task is not None
        asyncio.get_running_loop().call_later(5, task.cancel)
        try:
            await asyncio.sleep(100)
        except asyncio.CancelledError:
            return asyncio.get_running_loop().time()
        return -1.0

    assert run_virtual(main()) == 5.0


@pytest.mark.slow
@pytest.mark.parametrize("python", by_day([f"python3.{minor}" for minor in range(11, 15)], ["python3.13"]))
def test_virtual_loop_runs_on_other_python_versions(python: str, tmp_path: Path) -> None:
    """The loop needs nothing but the standard library, so that other interpreters can run it bare."""
    script = tmp_path / "script.py"
    script.write_text(
        "import asyncio, runpy, sys, threading, types\n"
        "room = 'deltaloop.testing.deterministic_loop'\n"
        "packages = ('deltaloop', 'deltaloop.testing', room, room + '.core')\n"
        "sys.modules.update({name: types.ModuleType(name) for name in packages})\n"
        "names = ('core.task_orders', 'memory_network', 'thread_turns', 'processes')\n"
        "for path, name in zip(sys.argv[2:], names, strict=True):\n"
        "    below = sys.modules[f'{room}.{name}'] = types.ModuleType(f'{room}.{name}')\n"
        "    vars(below).update(runpy.run_path(path, run_name=below.__name__))\n"
        "loaded = runpy.run_path(sys.argv[1], run_name='virtual_loop')\n"
        "StalledError, run_virtual = loaded['StalledError'], loaded['run_virtual']\n"
        "async def main():\n"
        "    loop = asyncio.get_running_loop()\n"
        "    release = threading.Event()\n"
        "    threading.Timer(0.02, release.set).start()\n"
        "    assert await asyncio.to_thread(release.wait, 5)\n"
        "    assert loop.time() == 0.0\n"
        "    await asyncio.sleep(100000.5)\n"
        "    cleaned, process = [], below.Process('a')\n"
        "    async def work():\n"
        "        try:\n"
        "            await asyncio.sleep(10)\n"
        "        finally:\n"
        "            cleaned.append(await asyncio.sleep(0))\n"
        "    process.start(work())\n"
        "    await asyncio.sleep(1)\n"
        "    process.crash()\n"
        "    await asyncio.sleep(99)\n"
        "    assert not cleaned and len(asyncio.all_tasks()) == 1\n"
        "    process.dispose()\n"
        "    del process\n"
        "    assert loop.time() == 100100.5\n"
        "    return 'fine'\n"
        "async def stall():\n"
        "    await asyncio.get_running_loop().create_future()\n"
        "try:\n"
        "    run_virtual(stall())\n"
        "except StalledError:\n"
        "    print(run_virtual(main()))\n"
    )
    module, below = (
        Path(virtual_loop.__file__),
        ("core/task_orders.py", "memory_network.py", "thread_turns.py", "processes.py"),
    )
    try:
        done = subprocess.run(
            [python, "-W", "error", str(script), str(module), *(str(module.parent / name) for name in below)],
            env={**os.environ, "PYENV_VERSION": python.removeprefix("python")},
            capture_output=True,
            text=True,
            timeout=50,
            check=False,
        )
    except FileNotFoundError:
        pytest.skip(f"{python} is not installed")
    if done.returncode == 127:  # a version manager's stand-in for an interpreter that is not there
        pytest.skip(f"{python} is not installed")
    assert (done.stdout, done.stderr) == ("fine\n", ""), sys.version


def test_unsafe_call_from_other_thread_raises_error() -> None:
    async def main() -> list[object]:
        loop = asyncio.get_running_loop()
        seen: list[object] = []
        called = asyncio.Event()

        def elsewhere() -> None:
            for unsafe in (loop.call_soon, partial(loop.call_at, 1.0), partial(loop.call_later, 1.0)):
                try:
                    unsafe(seen.append, "unsafe")
                except RuntimeError as error:
                    seen.append(str(error))
            loop.call_soon_threadsafe(called.set)

        await asyncio.to_thread(elsewhere)
        await called.wait()
        return seen

    assert run_virtual(main()) == [
        f"{name} must be called from the thread of the loop. Use call_soon_threadsafe."
        for name in ("call_soon", "call_at", "call_at")
    ]
