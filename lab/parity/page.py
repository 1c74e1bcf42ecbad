"""Write ``lab/parity/README.md`` from the tables: ``python -m lab.parity.page``."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from lab.parity.tables import Row, Table, read_tables

PAGE = Path(__file__).with_name("README.md")

INTRODUCTION = """\
# Upstream's tests and ours

Each test that client-go has for a part of its machinery, and the tests of ours that show the same. Where we have none,
the reason is given. A run of the whole suite fails if a test named here is not collected, or does not pass.

This page is made from `lab/parity/*.toml` by `python -m lab.parity.page`; do not edit it.
"""


def render(tables: list[Table]) -> str:
    """Return the page as text."""
    rows = [row for table in tables for row in table.rows]
    parts = [INTRODUCTION, f"All together: {_counted(rows)} have a counterpart here.\n"]
    for table in tables:
        parts.append(f"## {table.title}\n\n{table.source}: {_counted(table.rows)} have a counterpart here.\n")
        lines = ["| upstream | verifies | ours |", "| --- | --- | --- |"]
        lines += [f"| {_cell(row.upstream)} | {_cell(row.verifies)} | {_ours(row)} |" for row in table.rows]
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def _counted(rows: Iterable[Row]) -> str:
    """Say how many of upstream's functions have a counterpart; one row may be about several."""
    all_of_them = [(name, bool(row.ours)) for row in rows for name in row.functions]
    return f"{sum(mapped for _, mapped in all_of_them)} of {len(all_of_them)} tests"


def _ours(row: Row) -> str:
    if row.reason:
        return _cell(f"none: {row.reason}")
    ids = "<br>".join(f"`{_cell(each.removeprefix('tests/'))}`" for each in row.ours)
    return ids + (f"<br>{_cell(row.note)}" if row.note else "")


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def main() -> None:
    """Write the page."""
    PAGE.write_text(render(read_tables()))


if __name__ == "__main__":
    main()
