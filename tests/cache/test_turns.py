"""Long work on the event loop, in turns."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from deltaloop.cache.turns import in_turns


async def test_other_tasks_run_between_steps() -> None:
    happened: list[str] = []

    def work() -> Iterator[None]:
        for number in range(3):
            happened.append(f"turn {number}")
            yield
        happened.append("end")

    async def other() -> None:
        while len(happened) < 6:
            happened.append("other")
            await asyncio.sleep(0)

    await asyncio.gather(in_turns(work()), other())
    assert happened == ["turn 0", "other", "turn 1", "other", "turn 2", "other", "end"]


async def test_canceled_work_stops_at_current_step() -> None:
    done: list[int] = []

    def work() -> Iterator[None]:
        for number in range(3):
            done.append(number)
            yield

    task = asyncio.create_task(in_turns(work()))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert done == [0]
