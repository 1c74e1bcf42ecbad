"""The version stands in two places, which agree."""

from __future__ import annotations

import tomllib
from pathlib import Path

from deltaloop.version import VERSION


def test_both_say_the_same() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    assert project["project"]["version"] == VERSION
