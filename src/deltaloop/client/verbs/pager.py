"""Fetches all pages of a list: at once, or item by item with pages read ahead."""

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
    """Fetch page after page until the list is complete; cancelling drops what was fetched.

    Args:
        fetch: Asks for one page.
        pager: A fresh pager; afterwards it tells how many pages there were.

    Raises:
        DeltaloopError: Whatever ``fetch`` raises and the pager cannot mend.
    """
    while (options := pager.next_request) is not None:
        try:
            page = await fetch(options)
        except DeltaloopError as error:
            if not pager.failed(error):
                raise
            _log.info("a continue token expired; the whole list is asked for at once")
        else:
            pager.saw(page)
    return pager.result()


async def each_item(
    fetch: Callable[[ListOptions], Awaitable[ResourceList[T]]], pager: Pager[T], *, page_buffer: int
) -> AsyncGenerator[T, None]:
    """Give one item after the other, and meanwhile fetch pages ahead in a task of its own.

    A failure is raised after the items of the pages before it. Leaving the loop, or cancelling, ends the task and drops
    what was read ahead.

    Args:
        fetch: Asks for one page.
        pager: A fresh pager that does not collect.
        page_buffer: Most pages that are fetched and not yet begun; with 0 each page is asked for when the one before it
            is used up.

    Raises:
        DeltaloopError: Whatever ``fetch`` raises.
    """
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
            reader.exception()  # looked at: the reader has seen it, or has left before it
