"""What is wrong with a CRD, or looks as if it were: nodes of a schema, and fields of a version."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from lab.corpus.schemas import PRESERVE

TEXT: Final[dict[str, Any]] = {"type": "string"}
SEVERAL: Final[dict[str, Any]] = {"type": "object", "properties": {"a": TEXT, "b": TEXT, "c": TEXT}}

NODES: Final[Sequence[dict[str, Any]]] = (
    {"type": "string", "pattern": "("},
    {"type": "string", "pattern": "a(?=b)"},
    {"type": "string", "pattern": r"(a)\1"},
    {"type": "string", "pattern": "(?i)^a$"},
    {"type": "string", "default": 1},
    {"type": "string", "default": "b", "enum": ["a"]},
    {"type": "string", "minLength": -1},
    {"type": "text"},
    {},
    {"type": "array"},
    {"type": "array", "items": [TEXT]},
    {"type": "array", "items": SEVERAL, "x-kubernetes-list-type": "set"},
    {"type": "array", "items": TEXT, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a"]},
    {"type": "array", "items": SEVERAL, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a"]},
    {"type": "array", "items": SEVERAL, "x-kubernetes-list-type": "map"},
    {"type": "array", "items": TEXT, "x-kubernetes-list-type": "other"},
    {"type": "array", "items": TEXT, "x-kubernetes-map-type": "atomic"},
    {"type": "array", "items": TEXT, "uniqueItems": True},
    {"type": "array", "items": TEXT, PRESERVE: True},
    {"type": "string", PRESERVE: True},
    {"type": "boolean", PRESERVE: True},
    {"type": "string", "x-kubernetes-int-or-string": True},
    {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "string"}, {"type": "integer"}]},
    {"type": "object", "additionalProperties": False},
    {"type": "object", "additionalProperties": True},
    {"type": "object", "properties": {"a": TEXT}, "additionalProperties": TEXT},
    {"type": "object", "x-kubernetes-map-type": "other"},
    {"type": "object", "x-kubernetes-embedded-resource": True},
    {"type": "object", "x-kubernetes-embedded-resource": True, "properties": {"metadata": {"type": "string"}}},
    {"type": "object", "$ref": "#/definitions/a"},
    {"type": "object", "allOf": [{"properties": {"a": TEXT}}]},
    {"type": "object", "properties": {"a": TEXT}, "anyOf": [{"properties": {"a": {"default": "x"}}}]},
    {"type": "object", "properties": {"a": TEXT}, "not": {"properties": {"b": {"enum": ["x"]}}}},
    {"type": "object", "properties": {"a": TEXT}, "required": ["b"]},
    {"type": "object", "required": ["a", "a"], "properties": {"a": TEXT}},
    {"type": "object", "patternProperties": {"^a": TEXT}},
    {"type": "object", "nullable": True, "default": None},
    {"type": "integer", "multipleOf": 0},
    {"type": "integer", "minimum": 1, "maximum": 0},
    {"type": "string", "format": ""},
    {"type": "string", "enum": []},
    {"type": "string", "enum": ["a", "a"]},
)
# Arguments of ``conformance.target.widget_crd``.
VERSIONS: Final[Sequence[dict[str, Any]]] = (
    {"columns": [{"name": "A", "type": "text", "jsonPath": ".spec.size"}]},
    {"columns": [{"name": "A", "type": "string", "jsonPath": "spec.size"}]},
    {"columns": [{"name": "A", "type": "string", "jsonPath": ".spec.size", "format": "other"}]},
    {"columns": [{"name": "A", "type": "string"}]},
    {"columns": [{"type": "string", "jsonPath": ".spec.size"}]},
    {"selectableFields": [{"jsonPath": ".spec.other"}]},
    {"selectableFields": [{"jsonPath": ".spec.table"}]},
    {"selectableFields": [{"jsonPath": ".metadata.name"}]},
    {"selectableFields": [{"jsonPath": ".spec.size"}] * 9},
    {"deprecationWarning": "it is not deprecated"},
    {"deprecated": True, "deprecationWarning": "two\nlines"},
    {"versions": ("V1",)},
    {"versions": ("v1", "v1")},
    {"scope": "Other"},
)
