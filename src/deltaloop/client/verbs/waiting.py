"""Wait until an object fulfills a condition, with lists and watches."""

from __future__ import annotations

import asyncio
import logging
import math
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Final

from deltaloop.api.errors import DeltaloopError
from deltaloop.api.list_options import ListOptions
from deltaloop.api.resource import Resource
from deltaloop.api.watch_event import WatchEvent
from deltaloop.client.core.waiting import AskForList, AskForWatch, Waiting
from deltaloop.client.errors import WaitTimeoutError
from deltaloop.client.verbs.resource_list import ResourceList

_log = logging.getLogger("deltaloop.client")

_LONGEST_WATCH: Final = 300.0
_LONG_WAIT: Final = 15.0  # only a Retry-After header results in such a long wait

_Ask = Callable[[ListOptions, float], Awaitable[ResourceList[Resource]]]
_Watch = Callable[[ListOptions, float], AbstractAsyncContextManager[AsyncIterator[WatchEvent]]]


async def wait_until(
    waiting: Waiting, ask: _Ask, watch: _Watch, *, field_selector: str, what: str, until: float, limit: float
) -> Resource | None:
    """Send the requests of ``waiting`` until it is done. Canceling closes the watch."""
    deadline = asyncio.timeout_at(until)
    try:
        async with deadline:
            while not waiting.done:
                wait = await _turn(waiting, ask, watch, field_selector, until)
                if wait and not waiting.done:
                    await asyncio.sleep(wait)
    except TimeoutError:
        if not deadline.expired():
            raise
        seen = waiting.last_seen()
        raise WaitTimeoutError(
            f"{what}: waited {limit:g} s for {waiting.condition}; last seen: {seen}",
            condition=waiting.condition,
            last_seen=seen,
        ) from None
    return waiting.found


async def _turn(waiting: Waiting, ask: _Ask, watch: _Watch, field_selector: str, until: float) -> float:
    """Send one request, and return the delay in seconds before the next request."""
    loop = asyncio.get_running_loop()
    started_at = loop.time()
    left = max(0.0, until - started_at)
    try:
        match waiting.ask():
            case AskForList():
                listed = await ask(ListOptions(field_selector=field_selector), left)
                return waiting.saw_list(listed.items, listed.resource_version, now=loop.time(), random=random.random())
            case AskForWatch(resource_version=version):
                options = ListOptions(
                    field_selector=field_selector,
                    resource_version=version,
                    allow_watch_bookmarks=True,
                    timeout_seconds=max(1, math.ceil(min(left, _LONGEST_WATCH))),
                )
                async with watch(options, left) as events:
                    async for event in events:
                        waiting.saw_event(event)
                        if waiting.done:
                            return 0.0
                now = loop.time()
                return waiting.watch_ended(lasted=now - started_at, now=now, random=random.random())
    except DeltaloopError as error:
        wait = waiting.failed(error, now=loop.time(), random=random.random())
        if wait is None:
            raise
        level = logging.WARNING if wait > _LONG_WAIT else logging.DEBUG
        _log.log(level, "wait failed, continuing", extra={"error_type": type(error).__name__, "wait": wait})
        return wait
