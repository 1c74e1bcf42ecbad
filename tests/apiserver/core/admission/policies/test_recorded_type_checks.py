"""Policies, with what a real status controller warns of in each; all of it has to be ours, word for word.

``make -C lab type-checks-record`` records it anew. Where ours says something else, ``ours`` stands beside it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.apiserver.core.admission.policies.type_check_answers import answer

RECORDED = Path(__file__).with_name("recorded_type_checks.jsonl")
RECORDS: list[dict[str, Any]] = [json.loads(line) for line in RECORDED.read_text().splitlines()]
# The words for ``authorizer.requestResource``; and lists, which ours does not take for kinds that a rule can name.
DIFFERENCES = 2


@pytest.mark.parametrize("record", RECORDS, ids=[record["policy"]["metadata"]["name"] for record in RECORDS])
def test_warnings_match_recorded_status_controller(record: dict[str, Any]) -> None:
    assert answer(record["policy"]) == record.get("ours", record["warnings"])


def test_number_of_differing_warnings_is_bounded() -> None:
    differing = [record for record in RECORDS if "ours" in record]
    assert len(differing) <= DIFFERENCES
    for record in differing:  # the same expressions all the same
        assert [each["fieldRef"] for each in record["ours"]] == [each["fieldRef"] for each in record["warnings"]]
