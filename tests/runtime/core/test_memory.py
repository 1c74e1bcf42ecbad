"""What a controller remembers: a walk through all that can happen to a few objects, against a naive model."""

from __future__ import annotations

import itertools
from typing import Any

from deltaloop.runtime.core.memory import Memories

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


def test_memory_is_dropped_with_its_object() -> None:
    check(Memories())
