"""Seeded bugs are edits of the present code."""

from __future__ import annotations

import importlib
from pathlib import Path

LAB = Path(__file__).parents[1]


def test_seeded_bugs_apply_to_the_present_code() -> None:
    for path in sorted((LAB / "mutants").rglob("test_*.py")):
        importlib.import_module(f"lab.{path.relative_to(LAB).with_suffix('').as_posix().replace('/', '.')}")
