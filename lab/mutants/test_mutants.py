"""Each seeded bug is caught by a machine that passes what stands."""

from __future__ import annotations

from collections import Counter

import pytest

from lab.mutants.every import EVERY_BUG
from lab.mutants.seeded_bug import SeededBug


@pytest.mark.parametrize("bug", [pytest.param(bug, id=f"{bug.part}: {bug.name}") for bug in EVERY_BUG])
def test_machine_detects_bug(bug: SeededBug) -> None:
    bug.show()


def test_each_part_has_several_described_bugs() -> None:
    parts = Counter(bug.part for bug in EVERY_BUG)
    assert set(parts) == {"DeltaFIFO", "in-order FIFO", "store with indexes", "reflector", "listeners", "pipeline"}
    assert min(parts.values()) >= 5
    assert len({bug.mutant for bug in EVERY_BUG}) == len(EVERY_BUG) >= 50
    assert [bug.name for bug in EVERY_BUG if not bug.what] == []
