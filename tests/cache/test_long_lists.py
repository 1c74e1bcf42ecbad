"""A list of thousands of objects is processed in turns: others run, and nobody sees half of it or hears it twice."""

from __future__ import annotations

import asyncio
from collections import Counter

from deltaloop.api.kinds import POD
from deltaloop.api.resource import Resource
from deltaloop.cache.core.notification_buffer import BufferPolicy
from deltaloop.cache.core.real_fifo import BATCH_SIZE
from deltaloop.cache.handlers import HandlerOptions
from deltaloop.cache.informer import Informer, InformerOptions
from deltaloop.cache.queue import QueueKind
from tests.cache.fake_source import FakeSource, expired
from tests.cache.test_informer import PAGED, STILL, Recorder, running, settle

MANY = 2_600


def filled(source: FakeSource, *, silent: bool = False) -> FakeSource:
    for number in range(MANY):
        source.put(f"p{number}", silent=silent)
    return source


async def test_other_tasks_run_during_long_list() -> None:
    source = filled(FakeSource())
    informer = Informer(source, POD, options=STILL)
    informer.add_event_handler(Recorder())
    turns = Counter[str]()

    async def somebody_else() -> None:
        while not informer.has_synced:
            size = len(informer.indexer)
            assert size in {0, MANY}, "half a list was seen"
            turns["full" if size else "empty"] += 1
            await asyncio.sleep(0)

    other = asyncio.create_task(somebody_else())
    async with running(informer):
        await other
    # Made ready to wait, then built beside the store, then told: five turns each.
    assert turns["empty"] >= 2 * (MANY // 500)
    assert turns["full"] >= MANY // 500


async def test_handler_added_during_long_list_receives_each_object_once() -> None:
    source = filled(FakeSource())
    informer = Informer(source, POD, options=STILL)
    first, second = Recorder(), Recorder()
    early = informer.add_event_handler(first)
    task = asyncio.create_task(informer.run())
    while not early.pending:  # noqa: ASYNC110 - the very turn matters
        await asyncio.sleep(0)
    assert early.pending < MANY
    late = informer.add_event_handler(second)
    assert late.pending == MANY
    await informer.wait_for_sync(timeout=10)
    await settle()
    assert early.has_synced
    assert late.has_synced
    for heard in (first.heard, second.heard):
        assert len(heard) == len(set(heard)) == MANY
        assert all(each.startswith("+") for each in heard)
    task.cancel()
    await asyncio.wait([task])


class SlowRecorder(Recorder):
    async def on_add(self, obj: Resource, *, is_in_initial_list: bool) -> None:  # type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride]  # handlers may be either
        await asyncio.sleep(0.01)
        super().on_add(obj, is_in_initial_list=is_in_initial_list)


async def test_resync_waits_until_long_list_is_delivered() -> None:
    source = FakeSource()
    informer = Informer(source, POD, options=STILL)
    recorder = Recorder()
    informer.add_event_handler(recorder, options=HandlerOptions(resync_period=1.0))
    slow = HandlerOptions(buffer=BufferPolicy.BOUNDED, buffer_size=1)
    informer.add_event_handler(SlowRecorder(), options=slow)
    async with running(informer):
        filled(source, silent=True)
        source.break_watches(expired())
        await asyncio.sleep(60)
    firsts: dict[str, str] = {}
    for each in recorder.heard:
        firsts.setdefault(each[1:].partition("@")[0], each[0])
    assert len(firsts) == MANY
    assert set(firsts.values()) == {"+"}, "an object was told again before it was told at all"
    assert any(each.startswith("=") for each in recorder.heard)


async def test_thousand_changes_of_one_object_are_not_processed_as_list() -> None:
    source = filled(FakeSource())
    options = InformerOptions(random=lambda: 0.0, reflector=PAGED, queue=QueueKind.DELTA_FIFO)
    informer = Informer(source, POD, options=options)
    recorder = Recorder()
    informer.add_event_handler(recorder)
    task = asyncio.create_task(informer.run())
    while not source.opened:  # noqa: ASYNC110 - the very turn matters
        await asyncio.sleep(0)
    last = f"p{MANY - 1}"
    assert len(informer._queue) > 1_000  # it waits at the end of a long line, and all that happens to it with it
    for _ in range(BATCH_SIZE + 100):
        source.put(last)
    await informer.wait_for_sync(timeout=10)
    await settle()
    assert len(informer.indexer) == MANY
    assert informer.lister().get(f"default/{last}").resource_version == str(source.version)
    told = [each for each in recorder.heard if each[1:].startswith(f"{last}@")]
    assert len(told) == 1 + BATCH_SIZE + 100
    assert len(recorder.heard) == MANY + BATCH_SIZE + 100
    assert not any(each.startswith("-") for each in recorder.heard)
    task.cancel()
    await asyncio.wait([task])
