"""Expressions of our own, with what cel-go answered to each in the environment of kube-apiserver.

``recorded.jsonl`` has a type and a value or an error, what it cost, and from what to what it would cost by estimate; or
the faults as the server shows them, or why no program can be made of it. Where ours answers something else, ``ours``
stands beside it. About 500 of them were made by chance. ``make -C lab cel-record`` records them anew.
"""

from __future__ import annotations

import json
from pathlib import Path

from tests.cel.answers import answer
from tests.nightly import share

RECORDS = [json.loads(line) for line in Path(__file__).with_name("recorded.jsonl").read_text().splitlines()]
# What differs, and is left so: a second fault after a first; how Go reads numbers; keys that Python's
# maps cannot have; one unit of cost after an error.
MOST_DIFFERENCES = 17
MOST_OTHER_VERDICTS = 7


def differing(record: dict[str, object]) -> str:
    """Return the expression, our answer and the expected one, if they differ."""
    told = {name: value for name, value in record.items() if name != "expression"}
    ours = answer(str(record["expression"]))
    expected = told.get("ours", told)
    if "shown" in told and "ours" not in told:  # no JSON has it
        ours["shown"] = ours.pop("value") and None
    return "" if ours == expected else f"{record['expression']}: {ours}, expected {expected}"


def test_results_match_recorded_server_results() -> None:
    assert [words for record in share(RECORDS) if (words := differing(record))] == []


def test_number_of_differences_does_not_grow() -> None:
    differences = [record for record in RECORDS if "ours" in record]
    assert len(differences) <= MOST_DIFFERENCES
    verdicts = ("faults", "program", "error", "value")
    other = [r for r in differences if [v for v in verdicts if v in r] != [v for v in verdicts if v in r["ours"]]]
    assert len(other) <= MOST_OTHER_VERDICTS, other
