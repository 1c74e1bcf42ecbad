"""The tables name tests that exist, and the page is made from the tables.

That the named tests pass is seen by a run of the whole suite itself: session.py.
"""

from __future__ import annotations

from collections import Counter

import pytest

from lab.parity.page import PAGE, render
from lab.parity.tables import Row, Table, defined_tests, missing, named_tests, read_table, read_tables

PIPELINE = {"Cache", "Informer factories", "Lists", "Watches"}


def test_all_tests_in_tables_exist() -> None:
    wanted = named_tests()
    defined = {test for file in {test.partition("::")[0] for test in wanted} for test in defined_tests(file)}
    assert not missing(wanted, defined)


def test_each_of_226_informer_tests_is_in_one_row() -> None:
    rows = [row for table in read_tables() if table.title in PIPELINE for row in table.rows]
    tests = Counter(name for row in rows for name in row.functions if ": Test" in name)
    assert len(tests) == 226
    assert set(tests.values()) == {1}
    without = {name.partition(": ")[0] for row in rows if row.reason for name in row.functions}
    assert without == {"expiration_cache_test.go", "identity_test.go", "synctrack/lazy_test.go"}


def test_each_of_46_event_and_election_tests_is_in_one_row() -> None:
    tables = {table.title: table.rows for table in read_tables()}
    counts = {
        title: Counter(name for row in tables[title] for name in row.functions)
        for title in ("Events", "Leader election")
    }
    assert {title: len(count) for title, count in counts.items()} == {"Events": 22, "Leader election": 24}
    assert all(set(count.values()) == {1} for count in counts.values())
    assert not [row for row in tables["Events"] if row.reason]


def test_page_is_up_to_date() -> None:
    assert PAGE.read_text() == render(read_tables()), "run: python -m lab.parity.page"


def test_undefined_test_is_missing() -> None:
    defined = {"tests/a.py::test_one", "tests/a.py::test_two"}
    assert missing({"tests/a.py::test_one", "tests/a.py::test_two", "tests/a.py::test_two[1]"}, defined) == set()
    for gone in ("tests/a.py::test_on", "tests/a.py::test_three[3]", "tests/b.py::test_one"):
        assert missing({gone}, defined) == {gone}
    assert "lab/parity/test_parity.py::test_undefined_test_is_missing" in defined_tests("lab/parity/test_parity.py")
    assert defined_tests("lab/parity/no_such_file.py") == set()


def test_client_go_functions_are_counted_individually() -> None:
    row = Row(upstream="a_test.go: TestA, TestB_c; b_test.go: TestA", verifies="it", reason="because")
    assert row.functions == ("a_test.go: TestA", "a_test.go: TestB_c", "b_test.go: TestA")


def test_row_has_either_tests_or_reason() -> None:
    for ours, reason in [((), ""), (("tests/a.py::test_one",), "because")]:
        with pytest.raises(ValueError, match="either our tests or a reason"):
            Row(upstream="TestOne", verifies="it", ours=ours, reason=reason)


def test_each_client_go_test_is_in_table_once() -> None:
    for table in read_tables():
        names = [row.upstream for row in table.rows]
        assert len(names) == len(set(names)), table.title


def test_table_is_rendered_as_section() -> None:
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
    assert "queue.go: 1 of 2 tests have a counterpart." in page
    assert "| TestOne | a\\|b | `a.py::test_one`<br>`a.py::test_two`<br>Better. |" in page
    assert "| TestTwo | c | none: no such thing |" in page
