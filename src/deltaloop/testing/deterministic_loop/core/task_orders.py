"""In which order the steps of tasks run that are ready at the same moment.

asyncio runs them first in, first out, so that a test sees one interleaving of many. Any other order is one that could
be seen, too: by a little more delay here, a little less there. Only steps of tasks of programs under test are put in
another order; what transports and timers do stays as it is, since asyncio promises its order to them.

Source of the priorities: Burckhardt et al., "A Randomized Scheduler with Probabilistic Guarantees of Finding Bugs"
(ASPLOS 2010): a bug that takes a certain order at d places is found with a known chance by d - 1 changes of priorities.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Final, Protocol, final

_LONGEST_WAIT: Final = 1000
_CHANGES: Final = 3
_LAST_CHANGE: Final = 4  # powers of ten: the first ten thousand steps are as far as changes are made


class TaskOrder(Protocol):
    """Decides about the steps of tasks."""

    def turn(self, tasks: Sequence[object]) -> Sequence[int]:
        """Return which tasks take a step now, by their places, in their order; the others wait for the next turn.

        Args:
            tasks: Those that are ready, in the order in which they became so; never none.
        """
        ...


@final
class RandomOrder:
    """Any order; half of those that are ready wait for another turn."""

    def __init__(self, draw: Callable[[], float]) -> None:
        """Begin.

        Args:
            draw: Gives numbers in [0, 1).
        """
        self._draw = draw

    def turn(self, tasks: Sequence[object]) -> Sequence[int]:
        """Return which tasks take a step now, as ``TaskOrder.turn``."""
        drawn = sorted((self._draw(), place) for place in range(len(tasks)))
        return [place for number, (_, place) in enumerate(drawn) if not number or self._draw() < 0.5]


@final
class PreemptiveOrder:
    """The task of the highest priority alone; priorities are drawn, and a few times the one that runs loses its own."""

    def __init__(self, draw: Callable[[], float]) -> None:
        """Begin.

        Args:
            draw: Gives numbers in [0, 1).
        """
        self._draw = draw
        self._changes = {int(10 ** (_LAST_CHANGE * draw())) for _ in range(_CHANGES)}
        self._priorities: weakref.WeakKeyDictionary[object, float] = weakref.WeakKeyDictionary()
        self._steps = 0
        self._waited = 0

    def turn(self, tasks: Sequence[object]) -> Sequence[int]:
        """Return which task takes a step now, as ``TaskOrder.turn``; all, once others have waited for very long."""
        for task in tasks:
            if task not in self._priorities:
                self._priorities[task] = self._draw()
        self._waited = self._waited + 1 if len(tasks) > 1 else 0
        if self._waited > _LONGEST_WAIT:  # one that never waits for anything would keep all others away
            self._waited = 0
            return range(len(tasks))
        chosen = max(range(len(tasks)), key=lambda place: self._priorities[tasks[place]])
        self._steps += 1
        if self._steps in self._changes:
            self._priorities[tasks[chosen]] = -float(self._steps)
        return (chosen,)
