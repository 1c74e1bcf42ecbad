"""Whether everything of the initial list has been delivered, counted at the end of the way.

The source says when it has handed out everything (``upstream_has_synced``); between, each item of the initial list is
counted in when it is handed out and out when it was delivered. A failed delivery counts: an item whose handler raised
has had its chance, and waiting for it would be waiting for ever (kubernetes#129024).

Source: client-go tools/cache/synctrack, ``SingleFileTracker``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import final


@final
class SingleFileTracker:
    """Counts the items of the initial list that are on their way to one consumer."""

    __slots__ = ("_on_the_way", "_upstream_has_synced")

    def __init__(self, upstream_has_synced: Callable[[], bool]) -> None:
        """Begin with nothing on the way."""
        self._upstream_has_synced = upstream_has_synced
        self._on_the_way = 0

    def start(self, count: int = 1) -> None:
        """Count items of the initial list that were handed out."""
        self._on_the_way += count

    def finished(self, count: int = 1) -> None:
        """Count items of the initial list that were delivered, well or not.

        Raises:
            RuntimeError: If none was on the way: a bug of the caller.
        """
        if self._on_the_way < count:
            raise RuntimeError("an item was delivered that was never handed out")
        self._on_the_way -= count

    @property
    def has_synced(self) -> bool:
        """Whether the source has handed out everything and nothing of it is on the way."""
        # The source is asked first: items are counted in before it says that it is done.
        return self._upstream_has_synced() and self._on_the_way == 0
