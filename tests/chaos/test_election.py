from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos.election import FAULTS, run


@pytest.mark.slow
@pytest.mark.real_time
@pytest.mark.timeout(120)
async def test_ten_leadership_changes_by_force(tmp_path: Path) -> None:
    """The short form of ``make chaos-election``: each fault once, and two of them twice."""
    outcome = await run(len(FAULTS) + 2, 1, tmp_path)
    print("\n".join(outcome.lines()))
    keeper = outcome.keeper
    assert not keeper.violations
    assert keeper.late_paused >= 1
    assert keeper.stopped_by_token >= 1
    assert keeper.refused_by_guard >= 1
