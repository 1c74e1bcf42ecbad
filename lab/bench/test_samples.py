"""Samples belong to the code that they were made with."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.bench.samples import code_of, identity

SOURCE = '''"""A module."""

class Store:
    """Keeps things."""

    def get(self, key: str) -> str:
        """Return one."""
        return key  # as it came
'''


@pytest.mark.parametrize(
    ("old", "new"),
    [("Keeps things", "Holds things"), ("  # as it came", ""), ('"""A module."""\n\n', ""), ("key: str", "key:   str")],
)
def test_comments_and_layout_do_not_change_code_identity(old: str, new: str) -> None:
    assert old in SOURCE
    assert code_of(SOURCE.replace(old, new)) == code_of(SOURCE)


def test_changed_code_changes_identity() -> None:
    assert code_of(SOURCE.replace("return key", "return key + key")) != code_of(SOURCE)


def test_sample_identity_depends_on_measured_packages_and_peers(tmp_path: Path) -> None:
    found = {identity(tmp_path)}
    for name, counts in {
        "src/deltaloop/cache/core/store.py": True,
        "src/deltaloop/runtime/program/manager.py": False,
        "lab/bench/peers/go/main.go": True,
        "lab/bench/peers/notes.md": False,
        "lab/bench/floor.py": True,
        "lab/bench/page.py": False,
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x = 1\n")
        now = identity(tmp_path)
        assert (now not in found) is counts, name
        found.add(now)
