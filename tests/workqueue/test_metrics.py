"""What the metrics hooks hear."""

from __future__ import annotations

import asyncio

import pytest

from deltaloop.workqueue import DelayingQueue, QueueMetrics, QueueOptions, WorkQueue
from tests.workqueue.timers import live_timers


class Recorder:
    """Writes down what it hears."""

    def __init__(self) -> None:
        self.depth = 0
        self.adds = 0
        self.retries = 0
        self.latencies = list[float]()
        self.durations = list[float]()
        self.running = list[tuple[str, float, float]]()

    def depth_changed(self, by: int) -> None:
        self.depth += by

    def added(self) -> None:
        self.adds += 1

    def queue_latency(self, seconds: float) -> None:
        self.latencies.append(seconds)

    def work_duration(self, seconds: float) -> None:
        self.durations.append(seconds)

    def unfinished_work(self, seconds: float) -> None:
        self.running.append(("unfinished", asyncio.get_running_loop().time(), seconds))

    def longest_running(self, seconds: float) -> None:
        self.running.append(("longest", asyncio.get_running_loop().time(), seconds))

    def retried(self) -> None:
        self.retries += 1


async def test_depth_adds_latency_duration_and_retries() -> None:
    heard = Recorder()
    queue = DelayingQueue[str](name="pods", metrics=heard)
    queue.add("a")
    await asyncio.sleep(1.0)
    queue.add("a")  # latency counts from the first add
    queue.add("b")
    assert (heard.depth, heard.adds) == (2, 2)
    await asyncio.sleep(1.0)
    await queue.get()
    assert (heard.depth, heard.latencies) == (1, [2.0])
    queue.add("a")  # needs a run, though it is not in line
    assert (heard.depth, heard.adds) == (2, 3)
    await asyncio.sleep(0.25)
    queue.done("a")
    assert (heard.depth, heard.durations) == (2, [0.25])
    await queue.get()
    queue.done("b")
    queue.add_after("c", 5.0)
    queue.add_after("c", 6.0)
    queue.add_after("d", 0.0)
    assert heard.retries == 3
    assert heard.depth == 2
    assert await queue.get() == "a"
    queue.done("a")
    assert heard.latencies == [2.0, 1.25, 0.25]
    for _ in range(2):
        queue.done(await queue.get())
    assert heard.latencies[3:] == [0.0, 0.0]
    assert (heard.depth, heard.adds) == (0, 5)


async def test_running_items_are_reported_periodically() -> None:
    heard = Recorder()
    queue = WorkQueue[str](metrics=heard, options=QueueOptions(metrics_period=2.0))
    queue.add("a")
    queue.add("b")
    await queue.get()
    await asyncio.sleep(1.0)
    await queue.get()
    await asyncio.sleep(3.5)
    queue.done("a")
    queue.done("b")
    await asyncio.sleep(100.0)
    assert heard.running == [
        ("unfinished", 2.0, 3.0),
        ("longest", 2.0, 2.0),
        ("unfinished", 4.0, 7.0),
        ("longest", 4.0, 4.0),
        ("unfinished", 6.0, 0.0),
        ("longest", 6.0, 0.0),
    ]


async def test_item_of_waiting_worker_is_reported() -> None:
    heard = Recorder()
    queue = WorkQueue[str](metrics=heard, options=QueueOptions(metrics_period=2.0))
    waiting = asyncio.create_task(queue.get())
    await asyncio.sleep(1.0)
    queue.add("a")
    await waiting
    await asyncio.sleep(3.0)
    assert heard.running == [("unfinished", 3.0, 2.0), ("longest", 3.0, 2.0)]
    queue.done("a")


async def test_age_of_oldest_item_is_reported_until_worker_takes_it() -> None:
    class Ages(Recorder):
        def oldest_item_age(self, seconds: float) -> None:
            self.running.append(("oldest", asyncio.get_running_loop().time(), seconds))

        def unfinished_work(self, seconds: float) -> None:
            """Not recorded."""

        longest_running = unfinished_work

    heard = Ages()
    queue = DelayingQueue[str](metrics=heard, options=QueueOptions(metrics_period=2.0))
    queue.add("a")  # no worker has started
    await asyncio.sleep(1.0)
    queue.add("b")
    queue.add_after("c", 1000.0)  # a delayed item does not wait for a worker
    await asyncio.sleep(2.0)
    assert await queue.get() == "a"
    queue.add("a")  # an item in process does not wait for a worker
    await asyncio.sleep(2.0)
    assert await queue.get() == "b"
    await asyncio.sleep(2.0)
    queue.done("a")
    await asyncio.sleep(2.0)
    queue.done("b")
    queue.done(await queue.get())
    await asyncio.sleep(100.0)
    assert heard.running == [
        ("oldest", 2.0, 2.0),
        ("oldest", 4.0, 3.0),
        ("oldest", 6.0, 0.0),
        ("oldest", 8.0, 5.0),
        ("oldest", 10.0, 0.0),
    ]


async def test_queue_without_hooks_has_no_timer() -> None:
    queue = WorkQueue[str]()
    queue.add("a")
    await queue.get()
    assert live_timers() == 0


async def test_failing_hooks_are_logged_without_other_effect(caplog: pytest.LogCaptureFixture) -> None:
    broken: QueueMetrics = BrokenHooks()
    queue = WorkQueue[str](name="pods", metrics=broken)
    queue.add("a")
    assert await queue.get() == "a"
    await asyncio.sleep(1.0)
    queue.done("a")
    assert queue.statistics().done == 1
    await asyncio.sleep(1.0)
    assert {record.getMessage() for record in caplog.records} == {"metrics hook of a work queue failed"}
    assert {record.__dict__["queue"] for record in caplog.records} == {"pods"}


class BrokenHooks(Recorder):
    """Raises whatever it hears."""

    def depth_changed(self, by: int) -> None:
        raise RuntimeError("broken")

    def queue_latency(self, seconds: float) -> None:
        raise RuntimeError("broken")

    def work_duration(self, seconds: float) -> None:
        raise RuntimeError("broken")

    def longest_running(self, seconds: float) -> None:
        raise RuntimeError("broken")


async def test_hooks_count_delay_immediately_despite_earlier_delay() -> None:
    heard = Recorder()
    queue = DelayingQueue[str](metrics=heard)
    for item, delay in (("a", 5.0), ("b", 6.0), ("a", 7.0)):
        queue.add_after(item, delay)
    assert heard.retries == 3
