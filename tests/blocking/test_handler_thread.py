"""One handler in a thread: what is called, what comes back, and its end."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from typing import Any

import pytest

from deltaloop.blocking import handler_thread
from deltaloop.blocking.handler_thread import HandlerThread, join_all
from deltaloop.errors import HandlerStillRunningError
from tests.blocking.serving import until
from tests.having import having

pytestmark = [pytest.mark.real_time]


class Handler:
    """Writes its calls down, and then does what it is told to."""

    def __init__(self, then: Callable[[], Any] = lambda: None) -> None:
        self.calls: list[tuple[object, ...]] = []
        self.then = then

    def on_add(self, obj: str, *, is_in_initial_list: bool) -> Any:
        self.calls.append(("add", obj, is_in_initial_list))
        return self.then()

    def on_update(self, old: str, new: str) -> Any:
        self.calls.append(("update", old, new))
        return self.then()

    def on_delete(self, obj: str, *, final_state_known: bool) -> Any:
        self.calls.append(("delete", obj, final_state_known))
        return self.then()


@contextmanager
def running(handler: Handler) -> Generator[HandlerThread[str]]:
    thread = HandlerThread(handler, name="pods")
    thread.start()
    try:
        yield thread
    finally:
        thread.end()
        assert thread.join(5)


@contextmanager
def blocked() -> Generator[tuple[Handler, threading.Event, threading.Event]]:
    """Give a handler that waits in its call, the sign that it does, and the one to go on."""
    inside, go_on = threading.Event(), threading.Event()

    def wait() -> None:
        inside.set()
        assert go_on.wait(5)

    try:
        yield Handler(wait), inside, go_on
    finally:
        go_on.set()


async def add(thread: HandlerThread[str], obj: str = "a") -> None:
    await thread.on_add(obj, is_in_initial_list=False)


async def begun(coroutine: Awaitable[None], inside: threading.Event) -> asyncio.Task[None]:
    task = asyncio.ensure_future(coroutine)
    assert await asyncio.to_thread(inside.wait, 5)
    return task


async def test_handler_calls_arrive_in_order_with_objects() -> None:
    handler = Handler()
    with running(handler) as thread:
        await thread.on_add("a", is_in_initial_list=True)
        await thread.on_add("b", is_in_initial_list=False)
        await thread.on_update("old", "new")
        await thread.on_delete("a", final_state_known=True)
        await thread.on_delete("b", final_state_known=False)
        assert repr(thread) == "<HandlerThread pods, running>"
    assert repr(thread) == "<HandlerThread pods, not running>"
    added = [("add", "a", True), ("add", "b", False)]
    assert handler.calls == [*added, ("update", "old", "new"), ("delete", "a", True), ("delete", "b", False)]


def test_handler_thread_is_named_daemon() -> None:
    with running(Handler()):
        [thread] = [each for each in threading.enumerate() if each.name == "deltaloop handler pods"]
        assert thread.daemon


@pytest.mark.parametrize("raised", [KeyError("x"), SystemExit(3), StopIteration("x")])
async def test_handler_error_is_raised_and_next_call_is_made(raised: BaseException) -> None:
    def fail() -> None:
        raise raised

    handler = Handler(fail)
    with running(handler) as thread:
        with pytest.raises(Exception) as caught:
            await add(thread)
        if isinstance(raised, KeyError):
            assert caught.value is raised
        else:  # neither travels through a future
            assert isinstance(caught.value, RuntimeError)
            assert str(caught.value) == f"a handler raised {type(raised).__name__}"
            assert caught.value.__cause__ is raised
        handler.then = lambda: None
        await add(thread, "b")
    assert [call[1] for call in handler.calls] == ["a", "b"]


async def test_canceled_pending_call_is_skipped() -> None:
    with blocked() as (handler, inside, go_on), running(handler) as thread:
        first = await begun(add(thread, "a"), inside)
        second = asyncio.create_task(add(thread, "b"))
        await asyncio.sleep(0)
        second.cancel()
        await asyncio.wait([second])
        go_on.set()
        await first
        await add(thread, "c")
    assert [call[1] for call in handler.calls] == ["a", "c"]


async def test_late_handler_results_are_logged_or_dropped(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The filters of the tests turn a coroutine that is never awaited into an error."""

    async def never_awaited() -> None: ...

    async def late(then: Callable[[], object]) -> None:
        with blocked() as (handler, inside, go_on), running(handler) as thread:
            wait = handler.then
            handler.then = lambda: (wait(), then())[1]
            task = await begun(add(thread), inside)
            task.cancel()
            await asyncio.wait([task])
            go_on.set()
            await asyncio.to_thread(thread.end)
            assert await asyncio.to_thread(thread.join, 5)
            await asyncio.sleep(0)

    def fail() -> None:
        raise KeyError("late")

    await late(lambda: None)
    await late(never_awaited)
    assert caplog.records == []
    await late(fail)
    [record] = caplog.records
    assert (record.levelno, vars(record)["handler"]) == (logging.ERROR, "pods")
    assert "after its informer had stopped" in record.getMessage()
    assert record.exc_info is not None
    assert isinstance(record.exc_info[1], KeyError)


def test_handler_thread_survives_closed_loop() -> None:
    with blocked() as (handler, inside, go_on):
        with running(handler) as thread:

            async def leave_it() -> None:
                task = await begun(add(thread), inside)
                task.cancel()

            asyncio.run(leave_it())
            go_on.set()
            asyncio.run(add(thread, "b"))
        assert [call[1] for call in handler.calls] == ["a", "b"]


async def test_thread_ends_after_running_call() -> None:
    with blocked() as (handler, inside, go_on), running(handler) as thread:
        task = await begun(add(thread), inside)
        thread.end()
        thread.end()
        assert not thread.join(0.01)
        go_on.set()
        await task
        assert await asyncio.to_thread(thread.join, 5)
        assert thread.join()


@pytest.mark.parametrize("timeout", [None, 5.0])
async def test_long_wait_for_handler_is_logged_with_name(
    timeout: float | None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    assert handler_thread._WARNING_INTERVAL == 5.0
    monkeypatch.setattr(handler_thread, "_WARNING_INTERVAL", 0.01)
    with blocked() as (handler, inside, go_on), running(handler) as thread:
        task = await begun(add(thread), inside)
        thread.end()
        joining = asyncio.create_task(asyncio.to_thread(thread.join, timeout))
        await asyncio.to_thread(until, lambda: len(caplog.records) >= 2)
        assert not joining.done()
        go_on.set()
        await task
        assert await joining
    for record in caplog.records:
        assert (record.levelno, vars(record)["handler"]) == (logging.WARNING, "pods")
        assert "has not returned" in record.getMessage()


async def test_several_threads_are_joined_within_one_timeout(caplog: pytest.LogCaptureFixture) -> None:
    with blocked() as (handler, inside, go_on), running(Handler()) as quick, running(handler) as slow:
        task = await begun(add(slow), inside)
        quick.end()
        join_all([quick], 5)
        join_all([quick], None)
        with pytest.raises(HandlerStillRunningError, check=having(handlers=("pods", "pods"))) as caught:
            join_all([slow, quick, slow], 0.02)
        assert caught.value.handlers == ("pods", "pods")
        with pytest.raises(HandlerStillRunningError, check=having(handlers=("pods",))):
            join_all([slow], 0.0)
        assert not task.done()
        go_on.set()
        await task
    assert caplog.records == [], "a warning comes after five seconds only"


async def test_handler_can_join_its_own_thread() -> None:
    ended = list[bool]()
    handler = Handler()
    with running(handler) as thread:
        handler.then = lambda: ended.append(thread.join())
        await add(thread)
    assert ended == [True]
