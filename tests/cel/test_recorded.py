"""Expressions of our own, with what cel-go answered to each in the environment of kube-apiserver.

``recorded.jsonl`` has a type and a value, an error, or the faults as the server shows them. Where ours answers
something else, ``ours`` stands beside it.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cel.answers import answer

RECORDS = [json.loads(line) for line in Path(__file__).with_name("recorded.jsonl").read_text().splitlines()]
# What differs, and is left so: a second fault after a first; how Go reads numbers; keys that Python's maps cannot have.
MOST_DIFFERENCES = 18
MOST_OTHER_VERDICTS = 7


@pytest.mark.parametrize("record", RECORDS, ids=[record["expression"] for record in RECORDS])
def test_ours_answers_as_the_server_does(record: dict[str, object]) -> None:
    ours = answer(str(record.pop("expression")))
    expected = record.get("ours", record)
    if "shown" in record and "ours" not in record:  # no JSON has it
        assert (ours["type"], "value" in ours) == (record["type"], True)
    else:
        assert ours == expected


def test_what_differs_is_not_getting_more() -> None:
    differences = [record for record in RECORDS if "ours" in record]
    assert len(differences) <= MOST_DIFFERENCES
    verdicts = ("faults", "error", "value")
    other = [r for r in differences if [v for v in verdicts if v in r] != [v for v in verdicts if v in r["ours"]]]
    assert len(other) <= MOST_OTHER_VERDICTS, other
