from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from lab.chaos.election import FAULTS, OURS, Outcome, merged, run


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.real_time
async def test_eight_forced_leadership_changes(tmp_path: Path) -> None:
    """The short form of ``make -C lab chaos-election``: each fault once, in two elections at once."""
    half = len(FAULTS) // 2
    async with asyncio.TaskGroup() as group:
        tasks: list[asyncio.Task[Outcome]] = []
        for name, faults in (("first", FAULTS[:half]), ("second", FAULTS[half:])):
            folder = tmp_path / name
            folder.mkdir()
            tasks.append(group.create_task(run(len(faults), 1, folder, replace(OURS, faults=faults))))
    outcome = merged([task.result() for task in tasks])
    print("\n".join(outcome.lines()))
    assert sorted(outcome.failovers) == sorted(FAULTS)
    keeper = outcome.keeper
    assert not keeper.violations
    assert keeper.late_paused >= 1
    assert keeper.stopped_by_token >= 1
    assert keeper.refused_by_guard >= 1
