"""No committed file knows the machine that it was written on, or where packages came from."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# Written in two pieces, so that this file does not hold what it looks for.
MARKS = [
    re.compile(left + right)
    for left, right in (
        (r"(?<![\w./-])/ro", r"ot/"),
        (r"(?<![\w./-])/wo", r"rk/"),
        (r"(?<![\w./-])/ho", r"me/"),
        (r"(?<![\w./-])/Us", r"ers/"),
        ("pypi.org", "/simple"),
        ("files.python", "hosted"),
        ("--index", "-url"),
    )
]


def tracked_files() -> list[Path]:
    """List what is committed, and what would be: files that are neither ignored nor added yet count, too."""
    command = ["git", "-C", str(ROOT), "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    try:
        done = subprocess.run(command, capture_output=True, timeout=30, check=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("this is no git checkout, so nothing says which files are committed")
    return [ROOT / name for name in done.stdout.decode().split("\0") if name and (ROOT / name).is_file()]


def test_no_file_contains_machine_or_registry() -> None:
    found: list[str] = []
    for path in tracked_files():
        try:
            text = path.read_text()
        except UnicodeDecodeError:
            continue
        for number, line in enumerate(text.splitlines(), 1):
            found += [f"{path.relative_to(ROOT)}:{number}: {line.strip()[:80]}" for mark in MARKS if mark.search(line)]
    assert not found


def test_files_end_with_one_newline_and_have_no_trailing_space() -> None:
    found: list[str] = []
    for path in tracked_files():
        if path.suffix in {".py", ".md", ".toml", ".yaml", ".yml"} and (text := path.read_text()):
            if not text.endswith("\n") or text.endswith("\n\n"):
                found.append(f"{path.relative_to(ROOT)}: its end")
            found += [
                f"{path.relative_to(ROOT)}:{number}: space at the end"
                for number, line in enumerate(text.splitlines(), 1)
                if line != line.rstrip() and path.suffix != ".md"
            ]
    assert not found
