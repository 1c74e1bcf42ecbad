"""In which order the items in line are taken: first come first served, priorities with ageing, fair shares.

An order is a collection of items, none of them twice. The queue core pushes an item when it joins the line, touches it
when it is added again while it stands there, and pops the one whose turn it is. The orders here never let an item
starve; each states how long it may be overtaken, and the tests check these bounds in all small cases.

**First come first served** (``FirstInFirstOut``). Nobody is overtaken.

**Priorities with ageing** (``PriorityOrder``). A priority is an integer, a higher one is more urgent, and each has a
*patience*: how many seconds such an item may be overtaken. An item that joins at ``t`` has the deadline
``t + patience``; the earliest deadline is taken first, and of equal ones the item that joined first. An add of higher
priority moves the deadline of an item in line forward to ``now + patience``, never back.

    Bound: an item that joins at ``t`` with patience ``p`` is overtaken by no item that joins at ``t + p`` or later.

For such an item has a deadline of ``t + p`` or later, because no patience is negative, and stands behind at a tie. So a
low priority means "may be overtaken for ``p`` seconds", never "for ever": what is taken before it was in line when it
joined, or joined within ``p`` seconds. Items of one priority come in the order in which they joined. The bound needs a
clock that never goes back, as an event loop's does.

**Fair shares** (``FairOrder``). Each item belongs to a flow, and the flows that have items in line stand in a ring. The
flow at the head gives one item and goes to the end; a flow that gets its first item joins at the end. An order of its
own sorts the items of each flow.

    Bound: let ``k`` items of its own flow be taken while an item is in line. Then at most ``k + 1`` items of each other
    flow are.

For whatever moves in the ring joins it at the end, so a flow is behind another one from its turn on until the other one
has had a turn: between two turns of a flow, and before its first one, no other has more than one. An item that joins
behind ``k`` items of its own flow, first come first served, with ``n`` other flows in the ring meanwhile, is therefore
taken after ``k + n * (k + 1)`` others at most, however many items those flows have. With priorities inside the flows,
both bounds hold: priorities count inside a flow, shares between flows.

All operations take logarithmic time at most. ``PriorityOrder`` deletes lazily: what a touch made out of date stays in
the heap until it comes to the top, and the heap is rebuilt when such entries outnumber the others.

Source: client-go util/workqueue/queue.go ``Queue`` (Touch, Push, Len, Pop) for the protocol; earliest deadline first
and round robin for the rest; controller-runtime's priority queue has neither ageing nor shares.
"""

from __future__ import annotations

import heapq
import math
from bisect import bisect_right
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Mapping
from typing import Final, Generic, Protocol, TypeVar, final

K = TypeVar("K", bound=Hashable)

SPARE: Final = 64


class QueueOrder(Protocol[K]):
    """The items in line.

    It is called under the queue's lock, so it must be quick, and it must not raise.
    """

    def push(self, item: K, now: float, *, priority: int) -> None:
        """Put in an item that is not in line.

        Args:
            item: The item that joins the line.
            now: When, in seconds on the queue's clock.
            priority: The highest of the adds that it joins for; higher is more urgent.
        """
        ...

    def touch(self, item: K, now: float, *, priority: int) -> None:
        """Hear that an item in line was added again, with this priority."""
        ...

    def pop(self) -> K:
        """Take out the item whose turn it is; called only if there is one."""
        ...

    def __len__(self) -> int:
        """Return how many items are in line."""
        ...


@final
class FirstInFirstOut(Generic[K]):
    """First come, first served: the default."""

    __slots__ = ("_items",)

    def __init__(self) -> None:
        """Make an empty line."""
        self._items: deque[K] = deque()

    def push(self, item: K, now: float, *, priority: int) -> None:  # noqa: ARG002  # the protocol's
        """Put an item at the end."""
        self._items.append(item)

    def touch(self, item: K, now: float, *, priority: int) -> None:
        """Do nothing: an item keeps its place."""

    def pop(self) -> K:
        """Take the item at the head."""
        return self._items.popleft()

    def __len__(self) -> int:
        return len(self._items)


@final
class Patience:
    """How many seconds an item of each priority may be overtaken."""

    __slots__ = ("_priorities", "_seconds")

    def __init__(self, seconds: Mapping[int, float]) -> None:
        """Take the seconds by priority.

        Args:
            seconds: At least one priority. One that is not listed has the patience of the next lower one that is, or of
                the lowest.

        Raises:
            ValueError: If there is none, if a patience is negative or not finite, or if a higher priority has more
                patience than a lower one.
        """
        if not seconds:
            raise ValueError(
                "QueueOptions.priority_aging must have at least one priority, for example {0: 0.0, -100: 30.0}"
            )
        self._priorities = sorted(seconds)
        self._seconds = [seconds[priority] for priority in self._priorities]
        for priority, patience in seconds.items():
            if not (patience >= 0 and math.isfinite(patience)):
                raise ValueError(
                    f"QueueOptions.priority_aging of {priority} must be a finite number >= 0, got {patience!r}"
                )
        if self._seconds != sorted(self._seconds, reverse=True):
            raise ValueError(f"QueueOptions.priority_aging must not grow with the priority, got {dict(seconds)!r}")

    def of(self, priority: int) -> float:
        """Return the patience of a priority in seconds."""
        return self._seconds[max(0, bisect_right(self._priorities, priority) - 1)]


@final
class PriorityOrder(Generic[K]):
    """The earliest deadline first; the module says what that bounds."""

    __slots__ = ("_deadlines", "_heap", "_joined", "_patience")

    def __init__(self, patience: Mapping[int, float]) -> None:
        """Make an empty line; the argument and what it raises are those of ``Patience``."""
        self._patience = Patience(patience)
        self._deadlines: dict[K, tuple[float, int]] = {}
        self._heap: list[tuple[float, int, K]] = []
        self._joined = 0

    def push(self, item: K, now: float, *, priority: int) -> None:
        """Put an item behind all with an earlier deadline, or with the same one."""
        self._joined += 1
        self._place(item, now + self._patience.of(priority), self._joined)

    def touch(self, item: K, now: float, *, priority: int) -> None:
        """Move an item forward if this add gives it an earlier deadline; among equals it keeps its rank."""
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
        """Take the item with the earliest deadline."""
        while True:
            deadline, joined, item = heapq.heappop(self._heap)
            if self._deadlines.get(item) == (deadline, joined):
                del self._deadlines[item]
                return item

    def __len__(self) -> int:
        return len(self._deadlines)

    @property
    def entries(self) -> int:
        """Length of the heap, with the entries that are out of date."""
        return len(self._heap)


@final
class FairOrder(Generic[K]):
    """One item of each flow in turn; the module says what that bounds."""

    __slots__ = ("_count", "_flow", "_flow_of", "_make_order", "_ring")

    def __init__(
        self,
        flow: Callable[[K], Hashable],
        *,
        make_order: Callable[[], QueueOrder[K]] = FirstInFirstOut,
    ) -> None:
        """Make an empty line.

        Args:
            flow: Says to which flow an item belongs. It must not raise.
            make_order: Makes the order inside one flow.
        """
        self._flow = flow
        self._make_order = make_order
        self._ring: OrderedDict[Hashable, QueueOrder[K]] = OrderedDict()
        self._flow_of: dict[K, Hashable] = {}
        self._count = 0

    def push(self, item: K, now: float, *, priority: int) -> None:
        """Put an item in the line of its flow."""
        flow = self._flow(item)
        self._flow_of[item] = flow
        line = self._ring.get(flow)
        if line is None:
            line = self._ring[flow] = self._make_order()
        line.push(item, now, priority=priority)
        self._count += 1

    def touch(self, item: K, now: float, *, priority: int) -> None:
        """Tell the order of its flow."""
        self._ring[self._flow_of[item]].touch(item, now, priority=priority)

    def pop(self) -> K:
        """Take an item of the flow at the head of the ring."""
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
    """Return what an item's share is counted by, if its namespace is to be: the default of fair shares.

    Of text that is what stands before the first slash, as in ``namespace/name``, and nothing without a slash; of other
    items their attribute ``namespace``, if that is text.
    """
    if isinstance(item, str):
        return item.partition("/")[0] if "/" in item else ""
    namespace: object = getattr(item, "namespace", "")
    return namespace if isinstance(namespace, str) else ""
