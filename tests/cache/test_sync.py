"""Waiting for several caches, by looking."""

from __future__ import annotations

import asyncio

from deltaloop.cache.sync import wait_for_cache_sync


class Switch:
    def __init__(self) -> None:
        self.has_synced = False


async def test_cache_sync_is_checked_ten_times_per_second() -> None:
    first, second = Switch(), Switch()
    loop = asyncio.get_running_loop()
    loop.call_later(0.25, setattr, first, "has_synced", True)
    loop.call_later(0.45, setattr, second, "has_synced", True)
    assert await wait_for_cache_sync(first, lambda: second.has_synced)
    assert abs(loop.time() - 0.5) < 1e-9


async def test_waiting_for_cache_sync_times_out() -> None:
    assert not await wait_for_cache_sync(Switch(), timeout=1.0)
    assert await wait_for_cache_sync()
