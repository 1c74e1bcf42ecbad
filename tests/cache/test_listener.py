"""Deliveries to one handler: what is told to whoever counts, and what is left when it is removed."""

from __future__ import annotations

import asyncio
import gc
import logging
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

from deltaloop.api.kinds import POD
from deltaloop.api.resource import Resource, as_it_came
from deltaloop.api.resource_type import ResourceType
from deltaloop.cache.core.notification_buffer import BufferPolicy
from deltaloop.cache.core.process_deltas import AddNotification
from deltaloop.cache.core.real_fifo import TURN
from deltaloop.cache.errors import TransactionError
from deltaloop.cache.handlers import HandlerFuncs, HandlerOptions
from deltaloop.cache.informer import Informer
from deltaloop.cache.metrics import GuardedCacheMetrics
from deltaloop.cache.shared_processor import SharedProcessor
from tests.cache.fake_source import FakeSource, expired
from tests.cache.objects import pod
from tests.cache.test_informer import STILL, TYPED, Recorder, running, settle
from tests.cache.test_metrics import Counts
from tests.workqueue.timers import live_timers

AS_DICT = ResourceType[Any]("", "v1", "Pod", "pods", model=dict[str, Any])


def deliveries() -> list[str]:
    names = (task.get_name() for task in asyncio.all_tasks())
    return sorted(name for name in names if name.startswith("handler "))


async def test_removed_handler_leaves_no_tasks() -> None:
    source = FakeSource()
    informer = Informer(source, POD, options=STILL)
    slow = HandlerFuncs[Resource](on_add=lambda _: asyncio.sleep(10))
    idle = informer.add_event_handler(Recorder(), name="idle")
    busy = informer.add_event_handler(slow, name="busy")
    async with running(informer):
        for name in "abc":
            source.put(name)
        await settle()
        assert (busy.pending, deliveries()) == (2, ["handler busy of v1/Pod", "handler idle of v1/Pod"])
        assert informer.levels(0.0).pending == {"idle": 0, "busy": 2}
        informer.remove_event_handler(idle)
        informer.remove_event_handler(busy)
        assert (busy.pending, informer.levels(0.0).pending) == (0, {})
        await settle()
        assert deliveries() == ["handler busy of v1/Pod"], "the call that it is in goes on"
        await asyncio.sleep(10)
        assert deliveries() == []


async def test_a_handler_can_remove_itself_and_add_another() -> None:
    source, seen = FakeSource(), list[str]()
    informer = Informer(source, POD, options=STILL)

    def once(obj: Resource) -> None:
        seen.append(f"once {obj.name}")
        informer.remove_event_handler(registration)
        informer.add_event_handler(HandlerFuncs[Resource](on_add=lambda new: seen.append(f"then {new.name}")))

    registration = informer.add_event_handler(HandlerFuncs[Resource](on_add=once))
    async with running(informer):
        await settle()
        source.put("a")
        source.put("b")
        await settle()
        assert seen == ["once a", "then a", "then b"]
        assert len(deliveries()) == 1


@pytest.mark.parametrize("policy", [*BufferPolicy])
async def test_removed_handler_is_released(policy: BufferPolicy) -> None:
    informer = Informer(FakeSource(), POD, options=STILL)
    options = HandlerOptions(buffer=policy, resync_period=5.0)
    async with running(informer):
        handler = Recorder()
        registration = informer.add_event_handler(handler, name="mine", options=options)
        (task,) = [task for task in asyncio.all_tasks() if task.get_name() == "handler mine of v1/Pod"]
        gone = weakref.ref(handler), weakref.ref(task)
        informer.remove_event_handler(registration)
        del handler, registration, task
        await asyncio.sleep(6)
        gc.collect()
        assert [each() for each in gone] == [None, None]
        assert informer.statistics().events == 0


async def test_informer_stop_waits_for_handlers_and_leaves_no_timer() -> None:
    source = FakeSource()
    source.put("a")
    ended: list[float] = []

    async def reluctant(obj: Resource) -> None:
        try:
            await asyncio.sleep(100)
        finally:
            await asyncio.sleep(5)
            ended.append(asyncio.get_running_loop().time())

    informer = Informer(source, POD, options=STILL)
    for handler in (Recorder(), HandlerFuncs(on_add=reluctant), Recorder()):
        informer.add_event_handler(handler, options=HandlerOptions(resync_period=7.0))
    task = asyncio.create_task(informer.run())
    await asyncio.sleep(0)
    (begin,) = [weakref.ref(each) for each in asyncio.all_tasks() if each.get_name() == "begin of resyncs of v1/Pod"]
    await asyncio.sleep(10)
    gc.collect()
    assert begin() is None, "the resyncs have begun"
    assert repr(informer._processor) == "<SharedProcessor of v1/Pod: 3 handlers>"
    task.cancel()
    await asyncio.wait([task])
    assert ended == pytest.approx([15.0], abs=0.01)
    assert live_timers() == 0


async def test_informer_that_ends_before_its_list_leaves_no_tasks() -> None:
    before = asyncio.all_tasks()
    informer = Informer(FakeSource(list_delay=100.0), POD, options=STILL)
    informer.add_event_handler(Recorder(), options=HandlerOptions(resync_period=7.0))
    task = asyncio.create_task(informer.run())
    await settle()
    (begin,) = [weakref.ref(each) for each in asyncio.all_tasks() if each.get_name() == "begin of resyncs of v1/Pod"]
    task.cancel()
    await asyncio.wait([task])
    gc.collect()
    assert begin() is None
    assert (asyncio.all_tasks() - {task}, live_timers()) == (before, 0)


async def test_handler_removed_during_long_list_receives_no_more_items() -> None:
    source = FakeSource()
    informer = Informer(source, POD, options=STILL)
    heard: list[str] = []

    def once(obj: Resource) -> None:
        heard.append(obj.name)
        informer.remove_event_handler(registration)

    registration = informer.add_event_handler(HandlerFuncs(on_add=once))
    everything = Recorder()
    informer.add_event_handler(everything)
    async with running(informer):
        for number in range(2_600):
            source.put(f"p{number}", silent=True)
        source.break_watches(expired())
        await asyncio.sleep(5)
        assert (len(heard), registration.pending, len(everything.heard)) == (1, 0, 2_600)


async def test_metrics_count_deliveries_pending_and_failures(
    caplog: pytest.LogCaptureFixture,
) -> None:
    told: list[tuple[str, float, int, bool]] = []

    class Handled(Counts):
        def handled(self, resource: str, *, handler: str, seconds: float, waiting: int, failed: bool) -> None:
            told.append((handler, round(seconds, 3), waiting, failed))

    await asyncio.sleep(1000)
    source = FakeSource()
    for name in "abc":
        source.put(name)
    informer = Informer(source, POD, options=STILL.replace(metrics=Handled()))

    async def handle(obj: Resource) -> None:
        await asyncio.sleep(2 if obj.name == "a" else 1)
        if obj.name == "b":
            raise ValueError("no")

    registration = informer.add_event_handler(HandlerFuncs(on_add=handle), name="mine")
    async with running(informer):
        await asyncio.sleep(10)
        assert repr(registration) == "<Listener mine: 0 pending, 1 failures>"
    assert told == [("mine", 2.0, 2, False), ("mine", 1.0, 1, True), ("mine", 1.0, 0, False)]
    assert len(caplog.records) == 1, "one failed, and none blocked the loop"


@pytest.mark.parametrize("where", ["called", "awaited"])
async def test_cancellation_raised_by_handler_is_logged_as_failure(
    where: str, caplog: pytest.LogCaptureFixture
) -> None:
    source = FakeSource()
    for name in "abc":
        source.put(name)
    heard: list[str] = []

    def called(obj: Resource) -> None:
        heard.append(obj.name)
        if obj.name == "b":
            raise asyncio.CancelledError

    async def awaited(obj: Resource) -> None:
        called(obj)

    informer = Informer(source, POD, options=STILL)
    handler = HandlerFuncs[Resource](on_add=called if where == "called" else awaited)
    registration = informer.add_event_handler(handler, name="mine")
    async with running(informer):
        assert (heard, registration.failures, registration.has_synced) == (["a", "b", "c"], 1, True)
    (record,) = caplog.records
    fields = {name: record.__dict__[name] for name in ("handler", "resource", "key", "notification")}
    assert (record.levelno, fields) == (
        logging.ERROR,
        {"handler": "mine", "resource": "v1/Pod", "key": "default/b", "notification": "AddNotification"},
    )


async def test_unfitting_object_and_failing_handler_are_logged_differently(caplog: pytest.LogCaptureFixture) -> None:
    source = FakeSource()
    source.put("mismatch")
    source.put("fits", node="n1")

    def raises(obj: Any) -> None:
        raise ValueError(obj)

    informer = Informer(source, TYPED, options=STILL)
    informer.add_event_handler(HandlerFuncs[Any](on_add=raises))
    async with running(informer):
        pass
    assert [(record.__dict__["key"], record.getMessage()) for record in caplog.records] == [
        ("default/mismatch", "handler or decoding raised an exception, dropping the notification"),
        ("default/fits", "handler raised an exception, dropping the notification"),
    ]


async def test_failing_asynchronous_handlers_are_logged_with_key(
    caplog: pytest.LogCaptureFixture,
) -> None:
    source = FakeSource()
    informer = Informer(source, POD, options=STILL)

    async def fails(*objects: Resource) -> None:
        await asyncio.sleep(1)
        raise ValueError(len(objects))

    informer.add_event_handler(HandlerFuncs[Resource](on_add=fails, on_update=fails, on_delete=fails))
    async with running(informer):
        source.put("a")
        source.put("a")
        source.remove("a")
        await asyncio.sleep(5)
    assert [(record.__dict__["key"], record.__dict__["notification"]) for record in caplog.records] == [
        ("default/a", "AddNotification"),
        ("default/a", "UpdateNotification"),
        ("default/a", "DeleteNotification"),
    ]


async def test_awaitable_result_of_a_handler_is_awaited() -> None:
    source = FakeSource()
    source.put("a")
    source.put("b")
    waits: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    informer = Informer(source, POD, options=STILL)
    future = informer.add_event_handler(HandlerFuncs[Resource](on_add=lambda obj: waits if obj.name == "a" else 7))
    async with running(informer):
        assert (future.pending, future.has_synced) == (1, False)
        waits.set_result(None)
        await settle()
        assert (future.pending, future.failures, future.has_synced) == (0, 0, True)


async def test_informer_resumes_when_bounded_handler_has_room(
    caplog: pytest.LogCaptureFixture,
) -> None:
    source = FakeSource()
    informer = Informer(source, POD, options=STILL)
    options = HandlerOptions(buffer=BufferPolicy.BOUNDED, buffer_size=2)
    for name in ("one", "two"):
        slow = HandlerFuncs[Resource](on_add=lambda _: asyncio.sleep(10))
        informer.add_event_handler(slow, name=name, options=options)
    quick = Recorder()
    informer.add_event_handler(quick, name="quick")
    with caplog.at_level(logging.INFO, logger="deltaloop.cache"):
        async with running(informer):
            for number in range(5):
                source.put(f"p{number}")
            await settle()
            assert len(quick.heard) == 3
            assert sorted(informer.stalled_by) == ["one", "two"]
            await asyncio.sleep(10)
            assert len(quick.heard) == 4
            await asyncio.sleep(20)
            assert (len(quick.heard), informer.stalled_by) == (5, ())
    stands, goes_on = "pausing informer until a handler has caught up", "resuming informer"
    said = [each for each in caplog.records if each.getMessage() in (stands, goes_on)]
    assert [(each.getMessage(), each.levelname) for each in said] == (
        [(stands, "WARNING"), (goes_on, "INFO")] * (len(said) // 2)
    )
    assert said
    assert {vars(each)["resource"] for each in said} == {"v1/Pod"}
    assert sorted(vars(said[0])["handlers"]) == ["one", "two"]


async def test_resync_has_identical_typed_objects_and_update_does_not() -> None:
    source = FakeSource()
    source.put("a", node="n1")
    informer = Informer[Any](source, AS_DICT, options=STILL)
    same: list[bool] = []
    informer.add_event_handler(
        HandlerFuncs[Any](on_update=lambda old, new: same.append(old is new)), options=HandlerOptions(resync_period=5.0)
    )
    async with running(informer):
        source.put("a", node="n2")
        await asyncio.sleep(6)
    assert same == [False, True]


async def test_pending_counts_of_handlers_with_same_name_are_added() -> None:
    source = FakeSource()
    informer = Informer(source, POD, options=STILL)
    for _ in range(2):
        informer.add_event_handler(HandlerFuncs[Resource](on_add=lambda _: asyncio.sleep(10)), name="twin")
    async with running(informer):
        for name in "abc":
            source.put(name)
        await settle()
        assert informer.levels(0.0).pending == {"twin": 4}


async def test_handler_resync_period_has_minimum_of_one_second_and_zero_disables_it() -> None:
    source = FakeSource()
    source.put("a")
    informer = Informer(source, POD, options=STILL.replace(resync_period=0.5))
    recorders = {period: Recorder() for period in (0.1, 2.0, 0.0, None)}
    for period, recorder in recorders.items():
        informer.add_event_handler(recorder, options=HandlerOptions(resync_period=period))
    async with running(informer):
        await asyncio.sleep(4.5)
    assert {period: len(recorder.heard) - 1 for period, recorder in recorders.items()} == {
        0.1: 4,
        2.0: 2,
        0.0: 0,
        None: 4,
    }


async def test_long_list_waits_for_room_in_bounded_buffer() -> None:
    """A bounded buffer may be overfull by the part of a list that is told at a time, and no more."""
    source = FakeSource()
    informer = Informer(source, POD, options=STILL)
    most = 0

    async def slow(obj: Resource) -> None:
        nonlocal most
        most = max(most, registration.pending)
        await asyncio.sleep(0.1 if obj.name == "p0" else 0)

    options = HandlerOptions(buffer=BufferPolicy.BOUNDED, buffer_size=1)
    registration = informer.add_event_handler(HandlerFuncs(on_add=slow), options=options)
    async with running(informer):
        for number in range(1_050):
            source.put(f"p{number}", silent=True)
        source.break_watches(expired())
        await asyncio.sleep(10)
        assert (registration.pending, len(informer.indexer)) == (0, 1_050)
    assert 400 < most <= 501


async def test_objects_before_error_in_long_list_are_delivered() -> None:
    """An object without a key is found out at the end of a list; all others have been told by then."""

    def told() -> Iterator[AddNotification[Resource]]:
        for number in range(TURN + 3):
            yield AddNotification(pod(f"p{number}"))
        raise TransactionError({0: ValueError("no key")}, 1)

    processor = SharedProcessor[Resource](
        "pods",
        decode=as_it_came,
        objects=list[Resource],
        upstream_has_synced=lambda: True,
        resync_period=0.0,
        metrics=GuardedCacheMetrics(None, "pods"),
    )
    registration = processor.add(Recorder(), name="", options=HandlerOptions())
    with pytest.raises(TransactionError):
        await processor.distribute_in_turns(told())
    assert registration.pending == TURN + 3


async def test_resync_during_a_long_list_follows_it() -> None:
    source = FakeSource()
    source.put("a")
    informer = Informer(source, POD, options=STILL)
    heard: list[float] = []
    resynced = HandlerFuncs[Resource](
        on_update=lambda old, new: heard.append(asyncio.get_running_loop().time()) if old.name == "a" else None
    )
    informer.add_event_handler(resynced, options=HandlerOptions(resync_period=20.0))
    slow = HandlerFuncs[Resource](on_add=lambda obj: asyncio.sleep(24.0 if obj.name == "p0" else 0))
    informer.add_event_handler(slow, options=HandlerOptions(buffer=BufferPolicy.BOUNDED, buffer_size=1))
    async with running(informer):
        for number in range(1_010):
            source.put(f"p{number}", silent=True)
        source.break_watches(expired())
        await asyncio.sleep(65)
    assert heard == pytest.approx([24.8, 40.0, 60.0], abs=0.1)


async def test_handler_with_least_room_limits_batch_size() -> None:
    source = FakeSource()
    informer = Informer(source, POD, options=STILL)
    registrations = [
        informer.add_event_handler(
            HandlerFuncs[Resource](on_add=lambda _: asyncio.sleep(10)),
            options=HandlerOptions(buffer=BufferPolicy.BOUNDED, buffer_size=size),
        )
        for size in (30, 2)
    ]
    async with running(informer):
        for number in range(20):
            source.put(f"p{number}")
        await settle()
        assert [each.pending for each in registrations] == [2, 2]
        informer.remove_event_handler(registrations[1])
        await settle()
        assert registrations[0].pending == 19
