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


def test_the_definition_says_what_the_class_does() -> None:
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
def test_the_server_finds_nothing_wrong_with_it(cls: type) -> None:
    crd = default_crd(generate_crd(cls))
    assert [str(error) for error in validate_crd({**crd, "status": {"storedVersions": ["v1"]}})] == []


def test_a_class_that_is_decorated_names_its_kind() -> None:
    assert dl.ResourceType.of(Gateway) == dl.ResourceType[dl.Resource]("example.com", "v1", "Gateway", "gateways")
    policy = dl.ResourceType.of(OldPolicy)
    assert (policy.kind, policy.plural, policy.namespaced, policy.model) == ("Policy", "policies", False, OldPolicy)
    assert is_kind(Gateway)
    assert not is_kind(Spec)
    assert not is_kind(Gateway.__name__)
    [version] = generate_crd(OldPolicy)["spec"]["versions"]
    assert (version["deprecated"], version["deprecationWarning"]) == (True, "use another")
    assert "subresources" not in version


def test_a_class_below_a_kind_is_none_itself() -> None:
    class Other(Gateway):
        pass

    assert not is_kind(Other)
    with pytest.raises(InvalidArgumentError, match=r"class Other is no kind; decorate it with @custom_resource"):
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
    ("make", "words"),
    [
        (lambda: made(group="example"), r"Thing: its group 'example' is no domain name with a dot"),
        (
            lambda: made(group="things.k8s.io", annotations={"api-approved.kubernetes.io": ""}),
            r"Thing: its group 'things.k8s.io' is one of Kubernetes' own: .*annotations=\{'api-approved",
        ),
        (lambda: made(group="k8s.io"), r"Thing: its group 'k8s.io' is one of Kubernetes' own"),
        (lambda: made(version="1"), r"Thing: its version '1' is no name that a server takes; .*'v1'"),
        (lambda: made(plural="Things"), r"Thing: its plural 'Things' is no name"),
        (lambda: made(short_names=["A_b"]), r"Thing: its short name 'A_b' is no name"),
        (lambda: made(short_names="db"), r"Thing: short_names and categories are lists"),
        (
            lambda: made(("n", Annotated[int, field_rules("self > 'a'")])),
            r"ThingSpec\.n: the rule \"self > 'a'\" is wrong: compilation failed: .*no matching overload",
        ),
        (lambda: made(("n", int), rules=("self.m > 1",)), r"ThingSpec: the rule 'self.m > 1' .*undefined field 'm'"),
        (lambda: made(("n", int), rules=("self.n",)), r"ThingSpec: the rule 'self.n' is wrong: .*bool"),
        (
            lambda: made(("n", Annotated[list[str], field_rules("self.all(x, self.exists_one(y, x == y))")])),
            r"ThingSpec\.n: the rule .* exceeds budget .* maxItems",
        ),
        (
            lambda: made(("n", Annotated[int, field_rules(ValidationRule("self > 1", message_expression="1"))])),
            r"ThingSpec\.n: the rule '1' is wrong: messageExpression must evaluate to a string",
        ),
        (
            lambda: made(("n", Annotated[int, Meta(ge=1)], 0)),
            r"ThingSpec\.n: its default is not valid: Invalid value: 0: .*greater than or equal",
        ),
        (lambda: made(("n", Annotated[str, Meta(pattern="(?=a)")])), r"ThingSpec\.n: .*\(\?="),
        (lambda: made(("n", Annotated[list[TypedReference], list_map_keys("nobody")])), r"ThingSpec\.n: .*nobody"),
        (lambda: made(("n", Annotated[str, atomic()])), r"ThingSpec\.n: "),
        (
            lambda: made(printer_columns=[PrinterColumn("A", ".spec.a")]),
            r"Thing: printer column 'A' shows .spec.a, which",
        ),
        (lambda: made(printer_columns=[PrinterColumn("", ".spec")]), r"Thing: printer column '': Required value"),
        (lambda: made(printer_columns=[PrinterColumn("A", "spec")]), r"Thing: printer column 'A': .*simple json path"),
        (lambda: made(scale=ScaleSubresource()), r"Thing: the scale subresource shows .spec.replicas"),
        (
            lambda: made(("n", int), others=[("status", State, None)], scale=ScaleSubresource(".spec.n", ".spec.n")),
            r"Thing: the scale subresource: .*under .status",
        ),
        (lambda: made(selectable_fields=[".spec.a"]), r"Thing: selectable_fields: .*"),
        (lambda: made(others=[("status", State)]), r"Thing\.status: objects are created without a status"),
    ],
)
def test_what_a_server_would_refuse_is_refused_at_once(make: Any, words: str) -> None:
    with pytest.raises(InvalidKindError, match=words):
        make()


def test_more_than_one_thing_wrong_is_counted() -> None:
    wrong = Annotated[int, field_rules("nobody")]
    with pytest.raises(InvalidKindError, match=r"\(and 1 more\)") as caught:
        made(("n", wrong), ("m", wrong))
    assert (caught.value.cls, caught.value.field) == ("ThingSpec", "n")


def test_a_group_of_kubernetes_itself_says_who_approved_it() -> None:
    approved = {"api-approved.kubernetes.io": "https://example.com/approved"}
    first = made(group="things.k8s.io", annotations=approved, storage=True)
    second = made(group="things.k8s.io", version="v2", annotations={**approved, "example.com/a": "b"})
    crd = default_crd(generate_crd(first, second))
    assert crd["metadata"]["annotations"] == {**approved, "example.com/a": "b"}
    assert [str(error) for error in validate_crd({**crd, "status": {"storedVersions": ["v1"]}})] == []


def test_what_is_no_keyword_column_or_rule_is_refused() -> None:
    unknown: dict[str, Any] = {"colums": []}
    with pytest.raises(InvalidArgumentError, match=r"knows no 'colums'; .*printer_columns"):
        made(**unknown)
    columns: Any = [".spec.a"]
    with pytest.raises(InvalidKindError, match=r"'\.spec\.a' is no printer column: use PrinterColumn"):
        made(printer_columns=columns)
    rule: Any = 3
    with pytest.raises(InvalidArgumentError, match="3 is no rule"):
        field_rules(rule)


@pytest.mark.parametrize("nothing", [class_rules, field_rules, list_map_keys])
def test_an_annotation_that_says_nothing_is_refused(nothing: Any) -> None:
    with pytest.raises(InvalidArgumentError):
        nothing()


def test_a_column_may_look_into_what_is_open() -> None:
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
