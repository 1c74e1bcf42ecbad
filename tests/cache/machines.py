"""Runs Hypothesis machines: thoroughly on what stands, and only as far as the first failure on seeded bugs."""

from __future__ import annotations

from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

SOUND = settings(
    max_examples=50,
    stateful_step_count=20,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
MUTANT = settings(SOUND, max_examples=400, phases=[Phase.generate], report_multiple_bugs=False)


def run_machine(machine: type[RuleBasedStateMachine], *, of_a_mutant: bool = False) -> None:
    """Run a machine; the failure of a mutant's is not shrunk."""
    run_state_machine_as_test(machine, settings=MUTANT if of_a_mutant else SOUND)
