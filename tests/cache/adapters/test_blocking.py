"""Answers of blocking clients, read in a thread; hand-written ones, whose slices the test gives."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections import deque
from collections.abc import Generator

import pytest

from deltaloop.cache.adapters.blocking import in_thread
from deltaloop.client import Headers
from deltaloop.testing.deterministic_loop.virtual_loop import VirtualLoop

NAME = "reader under test"


class TheirError(Exception):
    """An exception of a foreign package."""


class Blocking:
    """A blocking answer whose slices are given by the test."""

    status = 200
    headers = Headers()

    def __init__(self, *slices: bytes | Exception, refuses_to_end: bool = False) -> None:
        self.slices = deque(slices)
        self.may_read = threading.Event()
        self.waits = threading.Event()
        self.aborted = False
        self.closed = threading.Event()
        self.closed_while_aborting = False
        self.reads = 0
        self.refuses_to_end = refuses_to_end

    def read(self) -> bytes:
        self.reads += 1
        if self.slices:
            given = self.slices.popleft()
            if isinstance(given, Exception):
                raise given
            return given
        self.waits.set()
        self.may_read.wait(10)
        if self.aborted:
            raise OSError("the socket is shut down")
        return b""

    def abort(self) -> None:
        self.aborted = True
        if not self.refuses_to_end:
            self.may_read.set()
            self.closed_while_aborting = self.closed.wait(0.02)
        raise OSError("already shut down")

    def close(self) -> None:
        self.closed.set()
        raise OSError("not nicely closed")


def readers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == NAME]


@pytest.fixture(autouse=True)
def raised(monkeypatch: pytest.MonkeyPatch) -> Generator[list[type[BaseException]]]:
    """What ended a thread: nothing ever."""
    raised = list[type[BaseException]]()

    def take(given: threading.ExceptHookArgs) -> None:
        raised.append(given.exc_type)

    monkeypatch.setattr(threading, "excepthook", take)
    yield raised
    for thread in readers():
        thread.join(5)
    assert raised == []


@pytest.mark.real_time
async def test_reader_thread_ends_when_response_is_left(caplog: pytest.LogCaptureFixture) -> None:
    answer = Blocking(b"one", b"two")
    async with in_thread(lambda: answer, name=NAME) as response:
        assert (response.status, response.headers) == (200, answer.headers)
        assert await anext(response.chunks) == b"one"
        assert await anext(response.chunks) == b"two"
        waiting = asyncio.ensure_future(anext(response.chunks))
        await asyncio.to_thread(answer.waits.wait, 5)
        assert [reader.daemon for reader in readers()] == [True]
        assert not waiting.done()
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
    assert answer.aborted
    assert answer.closed.is_set()
    assert not answer.closed_while_aborting, "a connection that was given back must not be shut down"
    assert caplog.records == []


@pytest.mark.real_time
async def test_response_is_read_completely_and_released_once(caplog: pytest.LogCaptureFixture) -> None:
    slices = [b"%d" % number for number in range(40)]
    answer = Blocking(*slices)
    answer.may_read.set()
    async with in_thread(lambda: answer, name=NAME) as response:
        assert [chunk async for chunk in response.chunks] == slices
        assert [chunk async for chunk in response.chunks] == []
        for reader in readers():
            await asyncio.to_thread(reader.join, 5)
    assert answer.closed.is_set()
    assert not answer.aborted, "a connection that was given back must not be shut down"
    assert caplog.records == []


@pytest.mark.real_time
async def test_thread_reads_only_limited_chunks_ahead(caplog: pytest.LogCaptureFixture) -> None:
    answer = Blocking(*[b"x"] * 1000)
    async with in_thread(lambda: answer, name=NAME) as response:
        await asyncio.sleep(0.05)
        assert answer.reads == 16
        assert await anext(response.chunks) == b"x"
        await asyncio.sleep(0.02)
        assert answer.reads == 17
    assert answer.closed.is_set(), "one that waits for room is woken"
    assert answer.reads == 17
    assert caplog.records == []


@pytest.mark.real_time
async def test_error_of_sending_is_raised_in_event_loop() -> None:
    def fail() -> Blocking:
        raise TheirError

    with pytest.raises(TheirError):
        async with in_thread(fail, name=NAME):
            pass


@pytest.mark.real_time
async def test_error_of_reading_is_raised_in_event_loop_and_closes_response() -> None:
    answer = Blocking(b"one", TheirError("x"), b"two")
    async with in_thread(lambda: answer, name=NAME) as response:
        assert await anext(response.chunks) == b"one"
        with pytest.raises(TheirError):
            await anext(response.chunks)
        assert [chunk async for chunk in response.chunks] == []
    assert (answer.reads, answer.closed.is_set()) == (2, True)


@pytest.mark.real_time
@pytest.mark.parametrize("fails", [False, True])
async def test_leaving_does_not_wait_for_response_headers(fails: bool, caplog: pytest.LogCaptureFixture) -> None:
    """It closes what it gets, and an error that comes then is of no interest to anybody."""
    answer, begins = Blocking(), threading.Event()

    def send() -> Blocking:
        begins.wait(10)
        if fails:
            raise TheirError
        return answer

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.02), in_thread(send, name=NAME):
            pass
    (reader,) = readers()  # nobody waited for it
    begins.set()
    await asyncio.to_thread(reader.join, 5)
    await asyncio.sleep(0)  # what the thread has handed over is dealt with
    gc.collect()
    assert (answer.closed.is_set(), answer.reads) == (not fails, 0)
    assert caplog.records == []


def test_leaving_waits_at_most_two_seconds_for_thread(caplog: pytest.LogCaptureFixture) -> None:
    """It may outlive the event loop, and ends quietly."""
    answer = Blocking(refuses_to_end=True)

    async def leave() -> float:
        reading = asyncio.ensure_future(asyncio.to_thread(answer.waits.wait, 5))  # the clock stands still meanwhile
        async with in_thread(lambda: answer, name=NAME):
            await reading
        return asyncio.get_running_loop().time()

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        assert runner.run(leave()) == 2.0
    (record,) = caplog.records
    assert (record.name, record.levelname, record.__dict__["reader"]) == ("deltaloop.cache", "WARNING", NAME)
    assert not answer.closed.is_set()
    answer.may_read.set()
    assert answer.closed.wait(5)
