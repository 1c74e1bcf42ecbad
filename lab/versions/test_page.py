"""The page of versions has what was tried, all of it, and nothing that failed."""

from __future__ import annotations

from lab.versions.__main__ import BEGIN, END, PAGE, table, title
from lab.versions.cases import CASES


def test_version_page_has_passing_row_for_each_case() -> None:
    made = PAGE.read_text().partition(BEGIN)[2].partition(END)[0]
    rows = [line.split(" | ") for line in made.strip().splitlines()]
    assert [row[0].removeprefix("| ") for row in rows[2:]] == [title(case) for case in CASES]
    assert "failed" not in made
    versions = [cell.strip(" |") for cell in rows[0][1:]]
    assert versions[0].startswith("1.33.")
    assert table({version: [""] * len(CASES) for version in versions}).splitlines()[0] == " | ".join(rows[0])
