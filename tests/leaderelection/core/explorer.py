"""Visits every world that can come to be, breadth first: never two leaders, and always a way back to one.

The second is asked of every world, too: from now on everything works, and whoever has something to do does it at once.
That makes one next world for each world, and it is among those that are visited; so it is enough to look at the circles
in which these ways end. All the way round a circle exactly one candidate has to lead, and time has to pass.
"""

from __future__ import annotations

import gc
import time
from array import array
from dataclasses import dataclass, field
from typing import final

from tests.leaderelection.core.worlds import Settings, World, Worlds


@dataclass
class Result:
    """What was found.

    Attributes:
        states: How many worlds were visited.
        transitions: How many steps between them were taken.
        depth: How many steps the last one is away from the start.
        complete: Whether these are all that there are.
        violation: The shortest way to two leaders, in words; empty if there is none.
        stuck: A way to a world from which nobody comes to lead although everything works; empty if there is none.
        recovery: After how many ticks at most somebody leads for good once everything works.
        seconds: How long it took, in processor time.
    """

    states: int = 0
    transitions: int = 0
    depth: int = 0
    complete: bool = False
    violation: list[str] = field(default_factory=list[str])
    stuck: list[str] = field(default_factory=list[str])
    recovery: int = 0
    seconds: float = 0.0

    def __str__(self) -> str:
        return (
            f"{self.states} states, {self.transitions} transitions, depth {self.depth}, "
            f"{'all' if self.complete else 'not all'} visited, a leader after at most {self.recovery} ticks, "
            f"{self.seconds:.1f} s"
        )


def explore(settings: Settings, *, depth: int = 1_000_000, progress: bool = True) -> Result:
    """Visit all worlds within ``depth`` steps of the start; stop at the first with two leaders.

    Args:
        settings: What to explore.
        depth: How far to go.
        progress: Whether to look for worlds from which nobody comes to lead, too.
    """
    began = time.process_time()
    exploration = Exploration(settings)
    gc.disable()  # millions of tuples of numbers, and no circle among them
    try:
        exploration.visit(depth)
        if progress and not exploration.result.violation:
            exploration.look_for_progress()
    finally:
        gc.enable()
    exploration.result.seconds = time.process_time() - began
    return exploration.result


@final
class Exploration:
    """The worlds that were visited, by number, and from which each was reached first."""

    def __init__(self, settings: Settings) -> None:
        self.worlds = Worlds(settings)
        self.result = Result()
        start = self.worlds.start()
        first = (start[0], *sorted(start[1:]))
        self._numbers = {first: 0}
        self._visited = [first]
        self._parents = array("q", [-1])

    def visit(self, depth: int) -> None:
        """Go breadth first."""
        result, worlds, numbers, visited = self.result, self.worlds, self._numbers, self._visited
        done = transitions = 0
        for level in range(depth + 1):
            end = len(visited)
            result.depth = level
            if level == depth:
                break
            while done < end:
                for _, _, (lock, *slots) in worlds.steps(visited[done]):
                    transitions += 1
                    slots.sort()
                    following = (lock, *slots)
                    if following in numbers:
                        continue
                    numbers[following] = len(visited)
                    visited.append(following)
                    self._parents.append(done)
                    if worlds.leaders(following) > 1:
                        result.depth += 1
                        result.states, result.transitions = len(visited), transitions
                        result.violation = self.trace(len(visited) - 1)
                        return
                done += 1
            if len(visited) == end:
                result.complete = True
                break
        result.states, result.transitions = len(visited), transitions

    def look_for_progress(self) -> None:
        """Follow each world to the circle in which it ends when everything works."""
        ticks = array("l", [-1]) * len(self._visited)
        for number in range(self.result.states):
            path: list[int] = []
            on_path: dict[int, int] = {}
            while ticks[number] < 0 and number not in on_path:
                on_path[number] = len(path)
                path.append(number)
                number = self._next_number(number, ticks)  # noqa: PLW2901 - the loop's number begins the way
            if ticks[number] < 0:
                circle = path[on_path[number] :]
                if not self._is_led(circle):
                    self.result.stuck = self.trace(path[0])
                    return
                for each in circle:
                    ticks[each] = 0
                path = path[: on_path[number]]
            for each in reversed(path):
                ticks[each] = ticks[number] + self._passes_time(each)
                number = each  # noqa: PLW2901 - the same
        self.result.recovery = max(ticks)

    def _next_number(self, number: int, ticks: array[int]) -> int:
        lock, *slots = self.worlds.fair(self._visited[number])
        following = (lock, *sorted(slots))
        known = self._numbers.get(following)
        if known is None:  # beyond the depth
            known = self._numbers[following] = len(self._visited)
            self._visited.append(following)
            self._parents.append(number)
            ticks.append(-1)
        return known

    def _passes_time(self, number: int) -> bool:
        return self.worlds.waits(self._visited[number])

    def _is_led(self, circle: list[int]) -> bool:
        return any(self._passes_time(number) for number in circle) and all(
            self.worlds.leaders(self._visited[number]) == 1 for number in circle
        )

    def trace(self, number: int) -> list[str]:
        """Say in words how a world came to be; candidates keep their names on the way."""
        path: list[World] = []
        while number > 0:
            path.append(self._visited[number])
            number = self._parents[number]
        world = self.worlds.start()
        names: list[str] = []
        for wanted in reversed(path):
            for index, name, following in self.worlds.steps(world):
                if (following[0], *sorted(following[1:])) == wanted:
                    names.append(name if index < 0 else f"c{index} {name}")
                    world = following
                    break
            else:
                raise AssertionError("no step leads there; a bug of the explorer")
        return names
