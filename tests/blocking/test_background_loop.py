"""A loop in a thread: its beginning and end, what waits for it, and forks."""

from __future__ import annotations

import asyncio
import gc
import inspect
import os
import subprocess
import sys
import threading
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from types import FrameType

import pytest

import deltaloop
from deltaloop.blocking import BackgroundLoop
from deltaloop.blocking.handoff import Handoff
from deltaloop.errors import BackgroundLoopError
from tests.blocking.serving import until


async def give(value: str) -> str:
    await asyncio.sleep(0)
    return value


def test_coroutines_run_in_thread_and_return_results_and_errors(
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
    said = [record.getMessage() for record in caplog.records]
    assert said == ["background loop started", "background loop closed"]
    loop.close()
    assert len(caplog.records) == 2


def test_stopped_loop_raises_error() -> None:
    loop = BackgroundLoop()
    with pytest.raises(BackgroundLoopError):
        loop.run(give("value"))
    loop.start()
    loop.close()
    with pytest.raises(BackgroundLoopError):
        loop.run(give("value"))
    with pytest.raises(BackgroundLoopError):
        loop.start()
    unused = BackgroundLoop()
    unused.close()
    with pytest.raises(BackgroundLoopError):
        unused.check()
    assert isinstance(BackgroundLoopError("x"), deltaloop.DeltaloopError)


def test_coroutine_is_canceled_after_timeout() -> None:
    ended = threading.Event()

    async def long() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    with BackgroundLoop() as loop:
        with pytest.raises(TimeoutError, match="longer than"):
            loop.run(long(), timeout=0.2)
        assert ended.wait(5)


def test_waiting_threads_get_error_after_close() -> None:
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
    assert heard == ["the background loop was closed during the call"] * 5


def test_calls_during_close_do_not_hang() -> None:
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


def test_run_on_own_thread_is_rejected() -> None:
    with BackgroundLoop() as loop:

        async def wait_for_itself() -> None:
            loop.check()  # looking is allowed
            with pytest.raises(BackgroundLoopError):
                loop.run(give("value"))
            with pytest.raises(BackgroundLoopError):
                loop.close()

        loop.run(wait_for_itself())


def test_run_on_own_thread_during_close_is_rejected() -> None:
    refused = list[str]()

    @asynccontextmanager
    async def leaves_another() -> AsyncGenerator[None]:
        yield
        try:
            loop.leave(guest("b", []))
        except BackgroundLoopError as error:
            refused.append(str(error))

    with BackgroundLoop() as loop:
        loop.enter(leaves_another())
    assert len(refused) == 1
    assert "Use await" in refused[0]


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


def test_context_managers_exit_in_reverse_order_at_close() -> None:
    seen = list[str]()
    with BackgroundLoop() as loop:
        assert loop.enter(guest("a", seen)) == "a"
        assert loop.enter(guest("b", seen)) == "b"
        assert loop.run(give("value")) == "value"
        assert seen == ["enter a", "enter b"]
    assert seen == ["enter a", "enter b", "leave b", "leave a"]


def test_errors_of_enter_and_exit_are_raised(caplog: pytest.LogCaptureFixture) -> None:
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


def test_context_manager_can_exit_early() -> None:
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
        with pytest.raises(BackgroundLoopError):
            loop.leave(third)

    loop.run(leave())
    loop.close()
    assert seen[-2:] == ["leave b", "leave c"]
    loop.leave(third)


FORK = """
import os, sys
import deltaloop as dl
from deltaloop.blocking import BackgroundLoop, BlockingQueue
from deltaloop.errors import BackgroundLoopError
loop = BackgroundLoop()
loop.start()
queue = BlockingQueue(dl.workqueue.WorkQueue(name="pods"), loop=loop)
async def nothing(): pass
def attempt(call):
    try:
        call()
    except BackgroundLoopError as error:
        return "after the fork" in str(error)
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
def test_fork_cannot_use_loop_but_parent_can() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORK],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_loop_thread_is_named_daemon() -> None:
    with BackgroundLoop():
        [thread] = [thread for thread in threading.enumerate() if thread.name == "deltaloop"]
        assert thread.daemon
    assert repr(BackgroundLoop(name="other")) == "<BackgroundLoop 'other', new>"


def test_start_can_be_repeated_after_thread_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def none_left(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    loop = BackgroundLoop()
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", none_left)
        with pytest.raises(RuntimeError, match="can't start new thread"):
            loop.start()
    assert repr(loop) == "<BackgroundLoop 'deltaloop', new>"
    with loop:
        assert loop.run(give("value")) == "value"


@pytest.mark.parametrize("error", [OSError(24, "too many open files"), RuntimeError("no loop here")])
def test_failed_creation_of_event_loop_closes_background_loop(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none_left() -> asyncio.AbstractEventLoop:
        raise error

    loop = BackgroundLoop()
    with monkeypatch.context() as patched:
        patched.setattr(asyncio.events, "new_event_loop", none_left)
        with pytest.raises(type(error)) as caught:
            loop.start()
    assert caught.value is error
    for use in (loop.start, loop.check, lambda: loop.run(give("value"))):
        with pytest.raises(BackgroundLoopError):
            use()
    loop.close()


def test_concurrent_start_returns_running_loop() -> None:
    begun, go_on = threading.Event(), threading.Event()

    def hold(frame: FrameType, event: str, argument: object) -> None:
        sys.setprofile(None)
        if threading.current_thread().name == "begins":
            begun.set()
            assert go_on.wait(5)

    loop = BackgroundLoop(name="begins")
    found = list[str]()

    def start() -> None:
        loop.start()
        found.append(loop.run(give("value")))

    threading.setprofile(hold)  # called by a new thread before anything else
    try:
        first = threading.Thread(target=start)
        first.start()
        assert begun.wait(5)
    finally:
        threading.setprofile(None)  # pyright: ignore[reportArgumentType]  # none again
    second = threading.Thread(target=start)
    second.start()
    second.join(0.02)
    assert second.is_alive()
    go_on.set()
    for thread in (first, second):
        thread.join(5)
    assert found == ["value", "value"]
    loop.close()


def test_concurrent_close_waits_for_end() -> None:
    leaving, go_on = threading.Event(), threading.Event()

    @asynccontextmanager
    async def slow() -> AsyncGenerator[None]:
        yield
        leaving.set()
        await asyncio.to_thread(go_on.wait, 5)

    loop = BackgroundLoop(name="closes")
    loop.start()
    loop.enter(slow())
    first, second = threading.Thread(target=loop.close), threading.Thread(target=loop.close)
    first.start()
    assert leaving.wait(5)
    with pytest.raises(BackgroundLoopError):
        loop.run(give("value"))
    second.start()
    second.join(0.02)
    assert second.is_alive()
    go_on.set()
    for thread in (first, second):
        thread.join(5)
        assert not thread.is_alive()
    assert "closes" not in {thread.name for thread in threading.enumerate()}


def kept() -> int:
    """How much of finished calls is still in memory."""
    gc.collect()
    return sum(isinstance(each, asyncio.Task | Handoff) for each in gc.get_objects())


def test_ended_calls_are_not_kept_in_memory() -> None:
    async def fail() -> None:
        raise LookupError("x")

    with BackgroundLoop() as loop:
        loop.run(give("value"))
        before = kept()
        for _ in range(3):
            loop.run(give("value"))
            manager = guest("a", [])
            loop.enter(manager)
            loop.leave(manager)
            with pytest.raises(LookupError):
                loop.run(fail())
            with pytest.raises(TimeoutError):
                loop.run(asyncio.sleep(60), timeout=0.001)
        until(lambda: kept() <= before)  # the loop's thread may still be at the end of the last one


def test_abandoned_coroutine_is_canceled_at_close(caplog: pytest.LogCaptureFixture) -> None:
    cancelled = list[str]()

    async def stubborn() -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.append("by the time limit")
            try:
                await asyncio.get_running_loop().create_future()  # nobody else knows it
            except asyncio.CancelledError:
                cancelled.append("by the end")
                raise

    with BackgroundLoop() as loop:
        with pytest.raises(TimeoutError, match=r"longer than 0\.2 seconds"):
            loop.run(stubborn(), timeout=0.2)
        loop.run(give("value"))
        gc.collect()
        assert cancelled == ["by the time limit"]
    assert cancelled == ["by the time limit", "by the end"]
    assert [record for record in caplog.records if record.name == "asyncio"] == []


@pytest.fixture
def exits(monkeypatch: pytest.MonkeyPatch) -> list[type[BaseException]]:
    """Take what ends a thread; as Python itself, which says nothing of ``SystemExit`` in one."""
    taken = list[type[BaseException]]()

    def take(given: threading.ExceptHookArgs) -> None:
        taken.append(given.exc_type)

    monkeypatch.setattr(threading, "excepthook", take)
    return taken


async def end_by_itself() -> None:
    """End the loop as a callback does that raises ``SystemExit``."""
    asyncio.get_running_loop().call_soon(sys.exit)


def test_waiting_threads_get_error_after_unexpected_end(exits: list[type[BaseException]]) -> None:
    begun, ended = threading.Semaphore(0), list[str]()

    async def long() -> None:
        begun.release()
        try:
            await asyncio.sleep(60)
        finally:
            ended.append("cancelled")

    @asynccontextmanager
    async def slow() -> AsyncGenerator[None]:
        await long()
        yield

    def wait(call: Callable[[], object]) -> None:
        with pytest.raises(BackgroundLoopError):
            call()
        ended.append("told")

    loop = BackgroundLoop()
    loop.start()
    calls: list[Callable[[], object]] = [lambda: loop.run(long()), lambda: loop.enter(slow())]
    threads = [threading.Thread(target=wait, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
        assert begun.acquire(timeout=5)
    loop.run(end_by_itself())
    for thread in threads:
        thread.join(5)
    assert sorted(ended) == ["cancelled", "cancelled", "told", "told"]
    loop.close()
    assert exits == [SystemExit]


def test_system_exit_in_context_manager_does_not_hang_close(exits: list[type[BaseException]]) -> None:
    seen = list[str]()

    @asynccontextmanager
    async def ends() -> AsyncGenerator[None]:
        yield
        sys.exit(3)

    loop = BackgroundLoop(name="exits")
    loop.start()
    loop.enter(guest("a", seen))
    loop.enter(ends())
    closing = threading.Thread(target=loop.close, daemon=True)
    closing.start()
    closing.join(5)
    assert not closing.is_alive()
    assert seen == ["enter a", "leave a"]
    assert "exits" not in {thread.name for thread in threading.enumerate()}
    assert exits == [SystemExit]


class EndsByItself:
    """A loop that has ended by ``SystemExit``, and waits before it closes, and once more before its thread ends."""

    def __init__(self) -> None:
        self.loop = BackgroundLoop(name="ends")
        self.stopped, self.closed = threading.Event(), threading.Event()
        self.close, self.end = threading.Event(), threading.Event()
        self.loop.start()
        self.loop.run(self._end())
        assert self.stopped.wait(5)

    async def _end(self) -> None:
        self.running = running = asyncio.get_running_loop()
        close: Callable[[], None] = running.close

        def close_in_steps() -> None:
            self.stopped.set()
            assert self.close.wait(5)
            close()
            self.closed.set()
            assert self.end.wait(5)

        setattr(running, "close", close_in_steps)  # noqa: B010 - mypy forbids to assign it
        await end_by_itself()


def test_unexpectedly_ended_loop_rejects_calls(exits: list[type[BaseException]]) -> None:
    """Neither in the moment in which it is closed, nor after it."""
    ending = EndsByItself()
    ending.close.set()
    assert ending.closed.wait(5)
    loop = ending.loop
    uses: list[Callable[[], object]] = [lambda: loop.run(give("value")), lambda: loop.enter(guest("a", []))]
    for _ in ("closing", "closed"):
        for use in uses:
            with pytest.raises(BackgroundLoopError):
                use()
        ending.end.set()
        for thread in threading.enumerate():
            if thread.name == "ends":
                thread.join(5)
    loop.close()
    assert exits == [SystemExit]


def test_unstarted_call_gets_error_after_unexpected_end(exits: list[type[BaseException]]) -> None:
    ending = EndsByItself()
    coroutine = give("value")
    told = list[str]()

    def wait() -> None:
        with pytest.raises(BackgroundLoopError) as caught:
            ending.loop.run(coroutine)
        told.append(str(caught.value))

    waiting = threading.Thread(target=wait)
    waiting.start()
    waiting.join(0.02)
    assert told == []
    ending.close.set()
    ending.end.set()
    waiting.join(5)
    assert len(told) == 1
    assert inspect.getcoroutinestate(coroutine) == inspect.CORO_CLOSED
    ending.loop.close()
    assert exits == [SystemExit]


def test_unexpectedly_ending_loop_starts_no_calls(
    exits: list[type[BaseException]],
) -> None:
    loop, begun = BackgroundLoop(name="ends"), list[str]()
    told = threading.Event()

    def come_late() -> None:
        with pytest.raises(BackgroundLoopError):
            loop.run(begin())
        told.set()

    async def begin() -> None:
        begun.append("late")
        await asyncio.sleep(60)

    async def cancelled_slowly() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            late.start()
            await asyncio.to_thread(told.wait, 5)

    async def end() -> None:
        running.append(asyncio.ensure_future(cancelled_slowly()))
        await asyncio.sleep(0)
        await end_by_itself()

    late, running = threading.Thread(target=come_late), list[asyncio.Future[None]]()
    loop.start()
    loop.run(end())
    assert told.wait(5)
    late.join(5)
    loop.close()
    assert begun == []
    assert exits == [SystemExit]


def test_call_during_end_does_not_wait_for_canceled_tasks() -> None:
    cancelled, go_on = threading.Event(), threading.Event()

    async def stubborn() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            cancelled.set()
            await asyncio.to_thread(go_on.wait, 5)

    async def begin() -> None:
        begun.append(asyncio.ensure_future(stubborn()))

    begun = list[asyncio.Future[None]]()
    loop = BackgroundLoop()
    loop.start()
    loop.run(begin())
    closing = threading.Thread(target=loop.close)

    def close_first(frame: FrameType, event: str, argument: object) -> None:
        if frame.f_code.co_name == "_begin":  # it was still open a moment ago
            sys.setprofile(None)
            closing.start()
            assert cancelled.wait(5)

    coroutine = give("value")
    sys.setprofile(close_first)
    try:
        with pytest.raises(BackgroundLoopError):
            loop.run(coroutine, timeout=1)
    finally:
        sys.setprofile(None)
        assert closing.is_alive()
        go_on.set()
        closing.join(5)
    assert inspect.getcoroutinestate(coroutine) == inspect.CORO_CLOSED


def test_call_at_moment_of_end_gets_error(exits: list[type[BaseException]]) -> None:
    ending = EndsByItself()
    (thread,) = (thread for thread in threading.enumerate() if thread.name == "ends")
    schedule: Callable[..., asyncio.Handle] = ending.running.call_soon_threadsafe

    def schedule_as_it_ends(callback: Callable[[], object]) -> asyncio.Handle:
        handle = schedule(callback)
        ending.close.set()
        ending.end.set()
        thread.join(0.05)  # it ends now, if nothing holds it up
        return handle

    setattr(ending.running, "call_soon_threadsafe", schedule_as_it_ends)  # noqa: B010 - mypy forbids to assign it
    with pytest.raises(BackgroundLoopError):
        ending.loop.run(give("value"), timeout=1)
    ending.loop.close()
    assert exits == [SystemExit]


def test_timed_out_call_after_loop_closed_is_cleaned_up(exits: list[type[BaseException]]) -> None:
    ending = EndsByItself()
    coroutine = give("value")
    threading.Timer(0.02, ending.close.set).start()
    with pytest.raises(TimeoutError):
        ending.loop.run(coroutine, timeout=0.1)
    assert ending.closed.is_set()
    assert inspect.getcoroutinestate(coroutine) == inspect.CORO_CLOSED
    ending.end.set()
    ending.loop.close()
    assert exits == [SystemExit]


def test_cancellation_on_loop_ends_waiting_call() -> None:
    async def cancelled() -> None:
        raise asyncio.CancelledError

    @asynccontextmanager
    async def cancelled_guest() -> AsyncGenerator[None]:
        await cancelled()
        yield

    with BackgroundLoop() as loop:
        calls: list[Callable[[], object]] = [
            lambda: loop.run(cancelled(), timeout=5),
            lambda: loop.enter(cancelled_guest()),
        ]
        for call in calls:
            with pytest.raises(BackgroundLoopError):
                call()
        assert loop.run(give("value")) == "value"


def test_late_result_is_dropped(caplog: pytest.LogCaptureFixture) -> None:
    ended = threading.Event()

    async def late() -> str:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            ended.set()
        return "late"

    with BackgroundLoop() as loop:
        with pytest.raises(TimeoutError):
            loop.run(late(), timeout=0.2)
        assert ended.wait(5)
        loop.run(give("value"))
        gc.collect()
    assert [record for record in caplog.records if record.name == "asyncio"] == []


def test_timed_out_unstarted_call_is_closed() -> None:
    inside, go_on = threading.Event(), threading.Event()

    async def hold() -> None:
        inside.set()
        assert go_on.wait(5)

    coroutine = give("value")
    with BackgroundLoop() as loop:
        holding = threading.Thread(target=lambda: loop.run(hold()))
        holding.start()
        assert inside.wait(5)
        with pytest.raises(TimeoutError):
            loop.run(coroutine, timeout=0.01)
        go_on.set()
        holding.join(5)
        assert loop.run(give("value")) == "value"
        assert inspect.getcoroutinestate(coroutine) == inspect.CORO_CLOSED
