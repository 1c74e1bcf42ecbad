"""A reflector with numbers of one's own, stopped in the middle of a stream; and what is kept of a page."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
from collections import deque

import pytest

from deltaloop._internal.pacing import Backoff
from deltaloop.api import kinds
from deltaloop.api.errors import MalformedObjectError
from deltaloop.api.kinds import POD
from deltaloop.api.resource import Resource
from deltaloop.cache.informer import Informer, InformerOptions
from deltaloop.cache.listwatch import ListWatch
from deltaloop.cache.reflector import Reflector
from deltaloop.cache.reflector_options import ReflectorOptions
from deltaloop.cache.store import Store
from deltaloop.client import Client, ClientConfig
from tests.cache.fake_client import FakeClient
from tests.cache.fake_source import FakeSource, refused
from tests.client.fake_transport import FakeTransport, json_answer, page, pod


async def test_custom_backoff_is_used() -> None:
    backoff = Backoff(initial=0.01, factor=2.0, cap=0.1, jitter=0.0)
    source = FakeSource(list_faults=deque(refused() for _ in range(6)))
    source.put("a")
    options = ReflectorOptions(backoff=backoff, watch_list=False, detect_restore=False)
    informer = Informer(source, POD, options=InformerOptions(reflector=options))
    task = asyncio.create_task(informer.run())
    await informer.wait_for_sync(timeout=1)
    waits = [0.01, 0.02, 0.04, 0.08, 0.1, 0.1]
    assert source.times("list") == pytest.approx([sum(waits[:count]) for count in range(7)])
    task.cancel()
    await asyncio.wait([task])


async def test_reflector_with_unread_events_stops_immediately() -> None:
    source = FakeSource()
    source.put("a")
    store = Store[Resource]()
    options = ReflectorOptions(watch_list=False, detect_restore=False)
    task = asyncio.create_task(Reflector(source, store, options=options, random=lambda: 0.0).run())
    await asyncio.sleep(1)
    for number in range(5000):
        source.put(f"p{number}")
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    assert asyncio.get_running_loop().time() == 1.0
    assert len(store) < 5000, "they are dropped, not worked off"
    assert (source.opened, source.closed) == (1, 1)


async def test_kept_object_does_not_keep_memory_of_its_page() -> None:
    count, size = 200, 50_000
    answer = page(*({**pod(f"p{number}"), "data": "x" * size} for number in range(count)))
    async with Client(ClientConfig(server="http://fake"), transport=FakeTransport(answer)) as client:
        tracemalloc.start()
        try:
            kept = (await client.list(kinds.POD)).items[7]
            gc.collect()
            held, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert kept.name == "p7"
    assert peak > count * size, "the page was there"
    assert held < 3 * size, "and is gone"


TABLE: dict[str, object] = {"kind": "Table", "metadata": {"resourceVersion": "7"}, "rows": [{"cells": ["a"]}]}


async def test_table_response_is_rejected() -> None:
    async with Client(ClientConfig(server="http://fake"), transport=FakeTransport(json_answer(TABLE))) as client:
        with pytest.raises(MalformedObjectError):
            await client.list(kinds.POD)


def test_informer_name_is_its_kind() -> None:
    client = FakeClient()
    for kind, name in ((kinds.POD, "v1/Pod"), (kinds.DEPLOYMENT, "apps/v1/Deployment")):
        assert Informer(ListWatch(client, kind), kind).name == name
