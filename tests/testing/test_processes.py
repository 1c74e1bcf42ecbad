"""A crash of a simulated process: nothing of it runs any more, and nothing of that is heard."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextvars
import gc
import sys
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from deltaloop.testing.deterministic_loop.processes import Process, ProcessLoop


async def test_crashed_process_runs_no_cleanup_and_loses_tasks() -> None:
    ran: list[str] = []
    process = Process("a")

    @asynccontextmanager
    async def entered() -> AsyncGenerator[None]:
        try:
            yield
        finally:
            ran.append("context")

    async def inner() -> None:
        try:
            await asyncio.sleep(5)
            ran.append("inner")
        except asyncio.CancelledError:
            ran.append("cancelled")
            raise

    async def work() -> None:
        try:
            async with entered(), asyncio.TaskGroup() as group:
                group.create_task(inner())
                await asyncio.gather(inner(), asyncio.shield(inner()))
        finally:
            ran.append("work")

    task = process.start(work())
    asyncio.get_running_loop().call_later(6, ran.append, "the test's own")
    await asyncio.sleep(1)
    process.crash()
    process.crash()
    await asyncio.sleep(100)
    assert ran == ["the test's own"]
    assert not task.done()
    assert asyncio.all_tasks() == {asyncio.current_task()}
    process.dispose()


@pytest.mark.skipif(sys.version_info < (3, 12), reason="tasks that begin at once came with Python 3.12")
async def test_task_created_without_loop_is_removed() -> None:
    """As aiohttp's server makes them."""
    ran: list[str] = []
    process = Process("a")

    async def beside() -> None:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            ran.append("clean-up")

    async def work() -> None:
        loop = asyncio.get_running_loop()
        make: Any = asyncio.Task  # the types are those of the oldest Python
        await asyncio.wait([make(beside(), loop=loop, eager_start=True) for _ in range(2)])

    process.start(work())
    await asyncio.sleep(1)
    process.crash()
    assert asyncio.all_tasks() == {asyncio.current_task()}
    assert not ran
    process.dispose()
    assert ran == ["clean-up"] * 2


async def test_process_can_crash_itself_at_next_await() -> None:
    ran: list[str] = []
    process = Process("a")

    async def work() -> None:
        try:
            await asyncio.sleep(1)
            process.crash()
            ran.append("the same step")
            await asyncio.sleep(0)
            ran.append("the next one")
        finally:
            ran.append("finally")

    process.start(work())
    await asyncio.sleep(100)
    assert ran == ["the same step"]
    process.dispose()


async def test_crashed_process_is_not_woken() -> None:
    ran: list[str] = []
    process = Process("a")
    loop = asyncio.get_running_loop()
    future, event, queue = loop.create_future(), asyncio.Event(), asyncio.Queue[str]()

    async def wait(coroutine: Coroutine[object, object, object]) -> None:
        await coroutine
        ran.append("woken")

    async def work() -> None:
        future.add_done_callback(lambda _: ran.append("called back"))
        loop.call_later(5, ran.append, "timer")
        await asyncio.gather(wait(event.wait()), wait(queue.get()), wait(asyncio.wait_for(future, 50)))

    process.start(work())
    await asyncio.sleep(1)
    process.crash()
    future.set_result(None)
    event.set()
    await queue.put("x")
    await asyncio.sleep(100)
    assert ran == []
    process.dispose()


@pytest.mark.parametrize("crashes_in", ["the middle of an answer", "the middle of a request"])
async def test_connections_of_crashed_process_end_for_peers(crashes_in: str) -> None:
    heard: list[bytes] = []
    ended = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(100):
                heard.append(data)
        except ConnectionResetError:
            pass
        finally:
            writer.close()
            ended.set()

    server = await asyncio.start_server(serve, "127.0.0.1")
    port = server.sockets[0].getsockname()[1]
    process = Process("a")

    async def work() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"begin")
        await writer.drain()
        if crashes_in == "the middle of a request":
            await asyncio.sleep(10)
        await reader.read(1)
        writer.write(b"never")

    process.start(work())
    await asyncio.sleep(1)
    assert heard == [b"begin"]
    process.crash()
    await asyncio.wait_for(ended.wait(), 1)
    assert heard == [b"begin"]
    process.dispose()
    server.close()
    await server.wait_closed()


async def test_ports_of_crashed_process_are_free() -> None:
    process = Process("a")

    def serve(_: asyncio.StreamReader, __: asyncio.StreamWriter) -> None:
        return

    async def work() -> int:
        server = await asyncio.start_server(serve, "127.0.0.1")
        return int(server.sockets[0].getsockname()[1])

    port = await process.start(work())
    process.crash()
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", port)
    process.dispose()


async def test_returning_thread_of_crashed_process_does_not_block_clock() -> None:
    process = Process("a")
    ran: list[str] = []

    async def work() -> None:
        await asyncio.to_thread(lambda: None)
        ran.append("returned")

    process.start(work())
    await asyncio.sleep(0)  # the thread is at work
    process.crash()
    await asyncio.sleep(1000)
    assert ran == []
    process.dispose()


def stubborn(ran: list[str]) -> Coroutine[object, object, None]:
    async def work() -> None:
        for number in range(20):
            try:
                await asyncio.sleep(1000)
            except BaseException:  # noqa: BLE001
                ran.append(str(number))
                asyncio.create_task(asyncio.sleep(1))  # noqa: RUF006

    return work()


def generating(ran: list[str]) -> Coroutine[object, object, None]:
    async def numbers() -> AsyncGenerator[int]:
        try:
            while True:
                await asyncio.sleep(1000)
                yield 1
        finally:
            await asyncio.gather(asyncio.sleep(0), return_exceptions=True)

    async def work() -> None:
        try:
            async for _ in numbers():
                pass
        finally:
            ran.append("finally")

    return work()


def between_two_items(ran: list[str]) -> Coroutine[object, object, None]:
    async def numbers() -> AsyncGenerator[int]:
        try:
            yield 1
        finally:
            ran.append("generator")
            await asyncio.sleep(1)

    async def work() -> None:
        async for _ in numbers():
            await asyncio.sleep(1000)

    return work()


def failing(ran: list[str]) -> Coroutine[object, object, None]:
    async def fail() -> None:
        raise ValueError

    async def work() -> None:
        failed = asyncio.create_task(fail())
        try:
            await asyncio.sleep(1000)
        finally:
            ran.append("finally")
            await failed

    return work()


@pytest.mark.parametrize("make", [stubborn, generating, between_two_items, failing])
async def test_remains_of_crash_are_closed_silently(
    make: Callable[[list[str]], Coroutine[object, object, None]], caplog: pytest.LogCaptureFixture
) -> None:
    gc.freeze()  # what earlier tests left
    caplog.clear()
    ran: list[str] = []
    process = Process("a")
    process.start(make(ran))
    await asyncio.sleep(1)
    process.crash()
    await asyncio.sleep(5000)
    assert ran == []
    process.dispose()
    assert ran
    gc.collect()  # warnings are errors here, those of destructors, too
    assert caplog.records == []
    assert asyncio.all_tasks() == {asyncio.current_task()}


@pytest.mark.real_time
async def test_processes_work_in_real_time() -> None:
    assert type(asyncio.get_running_loop()) is ProcessLoop
    process = Process("a")
    ran: list[str] = []

    async def work() -> None:
        try:
            await asyncio.sleep(0.005)
        finally:
            ran.append("finally")

    process.start(work())
    await asyncio.sleep(0)
    process.crash()
    await asyncio.sleep(0.02)
    assert ran == []
    process.dispose()


def test_other_event_loop_is_rejected() -> None:
    async def main() -> None:
        Process("a")

    with pytest.raises(TypeError):
        asyncio.run(main())


async def test_crash_does_not_affect_other_processes() -> None:
    ran: list[str] = []

    async def work(name: str) -> None:
        await asyncio.sleep(2)
        ran.append(name)

    first, second = Process("a"), Process("b")
    first.start(work("a"))
    second.start(work("b"))
    await asyncio.sleep(1)
    first.crash()
    await asyncio.sleep(2)
    assert ran == ["b"]
    assert repr(first) == "<Process a, crashed>"
    assert repr(second) == "<Process b, alive>"
    first.dispose()


@pytest.mark.real_time
async def test_waiting_thread_of_crashed_process_is_canceled() -> None:
    process = Process("a")
    loop = asyncio.get_running_loop()
    heard: list[str] = []
    waiting, ended = threading.Event(), asyncio.Event()

    def ask() -> None:
        for _ in range(2):
            coroutine = asyncio.sleep(1000)
            waiting.set()
            try:
                asyncio.run_coroutine_threadsafe(coroutine, loop).result()
            except concurrent.futures.CancelledError:
                heard.append("cancelled")
            except RuntimeError:
                heard.append("refused")
                coroutine.close()
        contextvars.Context().run(loop.call_soon_threadsafe, ended.set)

    async def work() -> None:
        await asyncio.to_thread(ask)

    process.start(work())
    await asyncio.to_thread(waiting.wait)
    await asyncio.sleep(0.01)
    process.crash()
    await asyncio.wait_for(ended.wait(), 5)
    assert heard == ["cancelled", "refused"]
    process.dispose()


async def test_connections_of_process_can_be_cut() -> None:
    process = Process("a")

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            await reader.read()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1")

    async def work() -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.sockets[0].getsockname()[1])
        try:
            return await reader.read()
        finally:
            writer.close()

    task = process.start(work())
    await asyncio.sleep(1)
    process.cut_connections()
    assert await task == b""
    server.close()
    await server.wait_closed()


async def test_paused_process_takes_no_steps_until_resumed() -> None:
    took: list[str] = []
    process, other = Process("a"), Process("b")

    async def work(name: str) -> None:
        while True:
            await asyncio.sleep(1)
            took.append(name)

    process.start(work("a"))
    other.start(work("b"))
    await asyncio.sleep(1.5)
    process.pause()
    process.pause()
    assert process.paused
    await asyncio.sleep(3)
    assert took == ["a", "b", "b", "b", "b"]
    process.resume()
    await asyncio.sleep(0.1)
    assert took[5:] == ["a"], "one step: the timer had come once"
    process.resume()
    process.pause()
    process.crash()
    assert not process.paused
    await asyncio.sleep(3)
    assert "a" not in took[6:]
    other.crash()


async def test_paused_process_can_crash() -> None:
    took: list[str] = []
    process = Process("a")

    async def work() -> None:
        await asyncio.sleep(1)
        took.append("a")

    process.start(work())
    await asyncio.sleep(0)
    process.pause()
    await asyncio.sleep(2)
    process.crash()
    await asyncio.sleep(2)
    process.resume()
    await asyncio.sleep(2)
    assert not took
    process.dispose()


class LastFirst:
    """The last one alone."""

    def turn(self, tasks: Sequence[object]) -> Sequence[int]:
        return (len(tasks) - 1,)


async def test_ready_tasks_take_steps_in_specified_order() -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, ProcessLoop)
    took: list[str] = []
    process = Process("a")

    async def work(name: str) -> None:
        for _ in range(2):
            took.append(name)
            await asyncio.sleep(0)

    loop.order = LastFirst()
    for name in "abc":
        process.start(work(name))
    own = [asyncio.create_task(work(name)) for name in "xy"]
    loop.call_soon(took.append, "callback")
    await asyncio.sleep(1)
    loop.order = None
    assert [name for name in took if name in "abc"] == ["c", "b", "a", "c", "b", "a"]
    assert [name for name in took if name not in "abc"] == ["x", "y", "callback", "x", "y"], "as ever"
    await asyncio.gather(*own)
    process.crash()


async def test_slow_clock_delays_timers() -> None:
    loop = asyncio.get_running_loop()
    seen: list[tuple[float, float]] = []
    process, other = Process("slow"), Process("right")

    async def ticks() -> None:
        began = loop.time()
        while loop.time() < began + 3.0:
            await asyncio.sleep(1.0)
            seen.append((loop.time() - began, contextvars.Context().run(loop.time)))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout_at(loop.time() + 1.0):
                await asyncio.sleep(5.0)
        seen.append((loop.time() - began, contextvars.Context().run(loop.time)))

    before = loop.time()
    await asyncio.sleep(1.0)
    process.slow_down(0.5)
    await asyncio.gather(process.start(ticks()), other.start(asyncio.sleep(5.0)))
    assert [own for own, _ in seen] == pytest.approx([1, 2, 3, 4], abs=1e-4)
    assert [real - before for _, real in seen] == pytest.approx([3, 5, 7, 9], abs=1e-4)
    process.slow_down(0.25)
    process.slow_down(1.0)
    assert loop.time() == pytest.approx(before + 9.0, abs=1e-4)


async def test_timer_of_slow_clock_is_one_wait() -> None:
    """Rounding may not wake it before that: no time would pass then, and it would wait again and again."""
    loop = asyncio.get_running_loop()
    process = Process("slow")
    await asyncio.sleep(1 / 3)

    async def waits() -> int:
        waits = 0
        for number in range(1, 300):
            until = number / 7
            while loop.time() < until:
                waits += 1
                await asyncio.sleep(until - loop.time())
        return waits

    process.slow_down(0.7)
    assert await process.start(waits()) < 300
