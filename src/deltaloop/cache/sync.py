"""Waits for caches to fill, whatever they are.

Source: client-go tools/cache/shared_informer.go, ``WaitForCacheSync``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, Protocol

_POLL_PERIOD: Final = 0.1


class HasSynced(Protocol):
    """An informer, a controller or a registration."""

    @property
    def has_synced(self) -> bool:
        """Whether it is through with the initial list."""
        ...


async def wait_for_cache_sync(*synced: HasSynced | Callable[[], bool], timeout: float | None = None) -> bool:
    """Wait until all of them have synced, looking every 100 ms.

    ``Informer.wait_for_sync`` and ``InformerFactory.wait_for_sync`` do it without polling, and say what is wrong.

    Args:
        synced: Informers, controllers, registrations, or functions that say whether something has synced.
        timeout: Seconds; None waits for ever.

    Returns:
        False if the time passed before.
    """
    try:
        async with asyncio.timeout(timeout):
            while not all(_has_synced(item) for item in synced):  # noqa: ASYNC110 - what is given may be a function
                await asyncio.sleep(_POLL_PERIOD)
    except TimeoutError:
        return False
    return True


def _has_synced(item: HasSynced | Callable[[], bool]) -> bool:
    return item() if callable(item) else item.has_synced
