"""What the table of Pythons is made from: pytest's last line, and what is known of each."""

from __future__ import annotations

import json
import sys

import pytest

from lab.bench import pythons
from lab.bench.page import fill


@pytest.mark.parametrize(
    ("printed", "found"),
    [
        ("....\n10 passed in 1.20s\n", {"passed": 10}),
        ("x\n= 2 failed, 7041 passed, 12 skipped, 1 xfailed, 3 errors in 300.12s (0:05:00) =\n",
         {"failed": 2, "passed": 7041, "skipped": 12, "xfailed": 1, "error": 3}),
        ("9 passed in the first line\nUsage: pytest [options]\n", {}),
        ("", {}),
    ],
)  # fmt: skip
def test_last_line_of_pytest_is_parsed(printed: str, found: dict[str, int]) -> None:
    assert pythons.counts(printed) == found


def test_facts_of_python_are_found() -> None:
    found = pythons.facts(sys.executable)
    assert found is not None
    assert found["version"] == ".".join(map(str, sys.version_info[:3]))
    assert found["name"] in pythons.NAMES
    assert pythons.facts("no-such-python") is None


def test_table_shows_results_and_missing_pythons() -> None:
    figures = {"list": 12.34, "event": 5.0, "bytes": 1234.5}
    results = {
        "commit": "abc",
        "runs": 3,
        "machine": {"cpu": "a CPU", "cpus": 2, "system": "Linux"},
        "pythons": {
            "3.11": {"version": "3.11.7", "tests": {"passed": 7000, "skipped": 9}, "figures": figures},
            "3.13": {"version": "3.13.0", "tests": {"passed": 6998, "failed": 1, "error": 1}, "figures": figures},
            "3.14": {"version": "3.14.1", "figures": figures},
        },
    }
    lines = pythons.rows(results).splitlines()
    assert lines[2] == "| 3.11.7 | 7,000 tests pass | 12.3 µs | 5.0 µs | 1,234 |"
    assert lines[3].startswith("| 3.12 | not tried")
    assert lines[4].startswith("| 3.13.0 | 2 of 7,000 tests fail |")
    assert lines[6].startswith("| 3.14.1 | not in this run |")
    assert len(lines) == 2 + len(pythons.NAMES) + 2


def test_page_contains_results() -> None:
    results = json.loads(pythons.RESULTS.read_text())
    page = pythons.PAGE.read_text()
    assert page == fill(page, {"pythons": pythons.rows(results)})
