"""Objects that do not fit their class: which mismatches there are, and which of them reject a request."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, NotRequired, TypedDict

import msgspec
import pydantic
import pytest

import deltaloop as dl
from deltaloop.webhooks.core.mismatches import decide_mismatch, mismatches


class Port(msgspec.Struct):
    name: str
    number: int


class Limits(msgspec.Struct, forbid_unknown_fields=True):
    least: int = 0
    most: int = 10

    def __post_init__(self) -> None:
        if self.least > self.most:
            raise ValueError("least is above most")


class Spec(msgspec.Struct, rename="camel"):
    size: int
    storage_class: Literal["fast", "slow"]
    ports: Annotated[list[Port], dl.crds.list_map_keys("name")] = []
    zones: list[Port] = []
    tags: dict[str, int] = {}
    limits: Limits | None = None


class Widget(msgspec.Struct):
    spec: Spec


@dataclass
class DataSpec:
    size: int
    zones: list[Port] = field(default_factory=list[Port])


@dataclass
class DataWidget:
    spec: DataSpec


class DictSpec(TypedDict):
    size: int
    zones: NotRequired[list[Port]]


class DictWidget(TypedDict):
    spec: DictSpec


class ModelPort(pydantic.BaseModel):
    name: str
    number: int


class ModelSpec(pydantic.BaseModel):
    size: int
    zones: list[ModelPort] = []
    either: int | list[int] = 1


class ModelWidget(pydantic.BaseModel):
    spec: ModelSpec


def widget(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "a"}, "spec": {"size": 1, "storageClass": "fast", **spec}}


def found(cls: Any, obj: object) -> list[tuple[str, bool]]:
    return [(each.field, each.absent) for each in mismatches(cls, obj)]


@pytest.mark.parametrize("cls", [Widget, DataWidget, DictWidget, ModelWidget])
def test_every_mismatch_is_found(cls: Any) -> None:
    obj = {"spec": {"zones": [{"name": "x", "number": "many"}, {"number": 1}]}}
    known = {("spec.size", True), ("spec.zones[0].number", False), ("spec.zones[1].name", True)}
    assert {*found(cls, obj)} - {("spec.storageClass", True)} == known
    assert found(cls, {}) == [("spec", True)]
    assert found(cls, {"spec": "text"}) == [("spec", False)]
    assert found(cls, widget()) == []


def test_mismatches_of_maps_choices_unknown_fields_and_validators() -> None:
    obj = widget(storageClass="lost", tags={"a/b": "x", "c": 1}, limits={"least": 1, "more": 2})
    assert found(Widget, obj) == [
        ("spec.storageClass", False),
        ("spec.tags['a/b']", False),
        ("spec.limits.more", False),
    ]
    assert found(Widget, widget(limits={"least": 11})) == [("spec.limits", False)]
    assert found(ModelWidget, {"spec": {"size": 1, "either": ["x"]}}) == [
        ("spec.either", False),
        ("spec.either[0]", False),
    ]


def test_problems_contain_no_object_data() -> None:
    obj = widget(storageClass="hidden", size="hidden")
    assert "hidden" not in str([str(each) for each in mismatches(Widget, obj)])
    assert "hidden" not in str([str(each) for each in mismatches(ModelWidget, {"spec": {"size": "hidden"}})])


BROKEN = widget(size="many", ports=[{"name": "a", "number": "x"}, {"name": "b", "number": 1}], zones=[{"name": "z"}])


def rejected(old: dict[str, Any], new: dict[str, Any], cls: Any = Widget, subresource: str = "") -> str | None:
    decision = decide_mismatch("UPDATE", cls, new, old, subresource=subresource)
    return None if decision.rejecting is None else decision.rejecting.field


def change(obj: dict[str, Any], **spec: Any) -> dict[str, Any]:
    changed = copy.deepcopy(obj)
    changed["spec"] = {name: value for name, value in (changed["spec"] | spec).items() if value is not None}
    return changed


def test_mismatch_in_unchanged_field_is_allowed() -> None:
    assert rejected(BROKEN, {**BROKEN, "metadata": {"name": "a", "labels": {"b": "c"}}}) is None
    assert rejected(BROKEN, change(BROKEN, storageClass="slow")) is None
    absent = change(BROKEN, size=None)
    assert rejected(absent, change(absent, storageClass="slow")) is None


def test_mismatch_in_changed_field_is_rejected() -> None:
    assert rejected(BROKEN, change(BROKEN, size="more")) == "spec.size"
    assert rejected(BROKEN, change(BROKEN, size=None)) == "spec.size"
    assert rejected(widget(), change(widget(), size=None)) == "spec.size"
    assert rejected(BROKEN, change(BROKEN, storageClass="none")) == "spec.storageClass", (
        "a second mismatch, behind the first"
    )
    assert rejected({"spec": "text"}, {"spec": "other"}) == "spec"
    assert rejected({"spec": "text"}, {"spec": {}}) == "spec.size"


def test_items_are_compared_by_their_map_keys() -> None:
    a, b = BROKEN["spec"]["ports"]
    assert rejected(BROKEN, change(BROKEN, ports=[b, {**a, "more": 1}])) is None, "moved and changed elsewhere"
    assert rejected(BROKEN, change(BROKEN, ports=[b, {**a, "number": "y"}])) == "spec.ports[1].number"
    assert rejected(BROKEN, change(BROKEN, ports=[{**a, "name": "c"}, b])) == "spec.ports[0].number", "a new item"


def test_items_without_map_keys_are_compared_by_equality_or_index() -> None:
    old = widget(zones=[{"name": "z"}])
    assert rejected(old, change(old, zones=[{"name": "y", "number": 1}, {"name": "z"}])) is None, "inserted before it"
    assert rejected(old, change(old, zones=[{"name": "y"}])) is None, "the field that is absent is not touched"
    assert rejected(old, change(old, zones=[{"name": "z"}, {"name": "y"}])) == "spec.zones[1].number"


def test_object_validator_rejects_if_its_fields_change() -> None:
    old = widget(limits={"least": 11})
    assert rejected(old, change(old, size=2)) is None
    assert rejected(old, change(old, limits={"least": 12})) == "spec.limits"


class Whole(msgspec.Struct):
    spec: dict[str, int]
    status: dict[str, int] = {}

    def __post_init__(self) -> None:
        if self.status.get("size", 0) > self.spec["size"]:
            raise ValueError("the status is above the spec")


def test_a_validator_of_the_whole_object() -> None:
    old: dict[str, Any] = {"metadata": {"name": "a"}, "spec": {"size": 1}, "status": {"size": 2}}
    labelled: dict[str, Any] = {**old, "metadata": {"name": "a", "labels": {}}}
    assert rejected(old, labelled, Whole) is None
    assert rejected(old, {**labelled, "spec": {"size": 0}}, Whole) == ""
    assert rejected(old, {**old, "status": {"size": 3}}, Whole, "status") is None, "it did not fit before"
    assert rejected({**old, "status": {}}, old, Whole, "status") == ""


def test_mismatches_allow_deletion_and_reject_creation() -> None:
    first = decide_mismatch("DELETE", Widget, None, BROKEN)
    assert (first.first.field, first.rejecting) == ("spec.size", None)
    deleted = {**BROKEN, "metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["a/b"]}}
    assert rejected(deleted, change(deleted, size="more")) is None
    assert rejected(BROKEN, change(deleted, size="more")) == "spec.size", "what a client writes there does not count"
    created = decide_mismatch("CREATE", Widget, deleted, None)
    assert created.rejecting is not None
    assert created.rejecting.field == "spec.size"


def test_unreadable_object() -> None:
    assert decide_mismatch("DELETE", None, None, None, problem="not UTF-8").rejecting is None
    created = decide_mismatch("CREATE", None, None, None, problem="not UTF-8").rejecting
    assert created is not None
    assert (created.field, created.problem) == ("", "not UTF-8")
