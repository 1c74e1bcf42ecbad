"""Track the delivery of the initial list to a handler; failed deliveries count (kubernetes#129024).

Source: client-go tools/cache/synctrack, ``SingleFileTracker``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import final


@final
class SingleFileTracker:
    """Counter of undelivered items of the initial list for one consumer."""

    __slots__ = ("_on_the_way", "_upstream_has_synced")

    def __init__(self, upstream_has_synced: Callable[[], bool]) -> None:
        """Create a tracker. ``upstream_has_synced`` returns whether the source has sent all items."""
        self._upstream_has_synced = upstream_has_synced
        self._on_the_way = 0

    def start(self, count: int = 1) -> None:
        self._on_the_way += count

    def finished(self, count: int = 1) -> None:
        """Count items that were delivered, successfully or not."""
        if self._on_the_way < count:
            raise RuntimeError("unexpected delivery of an item")
        self._on_the_way -= count

    @property
    def has_synced(self) -> bool:
        """Whether all items of the source were delivered."""
        # Check the source first, because it counts items before it reports that it is done.
        return self._upstream_has_synced() and self._on_the_way == 0
