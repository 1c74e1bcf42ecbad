"""Items that wait for their time: one heap, one entry that counts for each item.

A heap cannot move or remove an entry cheaply, so an entry that no longer counts stays in it until it comes to the top
(lazy deletion), which always counts. An entry counts as long as its item has the entry's order. The heap is rebuilt
when such entries outnumber the ones that count: its length stays below ``2 * items + SPARE``, and the cost of
rebuilding is spread over the calls that made it necessary.

Items that are due at the same time come in the order in which they were put in.

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
    """One item that waits.

    Attributes:
        item: The item that will be added.
        due_at: When it is added, in seconds on the queue's clock.
        triggers: The triggers of the run to come.
        paid: Whether a rate limiter was asked for this time and may get its token back.
        order: The number of its put, by which equal times are sorted; the heap gives it, and takes it back (0) when the
            item no longer waits.
    """

    item: K
    due_at: float
    triggers: TriggerLog
    paid: bool = False
    order: int = 0


@final
class DelayHeap(Generic[K]):
    """A heap of delays by the time when they are due."""

    __slots__ = ("_heap", "_order", "_waiting")

    def __init__(self) -> None:
        """Make an empty heap."""
        self._waiting: dict[K, WaitingItem[K]] = {}
        self._heap: list[tuple[float, int, WaitingItem[K]]] = []
        self._order = 0

    def get(self, item: K) -> WaitingItem[K] | None:
        """Return the delay of ``item``, if it waits."""
        return self._waiting.get(item)

    def put(self, delay: WaitingItem[K]) -> None:
        """Put a delay in, instead of the one that its item may have."""
        replaced = self._waiting.get(delay.item)
        order = self._order = delay.order = self._order + 1
        self._waiting[delay.item] = delay
        heappush(self._heap, (delay.due_at, order, delay))
        if replaced is not None:
            replaced.order = 0
            self._tidy()

    def remove(self, item: K) -> WaitingItem[K] | None:
        """Take the delay of ``item`` out, whenever it is due."""
        found = self._waiting.pop(item, None)
        if found is not None:
            found.order = 0
            self._tidy()
        return found

    def next_due_at(self) -> float | None:
        """Return when the first one is due."""
        return self._heap[0][0] if self._heap else None

    def pop_due(self, until: float) -> list[WaitingItem[K]]:
        """Take out everything that is due at ``until`` or before, in order."""
        due: list[WaitingItem[K]] = []
        heap, waiting = self._heap, self._waiting
        while heap and heap[0][0] <= until:
            _, order, delay = heappop(heap)
            if delay.order == order:
                del waiting[delay.item]
                due.append(delay)
        self._tidy()
        return due

    def clear(self) -> int:
        """Take everything out; return how many items waited."""
        count = len(self._waiting)
        self._waiting.clear()
        self._heap.clear()
        return count

    def in_order(self) -> list[WaitingItem[K]]:
        """Return all that wait, the first due first."""
        return sorted(self._waiting.values(), key=lambda delay: (delay.due_at, delay.order))

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def entries(self) -> int:
        """Length of the heap, with the entries that no longer count."""
        return len(self._heap)

    def _tidy(self) -> None:
        """See to it, after an entry has ceased to count, that the first one does and that such entries are few."""
        if len(self._heap) > 2 * len(self._waiting) + SPARE:
            self._heap = [(delay.due_at, delay.order, delay) for delay in self._waiting.values()]
            heapify(self._heap)
        while self._heap and self._heap[0][2].order != self._heap[0][1]:
            heappop(self._heap)
