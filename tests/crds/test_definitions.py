"""Several versions are one kind: one of them is stored, and all have its names."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from deltaloop.crds import custom_resource, generate_crd
from deltaloop.crds.annotations import ValidationRule
from deltaloop.errors import InvalidArgumentError, InvalidKindError
from tests.having import having


def version(name: str, **keywords: Any) -> type:
    found: dict[str, Any] = {"group": "example.com", "version": name, "kind": "Thing", **keywords}
    cls: type = custom_resource(**found)(msgspec.defstruct(f"Thing{name.upper()}", [("size", int)]))
    return cls


def test_versions_keep_their_order_and_one_is_stored() -> None:
    crd = generate_crd(
        version("v1", storage=True), version("v1alpha1", served=False), version("v1beta1", deprecated=True)
    )
    found = [(each["name"], each["served"], each["storage"]) for each in crd["spec"]["versions"]]
    assert found == [("v1", True, True), ("v1alpha1", False, False), ("v1beta1", True, False)]
    assert crd["spec"]["versions"][2]["deprecated"] is True
    assert "deprecationWarning" not in crd["spec"]["versions"][2]


def test_generate_crd_returns_new_object() -> None:
    cls = version("v1")
    generate_crd(cls)["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clear()
    assert generate_crd(cls)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["size"] == {
        "type": "integer"
    }


@pytest.mark.parametrize(
    ("classes", "cls", "argument"),
    [
        ([version("v1"), version("v2")], "ThingV1, ThingV2", "storage"),
        ([version("v1", storage=True), version("v2", storage=True)], "ThingV1, ThingV2", "storage"),
        ([version("v1", storage=True), version("v1")], "ThingV1", "version"),
        ([version("v1", storage=True), version("v2", kind="Other")], "ThingV2", "kind"),
        ([version("v1", storage=True), version("v2", group="a.b")], "ThingV2", "group"),
        ([version("v1", storage=True), version("v2", plural="x")], "ThingV2", "plural"),
        ([version("v1", storage=True), version("v2", namespaced=False)], "ThingV2", "scope"),
    ],
)
def test_classes_that_are_not_versions_of_one_kind_are_rejected(classes: list[type], cls: str, argument: str) -> None:
    with pytest.raises(InvalidKindError, check=having(cls=cls, argument=argument)):
        generate_crd(*classes)


def test_generate_crd_without_class_is_rejected() -> None:
    with pytest.raises(InvalidArgumentError, check=having(argument="versions")):
        generate_crd()


def test_validation_rule_to_schema() -> None:
    rule = ValidationRule("a", "b", "c", "d", "e", optional_old_self=True)
    assert rule.as_schema() == {
        "rule": "a",
        "message": "b",
        "messageExpression": "c",
        "reason": "d",
        "fieldPath": "e",
        "optionalOldSelf": True,
    }
