"""Fetch all pages of a list, at once or item by item."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import TypeVar

from deltaloop.api.errors import DeltaloopError
from deltaloop.api.list_options import ListOptions
from deltaloop.client.core.pager import Pager
from deltaloop.client.verbs.resource_list import ResourceList

_log = logging.getLogger("deltaloop.client")

T = TypeVar("T")


async def fetch_all(fetch: Callable[[ListOptions], Awaitable[ResourceList[T]]], pager: Pager[T]) -> ResourceList[T]:
    """Fetch all pages of a list; errors from which the pager cannot recover are raised."""
    while (options := pager.next_request) is not None:
        try:
            page = await fetch(options)
        except DeltaloopError as error:
            if not pager.failed(error):
                raise
            _log.info("continue token expired, requesting the whole list")
        else:
            pager.saw(page)
    return pager.result()


async def each_item(
    fetch: Callable[[ListOptions], Awaitable[ResourceList[T]]], pager: Pager[T], *, page_buffer: int
) -> AsyncGenerator[T, None]:
    """Yield the items of a list, and fetch up to ``page_buffer`` pages ahead in a background task."""
    pages: asyncio.Queue[ResourceList[T] | None] = asyncio.Queue()
    room = asyncio.Semaphore(max(1, page_buffer))

    async def read_ahead() -> None:
        try:
            while (options := pager.next_request) is not None:
                await room.acquire()
                page = await fetch(options)
                pager.saw(page)
                pages.put_nowait(page)
        finally:
            pages.put_nowait(None)

    reader = asyncio.create_task(read_ahead(), name="pages of a list")
    try:
        while (page := await pages.get()) is not None:
            if page_buffer > 0:
                room.release()
            for item in page.items:
                yield item
            if page_buffer == 0:
                room.release()
        await reader
    finally:
        reader.cancel()
        await asyncio.wait([reader])
        if not reader.cancelled():
            reader.exception()  # mark the exception as retrieved: the caller received it or left earlier
