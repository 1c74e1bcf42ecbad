from __future__ import annotations

from typing import Any

import pytest

from deltaloop.api import kinds
from deltaloop.api.errors import InvalidPathError
from deltaloop.api.resource import Resource
from deltaloop.client.core.wait_conditions import (
    Deleted,
    WaitCondition,
    created,
    deleted,
    established,
    field_value,
    ready,
    status_condition,
)


def obj(status: Any = None, *, generation: int = 0, **metadata: Any) -> Resource:
    fields: dict[str, Any] = {"metadata": {"name": "a", "generation": generation, "resourceVersion": "4", **metadata}}
    if status is not None:
        fields["status"] = status
    return Resource.from_dict(fields, kinds.POD)


def with_condition(**entry: Any) -> dict[str, Any]:
    return {"conditions": [{"type": "Other", "status": "True"}, entry]}


@pytest.mark.parametrize(
    ("condition", "status", "met"),
    [
        (ready(), with_condition(type="Ready", status="True"), True),
        (ready(), with_condition(type="ready", status="true"), True),
        (ready(), with_condition(type="Ready", status="False"), False),
        (ready(), with_condition(type="ReadyToo", status="True"), False),
        (ready(), None, False),
        (ready(), {"conditions": None}, False),
        (ready(), {"conditions": "Ready"}, False),
        (ready(), {"conditions": [None, "Ready", {"status": "True"}]}, False),
        (ready(), "Ready", False),
        (established(), with_condition(type="Established", status="True"), True),
        (status_condition("Available", "False"), with_condition(type="Available", status="False"), True),
        (status_condition("Available", "Unknown"), with_condition(type="Available", status="False"), False),
        (created(), None, True),
        (field_value("status.phase", "Running"), {"phase": "Running"}, True),
        (field_value("status.phase", "Running"), {"phase": "Pending"}, False),
        (field_value("status.phase"), {"phase": "Pending"}, True),
        (field_value("status.phase"), {}, False),
        (field_value("status.phase"), {"phase": None}, False),
        (field_value("status.phase.deeper", "x"), {"phase": "Running"}, False),
        (field_value("status.n", 1), {"n": 1}, True),
        (field_value("status.n", "1"), {"n": 1}, False),
        (field_value("status.n", 1), {"n": True}, False),
        (field_value("status.n", True), {"n": True}, True),
        (field_value("status.n", ["a"]), {"n": ["a"]}, True),
        (field_value("status.n", {"a": [1]}), {"n": {"a": [1]}}, True),
    ],
)
def test_conditions(condition: WaitCondition, status: Any, met: bool) -> None:
    assert condition.is_met(obj(status)) is met


@pytest.mark.parametrize(
    ("status", "generation", "met"),
    [
        (with_condition(type="Ready", status="True", observedGeneration=2), 3, False),
        (with_condition(type="Ready", status="True", observedGeneration=3), 3, True),
        ({"observedGeneration": 2, **with_condition(type="Ready", status="True")}, 3, False),
        ({"observedGeneration": 2, **with_condition(type="Ready", status="True", observedGeneration=3)}, 3, True),
        (with_condition(type="Ready", status="True"), 3, True),
    ],
)
def test_condition_of_older_generation_is_ignored(status: Any, generation: int, met: bool) -> None:
    assert ready().is_met(obj(status, generation=generation)) is met


@pytest.mark.parametrize(
    ("condition", "status", "text"),
    [
        (ready(), None, "it has no condition Ready"),
        (ready(), with_condition(type="Ready", status="False"), "its condition Ready is False"),
        (ready(), with_condition(type="Ready", status="True"), "its condition Ready is True"),
        (ready(), with_condition(type="Ready", status="Unknown"), "its condition Ready is Unknown"),
        (ready(), {"conditions": "Ready"}, "it has no condition Ready"),
        (ready(), with_condition(type="Ready", status="s3cret"), "its condition Ready is something else"),
        (
            ready(),
            with_condition(type="Ready", status="True", observedGeneration=1),
            "its condition Ready is True, for an older generation of the object",
        ),
        (field_value("data.password", "x"), None, "it has no data.password"),
        (field_value("status.phase", "x"), {"phase": "s3cret"}, "it has another status.phase"),
        (created(), None, "it exists as a"),
        (deleted(), None, "it exists and is not being deleted"),
    ],
)
def test_description_of_unmet_condition_has_no_data(condition: Any, status: Any, text: str) -> None:
    assert condition.shows(obj(status, generation=2)) == text


def test_description_of_object_with_finalizers() -> None:
    held = obj(deletionTimestamp="2026-01-01T00:00:00Z", finalizers=["a/b", "c/d"])
    assert deleted().shows(held) == "it is being deleted and has 2 finalizers"


def test_descriptions() -> None:
    conditions: list[WaitCondition | Deleted] = [
        deleted(),
        created(),
        ready(),
        status_condition("A", "False"),
        field_value("a.b", "s3cret"),
        status_condition("B"),
    ]
    assert [condition.describe() for condition in [*conditions, field_value("a.b")]] == [
        "deletion",
        "creation",
        "condition Ready=True",
        "condition A=False",
        "a matching value of a.b",
        "condition B=True",
        "a value of a.b",
    ]


def test_invalid_field_path_raises_error() -> None:
    with pytest.raises(InvalidPathError):
        field_value("..")
