"""Validation of chart values with the JSON Schema keywords that generated charts use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

from deltaloop.api.json_values import is_mapping, items, mapping, texts

_TYPES: Final[dict[str, Any]] = {
    "string": str,
    "boolean": bool,
    "integer": int,
    "number": (int, float),
    "array": list,
    "object": dict,
    "null": type(None),
}


def fits(schema: Mapping[str, Any], value: object) -> bool:
    kinds = schema.get("type")
    if kinds is not None and not any(_is_a(kind, value) for kind in ([kinds] if isinstance(kinds, str) else kinds)):
        return False
    if "enum" in schema and value not in schema["enum"]:
        return False
    if "anyOf" in schema and not any(fits(each, value) for each in schema["anyOf"]):
        return False
    if "oneOf" in schema and sum(fits(each, value) for each in schema["oneOf"]) != 1:
        return False
    if isinstance(value, str) and len(value) < schema.get("minLength", 0):
        return False
    if isinstance(value, int | float) and value < schema.get("minimum", value):
        return False
    if isinstance(value, list):
        return all(fits(mapping(schema.get("items")), each) for each in items(cast("object", value)))
    return not is_mapping(value) or _fits_object(schema, value)


def _fits_object(schema: Mapping[str, Any], value: Mapping[str, object]) -> bool:
    known, other = mapping(schema.get("properties")), schema.get("additionalProperties")
    return all(name in value for name in texts(schema.get("required"))) and all(
        fits(mapping(known[name]), each) if name in known else other is not False and fits(mapping(other), each)
        for name, each in value.items()
    )


def _is_a(kind: str, value: object) -> bool:
    return isinstance(value, _TYPES[kind]) and (kind == "boolean" or not isinstance(value, bool))
