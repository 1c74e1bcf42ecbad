"""The version stands in two places, which agree."""

from __future__ import annotations

import tomllib
from pathlib import Path

from deltaloop.version import VERSION


def test_versions_are_equal() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    assert project["project"]["version"] == VERSION
