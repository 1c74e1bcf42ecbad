from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest

from deltaloop.client.credentials.single_flight import SingleFlight, _Flight, _LostError, _until_done


class Work:
    """Takes ten seconds; counts its runs and what became of them."""

    def __init__(self, *outcomes: str | Exception) -> None:
        self.outcomes: Iterator[str | Exception] = iter(outcomes)
        self.runs = 0
        self.cancelled = 0

    async def __call__(self) -> str:
        self.runs += 1
        try:
            await asyncio.sleep(10.0)
        except asyncio.CancelledError:
            self.cancelled += 1
            await asyncio.sleep(1.0)  # cleaning up takes its time
            raise
        outcome = next(self.outcomes)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


async def test_concurrent_callers_share_one_run() -> None:
    work = Work("one", "two")
    flight = SingleFlight(work, name="work")
    assert await asyncio.gather(*(flight.join() for _ in range(5))) == ["one"] * 5
    assert await flight.join() == "two"
    assert work.runs == 2
    assert asyncio.get_running_loop().time() == 20.0


async def test_failure_is_raised_to_all_callers() -> None:
    flight = SingleFlight(Work(ValueError("no"), "two"), name="work")
    outcomes = await asyncio.gather(*(flight.join() for _ in range(3)), return_exceptions=True)
    assert [str(outcome) for outcome in outcomes] == ["no"] * 3
    assert await flight.join() == "two"


async def test_first_caller_can_leave() -> None:
    work = Work("one")
    flight = SingleFlight(work, name="work")
    first = asyncio.create_task(flight.join())
    second = asyncio.create_task(flight.join())
    await asyncio.sleep(1.0)
    first.cancel()
    assert await second == "one"
    assert first.cancelled()
    assert (work.runs, work.cancelled) == (1, 0)


async def test_run_is_canceled_when_last_caller_leaves() -> None:
    work = Work("one")
    flight = SingleFlight(work, name="work")
    waiting = [asyncio.create_task(flight.join()) for _ in range(2)]
    await asyncio.sleep(1.0)
    for task in waiting:
        task.cancel()
    await asyncio.wait(waiting)
    assert asyncio.get_running_loop().time() == 2.0, "it was waited for"
    assert work.cancelled == 1
    assert await flight.join() == "one"
    assert work.runs == 2


async def test_caller_during_cancellation_starts_new_run() -> None:
    work = Work("one")
    flight = SingleFlight(work, name="work")
    leaving = asyncio.create_task(flight.join())
    await asyncio.sleep(1.0)
    leaving.cancel()
    await asyncio.sleep(0.5)
    assert await flight.join() == "one"
    assert asyncio.get_running_loop().time() == 11.5, "it did not wait for the one that is being ended"


async def test_finishing_run_continues_without_callers() -> None:
    work = Work("one")
    flight = SingleFlight(work, name="work", finishes=True)
    leaving = asyncio.create_task(flight.join())
    await asyncio.sleep(1.0)
    leaving.cancel()
    await asyncio.wait([leaving])
    assert asyncio.get_running_loop().time() == 1.0
    assert await flight.join() == "one"
    assert (work.runs, work.cancelled) == (1, 0)
    assert asyncio.get_running_loop().time() == 10.0


class SlowWork:
    """Takes until it is released, from any thread; says in which thread each run was."""

    def __init__(self) -> None:
        self.started, self.release = threading.Event(), threading.Event()
        self.ran_in: list[str] = []
        self.cancelled = 0

    async def __call__(self) -> str:
        self.ran_in.append(threading.current_thread().name)
        self.started.set()
        try:
            while not self.release.is_set():  # noqa: ASYNC110 - it is set in another thread
                await asyncio.sleep(0.002)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return threading.current_thread().name


class Loop(threading.Thread):
    """An event loop in a thread of its own, on which one coroutine runs."""

    def __init__(self, name: str, coroutine: Callable[[], Coroutine[Any, Any, str]]) -> None:
        super().__init__(name=name, daemon=True)
        self.coroutine = coroutine
        self.given: list[str] = []
        self.start()

    def run(self) -> None:
        self.given.append(asyncio.run(self.coroutine()))

    def ended(self) -> str:
        """Return what the coroutine returned."""
        self.join(5.0)
        return self.given[0]


async def boarded(flight: SingleFlight[str], on_board: threading.Event) -> asyncio.Task[str]:
    """Begin to wait for a run, and say so."""
    task = asyncio.create_task(flight.join())
    await asyncio.sleep(0)
    on_board.set()
    return task


def test_two_loops_share_one_run() -> None:
    work, on_board = SlowWork(), threading.Event()
    flight = SingleFlight(work, name="work")

    async def join() -> str:
        return await (await boarded(flight, on_board))

    first = Loop("first", flight.join)
    assert work.started.wait(5.0)
    second = Loop("second", join)
    assert on_board.wait(5.0)
    work.release.set()
    assert (first.ended(), second.ended()) == ("first", "first")
    assert work.ran_in == ["first"]


def test_run_for_two_loops_uses_thread() -> None:
    """A loop that is blocked must not keep the other one, which renews a lease, from its credentials."""
    work = SlowWork()
    work.release.set()
    flight = SingleFlight(work, name="of its own")
    both = threading.Barrier(2, timeout=5.0)

    async def ask() -> str:
        await flight.join()
        await asyncio.to_thread(both.wait)
        ran_in = await flight.join()
        await asyncio.to_thread(both.wait)  # neither loop is closed before both have asked again
        return ran_in

    loops = [Loop("first", ask), Loop("second", ask)]
    assert [loop.ended() for loop in loops] == ["of its own", "of its own"]


@pytest.mark.parametrize("renew_in_thread", [False, True])
def test_last_caller_cancels_run_on_other_loop(renew_in_thread: bool) -> None:
    work, on_board, first_left, over = SlowWork(), threading.Event(), threading.Event(), threading.Event()
    flight = SingleFlight(work, name="work")

    async def leave_first() -> str:
        joined = asyncio.create_task(flight.join())
        await asyncio.to_thread(on_board.wait)
        joined.cancel()
        await asyncio.wait([joined])
        first_left.set()
        await asyncio.to_thread(over.wait)
        return "left"

    async def leave_last() -> str:
        joined = await boarded(flight, on_board)
        await asyncio.to_thread(first_left.wait)
        before = work.cancelled
        joined.cancel()
        await asyncio.wait([joined])
        return f"{before}, {work.cancelled}"

    earlier = asyncio.new_event_loop()
    if renew_in_thread:  # as another loop has asked before
        work.release.set()
        earlier.run_until_complete(flight.join())
        work.release.clear()
        work.started.clear()
    first = Loop("first", leave_first)
    assert work.started.wait(5.0)
    second = Loop("second", leave_last)
    assert second.ended() == "0, 1", "it was cancelled, and that was waited for"
    over.set()
    assert first.ended() == "left"
    earlier.close()


def test_run_is_restarted_when_its_loop_ends() -> None:
    work, on_board = SlowWork(), threading.Event()
    flight = SingleFlight(work, name="of its own")

    async def begin() -> str:
        joined = asyncio.create_task(flight.join())
        await asyncio.to_thread(on_board.wait)
        return f"the run goes with this loop: {joined.done()}"

    async def join() -> str:
        return await (await boarded(flight, on_board))

    first = Loop("first", begin)
    assert work.started.wait(5.0)
    second = Loop("second", join)
    assert first.ended().endswith("False")
    work.release.set()
    assert second.ended() in ("second", "of its own")
    assert len(work.ran_in) == 2


def test_closed_loop_of_run_is_not_waited_for() -> None:
    work, on_board = SlowWork(), threading.Event()
    flight = SingleFlight(work, name="work")
    stopped = asyncio.new_event_loop()
    joined = stopped.create_task(flight.join())
    stopped.run_until_complete(asyncio.sleep(0.01))

    async def join() -> str:
        return await (await boarded(flight, on_board))

    second = Loop("second", join)
    assert on_board.wait(5.0)
    stopped.close()
    work.release.set()
    assert second.ended() == "second"
    assert not joined.done()
    dropped = joined.get_coro()
    assert isinstance(dropped, Coroutine)
    dropped.close()  # as the garbage collector does; it raises if that is refused


# What a run does when it is cut off at an odd moment


async def whether_daemon() -> bool:
    return threading.current_thread().daemon


def test_thread_of_run_is_daemon() -> None:
    flight: _Flight[bool] = _Flight(None)
    flight.begin(whether_daemon, "work")
    assert flight.outcome.result(5.0)


def test_run_canceled_before_start_does_not_run() -> None:
    work = SlowWork()
    flight: _Flight[str] = _Flight(None)
    flight.cancel()
    flight.begin(work, "work")
    with pytest.raises(_LostError):
        flight.outcome.result(5.0)
    assert work.ran_in == []


async def test_run_without_task_can_be_canceled() -> None:
    flight: _Flight[str] = _Flight(asyncio.get_running_loop())
    flight.cancel()
    assert flight.unwanted


def test_run_with_closed_loop_can_be_canceled() -> None:
    loop = asyncio.new_event_loop()
    flight: _Flight[str] = _Flight(loop)

    async def begin() -> None:
        flight.begin(SlowWork(), "work")

    loop.run_until_complete(begin())
    assert not flight.is_lost()
    assert flight.task is not None
    flight.task.cancel()
    loop.run_until_complete(asyncio.wait([flight.task]))
    loop.close()
    flight.cancel()
    with pytest.raises(_LostError):
        flight.outcome.result(0)


def test_run_that_cannot_start_raises_lost_error() -> None:
    def no_work() -> Coroutine[Any, Any, str]:
        raise ZeroDivisionError

    flight: _Flight[str] = _Flight(None)
    with pytest.raises(ZeroDivisionError):
        flight._run(no_work, "work")
    with pytest.raises(_LostError):
        flight.outcome.result(0)


@pytest.mark.parametrize("leaving", [False, True])
def test_threads_take_turns(leaving: bool) -> None:
    work = SlowWork()
    flight = SingleFlight(work, name="work")
    if not leaving:
        flight._lock.acquire()
    loop = Loop("first", flight.join)
    if leaving:
        assert work.started.wait(5.0)
        flight._lock.acquire()
    work.release.set()
    loop.join(0.05)
    assert loop.is_alive(), "it did not wait"
    assert work.started.is_set() == leaving
    flight._lock.release()
    assert loop.ended() == "first"


def closed_loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    loop.close()
    return loop


async def test_leaving_lost_run_keeps_newer_run() -> None:
    flight: SingleFlight[str] = SingleFlight(Work("one"), name="work")
    lost: _Flight[str] = _Flight(closed_loop())
    lost.waiting = 1
    since = flight._flight = _Flight(asyncio.get_running_loop())
    with pytest.raises(_LostError):
        await flight._wait(lost)
    assert flight._flight is since


def test_caller_with_closed_loop_is_not_notified(caplog: pytest.LogCaptureFixture) -> None:
    work = SlowWork()
    flight: _Flight[str] = _Flight(None)
    flight.begin(work, "work")
    loop = asyncio.new_event_loop()
    waits = loop.create_task(_until_done(flight))
    loop.run_until_complete(asyncio.sleep(0.01))
    waits.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        loop.run_until_complete(waits)
    loop.close()
    work.release.set()
    assert flight.outcome.result(5.0) == "work"
    for thread in threading.enumerate():
        if thread.name == "work":
            thread.join(5.0)
    assert [record for record in caplog.records if record.name == "concurrent.futures"] == []


async def test_forked_process_has_no_runs_of_parent() -> None:
    flight: SingleFlight[str] = SingleFlight(Work("one"), name="work")
    joined = asyncio.create_task(flight.join())
    await asyncio.sleep(1.0)
    assert (flight._flight is not None, len(flight._loops)) == (True, 1)
    flight._in_child(False)
    assert (flight._flight, len(flight._loops)) == (None, 0)
    assert await joined == "one"
