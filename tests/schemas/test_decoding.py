from __future__ import annotations

import copy
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltaloop.crds.rules.definitions import RuleChecks
from deltaloop.schemas.completing import unknown_fields
from deltaloop.schemas.decoding import decode_by_schema, duplicate_field_texts, schema_errors
from deltaloop.schemas.schema_compiler import schema_from_json
from deltaloop.schemas.schema_rules import schema_errors as crd_schema_errors
from deltaloop.schemas.types import Schema

TEXT: dict[str, Any] = {"type": "string"}


def spec(**properties: Any) -> Schema:
    inner = {"type": "object", "properties": properties}
    return schema_from_json(msgspec.json.encode({"type": "object", "properties": {"spec": inner}}))


def said(schema: dict[str, Any], value: Any) -> list[str]:
    return [str(error) for error in schema_errors(spec(x=schema), {"spec": {"x": value}})]


@pytest.mark.parametrize(
    ("schema", "value", "text"),
    [
        ({"type": "integer", "maximum": 10}, 30, "Invalid value: 30: spec.x in body should be less than or equal to 10"),  # noqa: E501 - one rule a line
        ({"type": "integer", "minimum": 1}, 0, "Invalid value: 0: spec.x in body should be greater than or equal to 1"),
        ({"type": "number", "maximum": 1, "exclusiveMaximum": True}, 1, "Invalid value: 1: spec.x in body should be less than 1"),  # noqa: E501 - one rule a line
        ({"type": "integer", "multipleOf": 2}, 3, "Invalid value: 3: spec.x in body should be a multiple of 2"),
        ({"type": "integer"}, "a", 'Invalid value: "string": spec.x in body must be of type integer: "string"'),
        ({"type": "string"}, None, 'Invalid value: "null": spec.x in body must be of type string: "null"'),
        ({"type": "string", "minLength": 1}, "", 'Invalid value: "": spec.x in body should be at least 1 chars long'),
        ({"type": "string", "maxLength": 1}, "ab", "Too long: may not be more than 1 byte"),
        ({"type": "string", "pattern": "^a$"}, "a\n", "Invalid value: \"a\\n\": spec.x in body should match '^a$'"),
        ({"type": "string", "enum": ["a", "b"]}, "z", 'Unsupported value: "z": supported values: "a", "b"'),
        ({"type": "string", "format": "date"}, "2026-02-29", 'Invalid value: "2026-02-29": spec.x in body must be of type date: "2026-02-29"'),  # noqa: E501 - one rule a line
        ({"type": "array", "items": TEXT, "maxItems": 1}, ["a", "b"], "Too many: 2: must have at most 1 item"),
        ({"x-kubernetes-int-or-string": True}, True, 'Invalid value: "boolean": spec.x in body must be of type integer,string: "boolean"'),  # noqa: E501 - one rule a line
        ({"type": "object", "additionalProperties": TEXT, "minProperties": 1}, {}, "Invalid value: 0: spec.x in body should have at least 1 properties"),  # noqa: E501 - one rule a line
    ],
)  # fmt: skip
def test_error_messages_match_real_server(schema: dict[str, Any], value: Any, text: str) -> None:
    assert said(schema, value) == [f"spec.x: {text}"]


def test_a_missing_field_and_list_identity() -> None:
    item = {"type": "object", "properties": {"name": TEXT}, "required": ["name"]}
    as_map = {"type": "array", "items": item, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}
    assert said(as_map, [{}]) == ["spec.x[0].name: Required value"]
    assert said(as_map, [{"name": "a"}, {"name": "a"}]) == ['spec.x[1]: Duplicate value: {"name":"a"}']
    list_set = {"type": "array", "items": TEXT, "x-kubernetes-list-type": "set"}
    assert said(list_set, ["a", "b", "a"]) == ['spec.x[2]: Duplicate value: "a"']


def test_unknown_fields_are_pruned_and_defaults_set() -> None:
    schema = spec(
        x={"type": "integer", "default": 3},
        open={"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        list={"type": "array", "items": {"type": "object", "properties": {"a": TEXT}}},
        null={"type": "string", "nullable": True},
    )
    fields: dict[str, Any] = {
        "kind": "K",
        "metadata": {"name": "n"},
        "no": 1,
        "spec": {"x": None, "open": {"any": 1}, "list": [{"a": "1", "b": 2}], "null": None},
    }
    assert unknown_fields(schema.tree, fields) == ["no", "spec.list[0].b"]
    assert decode_by_schema(schema, fields)
    assert fields["spec"] == {"x": 3, "open": {"any": 1}, "list": [{"a": "1"}], "null": None}
    assert "no" not in fields
    assert not decode_by_schema(schema, fields)


def test_list_preserving_unknown_fields_preserves_those_of_items() -> None:
    item = {"type": "object", "properties": {"a": {"type": "object", "properties": {"b": TEXT}}}}
    kept = {"type": "array", "items": item, "x-kubernetes-preserve-unknown-fields": True}
    schema = spec(x=kept, y={**kept, "items": {"type": "array", "items": item}}, z={"type": "array", "items": item})
    value = {"a": {"b": "1", "no": 1}, "any": {"c": 1}}
    found = unknown_fields(schema.tree, {"spec": {"x": [value], "y": [[value]], "z": [value]}})
    assert found == ["spec.x[0].a.no", "spec.y[0][0].a.no", "spec.z[0].a.no", "spec.z[0].any"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from("ab"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["x", "y", "z"]), inner, max_size=3),
    max_leaves=8,
)


@given(value=JSON)
def test_decoding_is_idempotent_and_leaves_nothing_unknown(value: Any) -> None:
    nested = {"type": "object", "properties": {"y": {"type": "integer", "default": 1}}, "default": {}}
    schema = spec(x=nested, y={"type": "array", "items": nested})
    fields = {"spec": copy.deepcopy(value)}
    decode_by_schema(schema, fields)
    assert unknown_fields(schema.tree, fields) == []
    once = copy.deepcopy(fields)
    assert not decode_by_schema(schema, fields)
    assert fields == once


def test_duplicate_fields_have_paths() -> None:
    assert duplicate_field_texts(b'{"a":{"b":1,"b":2},"c":[{"d":1,"d":1}]}') == [
        'duplicate field "a.b"',
        'duplicate field "c[0].d"',
    ]


def slow_duplicates(body: bytes) -> bool:
    twice = False

    def build(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal twice
        twice = twice or len(dict(pairs)) < len(pairs)
        return dict(pairs)

    json.loads(body, object_pairs_hook=build)
    return twice


LETTERS = ["", "a", "b", ":", "a:", r"\u003a", r"\u003A:", r"\"", r"\\", "{", "ä"]
TEXTS = st.sampled_from([f'"{text}"' for text in LETTERS])
VALUES = st.recursive(
    TEXTS | st.sampled_from(["1", "1.0", "null", "true", "1e3", "-0"]),
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda items: f"[{','.join(items)}]")
        | st.lists(st.tuples(TEXTS, inner), max_size=4).map(
            lambda pairs: "{" + " ,".join(f"{name} : {value}" for name, value in pairs) + "}"
        )
    ),
    max_leaves=12,
)


@given(VALUES)
def test_duplicate_field_detection_matches_slow_check(text: str) -> None:
    assert bool(duplicate_field_texts(text.encode())) is slow_duplicates(text.encode())


@pytest.mark.parametrize(
    "body", [rb'{"a":1,"a":"\u003a"}', b'{"a":":::","a":1}', rb'{"a":1,"\u0061":2}', b'{"a":NaN,"a":1}']
)
def test_escaped_duplicate_fields_are_detected(body: bytes) -> None:
    assert duplicate_field_texts(body) == ['duplicate field "a"']


NOT_STRUCTURAL: list[tuple[dict[str, Any], str]] = [
    ({}, "s.type: Required value: must not be empty at the root"),
    ({"type": "object", "properties": {"a": {}}}, "s.properties[a].type: Required value: must not be empty for specified object fields"),  # noqa: E501 - one rule a line
    ({"type": "object", "properties": {"a": {"type": "array"}}}, "s.properties[a].items: Required value: must be specified"),  # noqa: E501 - one rule a line
    ({"type": "object", "x-kubernetes-preserve-unknown-fields": False}, "s.x-kubernetes-preserve-unknown-fields: Invalid value: false: must be true or undefined"),  # noqa: E501 - one rule a line
    ({"type": "object", "anyOf": [{"properties": {"a": {}}}]}, "s.properties[a]: Required value: because it is defined in s.anyOf[0].properties[a]"),  # noqa: E501 - one rule a line
    ({"type": "object", "anyOf": [{"description": "d"}]}, "s.anyOf[0].description: Forbidden: must be empty to be structural"),  # noqa: E501 - one rule a line
]  # fmt: skip


@pytest.mark.parametrize(("schema", "text"), NOT_STRUCTURAL)
def test_non_structural_schema_is_rejected(schema: dict[str, Any], text: str) -> None:
    assert [str(error) for error in crd_schema_errors(schema, "s", with_status=False, expressions=RuleChecks())] == [
        text
    ]


def test_invalid_default_is_rejected() -> None:
    schema: dict[str, object] = {"type": "object", "properties": {"a": {"type": "integer", "default": "x"}}}
    (error,) = crd_schema_errors(schema, "s", with_status=False, expressions=RuleChecks())
    assert (error.field, error.reason) == ("s.properties[a].default", "FieldValueTypeInvalid")
