"""What a seeded bug is made of."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from hypothesis.stateful import RuleBasedStateMachine
from tests.cache.machines import Step, show_the_bug

K = TypeVar("K")


@dataclass(frozen=True)
class SeededBug:
    """A mutant, and a history that what stands passes and the mutant does not.

    ``mutant`` is the broken class; its docstring says what is wrong with it.
    """

    part: str
    mutant: type
    sound: type[RuleBasedStateMachine]
    mutated: type[RuleBasedStateMachine]
    history: Sequence[Step]

    @property
    def name(self) -> str:
        return self.mutant.__name__

    @property
    def what(self) -> str:
        own = self.mutant.__dict__.get("__doc__") or ""
        return " ".join(inspect.cleandoc(own).split())

    def show(self) -> None:
        """Check that it is caught, by a machine that passes what stands."""
        show_the_bug(self.sound, self.mutated, [*self.history])


def bugs_of(
    part: str,
    sound: type[K],
    histories: Mapping[type[K], Sequence[Step]],
    machine_around: Callable[[type[K]], type[RuleBasedStateMachine]],
) -> list[SeededBug]:
    """Make the seeded bugs of one class, whose machine is made around the class that stands or a mutant of it."""
    standing = machine_around(sound)
    return [SeededBug(part, mutant, standing, machine_around(mutant), history) for mutant, history in histories.items()]
