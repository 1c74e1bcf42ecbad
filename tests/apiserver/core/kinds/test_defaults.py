"""Defaults of any object of any built-in kind: given once they stay, and what was given stays; seeded bugs are found.

Which defaults there are is in ``tests/conformance/builtin_facts.json``.
"""

# Seeded bugs and examples are of any type here.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from typing import Any

import pytest

from deltaloop.apiserver.builtin_tables import builtin_tables
from deltaloop.schemas import completing
from deltaloop.schemas.completing import complete_object, empty_object, initial_status, without_zeros
from deltaloop.schemas.quantity import MalformedQuantityError, canonical_quantity
from deltaloop.schemas.type_table import FieldType
from tests.apiserver.core.built_in import built_in_schema

KINDS = [
    (entry.kind, entry.type, built_in_schema(entry.api_version, entry.kind).tree)
    for entry in builtin_tables().kinds
    if entry.plural and entry.kind != "CustomResourceDefinition"
]
# What follows from another field even where it is given: its old name, its first value, settings of what is off.
DERIVED = (
    "serviceAccount",
    "serviceAccountName",
    "sessionAffinityConfig",
    "kind",
    "apiVersion",
    "podIPs",
    "podCIDRs",
)


def some(shape: FieldType, chance: random.Random, depth: int) -> Any:
    """Return a value of a type that is not empty, or None."""
    if isinstance(shape, str):
        if shape.startswith("#"):
            return some_struct(shape[1:], chance, depth - 1) if depth else None
        choices: dict[str, tuple[Any, ...]] = {
            "string": ("a", "b"),
            "integer": (1, 7),
            "number": (1.5,),
            "boolean": (True,),
            "intstr": (3, "25%"),
            "quantity": ("0.5", "1024Mi", "2"),
        }
        return chance.choice(choices.get(shape, ({"k": "v"},)))
    if shape.of is not None:
        return some(shape.of, chance, depth)
    inner = some(shape.item or shape.value or "string", chance, depth)
    if inner is None:
        return None
    return [inner] if shape.item is not None else {"k": inner}


def some_struct(name: str, chance: random.Random, depth: int) -> dict[str, Any]:
    fields, off = builtin_tables().types[name].fields, builtin_tables().types[name].off
    made = {field: some(shape, chance, depth) for field, shape in fields.items() if chance.random() < 0.4}
    made = {field: value for field, value in made.items() if field not in off}
    return {field: value for field, value in made.items() if value is not None and field != "metadata"}


def leaves(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    if isinstance(value, dict) and value:
        for key in value:
            yield from leaves(value[key], (*path, key))
    elif isinstance(value, list) and value:
        for place, item in enumerate(value):
            yield from leaves(item, (*path, place))
    else:
        yield path, value


def same(given: Any, found: Any) -> bool:
    if given == found or isinstance(given, dict | list):
        return True
    try:
        return isinstance(found, str) and found == canonical_quantity(str(given), of_resource=True)
    except MalformedQuantityError:
        return False


def check(times: int) -> None:
    for number in range(times):
        chance = random.Random(number)
        for kind, name, node in KINDS:
            given = {"metadata": {"name": "a"}, **some_struct(name, chance, 5)}
            once = copy.deepcopy(given)
            complete_object(node, once)
            twice = copy.deepcopy(once)
            complete_object(node, twice)
            assert twice == once, (kind, given)
            for path, value in leaves(given):
                if not any(step in DERIVED for step in path):
                    found: Any = once
                    for step in path:
                        found = found[step]
                    assert same(value, found), (kind, path, value, found)


def test_defaults_keep_given_values_and_are_stable() -> None:
    check(2)


def test_default_values_are_not_shared() -> None:
    made: list[dict[str, Any]] = [{"spec": {"template": {}, "selector": {}}, "metadata": {}} for _ in range(2)]
    first, second = made
    deployment = built_in_schema("apps/v1", "Deployment").tree
    complete_object(deployment, first)
    complete_object(deployment, second)
    first["spec"]["strategy"]["rollingUpdate"]["maxSurge"] = 99
    assert second["spec"]["strategy"]["rollingUpdate"]["maxSurge"] == "25%"


def test_zero_values_are_not_shared_and_omit_metadata() -> None:
    node = built_in_schema("apps/v1", "DaemonSet").tree
    first: dict[str, Any] = {}
    second: dict[str, Any] = {}
    complete_object(node, first)
    first["spec"]["x"] = first["status"]["x"] = first["spec"]["updateStrategy"]["x"] = 1
    complete_object(node, second)
    assert "metadata" not in second
    assert not {"x"} & (second["spec"].keys() | second["status"].keys() | second["spec"]["updateStrategy"].keys())
    drivers: list[dict[str, Any]] = [{"spec": {}}, {"spec": {}}]
    for driver in drivers:
        complete_object(built_in_schema("storage.k8s.io/v1", "CSIDriver").tree, driver)
        driver["spec"]["volumeLifecycleModes"].append("x")
    assert drivers[0] == drivers[1]


def test_sent_zero_values_have_no_owner() -> None:
    node = built_in_schema("storage.k8s.io/v1", "VolumeAttachment").tree
    zeros = {"attacher": "", "nodeName": "", "source": {}}
    sent = {"metadata": {}, "spec": {**zeros, "attacher": "a"}, "status": {"attached": False}}
    assert without_zeros(node, sent) == {"metadata": {}, "spec": {"attacher": "a"}}
    assert without_zeros(node, {"spec": zeros, "x": ""}) == {"x": ""}


def test_empty_object_has_only_zero_values() -> None:
    for _, _, node in KINDS:
        empty = copy.deepcopy(dict(empty_object(node)))
        assert without_zeros(node, {**empty, "x": 1})["x"] == 1
        assert not {name for name, value in without_zeros(node, empty).items() if value}
        status = initial_status(node)
        assert initial_status(node) == status
        if status is not None:
            status["x"] = 1
            assert "x" not in (initial_status(node) or {}), "each object has its own"


def _overwrites(plan: Any, fields: dict[str, Any], **_: object) -> None:
    fields.update({name: value for name, value, _ in plan.fill})


def _grows(fields: dict[str, Any], name: str, **_: object) -> None:
    fields[name] = f"{fields[name]}0"


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("part", "broken"),
    [
        ("_complete", _overwrites),
        ("_canonical", _grows),
        ("_is_zero", lambda _: True),
        ("canonical_quantity", lambda _, **__: "1"),
    ],
)
def test_seeded_bugs_are_detected(part: str, broken: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(completing, part, broken)
    with pytest.raises((AssertionError, KeyError)):
        check(1)
