"""A conversion that loses something is found, with the smallest object that shows it; one that does not, passes."""

from __future__ import annotations

import random
from typing import Annotated, Any, Literal

import msgspec
import pytest

import deltaloop as dl
from deltaloop.crds import Quantity, list_map_keys
from deltaloop.crds.declaring import declared_kind
from deltaloop.errors import ConversionLossError, InvalidArgumentError
from deltaloop.schemas.schema_compiler import compile_schema
from deltaloop.schemas.validating import validate
from deltaloop.testing import assert_conversion_round_trips
from deltaloop.testing.core.drawn_objects import drawn_object
from tests.having import having
from tests.webhooks.kinds import to_new, to_old

KEPT = "example.com/kept"


class Port(msgspec.Struct):
    name: str
    number: Annotated[int, msgspec.Meta(ge=1, le=65535)]


class Spec(msgspec.Struct):
    name: Annotated[str, msgspec.Meta(pattern="^[a-z]+$", min_length=2)]
    replicas: Annotated[int, msgspec.Meta(ge=0, le=9)] = 1
    mode: Literal["fast", "safe"] = "safe"
    storage: Quantity = "1Gi"
    ports: Annotated[list[Port], list_map_keys("name")] = []
    labels: dict[str, str] = {}
    ratio: float | None = None
    spare: bool = False


@dl.custom_resource(group="example.com", version="v1", kind="Thing", storage=True)
class Thing(msgspec.Struct):
    spec: Spec
    metadata: dl.ObjectMeta = msgspec.field(default_factory=dl.ObjectMeta)


@dl.convert(Thing, "v1beta1", "v1")
def up(obj: dict[str, Any]) -> None:
    obj["spec"]["replicas"] = obj["spec"].pop("size", 0)


@dl.convert(Thing, "v1", "v1beta1")
def down(obj: dict[str, Any]) -> None:
    obj["spec"]["size"] = obj["spec"].pop("replicas", 1)


@dl.convert(Thing, "v1", "v1beta1")
def loses_spare(obj: dict[str, Any]) -> None:
    down(obj)
    obj["spec"].pop("spare", None)


@dl.convert(Thing, "v1", "v1beta1")
def loses_annotations(obj: dict[str, Any]) -> None:
    down(obj)
    obj["metadata"].pop("annotations", None)


@dl.convert(Thing, "v1", "v1beta1")
def cuts_ports(obj: dict[str, Any]) -> None:
    down(obj)
    if len(obj["spec"].get("ports", [])) > 1:
        obj["spec"]["ports"] = obj["spec"]["ports"][:1]


def test_lossless_conversion_passes() -> None:
    assert_conversion_round_trips(up, down)


@pytest.mark.parametrize(
    ("function", "path", "of"),
    [
        (loses_spare, "/spec/spare", {"name", "spare"}),
        (loses_annotations, "/metadata/annotations", {"name"}),
        (cuts_ports, "/spec/ports/1", {"name", "ports"}),
    ],
)
def test_lossy_conversion_is_found_and_minimized(function: Any, path: str, of: set[str]) -> None:
    with pytest.raises(ConversionLossError) as caught:
        assert_conversion_round_trips(up, function)
    error = caught.value
    assert error.way == ("v1", "v1beta1", "v1")
    assert error.changes[0]["path"] == path
    assert {*error.object["spec"]} == of
    assert "v1 -> v1beta1 -> v1 changes the object" in str(error)
    assert len(error.object["spec"].get("ports", [])) in (0, 2)


def test_objects_are_generated_for_both_versions() -> None:
    with pytest.raises(ConversionLossError) as caught:
        assert_conversion_round_trips(to_new, to_old)
    assert [change["path"] for change in caught.value.changes] == ["/spec/owner"]


def test_versions_without_a_class_need_samples() -> None:
    kind = dl.ResourceType[Any]("example.com", "v1", "Thing", "things")
    back = dl.convert(kind, "v1beta1", "v1")(up.function)
    there = dl.convert(kind, "v1", "v1beta1")(loses_spare.function)
    with pytest.raises(InvalidArgumentError, check=having(argument="samples")):
        assert_conversion_round_trips(back, there)
    sample = {"apiVersion": "example.com/v1", "kind": "Thing", "spec": {"name": "a", "replicas": 1}}
    assert_conversion_round_trips(back, there, samples=[sample])
    with pytest.raises(ConversionLossError) as caught:
        assert_conversion_round_trips(back, there, samples=[{**sample, "spec": {"spare": True, "replicas": 1}}])
    assert [change["path"] for change in caught.value.changes] == ["/spec/spare"]
    with pytest.raises(InvalidArgumentError, check=having(argument="functions")):
        assert_conversion_round_trips()


def test_generated_objects_satisfy_schema() -> None:
    schema = declared_kind(Thing).schema
    node = compile_schema(schema)
    chance = random.Random(7).random
    drawn = [drawn_object(schema, "example.com/v1", "Thing", chance) for _ in range(200)]
    for obj in drawn:
        assert msgspec.convert(obj, Thing).spec.name
        assert not [*validate(node, obj)]
    fields = {name for obj in drawn for name in obj["spec"]}
    assert fields == {"name", "replicas", "mode", "storage", "ports", "labels", "ratio", "spare"}
    assert {obj["spec"].get("mode") for obj in drawn} == {None, "fast", "safe"}
