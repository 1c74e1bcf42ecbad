"""The committed summary: where it is, and how it is written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final, cast

SUMMARY: Final = Path(__file__).parent / "results/summary.json"


def write_summary(path: Path, summary: dict[str, Any]) -> None:
    """Write a summary."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # A row is a line, so that two summaries can be compared.
    parts = [f"{json.dumps(name)}: {_block(value)}" for name, value in summary.items()]
    path.write_text("{\n" + ",\n".join(parts) + "\n}\n")


def _block(value: object) -> str:
    if isinstance(value, list) and value:
        return "[\n" + ",\n".join(map(json.dumps, cast("list[object]", value))) + "\n]"
    if isinstance(value, dict) and value:
        items = cast("dict[str, object]", value).items()
        return "{\n" + ",\n".join(f"{json.dumps(name)}: {json.dumps(each)}" for name, each in items) + "\n}"
    return json.dumps(value)
