"""What a controller remembers: a walk through all that can happen to a few objects, against a naive model."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from deltaloop.runtime.core.memory import Memories
from tests.mutants.edited import edited

STEPS = ("use a1", "use a2", "use b1", "gone a1", "gone a2", "gone b1", "clear")


def check(memories: Memories) -> None:
    """Go through every four steps, and look at what is remembered after each."""
    for steps in itertools.product(STEPS, repeat=4):
        expected: dict[str, dict[str, Any]] = {}
        memories.clear()
        for number, step in enumerate(steps):
            what, _, who = step.partition(" ")
            if what == "use":
                for other in [other for other in expected if other[0] == who[0] and other != who]:
                    del expected[other]  # of its name, and of another uid
                memory = memories.of(who[0], who)
                assert memory == expected.setdefault(who, {}), (steps, number)
                memory[str(number)] = expected[who][str(number)] = step
            elif what == "gone":
                memories.gone(who[0], who)
                expected.pop(who, None)
            else:
                memories.clear()
                expected.clear()
            assert len(memories) == len(expected), (steps, number)


def test_a_memory_belongs_to_one_object_and_goes_with_it() -> None:
    check(Memories())


MUTANTS = [
    edited("OutlivesItsObject", Memories, ("del self._kept[key]", "pass")),
    edited("ServesTheSuccessor", Memories, (" or kept[0] != uid", "")),
    edited("DropsTheSuccessors", Memories, ("kept is not None and kept[0] == uid", "kept is not None")),
    edited("OutlivesTheTerm", Memories, ("self._kept.clear()", "pass")),
    edited("ForgetsAtOnce", Memories, ("if kept is None or kept[0] != uid:", "if True:")),
]


@pytest.mark.nightly
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_the_walk_finds_seeded_bugs(mutant: type[Memories]) -> None:
    with pytest.raises(AssertionError):
        check(mutant())
