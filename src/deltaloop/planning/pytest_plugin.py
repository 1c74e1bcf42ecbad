"""Pytest plugin with the fixture ``deltaloop_plan``. pytest loads it in all projects, so it imports little."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from deltaloop.planning.core.result import Plan


@pytest.fixture
def deltaloop_plan(request: pytest.FixtureRequest) -> Callable[[ModuleType, str], Awaitable[Plan]]:
    """Function like ``dl.plan`` that finds the snapshot relative to the test's file, and fails if the plan fails."""
    folder = request.path.parent

    async def made(module: ModuleType, snapshot: str | Path) -> Plan:
        from deltaloop.planning.plans import plan

        found = await plan(module, folder / snapshot)
        if found.failed:
            pytest.fail(str(found), pytrace=False)
        return found

    return made
