"""What was interrupted is not done: neither a queue, nor an informer, nor a handler's registration says so."""

from __future__ import annotations

import asyncio
import logging

import pytest

from deltaloop.api.kinds import POD
from deltaloop.api.resource import Resource
from deltaloop.cache.core.deltas import Deltas
from deltaloop.cache.errors import CacheSyncError
from deltaloop.cache.informer import Informer, InformerOptions
from deltaloop.cache.queue import Queue, QueueKind, new_queue
from deltaloop.cache.store import Indexer
from tests.cache.core.test_real_fifo import short
from tests.cache.fake_source import FakeSource
from tests.cache.objects import pod
from tests.cache.test_informer import PAGED, STILL, Recorder, running, settle

MANY = 1_200


@pytest.mark.parametrize("kind", [*QueueKind])
async def test_deltas_of_a_canceled_processing_are_popped_again(kind: QueueKind) -> None:
    versions: list[str] = []
    queue: Queue[Resource] = new_queue(kind, known_objects=Indexer[Resource](), on_version=versions.append)
    seen: list[tuple[list[str], bool]] = []

    async def never_ends(deltas: Deltas[Resource], initial: bool) -> None:
        await asyncio.Event().wait()

    async def note(deltas: Deltas[Resource], initial: bool) -> None:
        seen.append((short(deltas), initial))

    queue.replace([pod("a", 5)], "7")
    waiting = asyncio.create_task(queue.wait_for_sync())
    for attempt in (1, 2):
        popping = asyncio.create_task(queue.pop(never_ends))
        await asyncio.sleep(1)
        if attempt == 2:
            queue.update(pod("a", 8))
            queue.update_resource_version("8")
        popping.cancel()
        with pytest.raises(asyncio.CancelledError):
            await popping
        assert not queue.has_synced
        assert not queue.is_idle
    await settle()
    assert not waiting.done()
    assert "8" not in versions
    while not queue.is_idle:
        await queue.pop(note)
    assert queue.has_synced
    assert queue.processed_version == "8"
    await waiting
    together = kind is QueueKind.DELTA_FIFO
    assert seen == (
        [(["Replaced a@5", "Updated a@8"], True)] if together else [(["Replaced a@5"], True), (["Updated a@8"], False)]
    )


class Patient(Recorder):
    """Waits in the middle of each addition."""

    async def on_add(self, obj: Resource, *, is_in_initial_list: bool) -> None:  # type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride]  # handlers may be either
        if obj.name == "p0":
            await asyncio.sleep(60.0)
        super().on_add(obj, is_in_initial_list=is_in_initial_list)


@pytest.mark.parametrize("kind", [*QueueKind])
async def test_canceled_informer_is_synced_only_with_full_cache(kind: QueueKind) -> None:
    source = FakeSource()
    for number in range(MANY):
        source.put(f"p{number}")
    sizes = set[int]()
    for turns in range(2, 100, 2):
        informer = Informer(source, POD, options=InformerOptions(random=lambda: 0.0, reflector=PAGED, queue=kind))
        registration = informer.add_event_handler(recorder := Recorder())
        task = asyncio.create_task(informer.run())
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        sizes.add(len(informer.indexer))
        assert not informer.has_synced or len(informer.indexer) == MANY
        assert not registration.has_synced or len(recorder.heard) == MANY
        if registration.has_synced:
            break
        if not informer.has_synced:
            with pytest.raises(CacheSyncError, match="has stopped"):
                await informer.wait_for_sync(timeout=1)
    else:
        pytest.fail("nothing was cancelled late enough")
    assert {0, MANY} <= sizes


async def test_handler_canceled_during_last_object_is_not_synced() -> None:
    source = FakeSource()
    source.put("p0")
    informer = Informer(source, POD, options=STILL)
    registration = informer.add_event_handler(patient := Patient())
    async with running(informer):
        assert informer.has_synced
        assert not registration.has_synced
    assert patient.heard == []
    assert not registration.has_synced


class LetsCancellationsOut(Recorder):
    """Is interrupted by something of its own, once at once and once later."""

    def on_update(self, old: Resource, new: Resource) -> object:  # type: ignore[override]
        super().on_update(old, new)
        if new.name == "b":
            raise asyncio.CancelledError
        return self._of_its_own()

    async def _of_its_own(self) -> None:
        task = asyncio.create_task(asyncio.sleep(60.0))
        task.cancel()
        await task


async def test_handler_that_raises_cancellation_receives_next_notifications(
    caplog: pytest.LogCaptureFixture,
) -> None:
    source = FakeSource()
    for name in "ab":
        source.put(name)
    informer = Informer(source, POD, options=STILL)
    informer.add_event_handler(recorder := LetsCancellationsOut())
    async with running(informer):
        for name in "abab":
            source.put(name)
            await settle()
        source.remove("a")
        await settle()
    assert [each[:2] for each in recorder.heard] == ["+a", "+b", "~a", "~b", "~a", "~b", "-a"]
    lost = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert {record.getMessage() for record in lost} == {"handler raised an exception, dropping the notification"}
    assert len(lost) == 4
