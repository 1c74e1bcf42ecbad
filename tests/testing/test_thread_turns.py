"""Threads of an event loop that take turns."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from deltaloop.testing.deterministic_loop.thread_turns import sleep, thread_turns
from deltaloop.testing.deterministic_loop.virtual_loop import VirtualLoop


def in_turns(main: Callable[[], Awaitable[Any]], *, patience: float = 5.0) -> Any:
    """Run something on a loop of its own, whose threads take turns."""

    async def run() -> Any:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        with thread_turns(loop, patience=patience) as loop.turns:
            return await main()

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(run())


@pytest.mark.real_time
def test_threads_run_one_at_a_time_in_order_of_readiness() -> None:
    for _ in range(20):
        seen: list[str] = []

        def works(name: str, *, seen: list[str] = seen) -> None:
            for step in range(3):
                seen.extend(f"{name}{step}" for _ in range(50))
                sleep(1.0)

        async def main(works: Callable[[str], None] = works) -> float:
            await asyncio.gather(*(asyncio.to_thread(works, name) for name in "abc"))
            return asyncio.get_running_loop().time()

        assert in_turns(main) == pytest.approx(3.0)
        assert seen == [f"{name}{step}" for step in range(3) for name in "abc" for _ in range(50)]


@pytest.mark.real_time
def test_thread_can_await_coroutine_in_virtual_time() -> None:
    async def main() -> tuple[str, float]:
        loop = asyncio.get_running_loop()

        async def answer() -> str:
            await asyncio.sleep(5.0)
            return "it"

        def asks() -> str:
            return asyncio.run_coroutine_threadsafe(answer(), loop).result(timeout=60.0)

        return await asyncio.to_thread(asks), loop.time()

    assert in_turns(main) == ("it", pytest.approx(5.0))


@pytest.mark.real_time
def test_thread_events_and_queues_use_virtual_time() -> None:
    async def main() -> tuple[list[object], float]:
        handed: queue.Queue[int] = queue.Queue()
        event = threading.Event()

        def takes() -> list[object]:
            found: list[object] = [event.wait(10.0), event.wait(100.0), handed.get(), handed.get(timeout=30.0)]
            with pytest.raises(queue.Empty):
                handed.get(timeout=30.0)
            return found

        def gives() -> None:
            sleep(20.0)
            event.set()
            handed.put(1)
            sleep(10.0)
            handed.put(2)

        taken, _ = await asyncio.gather(asyncio.to_thread(takes), asyncio.to_thread(gives))
        return taken, asyncio.get_running_loop().time()

    assert in_turns(main) == ([False, True, 1, 2], pytest.approx(60.0))


@pytest.mark.real_time
def test_error_of_thread_is_raised_in_await() -> None:
    async def main() -> None:
        def fails() -> None:
            raise LookupError("this one")

        with pytest.raises(LookupError, match="this one"):
            await asyncio.to_thread(fails)

    in_turns(main)


@pytest.mark.real_time
def test_waiting_thread_gets_error_at_end() -> None:
    ended: list[str] = []

    async def main() -> None:
        def waits() -> None:
            try:
                threading.Event().wait()
            except RuntimeError as error:
                ended.append(str(error))
            with pytest.raises(RuntimeError):
                sleep(1.0)
            ended.append("ended")

        asyncio.get_running_loop().run_in_executor(None, waits)
        await asyncio.sleep(1.0)

    in_turns(main)
    assert ended == ["the event loop has ended, so the wait of this thread cannot end", "ended"]


@pytest.mark.real_time
def test_loop_continues_while_thread_waits_outside_virtual_time(
    caplog: pytest.LogCaptureFixture,
) -> None:
    lock = threading.Lock()
    lock.acquire()

    async def main() -> str:
        def waits() -> str:
            with lock:
                sleep(3.0)
                return "got it"

        waiting = asyncio.ensure_future(asyncio.to_thread(waits))
        await asyncio.sleep(10.0)
        assert not waiting.done()
        lock.release()
        for _ in range(10_000):
            if waiting.done():
                break
            await asyncio.sleep(1.0)
            threading.Event().wait(0.001)  # a moment of the machine's time
        return await waiting

    assert in_turns(main, patience=0.05) == "got it"
    assert "thread waits outside of virtual time" in caplog.text


@pytest.mark.real_time
def test_pool_with_initializer_keeps_threads() -> None:
    async def main() -> object:
        prepared = threading.local()

        def prepare() -> None:
            prepared.by = "the pool"

        with ThreadPoolExecutor(1, initializer=prepare) as pool:
            return await asyncio.get_running_loop().run_in_executor(pool, lambda: prepared.by)

    assert in_turns(main) == "the pool"


@pytest.mark.real_time
def test_pool_concurrency_is_number_of_threads() -> None:
    async def main() -> list[tuple[str, int, float]]:
        loop = asyncio.get_running_loop()
        seen: list[tuple[str, int, float]] = []

        def works(name: str, number: int) -> None:
            seen.append((name, number, loop.time()))
            sleep(1.0)

        with ThreadPoolExecutor(1) as one, ThreadPoolExecutor(2) as two:
            calls = [loop.run_in_executor(one, works, "one", number) for number in range(3)]
            calls += [loop.run_in_executor(two, works, "two", number) for number in range(3)]
            await asyncio.gather(*calls)
        return sorted(seen)

    assert in_turns(main) == [
        ("one", 0, 0.0),
        ("one", 1, 1.0),
        ("one", 2, 2.0),
        ("two", 0, 0.0),
        ("two", 1, 0.0),
        ("two", 2, 1.0),
    ]


@pytest.mark.nightly
@pytest.mark.real_time
def test_thousands_of_calls_share_few_threads() -> None:
    async def main() -> int:
        most = 0

        def works() -> None:
            nonlocal most
            most = max(most, threading.active_count())
            sleep(1.0)

        before = threading.active_count()
        await asyncio.gather(*(asyncio.to_thread(works) for _ in range(2_000)))
        return most - before

    assert in_turns(main) <= 33  # one may have ended its call, but not yet itself


@pytest.mark.real_time
def test_pool_rejects_calls_after_shutdown() -> None:
    async def main() -> None:
        pool = ThreadPoolExecutor(1)
        pool.shutdown()
        with pytest.raises(RuntimeError, match="after shutdown"):
            await asyncio.get_running_loop().run_in_executor(pool, int)

    in_turns(main)


@pytest.mark.real_time
def test_wait_on_unacquired_condition_is_rejected() -> None:
    async def main() -> None:
        with pytest.raises(RuntimeError, match="un-acquired"):
            await asyncio.to_thread(threading.Condition().wait)

    in_turns(main)


@pytest.mark.real_time
def test_thread_that_outlives_loop_ends_silently(caplog: pytest.LogCaptureFixture) -> None:
    lock = threading.Lock()
    lock.acquire()
    threads: list[threading.Thread] = []
    ended: list[str] = []

    async def main() -> None:
        def waits() -> None:
            threads.append(threading.current_thread())
            with lock, pytest.raises(RuntimeError):
                sleep(3.0)
            ended.append("it")

        asyncio.get_running_loop().run_in_executor(None, waits)
        await asyncio.sleep(1.0)

    in_turns(main, patience=0.05)
    lock.release()
    for thread in threads:
        thread.join(timeout=60.0)
    assert ended == ["it"]
    assert [record.message for record in caplog.records if record.levelname != "DEBUG"] == [
        "thread waits outside of virtual time, so its order is no longer deterministic"
    ]


@pytest.mark.real_time
def test_condition_is_restored_after_run() -> None:
    before = threading.Condition.wait

    async def main() -> None:
        assert threading.Condition.wait is not before

    in_turns(main)
    assert threading.Condition.wait is before
    with pytest.raises(ValueError, match="non-negative"):
        sleep(-1.0)
