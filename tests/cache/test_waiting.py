"""Waiting for a cache: for how long by default, what cuts it short, and what is said when the time is over."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from deltaloop.api.kinds import NODE, POD
from deltaloop.api.resource import Resource
from deltaloop.cache.core.notification_buffer import BufferPolicy
from deltaloop.cache.errors import CacheSyncError, NotFreshError
from deltaloop.cache.factory import InformerFactory
from deltaloop.cache.handlers import HandlerFuncs, HandlerOptions
from deltaloop.cache.informer import Informer
from deltaloop.cache.multi_namespace import MultiNamespaceInformer
from deltaloop.cache.reflector_options import ReflectorOptions
from deltaloop.cache.sync import wait_for_cache_sync
from tests.cache.fake_client import FakeClient
from tests.cache.fake_source import FakeSource, api_error
from tests.cache.test_informer import STILL, running, settle
from tests.having import having

STREAMED = STILL.replace(reflector=ReflectorOptions(detect_restore=False))


def seconds() -> float:
    return asyncio.get_running_loop().time()


async def end(task: asyncio.Task[Any]) -> None:
    task.cancel()
    await asyncio.wait([task])


def of_factory() -> tuple[InformerFactory, Informer[Resource]]:
    client = FakeClient()
    client.source("v1/Pod").list_delay = 1000.0
    factory = InformerFactory(client, options=STILL)
    return factory, factory.informer(POD)


async def test_wait_for_sync_has_default_timeout_of_half_minute() -> None:
    factory, pods = of_factory()
    several = MultiNamespaceInformer(POD, {"default": pods})
    waits: list[Callable[[], Awaitable[None]]] = [
        factory.wait_for_sync,
        pods.wait_for_sync,
        several.wait_for_sync,
    ]
    for wait in waits:
        began = seconds()
        with pytest.raises(CacheSyncError) as caught:
            await wait()
        assert seconds() - began == 30.0
        assert [failure.waited for failure in caught.value.failures] == [30.0]
    assert pods.started
    assert not pods.has_synced
    await factory.shutdown()


async def test_wait_for_resource_version_has_default_timeout_of_half_minute() -> None:
    informer = Informer(FakeSource(), POD, options=STILL)
    async with running(informer):
        for timeout, waited in ((None, 30.0), (0.0, 0.0), (2.5, 2.5)):
            began = seconds()
            with pytest.raises(NotFreshError, check=having(wanted="99", reached="10")):
                await (
                    informer.wait_for_resource_version("99")
                    if timeout is None
                    else informer.wait_for_resource_version("99", timeout=timeout)
                )
            assert seconds() - began == pytest.approx(waited)


async def test_consistency_check_waits_half_minute_for_busy_cache() -> None:
    source = FakeSource()
    informer = Informer(source, POD, options=STILL)
    stuck = HandlerFuncs[Resource](on_add=lambda _: asyncio.sleep(1000))
    informer.add_event_handler(stuck, options=HandlerOptions(buffer=BufferPolicy.BOUNDED, buffer_size=1))
    async with running(informer):
        for number in range(4):
            source.put(f"p{number}")
        await settle()
        for timeout, waited in ((None, 30.0), (0.0, 0.0)):
            began = seconds()
            with pytest.raises(NotFreshError, check=having(wanted="14", reached="12")) as caught:
                await (informer.check_consistency() if timeout is None else informer.check_consistency(timeout=timeout))
            assert seconds() - began == waited
            assert caught.value.resource == "v1/Pod"
            assert int(caught.value.reached) < int(caught.value.wanted)


async def test_wait_for_cache_sync_has_no_timeout_by_default() -> None:
    looking = asyncio.create_task(wait_for_cache_sync(lambda: seconds() > 500))
    await asyncio.sleep(70)
    assert not looking.done()
    looking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await looking


async def test_sync_failure_has_waited_time_and_start_of_failure() -> None:
    await asyncio.sleep(1000)
    source = FakeSource()
    source.list_faults.extend([api_error(500)] * 50)
    source.list_delay = 2.0
    informer = Informer(source, POD, options=STILL)
    task = asyncio.create_task(informer.run())
    await asyncio.sleep(3)
    with pytest.raises(CacheSyncError) as caught:
        await informer.wait_for_sync(timeout=5)
    (failure,) = caught.value.failures
    assert (failure.waited, failure.failing_for) == (5.0, 6.0)  # the first error came after two seconds of eight
    assert not failure.stopped
    await end(task)
    with pytest.raises(CacheSyncError) as caught:
        await informer.wait_for_sync(timeout=5)
    assert caught.value.failures[0].stopped


async def test_forbidden_watch_does_not_fail_wait_for_sync() -> None:
    source = FakeSource()
    source.watch_faults.append(api_error(403))
    source.list_delay = 5.0
    informer = Informer(source, POD, options=STREAMED)
    async with running(informer):
        assert seconds() == pytest.approx(5.0, abs=0.01)


async def test_earlier_forbidden_error_does_not_fail_wait_during_long_list() -> None:
    source = FakeSource()
    source.list_faults.append(api_error(403))
    for number in range(2_600):
        source.put(f"p{number}")
    waits: list[asyncio.Task[None]] = []

    def wait_in_the_middle(obj: Resource) -> list[str]:
        if not waits and obj.name == "p7":
            waits.append(asyncio.create_task(informer.wait_for_sync()))
        return []

    informer = Informer(source, POD, indexers={"waits": wait_in_the_middle}, options=STILL)
    task = asyncio.create_task(informer.run())
    with pytest.raises(CacheSyncError):
        await informer.wait_for_sync()
    await asyncio.sleep(10)
    await waits[0]
    assert informer.has_synced
    await end(task)


@pytest.mark.parametrize("fail_fast", [True, False])
async def test_factory_wait_has_common_timeout_and_fail_fast_option(fail_fast: bool) -> None:
    client = FakeClient()
    client.source("v1/Pod").list_faults.extend([api_error(403)] * 50)
    client.source("v1/Node").list_delay = 1000.0
    factory = InformerFactory(client, options=STILL)
    for kind in (POD, NODE):
        factory.informer(kind)
    await asyncio.sleep(100)
    with pytest.raises(CacheSyncError) as caught:
        await factory.wait_for_sync(timeout=20, fail_fast=fail_fast)
    failures = [(each.resource, each.refused, each.waited) for each in caught.value.failures]
    both = [("v1/Pod", True, 20.0), ("v1/Node", False, 20.0)]
    assert failures == ([("v1/Pod", True, 0.0)] if fail_fast else both)
    await factory.shutdown()


@pytest.mark.parametrize("how", ["in time", "too late", "cancelled"])
async def test_wait_leaves_no_tasks(how: str) -> None:
    client = FakeClient()
    client.source("v1/Pod").list_delay = 2.0
    async with InformerFactory(client, options=STILL) as factory:
        pods = factory.informer(POD)
        await settle()
        for wait in (pods.wait_for_sync, factory.wait_for_sync):
            before = asyncio.all_tasks()
            if how == "in time":
                await wait()
            elif how == "too late":
                with pytest.raises(CacheSyncError):
                    await wait(timeout=0.5)
            else:
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0.5):
                        await wait()
            assert asyncio.all_tasks() <= before
