"""Interface of queue orders, and the usual order."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from typing import Generic, Protocol, TypeVar, final

K = TypeVar("K", bound=Hashable)


class QueueOrder(Protocol[K]):
    """Order of the queued items.

    The queue calls it under its lock, so it must be fast and must not raise.
    """

    def push(self, item: K, now: float, *, priority: int) -> None:
        """Add an item that is not queued.

        Args:
            item: Item that joins.
            now: Time in seconds on the queue's clock.
            priority: Highest priority of its adds; higher is more urgent.
        """
        ...

    def touch(self, item: K, now: float, *, priority: int) -> None:
        """Record that a queued item was added again, with this priority."""
        ...

    def pop(self) -> K:
        """Remove and return the next item.

        At least one item is queued.
        """
        ...

    def __len__(self) -> int: ...


@final
class FirstInFirstOut(Generic[K]):
    """Default order: first in, first out."""

    __slots__ = ("_items",)

    def __init__(self) -> None:
        self._items: deque[K] = deque()

    def push(self, item: K, now: float, *, priority: int) -> None:  # noqa: ARG002
        """Append an item."""
        self._items.append(item)

    def touch(self, item: K, now: float, *, priority: int) -> None:
        """Do nothing: an item keeps its place."""

    def pop(self) -> K:
        """Remove and return the first item."""
        return self._items.popleft()

    def __len__(self) -> int:
        return len(self._items)
