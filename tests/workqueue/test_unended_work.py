"""Work that is taken and never ended can be found."""

from __future__ import annotations

import asyncio
import gc
import inspect
import warnings

import pytest

from deltaloop.workqueue import RunningItem, WorkQueue
from deltaloop.workqueue.work import Work


async def test_discarded_work_gives_resource_warning() -> None:
    queue = WorkQueue[str](name="pods")
    queue.add("a")
    work = [await queue.get_work()]
    with pytest.warns(ResourceWarning, match="'a' never ended"):
        work.clear()


async def test_resource_warning_contains_work() -> None:
    """With ``-X tracemalloc`` Python then shows where it was taken."""
    queue = WorkQueue[str](name="pods")
    queue.add("a")
    work = [await queue.get_work()]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        work.clear()
    assert repr(caught[0].source) == "<Work on 'a', attempt 1, 0 triggers>"
    assert caught[0].filename == inspect.getsourcefile(Work)


async def test_ended_work_gives_no_warning() -> None:
    queue = WorkQueue[str]()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        queue.add("a")
        async with await queue.get_work():
            pass
        queue.add("a")
        with await queue.get_work():
            pass
        queue.add("a")
        work = await queue.get_work()
        queue.done(work.key)
        queue.add("a")
        work = await queue.get_work()
        work.put_back()
        work.put_back()  # once more does nothing
        work = await queue.get_work()
        work.leave_to_caller()
        del work
        gc.collect()
    assert queue.statistics().processing == 1
    queue.done("a")


async def test_running_items_are_listed_with_duration() -> None:
    queue = WorkQueue[str]()
    for item in ("a", "b"):
        queue.add(item, trigger=f"why {item}")
        await queue.get()
        await asyncio.sleep(10.0)
    assert queue.processing() == (
        RunningItem(item="a", seconds=20.0, attempts=1, triggers=("why a",)),
        RunningItem(item="b", seconds=10.0, attempts=1, triggers=("why b",)),
    )
    assert queue.statistics().longest_running_seconds == 20.0
    queue.done("a")
    assert [running.item for running in queue.processing()] == ["b"]
