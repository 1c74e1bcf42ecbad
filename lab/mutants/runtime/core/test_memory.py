"""Mistakes seeded into the code, each of which the tests of ``tests.runtime.core.test_memory`` must find."""

from __future__ import annotations

import pytest
from tests.runtime.core.test_memory import check

from deltaloop.runtime.core.memory import Memories
from lab.mutants.edited import edited

MUTANTS = [
    edited("OutlivesItsObject", Memories, ("del self._kept[key]", "pass")),
    edited("ServesTheSuccessor", Memories, (" or kept[0] != uid", "")),
    edited("DropsTheSuccessors", Memories, ("kept is not None and kept[0] == uid", "kept is not None")),
    edited("OutlivesTheTerm", Memories, ("self._kept.clear()", "pass")),
    edited("ForgetsAtOnce", Memories, ("if kept is None or kept[0] != uid:", "if True:")),
]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_walk_detects_seeded_bugs(mutant: type[Memories]) -> None:
    with pytest.raises(AssertionError):
        check(mutant())
