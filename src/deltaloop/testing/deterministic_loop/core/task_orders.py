"""Orders in which tasks that are ready at the same moment take their steps.

Only steps of tasks of programs under test are reordered. The callbacks of transports and timers keep their order,
because asyncio guarantees it.

Source of the priorities: Burckhardt et al., "A Randomized Scheduler with Probabilistic Guarantees of Finding Bugs"
(ASPLOS 2010).
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Final, Protocol, final

_LONGEST_WAIT: Final = 1000
_CHANGES: Final = 3
_LAST_CHANGE: Final = 4  # power of ten: priorities change within the first 10 000 steps


class TaskOrder(Protocol):
    def turn(self, tasks: Sequence[object]) -> Sequence[int]:
        """Return the indexes of the ready tasks (at least one) that take a step now, in order; the others wait."""
        ...


@final
class RandomOrder:
    """Random order, in which half of the ready tasks wait for another turn."""

    def __init__(self, draw: Callable[[], float]) -> None:
        self._draw = draw

    def turn(self, tasks: Sequence[object]) -> Sequence[int]:
        drawn = sorted((self._draw(), place) for place in range(len(tasks)))
        return [place for number, (_, place) in enumerate(drawn) if not number or self._draw() < 0.5]


@final
class PreemptiveOrder:
    """Order in which only the task with the highest random priority runs; a few times it loses its priority."""

    def __init__(self, draw: Callable[[], float]) -> None:
        self._draw = draw
        self._changes = {int(10 ** (_LAST_CHANGE * draw())) for _ in range(_CHANGES)}
        self._priorities: weakref.WeakKeyDictionary[object, float] = weakref.WeakKeyDictionary()
        self._steps = 0
        self._waited = 0

    def turn(self, tasks: Sequence[object]) -> Sequence[int]:
        """Return the task that takes a step now; all tasks if others have waited for long."""
        for task in tasks:
            if task not in self._priorities:
                self._priorities[task] = self._draw()
        self._waited = self._waited + 1 if len(tasks) > 1 else 0
        if self._waited > _LONGEST_WAIT:  # a task that never waits would starve all others
            self._waited = 0
            return range(len(tasks))
        chosen = max(range(len(tasks)), key=lambda place: self._priorities[tasks[place]])
        self._steps += 1
        if self._steps in self._changes:
            self._priorities[tasks[chosen]] = -float(self._steps)
        return (chosen,)
