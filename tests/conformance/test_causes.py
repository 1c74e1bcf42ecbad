"""Which causes a custom resource is refused for by its schema, where one rule hides another, and their words."""

from __future__ import annotations

from typing import Any, Final

from tests.apiserver.serving import Answer
from tests.conformance.target import Api, conformance, widget_crd

_TEXT: Final = {"type": "string"}
_NUMBER: Final = {"type": "integer"}
_SPEC: Final[dict[str, Any]] = {
    "type": "object",
    "minProperties": 1,
    "maxProperties": 2,
    "properties": {
        "short": {**_TEXT, "pattern": "^a+$", "minLength": 5},
        "long": {**_TEXT, "pattern": "^a+$", "maxLength": 2},
        "small": {**_NUMBER, "minimum": 3},
        "many": {"type": "object", "maxProperties": 1, "additionalProperties": {**_TEXT, "maxLength": 1}},
        "few": {"type": "object", "minProperties": 2, "properties": {"a": {**_TEXT, "minLength": 2}}},
        "keyed": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["n"],
            "items": {"type": "object", "required": ["n"], "properties": {"n": _TEXT}},
        },
        "words": {"type": "array", "x-kubernetes-list-type": "set", "items": _TEXT},
    },
}
_STATUS: Final[dict[str, Any]] = {
    "type": "object",
    "maxProperties": 2,
    "properties": {
        "c": _NUMBER,
        "d": {"type": "object", "properties": {"e": _NUMBER}},
        "small": {**_NUMBER, "minimum": 3},
        "words": {"type": "array", "x-kubernetes-list-type": "set", "items": _TEXT},
    },
}
_MANY: Final = "Too many: {}: must have at most {}"


def _schema(**spec: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"spec": {**_SPEC, **spec}, "status": _STATUS}}


def _causes(answer: Answer) -> set[tuple[str, str]]:
    answer.refuses(422, "Invalid")
    return {(cause["field"], cause["message"]) for cause in answer.json["details"]["causes"]}


@conformance(
    "CRDs: a text of a wrong length is not held against its pattern, and an object's size hides nothing below it",
    (
        "too short",
        {"short": "b"},
        {("spec.short", 'Invalid value: "b": spec.short in body should be at least 5 chars long')},
    ),
    ("too long", {"long": "bbb"}, {("spec.long", "Too long: may not be more than 2 bytes")}),
    (
        "too many fields",
        {"short": "b", "small": 1, "words": []},
        {
            ("spec", _MANY.format(3, "2 items")),
            ("spec.short", 'Invalid value: "b": spec.short in body should be at least 5 chars long'),
            ("spec.small", "Invalid value: 1: spec.small in body should be greater than or equal to 3"),
        },
    ),
    (
        "too many keys",
        {"many": {"a": "xx", "b": "y"}},
        {("spec.many", _MANY.format(2, "1 item")), ("spec.many.a", "Too long: may not be more than 1 byte")},
    ),
    (
        "too few fields",
        {"few": {"a": "x"}},
        {
            ("spec.few", "Invalid value: 1: spec.few in body should have at least 2 properties"),
            ("spec.few.a", 'Invalid value: "x": spec.few.a in body should be at least 2 chars long'),
        },
    ),
    (
        "an item twice",
        {"keyed": [{"n": "<a>"}, {"n": "<a>"}]},
        {("spec.keyed[1]", 'Duplicate value: {"n":"\\u003ca\\u003e"}')},
    ),
    ("a text twice", {"words": ["<a>", "<a>"]}, {("spec.words[1]", 'Duplicate value: "<a>"')}),
)
async def test_causes_of_schema_errors(api: Api, spec: dict[str, Any], causes: set[tuple[str, str]]) -> None:
    path = await api.define(widget_crd(api.group(), scale=False, schema=_schema()))
    assert _causes(await api.post(path, api.widget("w", spec))) == causes


@conformance(
    "CRDs: what a write to /status brings is looked at as an object of its own",
    ("a field", {"c": "x"}, {("status.c", 'Invalid value: "string": c in body must be of type integer: "string"')}),
    (
        "deeper",
        {"d": {"e": "x"}},
        {("status.d.e", 'Invalid value: "string": d.e in body must be of type integer: "string"')},
    ),
    ("itself", 5, {("status", 'Invalid value: "integer":  in body must be of type object: "integer"')}),
    (
        "its size",
        {"c": 1, "d": {}, "small": 1},
        {
            ("status", _MANY.format(3, "2 items")),
            ("status.small", "Invalid value: 1: small in body should be greater than or equal to 3"),
        },
    ),
    ("a text twice", {"words": ["a", "a"]}, {("status.words[1]", 'Duplicate value: "a"')}),
)
async def test_causes_of_a_status(api: Api, status: Any, causes: set[tuple[str, str]]) -> None:
    path = await api.define(widget_crd(api.group(), scale=False, schema=_schema()))
    made = await api.created(path, api.widget("w", {"small": 3}))
    assert _causes(await api.put(f"{path}/w/status", {**made.json, "status": status})) == causes


_UNCHECKED: Final = (
    "<nil>",
    (
        "Invalid value: null: some validation rules were not checked because the object was invalid; correct the "
        "existing errors to complete validation"
    ),
)


@conformance(
    "CRDs: a refusal says that rules were not looked at, if it is for a type, a size, or what is missing",
    ("a type", {"small": "x"}, True),
    ("a size", {"words": [], "short": "aaaaa", "small": 3}, True),
    ("a length", {"long": "aaa"}, True),
    ("a pattern", {"long": "b"}, False),
)
async def test_skipped_rules_are_reported(api: Api, spec: dict[str, Any], told: bool) -> None:
    schema = _schema(**{"x-kubernetes-validations": [{"rule": "has(self.small) || true"}]})
    path = await api.define(widget_crd(api.group(), scale=False, schema=schema))
    causes = _causes(await api.post(path, api.widget("w", spec)))
    assert (_UNCHECKED in causes) is told
    assert len(causes) == 1 + told


@conformance("managedFields: keys and values of lists are written without the signs of HTML")
async def test_signs_of_html_in_owned_fields(api: Api) -> None:
    path = await api.define(widget_crd(api.group(), scale=False, schema=_schema()))
    applied = await api.apply(f"{path}/w", api.widget("w", {"keyed": [{"n": "<a>&"}], "words": ["<s>"]}))
    (entry,) = applied.json["metadata"]["managedFields"]
    owned = entry["fieldsV1"]["f:spec"]
    assert list(owned["f:keyed"]) == ['k:{"n":"\\u003ca\\u003e\\u0026"}']
    assert list(owned["f:words"]) == ['v:"\\u003cs\\u003e"']
    removed = await api.apply(f"{path}/w", api.widget("w", {"words": ["<s>"]}))
    assert removed.json["spec"] == {"words": ["<s>"]}
