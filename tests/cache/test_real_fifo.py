"""The in-order queue's ``pop``: waiting, closing, failing, and the choice between both queues."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from deltaloop.api.resource import Resource
from deltaloop.cache.core.deltas import Deltas, Unread
from deltaloop.cache.core.process_deltas import process_deltas
from deltaloop.cache.delta_fifo import DeltaFIFO
from deltaloop.cache.errors import FifoClosedError, RequeueError, TransactionError
from deltaloop.cache.queue import Queue, QueueKind, new_queue
from deltaloop.cache.real_fifo import RealFIFO
from deltaloop.cache.store import Indexer
from tests.cache.core.test_real_fifo import short
from tests.cache.objects import pod
from tests.having import having


def ignore(deltas: Deltas[Resource], initial: bool) -> None:
    del deltas, initial


@pytest.mark.parametrize("kind", [*QueueKind])
async def test_waiting_pop_raises_error_when_queue_closes(kind: QueueKind) -> None:
    versions: list[str] = []
    store = Indexer[Resource]()
    queue: Queue[Resource] = new_queue(kind, known_objects=store, on_version=versions.append)
    waiting = asyncio.create_task(queue.pop(ignore))
    progress = asyncio.create_task(queue.wait_for_progress())
    await asyncio.sleep(1)
    assert not waiting.done()
    queue.replace([pod("a", 5)], "7")
    assert short(await waiting) == ["Replaced a@5"]
    await progress
    await queue.wait_for_sync()
    assert queue.has_synced
    queue.update(pod("a", 8))
    queue.update_resource_version("8")
    assert (queue.processed_version, versions) == ("7", ["7"])
    await queue.pop(ignore)
    assert versions == ["7", "8"]
    waiting = asyncio.create_task(queue.pop(ignore))
    await asyncio.sleep(1)
    queue.close()
    with pytest.raises(FifoClosedError):
        await waiting
    assert queue.closed


def test_each_kind_has_its_queue() -> None:
    store = Indexer[Resource]()
    assert isinstance(new_queue(QueueKind.DELTA_FIFO, known_objects=store), DeltaFIFO)
    fifo = new_queue(QueueKind.REAL_FIFO, known_objects=store)
    assert isinstance(fifo, RealFIFO)
    fifo.add(pod("a"))
    fifo.delete(pod("b"))
    fifo.resync()
    assert fifo.list_keys() == ["default/a", "default/b"]
    assert repr(fifo) == "<RealFIFO 3 entries, synced>"


async def test_pop_raises_error_of_process_and_drops_deltas_without_requeue() -> None:
    queue = RealFIFO[Resource](known_objects=Indexer[Resource]())
    queue.add(pod("a", 1))
    queue.update(pod("a", 2))

    def requeue(deltas: Deltas[Resource], initial: bool) -> None:
        raise RequeueError(ValueError("later"))

    def fail(deltas: Deltas[Resource], initial: bool) -> None:
        raise ZeroDivisionError

    with pytest.raises(ValueError, match="later"):
        await queue.pop(requeue)
    assert len(queue) == 2
    with pytest.raises(ZeroDivisionError):
        await queue.pop(fail)
    assert short(await queue.pop(ignore)) == ["Updated a@2"]


def test_batch_is_stored_before_its_notifications() -> None:
    store = Indexer[Resource](indexers={"none": lambda _: []})
    nameless = Resource.from_dict({"metadata": {}})
    queue = RealFIFO[Resource](known_objects=store, key_func=lambda obj: obj.name or "?")
    told: list[str] = []
    seen: list[int] = []

    def process(deltas: Deltas[Resource], initial: bool) -> None:
        for notification in process_deltas(deltas, store, is_in_initial_list=initial):
            told.append(type(notification).__name__)
            seen.append(len(store))

    for obj in (pod("a"), nameless, pod("b")):
        queue.add(obj)
    with pytest.raises(TransactionError, check=having(total=3)) as caught:
        asyncio.run(queue.pop(process))
    assert caught.value.total == 3
    assert list(caught.value.failures) == [1]
    assert told == ["AddNotification"] * 2
    assert seen == [2, 2], "all is stored before anything is told"


@pytest.mark.parametrize("kind", [*QueueKind])
async def test_queue_without_list_is_synced_after_first_write(kind: QueueKind) -> None:
    queue: Queue[Resource] = new_queue(kind, known_objects=Indexer[Resource]())
    waiting = asyncio.create_task(queue.wait_for_sync())
    await asyncio.sleep(1)
    assert not waiting.done()
    queue.add(pod("a"))
    assert queue.has_synced
    await asyncio.wait_for(waiting, 1)


WRITES: list[Callable[[Queue[Resource]], None]] = [
    lambda queue: queue.add(pod("new")),
    lambda queue: queue.update(pod("new")),
    lambda queue: queue.delete(pod("known")),
    lambda queue: queue.replace([pod("new")], "9"),
    lambda queue: queue.resync(),
]


@pytest.mark.parametrize("write", WRITES, ids=["add", "update", "delete", "replace", "resync"])
@pytest.mark.parametrize("kind", [*QueueKind])
async def test_every_write_wakes_the_waiting_pop(kind: QueueKind, write: Callable[[Queue[Resource]], None]) -> None:
    known = Indexer[Resource]()
    known.add(pod("known"))
    queue: Queue[Resource] = new_queue(kind, known_objects=known)
    queue.replace([pod("known")], "5")
    await queue.pop(ignore)
    popping, looking = asyncio.create_task(queue.pop(ignore)), asyncio.create_task(queue.wait_for_progress())
    await asyncio.sleep(1)
    assert not popping.done()
    assert not looking.done()
    write(queue)
    await asyncio.wait_for(asyncio.gather(popping, looking), 1)


@pytest.mark.parametrize("in_turns", [False, True])
@pytest.mark.parametrize("kind", [*QueueKind])
async def test_unreadable_objects_of_a_list_are_not_deleted(kind: QueueKind, in_turns: bool) -> None:
    known = Indexer[Resource]()
    for name in ("kept", "gone"):
        known.add(pod(name))
    versions: list[str] = []
    queue: Any = new_queue(kind, known_objects=known, on_version=versions.append)
    unread = Unread(keys=frozenset({"default/kept"}))
    for resource_version in ("9", "", "9"):
        if in_turns:
            await queue.replace_in_turns([pod("new")], resource_version, unread)
        else:
            queue.replace([pod("new")], resource_version, unread)
        told: list[str] = []
        while not queue.is_idle:
            told += [delta.split("@")[0] for delta in short(await queue.pop(ignore))]
        kept = ["Replaced kept"] if kind is QueueKind.REAL_FIFO else []  # as it is known
        assert sorted(told) == ["Deleted? gone", *kept, "Replaced new"]
    assert versions == ["9"]
