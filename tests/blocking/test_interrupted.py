"""Ctrl-C while a background loop begins or ends: nothing of it lives on."""

from __future__ import annotations

import asyncio
import signal
import sys
import threading
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from types import FrameType

import pytest

from deltaloop.blocking import BackgroundLoop, BackgroundLoopError


@contextmanager
def ctrl_c(begun: threading.Event) -> Generator[None]:
    """Interrupt the main thread, which is this one, when something has begun."""

    handled = threading.Event()

    def interrupt(number: int, frame: FrameType | None) -> None:
        if not handled.is_set():
            handled.set()
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


def test_interrupted_while_it_closes_it_ends_all_the_same() -> None:
    guest = Guest("leaving")
    loop = BackgroundLoop(name="closes")
    loop.start()
    assert loop.enter(guest.stay()) == "entered"
    with ctrl_c(guest.begun), pytest.raises(KeyboardInterrupt):
        loop.close()
    assert guest.cancelled.wait(5.0)
    assert gone("closes")
    loop.close()
    with pytest.raises(BackgroundLoopError, match="is closed"):
        loop.check()


def test_closed_once_more_it_waits_for_the_end_of_the_thread() -> None:
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


def test_interrupted_while_something_enters_that_is_cancelled() -> None:
    guest = Guest("entering")
    with BackgroundLoop(name="enters") as loop:
        with ctrl_c(guest.begun), pytest.raises(KeyboardInterrupt):
            loop.enter(guest.stay())
        assert guest.cancelled.wait(5.0)
    assert gone("enters")


def test_interrupted_before_its_loop_has_begun_it_ends_at_once() -> None:
    begun, interrupted = threading.Event(), threading.Event()

    def hold(frame: FrameType, event: str, argument: object) -> None:
        sys.setprofile(None)
        if threading.current_thread().name == "begins":
            begun.set()
            interrupted.wait(5.0)

    with ctrl_c(begun):
        threading.setprofile(hold)  # called by a new thread before anything else
        try:
            with pytest.raises(KeyboardInterrupt):
                BackgroundLoop(name="begins").start()
        finally:
            threading.setprofile(None)  # pyright: ignore[reportArgumentType]  # none again
    interrupted.set()
    assert gone("begins")
