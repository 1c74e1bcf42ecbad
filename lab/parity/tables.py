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

An id without parameters stands for all parameters of that test. ``note`` may say how ours differs. ``upstream`` names
each function of upstream's in full, so that they can be counted.
"""

from __future__ import annotations

import ast
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

FOLDER = Path(__file__).parent
_ROOT = FOLDER.parents[1]
_FUNCTION = re.compile(r"\b(?:Test|Example)\w*")


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

    @property
    def functions(self) -> tuple[str, ...]:
        """The functions of upstream's that this row is about, with the files that they are in."""
        found: list[str] = []
        for part in self.upstream.split("; "):
            file, _, names = part.rpartition(": ")
            found += [f"{file}: {name}" for name in _FUNCTION.findall(names)]
        return tuple(found)


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


def named_tests() -> set[str]:
    """Return the ids of all tests of ours that the tables name."""
    return {test for table in read_tables() for row in table.rows for test in row.ours}


def missing(wanted: set[str], defined: set[str]) -> set[str]:
    """Return which of the wanted ids name a test that is not defined; parameters show only in a run."""
    return {test for test in wanted if test.partition("[")[0] not in defined}


def defined_tests(file: str) -> set[str]:
    """Return the ids, without parameters, of the test functions in a file of ours; none if there is no such file."""
    path = _ROOT / file
    if not path.is_file():
        return set()
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {f"{file}::{node.name}" for node in ast.parse(path.read_text()).body if isinstance(node, functions)}
