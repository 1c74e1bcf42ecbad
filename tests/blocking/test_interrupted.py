"""Ctrl-C while a background loop begins or ends: nothing of it lives on."""

from __future__ import annotations

import asyncio
import signal
import sys
import threading
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from types import FrameType
from typing import Any

import pytest

from deltaloop.blocking import BackgroundLoop, BlockingQueue, Client
from deltaloop.errors import BackgroundLoopError
from deltaloop.workqueue import Work, WorkQueue
from tests.blocking.serving import until


@contextmanager
def ctrl_c(begun: threading.Event, first: Callable[[], object] = lambda: None) -> Generator[None]:
    """Interrupt the main thread, which is this one, when something has begun; something else may happen ``first``."""

    handled = threading.Event()

    def interrupt(number: int, frame: FrameType | None) -> None:
        if not handled.is_set():
            handled.set()
            first()
            raise KeyboardInterrupt

    def send() -> None:
        # One that comes right before the main thread falls asleep does not wake it.
        while begun.wait(5.0) and not handled.is_set():
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
            handled.wait(0.02)

    before = signal.signal(signal.SIGINT, interrupt)
    sender = threading.Thread(target=send)
    sender.start()
    try:
        yield
    finally:
        sender.join()
        signal.signal(signal.SIGINT, before)


class Guest:
    """A context manager that takes its time to enter or to leave."""

    def __init__(self, slow: str) -> None:
        self.slow = slow
        self.begun = threading.Event()
        self.cancelled = threading.Event()

    async def _wait(self) -> None:
        self.begun.set()
        try:
            await asyncio.sleep(60.0)
        except asyncio.CancelledError:
            self.cancelled.set()
            raise

    @asynccontextmanager
    async def stay(self) -> AsyncGenerator[str]:
        if self.slow == "entering":
            await self._wait()
        try:
            yield "entered"
        finally:
            if self.slow == "leaving":
                await self._wait()


def gone(name: str) -> bool:
    for thread in threading.enumerate():
        if thread.name == name:
            thread.join(5.0)
    return not any(thread.name == name for thread in threading.enumerate())


def test_loop_ends_after_interrupted_close() -> None:
    guest = Guest("leaving")
    loop = BackgroundLoop(name="closes")
    loop.start()
    assert loop.enter(guest.stay()) == "entered"
    with ctrl_c(guest.begun), pytest.raises(KeyboardInterrupt):
        loop.close()
    assert guest.cancelled.wait(5.0)
    assert gone("closes")
    loop.close()
    with pytest.raises(BackgroundLoopError):
        loop.check()


def test_second_close_waits_for_thread() -> None:
    loop = BackgroundLoop(name="closes slowly")
    loop.start()
    begun, free = threading.Event(), threading.Event()

    @asynccontextmanager
    async def stays() -> AsyncGenerator[None]:
        yield
        begun.set()
        while not free.is_set():
            try:
                await asyncio.sleep(0.001)
            except asyncio.CancelledError:
                continue

    loop.enter(stays())
    with ctrl_c(begun), pytest.raises(KeyboardInterrupt):
        loop.close()
    assert any(thread.name == "closes slowly" for thread in threading.enumerate())
    threading.Timer(0.05, free.set).start()
    loop.close()
    assert not any(thread.name == "closes slowly" for thread in threading.enumerate())


def test_interrupted_enter_is_canceled() -> None:
    guest = Guest("entering")
    with BackgroundLoop(name="enters") as loop:
        with ctrl_c(guest.begun), pytest.raises(KeyboardInterrupt):
            loop.enter(guest.stay())
        assert guest.cancelled.wait(5.0)
    assert gone("enters")


def runs(loop: BackgroundLoop) -> bool:
    try:
        loop.check()
    except BackgroundLoopError:
        return False
    return True


@pytest.mark.parametrize("moment", ["before it has begun", "when it has just begun"])
def test_interrupted_start_ends_thread(moment: str) -> None:
    begun, interrupted = threading.Event(), threading.Event()
    loop = BackgroundLoop(name="begins")

    def hold(frame: FrameType, event: str, argument: object) -> None:
        sys.setprofile(None)
        if threading.current_thread().name == "begins":
            begun.set()
            interrupted.wait(5.0)

    def first() -> None:
        if moment == "when it has just begun":
            interrupted.set()
            until(lambda: runs(loop))

    with ctrl_c(begun, first):
        threading.setprofile(hold)  # called by a new thread before anything else
        try:
            with pytest.raises(KeyboardInterrupt):
                loop.start()
        finally:
            threading.setprofile(None)  # pyright: ignore[reportArgumentType]  # none again
    interrupted.set()
    assert gone("begins")
    loop.close()


def test_start_interrupted_before_thread_closes_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(thread: threading.Thread) -> None:
        raise KeyboardInterrupt

    loop = BackgroundLoop()
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", interrupt)
        with pytest.raises(KeyboardInterrupt):
            loop.start()
    with pytest.raises(BackgroundLoopError):
        loop.start()
    loop.close()


class SlowClient:
    """A client that takes its time to be entered, and tells of its end."""

    def __init__(self) -> None:
        self.guest = Guest("entering")

    async def __aenter__(self) -> None:
        await self.guest.stay().__aenter__()

    async def __aexit__(self, *_: object) -> None:
        raise AssertionError("it was never entered")


def test_interrupted_open_closes_client() -> None:
    """``with`` has not begun, so nobody else would."""
    slow: Any = SlowClient()
    client = Client(slow)
    with ctrl_c(slow.guest.begun), pytest.raises(KeyboardInterrupt), client:
        raise AssertionError("it was never entered")
    assert slow.guest.cancelled.wait(5.0)
    assert gone("deltaloop")
    with pytest.raises(BackgroundLoopError):
        client.loop.check()


def test_failed_second_open_keeps_client_open() -> None:
    class Refuses(SlowClient):
        refused = False

        async def __aenter__(self) -> None:
            if self.refused:
                raise LookupError("not twice")

        async def __aexit__(self, *_: object) -> None:
            pass

    refuses: Any = Refuses()
    with Client(refuses) as client:
        refuses.refused = True
        with pytest.raises(LookupError, match="not twice"), client:
            raise AssertionError("it was never entered")
        client.loop.check()


@pytest.mark.parametrize("method", ["get", "get_work"])
def test_item_taken_at_interruption_is_put_back(method: str) -> None:
    begun, taken = threading.Event(), threading.Event()

    class Watched(WorkQueue[str]):
        async def get_work(self, timeout: float | None = None) -> Work[str]:
            running = asyncio.get_running_loop()
            running.call_later(0.02, begun.set)
            work = await super().get_work(timeout)
            running.call_soon(taken.set)  # after this step, in which it is handed over
            return work

    def come() -> None:
        queue.queue.add("a", trigger="why")
        assert taken.wait(5.0)

    with BackgroundLoop(name="takes") as loop:
        queue = BlockingQueue(Watched(), loop=loop)
        with ctrl_c(begun, come), pytest.raises(KeyboardInterrupt):
            getattr(queue, method)()
        seen: list[object] = []
        with queue.get_work(timeout=5.0) as again:
            seen += [again.key, again.triggers, again.attempts]
        assert seen == ["a", ("why",), 1]
