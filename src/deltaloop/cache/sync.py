"""Wait for caches to sync.

Source: client-go tools/cache/shared_informer.go, ``WaitForCacheSync``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, Protocol

_POLL_PERIOD: Final = 0.1


class HasSynced(Protocol):
    """Informer, controller or registration."""

    @property
    def has_synced(self) -> bool:
        """Whether the initial list has been processed."""
        ...


async def wait_for_cache_sync(*synced: HasSynced | Callable[[], bool], timeout: float | None = None) -> bool:
    """Wait until all arguments have synced, with checks every 100 ms.

    ``Informer.wait_for_sync`` and ``InformerFactory.wait_for_sync`` do not poll, and report the reason of failures.

    Args:
        synced: Informers, controllers, registrations, or functions that return whether they have synced.
        timeout: Seconds, or None for no limit.

    Returns:
        Whether all synced in time.
    """
    try:
        async with asyncio.timeout(timeout):
            while not all(_has_synced(item) for item in synced):  # noqa: ASYNC110 - arguments can be functions
                await asyncio.sleep(_POLL_PERIOD)
    except TimeoutError:
        return False
    return True


def _has_synced(item: HasSynced | Callable[[], bool]) -> bool:
    return item() if callable(item) else item.has_synced
