"""How informers begin and end, and what a handler that fails on a resync costs."""

from __future__ import annotations

import asyncio

import pytest

from deltaloop.api.kinds import POD
from deltaloop.api.resource import Resource
from deltaloop.cache.errors import InformerStoppedError
from deltaloop.cache.handlers import HandlerFuncs
from deltaloop.cache.informer import Informer, InformerOptions
from deltaloop.cache.reflector_options import ReflectorOptions
from tests.cache.fake_source import FakeSource

STILL = InformerOptions(random=lambda: 0.0, reflector=ReflectorOptions(watch_list=False, detect_restore=False))


class Waits:
    """A handler that is in a call for a while, and in no hurry when it is cancelled."""

    def __init__(self) -> None:
        self.begun = 0
        self.ended = 0

    async def on_add(self, obj: Resource, *, is_in_initial_list: bool) -> None:
        self.begun += 1
        try:
            await asyncio.sleep(50)
        finally:
            await asyncio.sleep(2)
            self.ended += 1

    def on_update(self, old: Resource, new: Resource) -> None:
        raise AssertionError("told after it was removed")

    def on_delete(self, obj: Resource, *, final_state_known: bool) -> None:
        raise AssertionError("told after it was removed")


@pytest.mark.parametrize("when", ["before", "after"])
async def test_informer_stop_waits_for_running_call_of_removed_handler(when: str) -> None:
    source = FakeSource()
    source.put("a")
    source.put("b")
    informer = Informer(source, POD, options=STILL)
    handler = Waits()
    early = informer.add_event_handler(handler) if when == "before" else None
    task = asyncio.create_task(informer.run())
    await asyncio.sleep(1)
    registration = early or informer.add_event_handler(handler)
    await asyncio.sleep(1)
    informer.remove_event_handler(registration)
    assert (handler.begun, handler.ended) == (1, 0), "a removal does not wait"
    source.put("a")
    await asyncio.sleep(10)
    assert handler.ended == 0, "and does not break off the call"
    task.cancel()
    await asyncio.wait([task])
    assert (handler.begun, handler.ended) == (1, 1), "the informer's end does wait"


async def test_a_handler_removed_before_the_start_is_never_called() -> None:
    source = FakeSource()
    source.put("a")
    informer = Informer(source, POD, options=STILL)
    handler = Waits()
    informer.remove_event_handler(informer.add_event_handler(handler))
    task = asyncio.create_task(informer.run())
    await informer.wait_for_sync(timeout=5)
    await asyncio.sleep(1)
    task.cancel()
    await asyncio.wait([task])
    assert handler.begun == 0


async def test_second_concurrent_start_of_informer_is_rejected() -> None:
    source = FakeSource()
    informer = Informer(source, POD, options=STILL)
    tasks = [asyncio.create_task(informer.run()) for _ in range(2)]
    registration = informer.add_event_handler(HandlerFuncs[Resource]())
    await asyncio.sleep(1)
    assert [task.done() for task in tasks] == [False, True]
    with pytest.raises(InformerStoppedError):
        tasks[1].result()
    assert registration.has_synced
    assert len(source.times("list")) == 1
    with pytest.raises(AttributeError):
        STILL.resync_period = 1.0  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]  # that is the point
    tasks[0].cancel()
    await asyncio.wait([tasks[0]])


async def test_handler_error_on_resync_keeps_watch() -> None:
    source = FakeSource()
    source.put("a")
    resyncs: list[float] = []

    def fail(old: Resource, new: Resource) -> None:
        if old is new:
            resyncs.append(asyncio.get_running_loop().time())
            raise ValueError("no")

    informer = Informer(source, POD, options=STILL.replace(resync_period=10.0))
    registration = informer.add_event_handler(HandlerFuncs(on_update=fail))
    task = asyncio.create_task(informer.run())
    await asyncio.sleep(35)
    source.put("b")
    await asyncio.sleep(1)
    assert resyncs == pytest.approx([10.0, 20.0, 30.0])
    assert registration.failures == 3
    assert [asked.verb for asked in source.asked] == ["list", "watch"]
    assert informer.lister().find("default/b") is not None
    task.cancel()
    await asyncio.wait([task])


class Gone:
    """Writes down what was deleted."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, str, str, bool]] = []

    def on_add(self, obj: Resource, *, is_in_initial_list: bool) -> None: ...

    def on_update(self, old: Resource, new: Resource) -> None: ...

    def on_delete(self, obj: Resource, *, final_state_known: bool) -> None:
        self.heard.append((obj.namespace, obj.name, obj.key, final_state_known))


async def test_name_and_namespace_of_missed_deletion_are_known() -> None:
    source = FakeSource()
    source.put("a")
    gone = Gone()
    informer = Informer(source, POD, options=STILL)
    informer.add_event_handler(gone)
    task = asyncio.create_task(informer.run())
    await asyncio.sleep(5)
    source.remove("a", silent=True)
    source.put("b", silent=True)
    source.end_watches()
    source.compact()
    await asyncio.sleep(5)
    source.remove("b")
    await asyncio.sleep(1)
    assert gone.heard == [("default", "a", "default/a", False), ("default", "b", "default/b", True)]
    task.cancel()
    await asyncio.wait([task])
