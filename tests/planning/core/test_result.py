"""Results of plans, their exit codes, and their documentation."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from deltaloop.planning import FieldChange, Numbers, ObjectChange, Plan, PlanProblem, Restart

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "plan.md"
CHANGE = ObjectChange(action="update", kind="v1/ConfigMap", key="default/a")
FAILED = PlanProblem(reason="failed", subject="a", message="b")
UNFIT = PlanProblem(reason="does-not-fit", subject="a", message="b")


@pytest.mark.parametrize("struct", [Plan, ObjectChange, FieldChange, Restart, PlanProblem, Numbers])
def test_page_names_every_field_of_the_json_output(struct: type[msgspec.Struct]) -> None:
    page = PAGE.read_text()
    assert [name for name in struct.__struct_encode_fields__ if f"`{name}`" not in page] == []


def test_exit_code_says_whether_there_are_changes() -> None:
    assert Plan().exit_code == 0
    assert Plan(changes=(CHANGE,), problems=(UNFIT,)).exit_code == 2
    assert Plan(changes=(CHANGE,), problems=(FAILED,)).exit_code == 1


def test_equal_changes_are_shown_together() -> None:
    fields = (FieldChange(path="data.a", before="1", after="2"),)
    changes = [
        ObjectChange(action="update", kind="v1/ConfigMap", key=f"default/{n}", controller="site", fields=fields)
        for n in range(12)
    ]
    lines = str(Plan(changes=tuple(changes))).splitlines()
    assert "~ 12 v1/ConfigMap" in lines
    assert "    and 2 more" in lines
    assert lines.count('    data.a: "1" → "2"') == 1
