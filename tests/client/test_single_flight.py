from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

from deltaloop.client.single_flight import SingleFlight


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


async def test_all_who_wait_share_one_run() -> None:
    work = Work("one", "two")
    flight = SingleFlight(work, name="work")
    assert await asyncio.gather(*(flight.join() for _ in range(5))) == ["one"] * 5
    assert await flight.join() == "two"
    assert work.runs == 2
    assert asyncio.get_running_loop().time() == 20.0


async def test_a_failure_is_everybodys() -> None:
    flight = SingleFlight(Work(ValueError("no"), "two"), name="work")
    outcomes = await asyncio.gather(*(flight.join() for _ in range(3)), return_exceptions=True)
    assert [str(outcome) for outcome in outcomes] == ["no"] * 3
    assert await flight.join() == "two"


async def test_the_first_one_may_leave() -> None:
    work = Work("one")
    flight = SingleFlight(work, name="work")
    first = asyncio.create_task(flight.join())
    second = asyncio.create_task(flight.join())
    await asyncio.sleep(1.0)
    first.cancel()
    assert await second == "one"
    assert first.cancelled()
    assert (work.runs, work.cancelled) == (1, 0)


async def test_with_the_last_one_the_run_ends() -> None:
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


async def test_who_comes_while_a_run_is_being_ended_gets_another_one() -> None:
    work = Work("one")
    flight = SingleFlight(work, name="work")
    leaving = asyncio.create_task(flight.join())
    await asyncio.sleep(1.0)
    leaving.cancel()
    await asyncio.sleep(0.5)
    assert await flight.join() == "one"


def test_loops_do_not_share() -> None:
    started, release = threading.Event(), threading.Event()
    runs: list[str] = []

    async def work() -> str:
        runs.append(threading.current_thread().name)
        if len(runs) == 1:
            started.set()
            await asyncio.to_thread(release.wait, 5.0)
        return threading.current_thread().name

    flight = SingleFlight(work, name="work")
    given: list[str] = []
    other = threading.Thread(target=lambda: given.append(asyncio.run(flight.join())), name="other")
    other.start()
    assert started.wait(5.0)
    assert asyncio.run(flight.join()) == threading.current_thread().name
    release.set()
    other.join(5.0)
    assert given == ["other"]
    assert len(runs) == 2
