"""The controller's loop: what happens to deltas whose processing fails, and to whoever waits for it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from deltaloop.api.resource import Resource
from deltaloop.cache.controller import Controller, ControllerConfig
from deltaloop.cache.core.deltas import DeletedFinalStateUnknown, Deltas
from deltaloop.cache.delta_fifo import DeltaFIFO
from deltaloop.cache.errors import RequeueError
from deltaloop.cache.reflector_options import ReflectorOptions
from deltaloop.cache.store import Store
from tests.cache.fake_source import FakeSource
from tests.having import having


def config(source: FakeSource, process: Callable[[str], None], retry_on_error: bool = False) -> ControllerConfig:
    def handle(deltas: Deltas[Resource], initial: bool) -> None:
        newest = deltas[-1].object
        process(newest.key if isinstance(newest, DeletedFinalStateUnknown) else newest.name)

    queue = DeltaFIFO[Resource]()
    return ControllerConfig(
        lister_watcher=source,
        queue=queue,
        process=handle,
        reflector_options=ReflectorOptions(watch_list=False, detect_restore=False),
        random=lambda: 0.0,
        retry_on_error=retry_on_error,
    )


def nothing(deltas: Deltas[Resource], initial: bool) -> None:
    del deltas, initial


@asynccontextmanager
async def running(controller: Controller) -> AsyncGenerator[None, None]:
    task = asyncio.create_task(controller.run())
    await asyncio.sleep(0.001)
    yield
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_controller_processes_each_delta_once() -> None:
    source, seen = FakeSource(), list[str]()
    source.put("a")
    controller = Controller(config(source, seen.append))
    assert not controller.has_synced
    async with running(controller):
        assert controller.has_synced
        source.put("b")
        await asyncio.sleep(1)
        assert seen == ["a", "b"]
        assert controller.last_sync_resource_version == "12"
        assert controller.statistics().events == 1
    assert repr(controller) == "<Controller v1/Pod: <DeltaFIFO 0 keys, synced, closed>>"


async def test_deltas_whose_processing_fails_are_logged_and_lost(caplog: pytest.LogCaptureFixture) -> None:
    source, seen = FakeSource(), list[str]()

    def process(name: str) -> None:
        seen.append(name)
        if name == "a":
            raise ValueError("no")

    source.put("a")
    source.put("b")
    controller = Controller(config(source, process))
    with caplog.at_level(logging.ERROR, logger="deltaloop.cache"):
        async with running(controller):
            await asyncio.sleep(10)
            assert controller.has_synced
    assert seen == ["a", "b"]
    (record,) = caplog.records
    assert (record.getMessage(), record.__dict__["retried"]) == ("processing deltas failed", False)
    assert (record.levelno, record.__dict__["controller"]) == (logging.ERROR, "v1/Pod")


async def test_failed_deltas_are_retried_after_one_second() -> None:
    source = FakeSource()
    seen: list[tuple[float, str]] = []

    def process(name: str) -> None:
        seen.append((asyncio.get_running_loop().time(), name))
        if name == "a" and len(seen) < 5:
            raise ValueError("not yet")

    source.put("a")
    source.put("b")
    async with running(Controller(config(source, process, retry_on_error=True))):
        await asyncio.sleep(10)
    assert seen == [(0.0, "a"), (1.0, "b"), (1.0, "a"), (2.0, "a"), (3.0, "a")]


async def test_process_function_can_requeue_its_deltas() -> None:
    source, seen = FakeSource(), list[str]()

    def process(name: str) -> None:
        seen.append(name)
        if len(seen) == 1:
            raise RequeueError(ValueError("once more"))

    source.put("a")
    async with running(Controller(config(source, process))):
        await asyncio.sleep(10)
    assert seen == ["a", "a"]


async def test_long_queue_lets_other_tasks_run() -> None:
    source, seen = FakeSource(), list[str]()
    for number in range(1000):
        source.put(f"p{number}")
    turns = 0
    task = asyncio.create_task(Controller(config(source, seen.append)).run())
    while len(seen) < 1000:
        await asyncio.sleep(0)
        turns += 1
    assert turns >= 10
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_unexpected_error_of_reflector_is_raised() -> None:
    def broken_chance() -> float:
        raise ZeroDivisionError

    queue = DeltaFIFO[Resource]()
    controller = Controller(
        ControllerConfig(lister_watcher=FakeSource(), queue=queue, process=nothing, random=broken_chance)
    )
    with pytest.raises(ZeroDivisionError):
        await controller.run()
    assert queue.closed


@pytest.mark.parametrize("period", [-1.0, float("nan"), float("inf")])
def test_invalid_resync_period_is_rejected(period: float) -> None:
    with pytest.raises(ValueError, check=having(argument="ControllerConfig.resync_period")):
        ControllerConfig(
            lister_watcher=FakeSource(),
            queue=DeltaFIFO[Resource](),
            process=nothing,
            resync_period=period,
        )


async def test_resync_processes_all_objects_again_after_sync() -> None:
    source = FakeSource(list_delay=3.0)
    source.put("a")
    known = Store[Resource]()
    seen: list[tuple[float, str]] = []

    def process(deltas: Deltas[Resource], initial: bool) -> None:
        del initial
        for delta in deltas:
            assert isinstance(delta.object, Resource)
            known.add(delta.object)
            seen.append((round(asyncio.get_running_loop().time(), 2), delta.type.value))

    settings = ControllerConfig(
        lister_watcher=source,
        queue=DeltaFIFO[Resource](known_objects=known),
        process=process,
        resync_period=10.0,
        reflector_options=ReflectorOptions(watch_list=False, detect_restore=False),
    )
    async with running(Controller(settings)):
        await asyncio.sleep(30.0)
    assert [at for at, _ in seen] == [3.0, 13.0, 23.0]
    assert len({kind for _, kind in seen[1:]}) == 1


@pytest.mark.parametrize("retry", [False, True])
async def test_asynchronous_process_function_that_fails_is_handled_equally(
    retry: bool, caplog: pytest.LogCaptureFixture
) -> None:
    source, seen = FakeSource(), list[float]()
    source.put("a")

    async def in_turns() -> None:
        await asyncio.sleep(0.5)
        if len(seen) < 3:
            raise ValueError("not yet")

    def process(deltas: Deltas[Resource], initial: bool) -> Awaitable[None]:
        seen.append(asyncio.get_running_loop().time())
        return in_turns()

    settings = config(source, print, retry_on_error=retry).replace(process=process)
    async with running(Controller(settings)):
        await asyncio.sleep(10)
    assert seen == pytest.approx([0.0, 1.5, 3.0] if retry else [0.0])
    assert [record.__dict__["retried"] for record in caplog.records] == ([True, True] if retry else [False])


async def test_asynchronous_process_function_can_requeue_its_deltas() -> None:
    source, seen = FakeSource(), list[float]()
    source.put("a")

    async def in_turns() -> None:
        await asyncio.sleep(0.5)
        if len(seen) < 2:
            raise RequeueError(ValueError("once more"))

    def process(deltas: Deltas[Resource], initial: bool) -> Awaitable[None]:
        seen.append(asyncio.get_running_loop().time())
        return in_turns()

    async with running(Controller(config(source, print).replace(process=process))):
        await asyncio.sleep(10)
    assert seen == [0.0, 0.5]


async def test_resync_period_has_minimum_of_one_second_and_leaves_no_tasks() -> None:
    source, seen = FakeSource(), list[float]()
    source.put("a")
    known = Store[Resource]()
    before = asyncio.all_tasks()

    def process(deltas: Deltas[Resource], initial: bool) -> None:
        for delta in deltas:
            assert isinstance(delta.object, Resource)
            known.add(delta.object)
            seen.append(asyncio.get_running_loop().time())

    plain = config(source, print)
    for period, times in ((0.2, [0.0, 1.0, 2.0, 3.0]), (0.0, [4.0])):
        settings = plain.replace(process=process, resync_period=period, queue=DeltaFIFO[Resource](known_objects=known))
        seen.clear()
        async with running(Controller(settings)):
            await asyncio.sleep(3.5)
        assert seen == pytest.approx(times, abs=0.6)
        assert len(seen) == len(times)
    assert asyncio.all_tasks() == before


async def test_consumer_without_room_pauses_queue_and_events() -> None:
    source, seen = FakeSource(), list[str]()
    source.put("a")
    has_room = asyncio.Event()

    def room() -> Awaitable[None] | None:
        return None if has_room.is_set() else wait()

    async def wait() -> None:
        await has_room.wait()

    settings = config(source, seen.append).replace(room=room, name="pods")
    controller = Controller(settings)
    assert controller.name == "pods"
    async with running(controller):
        await asyncio.sleep(1)
        assert seen == []
        has_room.set()
        await asyncio.sleep(1)
        assert seen == ["a"]
        has_room.clear()
        source.put("b")
        source.put("c")
        await asyncio.sleep(1)
        assert seen == ["a"], "nothing is processed while there is no room"
        assert controller.last_sync_resource_version == "12", "and no further event was read"


async def test_stop_waits_for_the_current_processing() -> None:
    source, ended = FakeSource(), list[float]()
    source.put("a")

    async def slow() -> None:
        try:
            await asyncio.sleep(100)
        finally:
            await asyncio.sleep(5)
            ended.append(asyncio.get_running_loop().time())

    def process(deltas: Deltas[Resource], initial: bool) -> Awaitable[None]:
        return slow()

    async with running(Controller(config(source, print).replace(process=process))):
        await asyncio.sleep(1)
        assert ended == []
    assert ended == pytest.approx([6.0], abs=0.1)


async def test_closing_queue_ends_controller_without_error() -> None:
    settings = config(FakeSource(), print)
    task = asyncio.create_task(Controller(settings).run())
    await asyncio.sleep(1)
    settings.queue.close()
    await task


async def test_explicit_requeue_works_beside_other_retries(
    caplog: pytest.LogCaptureFixture,
) -> None:
    source, seen = FakeSource(), list[str]()

    def process(name: str) -> None:
        seen.append(name)
        if len(seen) == 1:
            raise RequeueError(ValueError("once more"))

    source.put("a")
    async with running(Controller(config(source, process, retry_on_error=True))):
        await asyncio.sleep(10)
    assert seen == ["a", "a"]
    assert [vars(record)["raised"] for record in caplog.records] == ["ValueError: once more"]
