"""Mistakes seeded into the code, each of which the tests of ``tests.runtime.core.test_polling`` must find."""

from __future__ import annotations

import pytest
from tests.runtime.core.test_polling import check

from deltaloop.runtime.core.polling import Polled
from lab.mutants.edited import edited

SEEDED = [{"a": 1, "b": 1}, {"a": 1, "b": 2}, {"b": 2}, {"b": 2}, {"a": 1, "b": 2}]


MUTANTS = [
    edited("SeesNoChange", Polled, ("or not _same(self._found[key], value)", "")),
    edited("SeesNothingNew", Polled, ("if key not in self._found or", "if key in self._found and")),
    edited("NamesTheSameAgain", Polled, ("self._found = {key: _kept(value) for key, value in found.items()}", "pass")),
    edited("SeesNothingGo", Polled, ("if key not in found]", "if False]")),
    edited("CallsAllNew", Polled, ('"new" if key not in self._found else "changed"', '"new"')),
]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_model_detects_seeded_bugs(mutant: type[Polled]) -> None:
    check(Polled(), SEEDED)
    with pytest.raises(AssertionError):
        check(mutant(), SEEDED)
