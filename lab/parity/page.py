"""Write ``lab/parity/README.md`` from the tables: ``python -m lab.parity.page``."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from lab.parity.tables import Row, Table, read_tables

PAGE = Path(__file__).with_name("README.md")

INTRODUCTION = """\
# Tests of client-go and their counterparts

This page lists the tests of client-go, and the tests of deltaloop that verify the same behavior. If there is no
counterpart, the page gives the reason. `make -C lab parity` fails if a test on this page is not collected
or does not pass.

`python -m lab.parity.page` generates this page from `lab/parity/*.toml`.
"""


def render(tables: list[Table]) -> str:
    """Return the page as text."""
    rows = [row for table in tables for row in table.rows]
    parts = [INTRODUCTION, f"In total, {_counted(rows)} have a counterpart.\n"]
    for table in tables:
        parts.append(f"## {table.title}\n\n{table.source}: {_counted(table.rows)} have a counterpart.\n")
        lines = ["| client-go | verifies | deltaloop |", "| --- | --- | --- |"]
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
