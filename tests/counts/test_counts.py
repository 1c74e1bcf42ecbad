"""The calls of a change, an informer event, a PUT and a simulated schedule do not exceed the committed counts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from typing import Final

import pytest

from tests.counts.committed import FILE, VERSION, Numbers, committed

_ALLOWED: Final = 1.03
_OPERATIONS: Final = sorted(committed())


@cache
def _measured() -> dict[str, Numbers]:
    """Count in a new process: the modules and caches of other tests would change the counts."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.counts", "--json"],
        cwd=FILE.parent.parent.parent,
        env={**os.environ, "PYTHONHASHSEED": "0"},
        stdout=subprocess.PIPE,
        check=True,
    )
    found: dict[str, Numbers] = json.loads(done.stdout)
    return found


@pytest.mark.skipif(not _OPERATIONS, reason=f"no counts are committed for Python {VERSION}")
def test_calls_do_not_exceed_the_committed_counts() -> None:
    measured, before = _measured(), committed()
    assert sorted(measured) == _OPERATIONS
    more = [
        f"{operation}: {count:.1f} {what}, {before[operation][what]:.1f} are committed"
        for operation, counts in measured.items()
        for what, count in counts.items()
        if count > before[operation][what] * _ALLOWED
    ]
    assert not more, "\n".join([*more, "Make the path shorter, or explain it and run: python -m tests.counts --write"])
    lower = [name for name in measured if sum(measured[name].values()) * _ALLOWED < sum(before[name].values())]
    if lower:
        print(f"fewer calls than committed: {', '.join(lower)}. Run: python -m tests.counts --write")
