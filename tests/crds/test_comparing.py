"""What breaks stored objects is told; where nothing is told, what was right stays right, whole."""

from __future__ import annotations

import copy
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltaloop.crds import BreakingReason, breaking_changes
from deltaloop.crds.comparing import BreakingChange
from deltaloop.schemas.completing import unknown_fields
from deltaloop.schemas.decoding import decode_by_schema, schema_errors
from deltaloop.schemas.schema_compiler import schema_from_json

TEXT: dict[str, Any] = {"type": "string"}
NUMBER: dict[str, Any] = {"type": "integer"}
OPEN = {"x-kubernetes-preserve-unknown-fields": True}
R = BreakingReason


def crd(*versions: dict[str, Any], **spec: Any) -> dict[str, Any]:
    names = {"kind": "Thing", "plural": "things"}
    return {"spec": {"group": "a.b", "names": names, "scope": "Namespaced", "versions": [*versions], **spec}}


def one(name: str, schema: dict[str, Any], *, storage: bool = False) -> dict[str, Any]:
    whole = {"type": "object", "properties": {"x": schema}}
    return {"name": name, "served": True, "storage": storage, "schema": {"openAPIV3Schema": whole}}


def told(old: dict[str, Any], new: dict[str, Any]) -> list[tuple[str, BreakingReason]]:
    changes = breaking_changes(crd(one("v1", old, storage=True)), crd(one("v1", new, storage=True)))
    assert all(change.version == "v1" for change in changes)
    return [(change.path, change.reason) for change in changes]


def fields(required: tuple[str, ...] = (), **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, **({"required": [*required]} if required else {})}


@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [
        (fields(a=TEXT), fields(), [("x.a", R.FIELD_REMOVED)]),
        (fields(a=TEXT), {"type": "object", "additionalProperties": NUMBER}, [("x.a", R.TYPE_CHANGED)]),
        (fields(a=TEXT), {"type": "object", **OPEN}, []),
        (fields(a=TEXT), OPEN, []),
        (fields(), fields(a=TEXT), []),
        (fields(), fields(("a",), a=TEXT), [("x.a", R.MADE_REQUIRED)]),
        (fields(), fields(("a",), a={**TEXT, "default": "b"}), []),
        (fields(("a",), a={**TEXT, "default": "b"}), fields(("a",), a=TEXT), [("x.a", R.MADE_REQUIRED)]),
        (fields(("a",), a=TEXT), fields(a=TEXT), []),
        (TEXT, NUMBER, [("x", R.TYPE_CHANGED)]),
        (NUMBER, {"type": "number"}, []),
        ({"type": "number"}, NUMBER, [("x", R.TYPE_CHANGED)]),
        (TEXT, {"x-kubernetes-int-or-string": True}, []),
        ({"x-kubernetes-int-or-string": True}, TEXT, [("x", R.TYPE_CHANGED)]),
        (OPEN, TEXT, [("x", R.TYPE_CHANGED)]),
        ({**TEXT, "nullable": True}, TEXT, [("x", R.NO_LONGER_NULLABLE)]),
        (TEXT, {**TEXT, "enum": ["a"]}, [("x", R.VALUE_REMOVED)]),
        ({**TEXT, "enum": ["a", "b"]}, {**TEXT, "enum": ["b"]}, [("x", R.VALUE_REMOVED)]),
        ({**TEXT, "enum": ["a"]}, {**TEXT, "enum": ["b", "a"]}, []),
        ({**TEXT, "enum": ["a"]}, TEXT, []),
        ({**TEXT, "enum": ["a"]}, {**TEXT, "pattern": "^(?:a|b)$", "nullable": True}, []),
        ({**TEXT, "pattern": "^(?:a|b)$"}, {**TEXT, "pattern": "^(?:a)$"}, [("x", R.VALUE_REMOVED)]),
        ({**NUMBER, "enum": [1]}, {**NUMBER, "anyOf": [{"minimum": 1, "maximum": 1}]}, []),
        (NUMBER, {**NUMBER, "minimum": 1}, [("x", R.RANGE_NARROWED)]),
        ({**NUMBER, "minimum": 1}, {**NUMBER, "minimum": 0}, []),
        ({**NUMBER, "minimum": 1}, {**NUMBER, "minimum": 1, "exclusiveMinimum": True}, [("x", R.RANGE_NARROWED)]),
        ({**NUMBER, "maximum": 3, "exclusiveMaximum": True}, {**NUMBER, "maximum": 3}, []),
        ({**TEXT, "maxLength": 5}, {**TEXT, "maxLength": 4}, [("x", R.RANGE_NARROWED)]),
        (TEXT, {**TEXT, "minLength": 0}, []),
        (TEXT, {**TEXT, "pattern": "a"}, [("x", R.PATTERN_CHANGED)]),
        ({**TEXT, "pattern": "a"}, {**TEXT, "pattern": "b"}, [("x", R.PATTERN_CHANGED)]),
        ({**TEXT, "pattern": "a"}, TEXT, []),
        (TEXT, {**TEXT, "format": "uri"}, [("x", R.NARROWED)]),
        (NUMBER, {**NUMBER, "anyOf": [{"minimum": 3}]}, [("x", R.NARROWED)]),
        ({"type": "object", **OPEN}, {"type": "object"}, [("x", R.CLOSED)]),
        ({"type": "object", **OPEN}, {"type": "object", "additionalProperties": TEXT}, [("x", R.NARROWED)]),
        ({"type": "object", "additionalProperties": TEXT}, fields(a=TEXT), [("x", R.CLOSED)]),
        (
            {"type": "object", "additionalProperties": TEXT},
            {"type": "object", "additionalProperties": {**TEXT, "maxLength": 3}},
            [("x.*", R.RANGE_NARROWED)],
        ),
        ({"type": "array", "items": TEXT}, {"type": "array", "items": NUMBER}, [("x[]", R.TYPE_CHANGED)]),
        (
            {"type": "array", "items": TEXT},
            {"type": "array", "items": TEXT, "x-kubernetes-list-type": "set"},
            [("x", R.LIST_TYPE_CHANGED)],
        ),
        (
            {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a", "b"]},
            {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a"]},
            [("x", R.LIST_TYPE_CHANGED)],
        ),
        (TEXT, {**TEXT, "x-kubernetes-validations": [{"rule": "self != ''"}]}, [("x", R.RULE_ADDED)]),
        ({**TEXT, "x-kubernetes-validations": [{"rule": "self != ''"}]}, TEXT, []),
    ],
)
def test_breaking_changes_of_field(
    old: dict[str, Any], new: dict[str, Any], wanted: list[tuple[str, BreakingReason]]
) -> None:
    assert told(old, new) == wanted
    assert told(old, old) == told(new, new) == []


def test_names_scope_and_versions() -> None:
    before = crd(one("v1", TEXT, storage=True), one("v2", TEXT))
    other = crd(one("v2", TEXT, storage=True), scope="Cluster", group="b.c", names={"kind": "A", "plural": "b"})
    found = [(each.path, each.reason) for each in breaking_changes(before, other)]
    assert found == [
        ("spec.group", R.NAME_CHANGED),
        ("spec.names.kind", R.NAME_CHANGED),
        ("spec.names.plural", R.NAME_CHANGED),
        ("spec.scope", R.SCOPE_CHANGED),
        ("spec.versions[v1]", R.VERSION_REMOVED),
    ]
    assert breaking_changes(before, crd(one("v1", TEXT, storage=True))) == []
    stored = {**before, "status": {"storedVersions": ["v1", "v2"]}}
    [gone] = breaking_changes(stored, crd(one("v1", TEXT, storage=True)))
    assert str(gone).startswith("spec.versions[v2]: version removed: objects are stored in this version. Keep it")


def test_new_version_is_compared_with_stored_version_without_conversion_webhook() -> None:
    before = crd(one("v1", TEXT, storage=True))
    after = crd(one("v1", TEXT, storage=True), one("v2", NUMBER))
    [change] = breaking_changes(before, after)
    assert change == BreakingChange("x", R.TYPE_CHANGED, "was string, is integer", "v2")
    assert str(change) == "v2: x: type changed: was string, is integer"
    after["spec"]["conversion"] = {"strategy": "Webhook"}
    assert breaking_changes(before, after) == []


Schema = dict[str, Any]
OF_TEXTS: list[Schema] = [
    {},
    {"enum": ["a"]},
    {"enum": ["a", "b"]},
    {"maxLength": 1},
    {"minLength": 1},
    {"pattern": "^a"},
]
OF_NUMBERS: list[Schema] = [
    {},
    {"minimum": 0},
    {"minimum": 0, "exclusiveMinimum": True},
    {"maximum": 1},
    {"enum": [1, 2]},
    {"multipleOf": 2},
]
OF_LISTS: list[Schema] = [{}, {"maxItems": 1}, {"minItems": 1}, {"x-kubernetes-list-type": "set"}]
OPEN_ONES: list[Schema] = [{"type": "object", **OPEN}, OPEN, {"type": "object"}]


@st.composite
def schemas(draw: st.DrawFn, depth: int = 2) -> Schema:
    """A structural schema."""
    kind = draw(st.sampled_from(["string", "integer", "number", "array", "object", "map", "either", "open"]))
    found: Schema = {"type": kind, "nullable": True} if draw(st.booleans()) else {"type": kind}
    if kind == "string":
        return found | draw(st.sampled_from(OF_TEXTS))
    if kind in ("integer", "number"):
        return found | draw(st.sampled_from(OF_NUMBERS))
    if kind == "either":
        return {"x-kubernetes-int-or-string": True}
    if kind == "open" or not depth:
        return draw(st.sampled_from(OPEN_ONES))
    if kind == "map":
        return {**found, "type": "object", "additionalProperties": draw(schemas(depth - 1))}
    if kind == "array":
        limit = draw(st.sampled_from(OF_LISTS))
        inner = draw(st.sampled_from([TEXT, NUMBER]) if "x-kubernetes-list-type" in limit else schemas(depth - 1))
        return {**found, "items": inner, **limit}
    names = draw(st.lists(st.sampled_from(["a", "b"]), unique=True))
    found["properties"] = {name: draw(schemas(depth - 1)) for name in names}
    if draw(st.booleans()) and names:
        found["required"] = [names[0]]
    return found


VALUES = st.recursive(
    st.none() | st.integers(-1, 3) | st.sampled_from(["", "a", "b", "ab"]) | st.just(0.5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["a", "b", "c"]), inner, max_size=3),
    max_leaves=5,
)


def whole(schema: dict[str, Any]) -> Any:
    return schema_from_json(msgspec.json.encode({"type": "object", "properties": {"x": schema}}))


def changed(schema: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    """A schema that differs in one place at the most."""

    def places(node: dict[str, Any]) -> list[dict[str, Any]]:
        below = [*node.get("properties", {}).values()]
        below += [node[word] for word in ("items", "additionalProperties") if word in node]
        return [node, *(place for child in below for place in places(child))]

    def put(data: tuple[int, dict[str, Any], str]) -> dict[str, Any]:
        result = copy.deepcopy(schema)
        at = places(result)[data[0] % len(places(result))]
        if data[2]:
            at.pop(data[2], None)
        else:
            at.clear()
            at.update(copy.deepcopy(data[1]))
        return result

    words = ["", "", "enum", "nullable", "required", "minimum", "maxLength", "exclusiveMinimum", "pattern", "maxItems"]
    return st.tuples(st.integers(0, 9), schemas(depth=1), st.sampled_from(words)).map(put)


@given(st.data())
def test_valid_objects_stay_valid_without_breaking_changes(data: st.DataObject) -> None:
    old = data.draw(schemas())
    new = data.draw(changed(old) | schemas())
    if told(old, new):
        return
    fields: dict[str, Any] = {"x": data.draw(VALUES)}
    decode_by_schema(whole(old), fields)
    if schema_errors(whole(old), fields):
        return
    assert unknown_fields(whole(new).tree, fields) == []
    again = json.loads(json.dumps(fields))
    decode_by_schema(whole(new), again)
    assert schema_errors(whole(new), again) == []
