"""What a seed does not decide is named."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

import deltaloop as dl
from deltaloop.simulation import Simulation, SimulationOptions
from deltaloop.simulation.nondeterminism import detect_nondeterminism
from deltaloop.testing import Harness

CONFIG_MAP = dl.kinds.CONFIG_MAP


async def starts_a_thread() -> None:
    thread = threading.Thread(target=int)
    thread.start()
    thread.join()


async def starts_a_process() -> None:
    subprocess.run([sys.executable, "-c", ""], check=True)  # noqa: ASYNC221 - as an operator may have it


async def connects() -> None:
    with socket.socket() as other:
        other.connect_ex(("127.0.0.1", 1))


async def uses_the_pool() -> None:
    with ThreadPoolExecutor(1, initializer=int) as pool:
        await asyncio.get_running_loop().run_in_executor(pool, int)


async def uses_a_thread_that_takes_turns() -> None:
    await asyncio.to_thread(int)


def scenario_of(work: Callable[[], Awaitable[None]]) -> Callable[[Harness], Awaitable[None]]:
    @dl.controller(CONFIG_MAP, name="some", writes=[CONFIG_MAP])
    async def some(request: dl.Request, ctx: dl.Context) -> None:
        await work()

    async def scenario(world: Harness) -> None:
        await world.client.create(CONFIG_MAP, {"metadata": {"name": "a"}})
        await world.start(some)
        await world.settled()

    return scenario


@pytest.mark.parametrize(
    ("work", "told"),
    [
        (starts_a_thread, "test_nondeterminism.py:25 (starts_a_thread) starts a thread"),
        (starts_a_process, "test_nondeterminism.py:30 (starts_a_process) starts a process"),
        (connects, "test_nondeterminism.py:35 (connects) connects to the real network"),
        (uses_the_pool, "test_nondeterminism.py:40 (uses_the_pool) starts a thread"),
    ],
)
def test_nondeterminism_is_reported_with_line(work: Callable[[], Awaitable[None]], told: str) -> None:
    report = Simulation(scenario_of(work), SimulationOptions(runs=4)).explore()
    assert report.nondeterminism == (told,)
    assert told in str(report)


def test_deterministic_program_has_no_report() -> None:
    async def works() -> None:
        await asyncio.sleep(1.0)
        await uses_a_thread_that_takes_turns()

    assert not Simulation(scenario_of(works)).run().nondeterminism
    with detect_nondeterminism() as found:
        pass
    thread = threading.Thread(target=int)
    thread.start()
    thread.join()
    assert not found.found
