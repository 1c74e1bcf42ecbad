"""The tables name tests that exist, and the page is made from the tables."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.parity.page import PAGE, render
from tests.parity.tables import Row, Table, missing, read_table, read_tables

ROOT = Path(__file__).parents[2]


def collect(files: list[str]) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *files],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return {line for line in done.stdout.splitlines() if "::" in line}


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_all_tests_that_the_tables_name_are_collected() -> None:
    wanted = {test for table in read_tables() for row in table.rows for test in row.ours}
    files = sorted({test.partition("::")[0] for test in wanted})
    assert not [file for file in files if not (ROOT / file).is_file()]
    assert not missing(wanted, collect(files))


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text() == render(read_tables()), "run: python -m tests.parity.page"


def test_a_test_that_is_not_collected_is_missing() -> None:
    collected = {"tests/a.py::test_one", "tests/a.py::test_two[1]", "tests/a.py::test_two[2]"}
    assert missing({"tests/a.py::test_one", "tests/a.py::test_two", "tests/a.py::test_two[1]"}, collected) == set()
    for gone in ("tests/a.py::test_on", "tests/a.py::test_two[3]", "tests/b.py::test_one"):
        assert missing({gone}, collected) == {gone}


def test_a_row_has_either_tests_or_a_reason() -> None:
    for ours, reason in [((), ""), (("tests/a.py::test_one",), "because")]:
        with pytest.raises(ValueError, match="either our tests or a reason"):
            Row(upstream="TestOne", verifies="it", ours=ours, reason=reason)


def test_each_test_of_upstream_stands_in_a_table_once() -> None:
    for table in read_tables():
        names = [row.upstream for row in table.rows]
        assert len(names) == len(set(names)), table.title


def test_a_table_becomes_a_section_of_the_page() -> None:
    table = read_table(
        """
        title = "Queue"
        source = "queue.go"
        [[tests]]
        upstream = "TestOne"
        verifies = "a|b"
        ours = ["tests/a.py::test_one", "tests/a.py::test_two"]
        note = "Better."
        [[tests]]
        upstream = "TestTwo"
        verifies = "c"
        reason = "no such thing"
        """
    )
    assert isinstance(table, Table)
    page = render([table])
    assert "queue.go: 1 of 2 have a counterpart here." in page
    assert "| TestOne | a\\|b | `a.py::test_one`<br>`a.py::test_two`<br>Better. |" in page
    assert "| TestTwo | c | none: no such thing |" in page
