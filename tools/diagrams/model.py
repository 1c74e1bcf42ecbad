"""What a diagram is: states, and steps between them, found by walking a machine from state to state."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Any, Generic, TypeVar

M = TypeVar("M")

MOST_STATES = 2_000
"""A machine with more is not walked for a picture."""


@dataclass(frozen=True, slots=True)
class Step:
    """One way from one state to another, in words."""

    before: str
    what: str
    after: str


Move = tuple[str, Callable[[M], object]]


@dataclass(frozen=True, slots=True)
class Machine(Generic[M]):
    """A machine that can be walked.

    A state is come to anew for each step out of it, by the same moves: a machine need not be copyable.

    Attributes:
        start: Makes the machine as it begins.
        moves: All that can happen to it next: words, and what does it to the machine that it is given.
        view: The state as a person sees it; many of the machine's states may look the same.
        identity: What tells the machine's states apart. It must be bounded; if it takes two states for one that go
            different ways, ``walk`` misses steps, and ``wander`` shows them.
    """

    start: Callable[[], M]
    moves: Callable[[M], Iterable[Move[M]]]
    view: Callable[[M], str]
    identity: Callable[[M], Hashable]

    def _come_to(self, way: tuple[Callable[[M], object], ...]) -> M:
        machine = self.start()
        for do in way:
            do(machine)
        return machine

    def walk(self, *, most_states: int = MOST_STATES) -> tuple[list[str], list[Step]]:
        """Visit every state that the machine can come into; return the states and the steps between them, in order.

        Raises:
            ValueError: If there are too many states to have been meant.
        """
        first = self.start()
        states = [self.view(first)]
        steps: dict[Step, None] = {}
        seen = {self.identity(first)}
        waiting: deque[tuple[Callable[[M], object], ...]] = deque([()])
        while waiting:
            way = waiting.popleft()
            here = self._come_to(way)
            before = self.view(here)
            for what, do in self.moves(here):
                after = self._come_to((*way, do))
                seen_as = self.view(after)
                if seen_as not in states:
                    states.append(seen_as)
                steps[Step(before, what, seen_as)] = None
                mark = self.identity(after)
                if mark not in seen:
                    seen.add(mark)
                    waiting.append((*way, do))
            if len(seen) > most_states:
                raise ValueError(f"more than {most_states} states: the identity is not bounded")
        ordered = sorted(steps, key=lambda step: (states.index(step.before), states.index(step.after), step.what))
        return states, ordered

    def wander(self, chance: Random, length: int) -> Iterator[Step]:
        """Take steps by chance, and yield each; they end early where nothing can happen any more."""
        machine = self.start()
        for _ in range(length):
            moves = list(self.moves(machine))
            if not moves:
                return
            what, do = chance.choice(moves)
            before = self.view(machine)
            do(machine)
            yield Step(before, what, self.view(machine))


@dataclass(slots=True)
class Diagram:
    """A machine as a person sees it.

    Attributes:
        name: Name of the picture's file and of the block in the page.
        page: The page in ``internals/machines`` that shows it, without its ending.
        title: What it is a machine of.
        source: Module that it was drawn from.
        states: In the order in which they are drawn, from top to bottom.
        steps: In the order of their states; steps that lead back to their own state are in the table only.
    """

    name: str
    page: str
    title: str
    source: str
    states: list[str]
    steps: list[Step]
    machine: Machine[Any] | None = None
    """What was walked; None if the core has a table of its own."""

    def arrows(self) -> list[tuple[str, str]]:
        """Return the pairs of different states that a step leads between, each once, in order."""
        return list(dict.fromkeys((step.before, step.after) for step in self.steps if step.before != step.after))


@dataclass(frozen=True, slots=True)
class Table:
    """What a core decides, case by case: rows that come from the code, for machines without states.

    Attributes:
        name: Name of the block in the page.
        page: The page in ``internals/machines`` that shows it, without its ending.
        source: Module that it was made from.
        heads: The head of each column.
        rows: The cells, in words.
    """

    name: str
    page: str
    source: str
    heads: tuple[str, ...]
    rows: list[tuple[str, ...]]


def walked(name: str, page: str, title: str, source: str, machine: Machine[Any]) -> Diagram:
    """Return the diagram of a machine; the words are those of ``Diagram``."""
    states, steps = machine.walk()
    return Diagram(name, page, title, source, states, steps, machine)
