"""Runs Hypothesis machines on what stands, and fixed histories, found by them, on seeded bugs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import INVARIANT_MARKER, RuleBasedStateMachine, run_state_machine_as_test

from tests.nightly import examples

SOUND = settings(
    max_examples=examples(50),
    stateful_step_count=20,
    database=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)


def run_machine(machine: type[RuleBasedStateMachine]) -> None:
    """Run a machine through what Hypothesis makes up."""
    run_state_machine_as_test(machine, settings=SOUND)


@dataclass(frozen=True)
class Step:
    """One rule and what it is given."""

    rule: str
    arguments: dict[str, Any]


def step(rule: str, /, **arguments: Any) -> Step:
    """Name one rule of a machine."""
    return Step(rule, arguments)


def replay(machine: type[RuleBasedStateMachine], history: list[Step]) -> None:
    """Play a history on a new machine, with its invariants checked after every step.

    A machine that holds something open has a ``discard``, called when the history is broken off.
    """
    player = machine()
    invariants = [function for function in vars(machine).values() if hasattr(function, INVARIANT_MARKER)]
    assert invariants
    try:
        for each in history:
            getattr(player, each.rule)(**each.arguments)
            for invariant in invariants:
                invariant(player)
    except BaseException:
        getattr(player, "discard", lambda: None)()
        raise
    player.teardown()


def show_the_bug(sound: type[RuleBasedStateMachine], mutant: type[RuleBasedStateMachine], history: list[Step]) -> None:
    """Check that a history passes on what stands, and that the machine sees what is wrong with a mutant of it.

    A mutant that merely breaks down shows nothing about the machine.
    """
    replay(sound, history)
    with pytest.raises(AssertionError):
        replay(mutant, history)
