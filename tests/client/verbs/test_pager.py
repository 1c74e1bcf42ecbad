"""Upstream's cases: client-go tools/pager/pager_test.go, ``TestListPager_EachListItem``."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncGenerator
from contextlib import aclosing

import pytest

from deltaloop.api import kinds
from deltaloop.api.list_options import ListOptions
from deltaloop.api.resource import Resource
from deltaloop.api.status import ExpiredError, Status
from deltaloop.client import Client, ClientConfig, HttpResponse
from deltaloop.client.core.pager import Pager
from deltaloop.client.verbs.pager import each_item
from deltaloop.client.verbs.resource_list import ResourceList
from tests.client.fake_transport import After, FakeTransport, page, pod
from tests.having import having


class Numbers:
    """Serves numbers in pages; each takes its time."""

    def __init__(self, size: int, *, seconds: float = 0.0, expires_at: int = -1) -> None:
        self.size = size
        self.seconds = seconds
        self.expires_at = expires_at
        self.asked_at: list[float] = []

    async def fetch(self, options: ListOptions) -> ResourceList[int]:
        self.asked_at.append(asyncio.get_running_loop().time())
        await asyncio.sleep(self.seconds)
        start = int(options.continue_ or 0)
        if start == self.expires_at:
            raise ExpiredError(Status(code=410, reason="Expired"))
        end = min(self.size, start + options.limit)
        return ResourceList(items=tuple(range(start, end)), continue_=str(end) if end < self.size else "")

    def each(self, *, page_buffer: int, page_size: int = 2) -> AsyncGenerator[int, None]:
        pager = Pager[int](ListOptions(), page_size=page_size, collect=False)
        return each_item(self.fetch, pager, page_buffer=page_buffer)


@pytest.mark.parametrize("page_buffer", [0, 1, 10])
@pytest.mark.parametrize("size", [0, 1, 2, 7])
async def test_all_items_in_order(size: int, page_buffer: int) -> None:
    server = Numbers(size)
    assert [item async for item in server.each(page_buffer=page_buffer)] == list(range(size))
    assert len(server.asked_at) == max(1, (size + 1) // 2)


@pytest.mark.parametrize(
    ("page_buffer", "asked_ahead"),
    [(0, 1), (1, 2), (3, 4)],
)
async def test_reading_ahead_is_bounded(page_buffer: int, asked_ahead: int) -> None:
    server = Numbers(100)
    async with aclosing(server.each(page_buffer=page_buffer)) as items:
        assert await anext(items) == 0
        await asyncio.sleep(60.0)
        assert len(server.asked_at) == asked_ahead


async def test_pages_are_read_ahead_while_items_are_processed() -> None:
    server = Numbers(6, seconds=1.0)
    done_at: list[float] = []
    async for _ in server.each(page_buffer=2):
        await asyncio.sleep(1.0)
        done_at.append(asyncio.get_running_loop().time())
    assert server.asked_at == [0.0, 1.0, 2.0]
    assert done_at == [2.0, 3.0, 4.0, 5.0, 6.0, 7.0]


async def test_without_buffer_pages_are_requested_when_needed() -> None:
    server = Numbers(4, seconds=1.0)
    async for _ in server.each(page_buffer=0):
        await asyncio.sleep(1.0)
    assert server.asked_at == [0.0, 3.0]


@pytest.mark.parametrize("page_buffer", [0, 10])
async def test_expiry_is_raised_after_the_items_before_it(page_buffer: int) -> None:
    items = Numbers(10, expires_at=4).each(page_buffer=page_buffer)
    assert [await anext(items) for _ in range(4)] == [0, 1, 2, 3]
    with pytest.raises(ExpiredError):
        await anext(items)


async def test_leaving_iterator_ends_reading_ahead() -> None:
    server = Numbers(100, seconds=1.0)
    async with aclosing(server.each(page_buffer=10)) as items:
        async for item in items:
            if item == 2:
                break
    asked = len(server.asked_at)
    await asyncio.sleep(60.0)
    assert len(server.asked_at) == asked
    assert len(asyncio.all_tasks()) == 1


async def test_failure_without_a_waiting_reader_is_dropped(caplog: pytest.LogCaptureFixture) -> None:
    async with aclosing(Numbers(10, expires_at=2).each(page_buffer=10)) as items:
        assert await anext(items) == 0
        await asyncio.sleep(1.0)
    del items
    assert "never retrieved" not in caplog.text


async def test_failure_while_leaving_iterator_is_dropped(caplog: pytest.LogCaptureFixture) -> None:
    class Failing(Numbers):
        async def fetch(self, options: ListOptions) -> ResourceList[int]:
            try:
                return await super().fetch(options)
            except asyncio.CancelledError:
                raise ExpiredError(Status(code=410, reason="Expired")) from None

    async with aclosing(Failing(10, seconds=1.0).each(page_buffer=10)) as items:
        assert await anext(items) == 0
    del items
    gc.collect()
    assert "never retrieved" not in caplog.text


async def test_cancellation_ends_reading_ahead() -> None:
    server = Numbers(100, seconds=5.0)

    async def work() -> None:
        async with aclosing(server.each(page_buffer=10)) as items:
            async for _ in items:
                pass

    task = asyncio.create_task(work())
    await asyncio.sleep(12.0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(asyncio.all_tasks()) == 1


def client_over(*answers: HttpResponse | Exception | After) -> tuple[Client, FakeTransport]:
    transport = FakeTransport(*answers)
    return Client(ClientConfig(server="http://fake"), transport=transport), transport


async def test_iter_list_requests_pages() -> None:
    client, transport = client_over(page(pod("a"), continue_="t"), page(pod("b")))
    found = [item async for item in client.iter_list(kinds.POD, namespace="n", page_size=1)]
    assert [(type(item), item.name) for item in found] == [(Resource, "a"), (Resource, "b")]
    assert [dict(request.query) for request in transport.requests] == [{"limit": "1"}, {"limit": "1", "continue": "t"}]
    with pytest.raises(ValueError, check=having(argument="page_buffer")):
        client.iter_list(kinds.POD, page_buffer=-1)
    with pytest.raises(ValueError, check=having(argument="page_size")):
        client.iter_list(kinds.POD, page_size=-1)
