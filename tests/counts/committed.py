"""The committed counts, by minor version of Python."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Final

FILE: Final = Path(__file__).with_name("counts.json")
VERSION: Final = f"{sys.version_info.major}.{sys.version_info.minor}"

Numbers = dict[str, float]


def committed() -> dict[str, Numbers]:
    """Return the committed counts of this version of Python, by operation; empty if there are none."""
    found: dict[str, dict[str, Numbers]] = json.loads(FILE.read_text()) if FILE.exists() else {}
    return found.get(VERSION, {})


def write(counts: dict[str, Numbers]) -> None:
    """Write the counts of this version of Python."""
    found: dict[str, dict[str, Numbers]] = json.loads(FILE.read_text()) if FILE.exists() else {}
    FILE.write_text(json.dumps({**found, VERSION: counts}, indent=2) + "\n")
