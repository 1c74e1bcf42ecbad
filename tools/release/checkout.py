"""Reads what is checked out; ``checks`` decides about it."""

from __future__ import annotations

import subprocess
import tomllib
from pathlib import Path
from typing import Final

from tools.release.checks import Checkout
from tools.release.provenance import SIGNERS

ROOT: Final = Path(__file__).resolve().parents[2]


def git(*arguments: str) -> list[str]:
    """Return the lines that git prints."""
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)  # noqa: S607
    return done.stdout.splitlines()


def version() -> str:
    """Return the version that ``pyproject.toml`` has."""
    found: str = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    return found


def checkout(*, signs: bool) -> Checkout:
    """Return what is checked out."""
    return Checkout(
        version=version(),
        tags=git("tag", "--points-at", "HEAD"),
        changed=[line[3:] for line in git("status", "--porcelain")],
        changelog=(ROOT / "CHANGELOG.md").read_text(),
        security=(ROOT / "SECURITY.md").read_text(),
        signers=SIGNERS.read_text(),
        signs=signs,
    )
