"""The queue's waiting side: who is woken, what is put back, when it has synced."""

from __future__ import annotations

import asyncio

import pytest

from deltaloop.api.resource import Resource
from deltaloop.cache.core.deltas import DeletedFinalStateUnknown, Deltas
from deltaloop.cache.delta_fifo import DeltaFIFO
from deltaloop.cache.errors import FifoClosedError, RequeueError
from deltaloop.cache.store import Store
from tests.cache.objects import pod


def nothing(deltas: Deltas[Resource], initial: bool) -> None:
    del deltas, initial


async def test_pop_waits_for_a_delta() -> None:
    fifo = DeltaFIFO[Resource]()
    task = asyncio.create_task(fifo.pop(nothing))
    await asyncio.sleep(5)
    assert not task.done()
    fifo.add(pod("a"))
    (delta,) = await task
    assert delta.object == pod("a")


async def test_each_key_goes_to_one_waiting_consumer() -> None:
    fifo = DeltaFIFO[Resource]()
    tasks = [asyncio.create_task(fifo.pop(nothing)) for _ in range(3)]
    await asyncio.sleep(1)
    fifo.add(pod("a"))
    fifo.update(pod("a", 2))
    fifo.add(pod("b"))
    await asyncio.sleep(1)
    assert sorted(len(task.result()) for task in tasks if task.done()) == [1, 2]
    fifo.close()
    waiting = next(task for task in tasks if not task.done())
    with pytest.raises(FifoClosedError):
        await waiting


async def test_close_wakes_all_waiting_consumers_and_keeps_queued_deltas() -> None:
    fifo = DeltaFIFO[Resource]()
    tasks = [asyncio.create_task(fifo.pop(nothing)) for _ in range(10)]
    await asyncio.sleep(1)
    fifo.close()
    assert fifo.closed
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert {type(result) for result in results} == {FifoClosedError}
    fifo.add(pod("late"))
    assert len(await fifo.pop(nothing)) == 1


async def test_canceled_pop_takes_no_deltas() -> None:
    fifo = DeltaFIFO[Resource]()
    task = asyncio.create_task(fifo.pop(nothing))
    await asyncio.sleep(1)
    fifo.add(pod("a"))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert fifo.list_keys() == ["default/a"]


async def test_process_function_receives_initial_list_flag() -> None:
    fifo = DeltaFIFO[Resource](known_objects=Store[Resource]())
    seen: list[tuple[str, bool]] = []

    def process(deltas: Deltas[Resource], initial: bool) -> None:
        (delta,) = deltas
        assert not isinstance(delta.object, DeletedFinalStateUnknown)
        seen.append((delta.object.name, initial))
        assert not fifo.has_synced or not initial, "synced before the last of the list is processed"

    fifo.replace([pod("a"), pod("b")], "10")
    for _ in range(2):
        await fifo.pop(process)
    assert fifo.has_synced
    await fifo.wait_for_sync()
    fifo.add(pod("c"))
    await fifo.pop(process)
    assert seen == [("a", True), ("b", True), ("c", False)]


async def test_pop_raises_the_error_of_process() -> None:
    fifo = DeltaFIFO[Resource]()
    fifo.add(pod("a"))

    def process(deltas: Deltas[Resource], initial: bool) -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await fifo.pop(process)
    assert len(fifo) == 0
    assert fifo.has_synced


async def test_requeued_deltas_go_behind_others() -> None:
    fifo = DeltaFIFO[Resource]()
    fifo.add(pod("a"))
    fifo.add(pod("b"))

    def again(deltas: Deltas[Resource], initial: bool) -> None:
        raise RequeueError(ValueError("later"))

    with pytest.raises(ValueError, match="later"):
        await fifo.pop(again)
    assert fifo.list_keys() == ["default/b", "default/a"]
    assert repr(fifo) == "<DeltaFIFO 2 keys, synced>"


async def test_empty_list_syncs_immediately() -> None:
    fifo = DeltaFIFO[Resource](known_objects=Store[Resource]())
    waiting = asyncio.create_task(fifo.wait_for_sync())
    await asyncio.sleep(1)
    assert not waiting.done()
    fifo.replace([])
    await waiting


async def test_deletions_and_resyncs_wake_the_consumer() -> None:
    store = Store[Resource]()
    store.replace([pod("a"), pod("b")])
    fifo = DeltaFIFO[Resource](known_objects=store)
    task = asyncio.create_task(fifo.pop(nothing))
    await asyncio.sleep(1)
    fifo.delete(pod("a", 2))
    assert [delta.type.value for delta in await task] == ["Deleted"]
    task = asyncio.create_task(fifo.pop(nothing))
    await asyncio.sleep(1)
    fifo.resync()
    deltas = await task
    fifo.add_if_not_present("default/x", deltas)
    fifo.add_if_not_present("default/y", ())
    assert fifo.list_keys() == ["default/b", "default/x"]
    fifo.close()
    assert repr(fifo) == "<DeltaFIFO 2 keys, synced, closed>"


async def test_queue_is_not_idle_during_processing() -> None:
    fifo = DeltaFIFO[Resource]()
    assert fifo.is_idle
    fifo.add(pod("a"))
    assert not fifo.is_idle
    seen: list[bool] = []
    await fifo.pop(lambda deltas, initial: seen.append(fifo.is_idle))
    assert seen == [False]
    assert fifo.is_idle
