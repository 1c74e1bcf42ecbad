"""Heap of delayed items with at most one valid entry per item.

Invalid entries stay in the heap until they reach the top, and the heap is rebuilt when they outnumber valid entries.

Source: client-go util/workqueue/delaying_queue.go (``waitForPriorityQueue``, ``insert``), which moves entries in place.
"""

from __future__ import annotations

from collections.abc import Hashable
from heapq import heapify, heappop, heappush
from typing import Final, Generic, TypeVar, final

import msgspec

from deltaloop.workqueue.core.triggers import TriggerLog

K = TypeVar("K", bound=Hashable)

SPARE: Final = 64


@final
class WaitingItem(msgspec.Struct, Generic[K], eq=False):
    """A delayed item.

    Attributes:
        due_at: Due time in seconds on the queue's clock.
        order: Order of equal due times; 0 after the removal from the heap.
        paid: Whether the delay comes from a rate limiter, which may get its token back.
    """

    item: K
    due_at: float
    triggers: TriggerLog
    paid: bool = False
    order: int = 0


@final
class DelayHeap(Generic[K]):
    __slots__ = ("_order", "heap", "waiting")

    def __init__(self) -> None:
        self.waiting: dict[K, WaitingItem[K]] = {}
        self.heap: list[tuple[float, int, WaitingItem[K]]] = []
        self._order = 0

    def put(self, delay: WaitingItem[K]) -> None:
        replaced = self.waiting.get(delay.item)
        order = self._order = delay.order = self._order + 1
        self.waiting[delay.item] = delay
        heappush(self.heap, (delay.due_at, order, delay))
        if replaced is not None:
            replaced.order = 0
            self._tidy()

    def remove(self, item: K) -> WaitingItem[K] | None:
        found = self.waiting.pop(item, None)
        if found is not None:
            found.order = 0
            self._tidy()
        return found

    def pop_due(self, until: float) -> list[WaitingItem[K]]:
        due: list[WaitingItem[K]] = []
        heap, waiting = self.heap, self.waiting
        while heap and heap[0][0] <= until:
            _, order, delay = heappop(heap)
            if delay.order == order:
                del waiting[delay.item]
                due.append(delay)
        self._tidy()
        return due

    def clear(self) -> int:
        count = len(self.waiting)
        self.waiting.clear()
        self.heap.clear()
        return count

    def in_order(self) -> list[WaitingItem[K]]:
        return sorted(self.waiting.values(), key=lambda delay: (delay.due_at, delay.order))

    def __len__(self) -> int:
        return len(self.waiting)

    @property
    def entries(self) -> int:
        return len(self.heap)

    def _tidy(self) -> None:
        """Restore the invariants: the top entry is valid, and invalid entries are few."""
        if len(self.heap) > 2 * len(self.waiting) + SPARE:
            self.heap = [(delay.due_at, delay.order, delay) for delay in self.waiting.values()]
            heapify(self.heap)
        while self.heap and self.heap[0][2].order != self.heap[0][1]:
            heappop(self.heap)
