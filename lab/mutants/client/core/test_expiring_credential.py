"""Mistakes seeded into the code, each of which the tests of ``tests.client.core.test_expiring_credential`` must
find."""

from __future__ import annotations

import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test
from tests.client.core.test_expiring_credential import Machine

from deltaloop.client.core.expiring_credential import ExpiringCredential
from lab.mutants.edited import edited

MUTANTS = [
    edited(name, ExpiringCredential, edit)
    for name, edit in {
        "ForgetsRefusals": ("self._refused = credential", "pass"),
        "ServesTheExpired": ("if self._credential == self._refused or self._is_expired(now):", "if False:"),
        "HasNoMargin": ("max(0.0, min(EXPIRY_MARGIN, (expires_at - now) / 10))", "0.0"),
    }.items()
]


@pytest.mark.parametrize("mutant", MUTANTS)
def test_machine_detects_seeded_bugs(mutant: type[ExpiringCredential]) -> None:
    class Mutated(Machine):
        make = mutant

    with pytest.raises(AssertionError):
        run_state_machine_as_test(
            Mutated,
            settings=settings(
                max_examples=200,
                stateful_step_count=15,
                database=None,
                derandomize=True,
                phases=[Phase.generate],
            ),
        )
