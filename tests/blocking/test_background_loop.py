"""A loop in a thread: its beginning and end, what waits for it, and forks."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

import deltaloop
from deltaloop.blocking import BackgroundLoop, BackgroundLoopError


async def give(value: str) -> str:
    await asyncio.sleep(0)
    return value


def test_coroutines_run_in_the_thread_and_their_results_and_errors_come_back(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("DEBUG", "deltaloop.blocking")

    async def thread_name() -> str:
        return threading.current_thread().name

    async def fail() -> None:
        raise LookupError("x")

    with BackgroundLoop(name="background") as loop:
        assert loop.run(give("value")) == "value"
        assert loop.run(thread_name()) == "background"
        with pytest.raises(LookupError):
            loop.run(fail())
        assert repr(loop) == "<BackgroundLoop 'background', running>"
        loop.start()  # once more does nothing
    assert "background" not in {thread.name for thread in threading.enumerate()}
    assert repr(loop) == "<BackgroundLoop 'background', closed>"
    loop.close()
    assert [record.getMessage() for record in caplog.records] == ["background loop started", "background loop closed"]


def test_a_loop_that_does_not_run_says_so() -> None:
    loop = BackgroundLoop()
    with pytest.raises(BackgroundLoopError, match="does not run yet"):
        loop.run(give("value"))
    loop.start()
    loop.close()
    with pytest.raises(BackgroundLoopError, match="closed"):
        loop.run(give("value"))
    with pytest.raises(BackgroundLoopError, match="closed"):
        loop.start()
    unused = BackgroundLoop()
    unused.close()
    with pytest.raises(BackgroundLoopError, match="closed"):
        unused.check()
    assert isinstance(BackgroundLoopError("x"), deltaloop.DeltaloopError)


def test_a_coroutine_that_takes_too_long_is_cancelled() -> None:
    ended = threading.Event()

    async def long() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    with BackgroundLoop() as loop:
        with pytest.raises(TimeoutError, match="longer than"):
            loop.run(long(), timeout=0.01)
        assert ended.wait(5)


def test_waiting_threads_hear_that_the_loop_is_closed() -> None:
    heard = list[str]()
    begun = threading.Semaphore(0)

    async def long() -> None:
        begun.release()
        await asyncio.sleep(60)

    def wait(loop: BackgroundLoop) -> None:
        try:
            loop.run(long())
        except BackgroundLoopError as error:
            heard.append(str(error))

    loop = BackgroundLoop()
    loop.start()
    threads = [threading.Thread(target=wait, args=(loop,)) for _ in range(5)]
    for thread in threads:
        thread.start()
    for _ in threads:
        assert begun.acquire(timeout=5)
    loop.close()
    for thread in threads:
        thread.join(5)
    assert heard == ["the background loop was closed meanwhile"] * 5


def test_whoever_comes_while_the_loop_closes_never_waits_for_ever() -> None:
    for _ in range(30):
        loop = BackgroundLoop()
        loop.start()
        barrier = threading.Barrier(4)
        ended = list[bool]()

        def ask(loop: BackgroundLoop = loop, barrier: threading.Barrier = barrier, ended: list[bool] = ended) -> None:
            barrier.wait()
            try:
                for _ in range(5):
                    assert loop.run(give("value")) == "value"
            except BackgroundLoopError:
                pass
            ended.append(True)

        threads = [threading.Thread(target=ask) for _ in range(3)]
        for thread in threads:
            thread.start()
        barrier.wait()
        loop.close()
        for thread in threads:
            thread.join(5)
        assert len(ended) == 3


def test_the_loops_own_thread_must_not_wait_for_itself() -> None:
    with BackgroundLoop() as loop:

        async def wait_for_itself() -> None:
            loop.check()  # looking is allowed
            with pytest.raises(BackgroundLoopError, match="own thread"):
                loop.run(give("value"))
            with pytest.raises(BackgroundLoopError, match="own thread"):
                loop.close()

        loop.run(wait_for_itself())


@asynccontextmanager
async def guest(name: str, seen: list[str], *, broken: bool = False) -> AsyncGenerator[str]:
    """Hold a task group, so that it matters in which task it is left."""
    async with asyncio.TaskGroup() as group:
        sleeping = group.create_task(asyncio.sleep(3600))
        seen.append(f"enter {name}")
        try:
            yield name
        finally:
            sleeping.cancel()
            seen.append(f"leave {name}")
    if broken:
        raise LookupError(name)


def test_context_managers_stay_entered_until_close_and_are_left_in_reverse() -> None:
    seen = list[str]()
    with BackgroundLoop() as loop:
        assert loop.enter(guest("a", seen)) == "a"
        assert loop.enter(guest("b", seen)) == "b"
        assert loop.run(give("value")) == "value"
        assert seen == ["enter a", "enter b"]
    assert seen == ["enter a", "enter b", "leave b", "leave a"]


def test_what_entering_or_leaving_raises_is_raised(caplog: pytest.LogCaptureFixture) -> None:
    @asynccontextmanager
    async def closed() -> AsyncGenerator[None]:
        raise LookupError("closed")
        yield

    seen = list[str]()
    loop = BackgroundLoop()
    loop.start()
    with pytest.raises(LookupError, match="closed"):
        loop.enter(closed())
    loop.enter(guest("a", seen, broken=True))
    loop.enter(guest("b", seen))
    loop.enter(guest("c", seen, broken=True))
    with pytest.raises(LookupError, match="c"):
        loop.close()
    assert seen[-3:] == ["leave c", "leave b", "leave a"]
    assert [record.levelname for record in caplog.records if record.name == "deltaloop.blocking"] == ["ERROR"]
    assert "deltaloop" not in {thread.name for thread in threading.enumerate()}


def test_one_may_be_left_before_the_others() -> None:
    seen = list[str]()
    loop = BackgroundLoop()
    first, second, third = guest("a", seen), guest("b", seen, broken=True), guest("c", seen)
    loop.leave(first)  # not entered: nothing to leave
    loop.start()
    loop.enter(first)
    loop.enter(second)
    loop.enter(third)
    loop.leave(first)
    loop.leave(first)
    assert seen == ["enter a", "enter b", "enter c", "leave a"]
    with pytest.raises(LookupError, match="b"):
        loop.leave(second)

    async def leave() -> None:
        with pytest.raises(BackgroundLoopError, match="own thread"):
            loop.leave(third)

    loop.run(leave())
    loop.close()
    assert seen[-2:] == ["leave b", "leave c"]
    loop.leave(third)


FORK = """
import os, sys
import deltaloop as dl
from deltaloop.blocking import BackgroundLoop, BackgroundLoopError
loop = BackgroundLoop()
loop.start()
queue = loop.queue(dl.WorkQueue(name="pods"))
async def nothing(): pass
def attempt(call):
    try:
        call()
    except BackgroundLoopError as error:
        return "fork without" in str(error)
    return False
child = os.fork()
if child == 0:
    calls = [lambda: loop.run(nothing()), loop.start, loop.close, lambda: queue.add("a"), queue.get, queue.shut_down]
    os._exit(0 if all([attempt(call) for call in calls]) else 1)
_, status = os.waitpid(child, 0)
queue.add("a")
assert queue.get(timeout=5) == "a"
loop.close()
sys.exit(os.waitstatus_to_exitcode(status))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_fork_cannot_use_the_loop_and_the_parent_still_can() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORK],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
