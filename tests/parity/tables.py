"""Reads the tables: each test of upstream's with the ids of ours that show the same, or the reason why there is none.

    title = "Work queue"
    source = "client-go util/workqueue"

    [[tests]]
    upstream = "queue_test.go: TestBasic"
    verifies = "..."
    ours = ["tests/workqueue/test_queue.py::test_many_producers"]

    [[tests]]
    upstream = "..."
    verifies = "..."
    reason = "why we need none"

An id without parameters stands for all parameters of that test. ``note`` may say how ours differs.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

FOLDER = Path(__file__).parent


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One test of upstream's."""

    upstream: str
    verifies: str
    ours: tuple[str, ...] = ()
    reason: str = ""
    note: str = ""

    def __post_init__(self) -> None:
        """Refuse rows that say neither where the test is, nor why there is none; or both."""
        if bool(self.ours) == bool(self.reason):
            raise ValueError(f"{self.upstream}: name either our tests or a reason")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """The tests of one part of upstream."""

    title: str
    source: str
    rows: tuple[Row, ...]


def read_table(text: str) -> Table:
    """Read one table file."""
    fields: dict[str, Any] = tomllib.loads(text)
    rows = [Row(ours=tuple(row.pop("ours", ())), **row) for row in fields["tests"]]
    return Table(title=fields["title"], source=fields["source"], rows=tuple(rows))


def read_tables() -> list[Table]:
    """Read all table files, in the order of their names."""
    return [read_table(path.read_text()) for path in sorted(FOLDER.glob("*.toml"))]


def missing(wanted: set[str], collected: set[str]) -> set[str]:
    """Return which of the wanted ids pytest did not collect."""
    found = collected | {test.partition("[")[0] for test in collected}
    return wanted - found
