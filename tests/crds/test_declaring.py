"""A decorated class is a kind; what a server would refuse is refused where it is decorated, with class and field."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import msgspec
import pytest
from msgspec import UNSET, Meta, Struct, UnsetType

import deltaloop as dl
from deltaloop.apiserver.core.crds.definition import default_crd
from deltaloop.apiserver.core.crds.validation import validate_crd
from deltaloop.crds import (
    Conditions,
    PrinterColumn,
    ScaleSubresource,
    TypedReference,
    ValidationRule,
    atomic,
    class_rules,
    custom_resource,
    field_rules,
    generate_crd,
    list_map_keys,
)
from deltaloop.crds.declaring import is_kind, plural_of
from deltaloop.errors import InvalidArgumentError, InvalidKindError
from tests.having import having


@class_rules("self.least <= self.most", ValidationRule("self.most < 100", message="too many", field_path=".most"))
class Spec(Struct):
    """What is wanted."""

    least: int = 0
    most: Annotated[int, field_rules(ValidationRule("self >= oldSelf", message="may not shrink"))] = 3
    secret: TypedReference | UnsetType = UNSET


class State(Struct, rename="camel"):
    ready_replicas: int = 0
    selector: str = ""
    conditions: Conditions = []


@custom_resource(
    group="example.com",
    version="v1",
    short_names=["gw"],
    categories=["all"],
    printer_columns=[
        PrinterColumn("Most", ".spec.most", description="How many at most."),
        PrinterColumn("Ready", '.status.conditions[?(@.type=="Ready")].status'),
        PrinterColumn("Age", ".metadata.creationTimestamp"),
        PrinterColumn("Wide", ".spec.least", type="number", priority=1),
    ],
    scale=ScaleSubresource(
        replicas=".spec.most", ready_replicas=".status.readyReplicas", label_selector=".status.selector"
    ),
    selectable_fields=[".spec.most"],
)
class Gateway(Struct, kw_only=True):
    """A way in."""

    metadata: dl.ObjectMeta
    spec: Spec
    status: State | None = None


@custom_resource(group="example.com", version="v1", kind="Policy", namespaced=False, deprecated="use another")
@dataclass
class OldPolicy:
    spec: dict[str, int]


def test_crd_matches_class_declaration() -> None:
    crd = generate_crd(Gateway)
    assert crd["metadata"] == {"name": "gateways.example.com"}
    names = {"kind": "Gateway", "listKind": "GatewayList", "plural": "gateways", "singular": "gateway"}
    assert crd["spec"]["names"] == {**names, "shortNames": ["gw"], "categories": ["all"]}
    assert crd["spec"]["scope"] == "Namespaced"
    [version] = crd["spec"]["versions"]
    schema = version.pop("schema")["openAPIV3Schema"]
    assert version == {
        "name": "v1",
        "served": True,
        "storage": True,
        "subresources": {
            "status": {},
            "scale": {
                "specReplicasPath": ".spec.most",
                "statusReplicasPath": ".status.readyReplicas",
                "labelSelectorPath": ".status.selector",
            },
        },
        "additionalPrinterColumns": [
            {"name": "Most", "type": "integer", "jsonPath": ".spec.most", "description": "How many at most."},
            {"name": "Ready", "type": "string", "jsonPath": '.status.conditions[?(@.type=="Ready")].status'},
            {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
            {"name": "Wide", "type": "number", "jsonPath": ".spec.least", "priority": 1},
        ],
        "selectableFields": [{"jsonPath": ".spec.most"}],
    }
    assert (schema["description"], schema["required"]) == ("A way in.", ["spec"])
    assert schema["properties"]["metadata"] == {"type": "object"}
    rules = [
        {"rule": "self.least <= self.most"},
        {"rule": "self.most < 100", "message": "too many", "fieldPath": ".most"},
    ]
    assert schema["properties"]["spec"]["x-kubernetes-validations"] == rules


@pytest.mark.parametrize("cls", [Gateway, OldPolicy])
def test_generated_crd_is_valid(cls: type) -> None:
    crd = default_crd(generate_crd(cls))
    assert [str(error) for error in validate_crd({**crd, "status": {"storedVersions": ["v1"]}})] == []


def test_resource_type_of_decorated_class() -> None:
    assert dl.ResourceType.of(Gateway) == dl.ResourceType[dl.Resource]("example.com", "v1", "Gateway", "gateways")
    policy = dl.ResourceType.of(OldPolicy)
    assert (policy.kind, policy.plural, policy.namespaced, policy.model) == ("Policy", "policies", False, OldPolicy)
    assert is_kind(Gateway)
    assert not is_kind(Spec)
    assert not is_kind(Gateway.__name__)
    [version] = generate_crd(OldPolicy)["spec"]["versions"]
    assert (version["deprecated"], version["deprecationWarning"]) == (True, "use another")
    assert "subresources" not in version


def test_subclass_of_kind_is_not_a_kind() -> None:
    class Other(Gateway):
        pass

    assert not is_kind(Other)
    with pytest.raises(InvalidArgumentError, check=having(argument="Other")):
        generate_crd(Other)


@pytest.mark.parametrize(
    ("kind", "plural"),
    [
        ("Database", "databases"),
        ("Policy", "policies"),
        ("Gateway", "gateways"),
        ("Class", "classes"),
        ("Box", "boxes"),
    ],
)
def test_plurals(kind: str, plural: str) -> None:
    assert plural_of(kind) == plural


def made(
    *fields: tuple[str, Any] | tuple[str, Any, Any], rules: tuple[ValidationRule | str, ...] = (), **options: Any
) -> type:
    """A kind with a spec of these fields."""
    spec = msgspec.defstruct("ThingSpec", [*fields])
    if rules:
        class_rules(*rules)(spec)
    whole = msgspec.defstruct("Thing", [("spec", spec), *options.pop("others", [])])
    keywords: dict[str, Any] = {"group": "example.com", "version": "v1", **options}
    found: type = custom_resource(**keywords)(whole)
    return found


@pytest.mark.parametrize(
    ("make", "argument"),
    [
        (lambda: made(group="example"), "group"),
        (
            lambda: made(group="things.k8s.io", annotations={"api-approved.kubernetes.io": ""}),
            "group",
        ),
        (lambda: made(group="k8s.io"), "group"),
        (lambda: made(version="1"), "version"),
        (lambda: made(plural="Things"), "plural"),
        (lambda: made(short_names=["A_b"]), "short_names"),
        (lambda: made(short_names="db"), "short_names"),
        (
            lambda: made(("n", Annotated[int, field_rules("self > 'a'")])),
            "ThingSpec.n",
        ),
        (lambda: made(("n", int), rules=("self.m > 1",)), "ThingSpec"),
        (lambda: made(("n", int), rules=("self.n",)), "ThingSpec"),
        (
            lambda: made(("n", Annotated[list[str], field_rules("self.all(x, self.exists_one(y, x == y))")])),
            "ThingSpec.n",
        ),
        (
            lambda: made(("n", Annotated[int, field_rules(ValidationRule("self > 1", message_expression="1"))])),
            "ThingSpec.n",
        ),
        (
            lambda: made(("n", Annotated[int, Meta(ge=1)], 0)),
            "ThingSpec.n",
        ),
        (lambda: made(("n", Annotated[str, Meta(pattern="(?=a)")])), "ThingSpec.n"),
        (lambda: made(("n", Annotated[list[TypedReference], list_map_keys("nobody")])), "ThingSpec.n"),
        (lambda: made(("n", Annotated[str, atomic()])), "ThingSpec.n"),
        (
            lambda: made(printer_columns=[PrinterColumn("A", ".spec.a")]),
            "printer column 'A'",
        ),
        (lambda: made(printer_columns=[PrinterColumn("", ".spec")]), "printer column ''"),
        (lambda: made(printer_columns=[PrinterColumn("A", "spec")]), "printer column 'A'"),
        (lambda: made(scale=ScaleSubresource()), "the scale subresource"),
        (
            lambda: made(("n", int), others=[("status", State, None)], scale=ScaleSubresource(".spec.n", ".spec.n")),
            "the scale subresource",
        ),
        (lambda: made(selectable_fields=[".spec.a"]), "selectable_fields"),
        (lambda: made(others=[("status", State)]), "Thing.status"),
    ],
)
def test_invalid_kind_is_rejected_on_declaration(make: Any, argument: str) -> None:
    with pytest.raises(InvalidKindError, check=having(argument=argument)):
        make()


@pytest.mark.parametrize("field", [("n", str, 5), ("n", Annotated[int, Meta(ge=2)], 1), ("n", list[str], "a")])
def test_error_of_an_invalid_default_names_field_and_default(field: Any) -> None:
    with pytest.raises(InvalidKindError, check=having(cls="ThingSpec", field="n")) as caught:
        made(field)
    assert "default is invalid" in str(caught.value)


def test_further_errors_are_counted() -> None:
    wrong = Annotated[int, field_rules("nobody")]
    with pytest.raises(InvalidKindError, check=having(cls="ThingSpec", field="n")) as caught:
        made(("n", wrong), ("m", wrong))
    assert "and 1 more" in str(caught.value)


def test_approval_annotation_of_protected_group_is_kept() -> None:
    approved = {"api-approved.kubernetes.io": "https://example.com/approved"}
    first = made(group="things.k8s.io", annotations=approved, storage=True)
    second = made(group="things.k8s.io", version="v2", annotations={**approved, "example.com/a": "b"})
    crd = default_crd(generate_crd(first, second))
    assert crd["metadata"]["annotations"] == {**approved, "example.com/a": "b"}
    assert [str(error) for error in validate_crd({**crd, "status": {"storedVersions": ["v1"]}})] == []


def test_invalid_keywords_columns_and_rules_are_rejected() -> None:
    unknown: dict[str, Any] = {"colums": []}
    with pytest.raises(InvalidArgumentError, check=having(argument="keyword of custom_resource()")):
        made(**unknown)
    columns: Any = [".spec.a"]
    with pytest.raises(InvalidKindError, check=having(argument="printer_columns")):
        made(printer_columns=columns)
    rule: Any = 3
    with pytest.raises(InvalidArgumentError, check=having(argument="rules")):
        field_rules(rule)


@pytest.mark.parametrize("nothing", [class_rules, field_rules, list_map_keys])
def test_empty_annotation_is_rejected(nothing: Any) -> None:
    with pytest.raises(InvalidArgumentError):
        nothing()


def test_printer_column_may_use_untyped_field() -> None:
    crd = generate_crd(
        made(("any", Any), ("free", dict[str, Any]), printer_columns=[PrinterColumn("A", ".spec.free.a")])
    )
    assert crd["spec"]["versions"][0]["additionalPrinterColumns"] == [
        {"name": "A", "type": "string", "jsonPath": ".spec.free.a"}
    ]


def test_class_rules_above_custom_resource_are_rejected() -> None:
    @custom_resource(group="example.com", version="v1")
    class Swapped(msgspec.Struct):
        spec: int = 0

    with pytest.raises(InvalidArgumentError):
        class_rules("self.spec > 0")(Swapped)
