"""Orders of queued items: first in first out, priorities with aging, and fair shares. No item starves.

**Priorities with aging** (``PriorityOrder``). Each priority has a *patience*: the seconds for which other items may
overtake the item. An item that joins at ``t`` has the deadline ``t + patience``. The earliest deadline is popped first,
and among equal deadlines the item that joined first. An add with a higher priority can only move a queued item's
deadline forward, to ``now + patience``.

    Bound: an item that joins at ``t`` with patience ``p`` is overtaken by no item that joins at ``t + p`` or later.

Proof: the later item has a deadline of at least ``t + p``, and it loses ties. The bound needs a monotonic clock.

**Fair shares** (``FairOrder``). Each item belongs to a flow, and the flows with queued items form a ring. The first
flow supplies one item and moves to the end. New flows join at the end. Each flow has its own order.

    Bound: let ``k`` items of its own flow be taken while an item is in line. Then at most ``k + 1`` items of each other
    flow are.

Proof: flows join and rejoin only at the end, so between two turns of a flow, and before its first turn, each other flow
has at most one turn. With priorities inside the flows, both bounds apply.

Source: client-go util/workqueue/queue.go ``Queue`` (Touch, Push, Len, Pop) for the protocol; earliest deadline first
and round robin for the rest; controller-runtime's priority queue has neither aging nor shares.
"""

from __future__ import annotations

import heapq
import math
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from typing import Final, Generic, TypeVar, final

from deltaloop._internal.root_error import InvalidArgumentError
from deltaloop.workqueue.core.queue_order import FirstInFirstOut, QueueOrder

K = TypeVar("K", bound=Hashable)

SPARE: Final = 64


@final
class Patience:
    """Seconds for which other items may overtake an item, by priority."""

    __slots__ = ("_priorities", "_seconds")

    def __init__(self, seconds: Mapping[int, float]) -> None:
        """Create a mapping from priorities to seconds.

        Args:
            seconds: Seconds by priority, at least one. An unlisted priority has the value of the next lower priority,
                or of the lowest.

        Raises:
            InvalidArgumentError: If the mapping is empty, a value is negative or not finite, or a higher priority has
                a larger value than a lower priority.
        """
        if not seconds:
            problem = "must have at least one priority, for example {0: 0.0, -100: 30.0}."
            raise InvalidArgumentError(problem, argument="QueueOptions.priority_aging")
        self._priorities = sorted(seconds)
        self._seconds = [seconds[priority] for priority in self._priorities]
        for priority, patience in seconds.items():
            if not (patience >= 0 and math.isfinite(patience)):
                problem = f"of {priority} must be a finite number >= 0, got {patience!r}."
                raise InvalidArgumentError(problem, argument="QueueOptions.priority_aging")
        if self._seconds != sorted(self._seconds, reverse=True):
            problem = f"must not grow with the priority, got {dict(seconds)!r}."
            raise InvalidArgumentError(problem, argument="QueueOptions.priority_aging")

    def of(self, priority: int) -> float:
        return self._seconds[max(0, bisect_right(self._priorities, priority) - 1)]


@final
class PriorityOrder(Generic[K]):
    """Order by deadline, with the bound in the module's docstring."""

    __slots__ = ("_deadlines", "_heap", "_joined", "_patience")

    def __init__(self, patience: Mapping[int, float]) -> None:
        """Create an empty order. The argument and its errors are those of ``Patience``."""
        self._patience = Patience(patience)
        self._deadlines: dict[K, tuple[float, int]] = {}
        self._heap: list[tuple[float, int, K]] = []
        self._joined = 0

    def push(self, item: K, now: float, *, priority: int) -> None:
        """Add an item behind all items with an earlier or equal deadline."""
        self._joined += 1
        self._place(item, now + self._patience.of(priority), self._joined)

    def touch(self, item: K, now: float, *, priority: int) -> None:
        """Move an item forward if the new deadline is earlier.

        Among equal deadlines it keeps its rank.
        """
        deadline, joined = self._deadlines[item]
        earlier = now + self._patience.of(priority)
        if earlier < deadline:
            self._place(item, earlier, joined)

    def _place(self, item: K, deadline: float, joined: int) -> None:
        self._deadlines[item] = (deadline, joined)
        heapq.heappush(self._heap, (deadline, joined, item))
        if len(self._heap) > 2 * len(self._deadlines) + SPARE:
            self._heap = [(deadline, joined, item) for item, (deadline, joined) in self._deadlines.items()]
            heapq.heapify(self._heap)

    def pop(self) -> K:
        """Remove and return the item with the earliest deadline."""
        while True:
            deadline, joined, item = heapq.heappop(self._heap)
            if self._deadlines.get(item) == (deadline, joined):
                del self._deadlines[item]
                return item

    def __len__(self) -> int:
        return len(self._deadlines)

    @property
    def entries(self) -> int:
        """Length of the heap, including outdated entries."""
        return len(self._heap)


@final
class FairOrder(Generic[K]):
    """Order with one item of each flow in turn, and the bound in the module's docstring."""

    __slots__ = ("_count", "_flow", "_flow_of", "_make_order", "_ring")

    def __init__(
        self,
        flow: Callable[[K], Hashable],
        *,
        make_order: Callable[[], QueueOrder[K]] = FirstInFirstOut,
    ) -> None:
        """Create an empty order.

        Args:
            flow: Function that returns the flow of an item. It must not raise.
            make_order: Function that creates the order within a flow.
        """
        self._flow = flow
        self._make_order = make_order
        self._ring: OrderedDict[Hashable, QueueOrder[K]] = OrderedDict()
        self._flow_of: dict[K, Hashable] = {}
        self._count = 0

    def push(self, item: K, now: float, *, priority: int) -> None:
        """Add an item to its flow."""
        flow = self._flow(item)
        self._flow_of[item] = flow
        line = self._ring.get(flow)
        if line is None:
            line = self._ring[flow] = self._make_order()
        line.push(item, now, priority=priority)
        self._count += 1

    def touch(self, item: K, now: float, *, priority: int) -> None:
        """Touch the item in its flow."""
        self._ring[self._flow_of[item]].touch(item, now, priority=priority)

    def pop(self) -> K:
        """Remove and return the next item of the first flow in the ring."""
        flow, line = next(iter(self._ring.items()))
        item = line.pop()
        del self._flow_of[item]
        self._count -= 1
        if len(line):
            self._ring.move_to_end(flow)
        else:
            del self._ring[flow]
        return item

    def __len__(self) -> int:
        return self._count


def by_namespace(item: object) -> str:
    """Return the namespace of an item, as the flow of fair shares.

    For text, this is the part before the first slash, or "" without a slash. For other items, it is the attribute
    ``namespace`` if that is text, otherwise "".
    """
    if isinstance(item, str):
        return item.partition("/")[0] if "/" in item else ""
    namespace: object = getattr(item, "namespace", "")
    return namespace if isinstance(namespace, str) else ""
