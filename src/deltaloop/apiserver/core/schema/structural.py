"""Whether a CRD's schema is structural: one that says for every place what type it has, so that it can prune.

Source: apiextensions-apiserver pkg/apiserver/schema/validation.go, pkg/apis/apiextensions/validation, and
https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#specifying-a-structural-schema.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from deltaloop.apiserver.core.failures import FieldError, forbidden_field, invalid_value, not_supported, required
from deltaloop.apiserver.core.json_values import is_mapping, items, mapping, texts
from deltaloop.apiserver.core.schema.node import compile_schema
from deltaloop.apiserver.core.schema.pruning import prune_value
from deltaloop.apiserver.core.schema.validating import validate_value

_TYPES: Final = ("array", "boolean", "integer", "number", "object", "string")
_UNSUPPORTED: Final = ("$ref", "additionalItems", "definitions", "dependencies", "id", "patternProperties")
_ONLY_STRUCTURAL: Final = (
    "type",
    "additionalProperties",
    "default",
    "description",
    "nullable",
    "title",
    "x-kubernetes-embedded-resource",
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
    "x-kubernetes-preserve-unknown-fields",
)
_INT_OR_STRING: Final = ({"type": "integer"}, {"type": "string"})
_NUMBERS: Final = (
    "maximum",
    "minimum",
    "multipleOf",
    "maxItems",
    "minItems",
    "maxLength",
    "minLength",
    "maxProperties",
    "minProperties",
)


def structural_errors(schema: dict[str, Any], field: str) -> list[FieldError]:
    """Return what keeps a version's schema from being structural; empty if it is.

    Args:
        schema: The decoded schema.
        field: Where it is in the CRD.
    """
    errors = list(_shape_errors(schema, field))
    if errors:
        return errors
    errors = list(_node_errors(schema, field, "root"))
    metadata = mapping(mapping(schema.get("properties")).get("metadata"))
    if set(mapping(metadata.get("properties"))) - {"name", "generateName"}:
        text = "must not specify anything other than name and generateName, but metadata is implicitly specified"
        errors.append(forbidden_field(f"{field}.properties[metadata]", text))
    return errors or list(_default_errors(schema, field))


def has_rules(schema: object) -> bool:
    """Tell whether a schema has CEL rules anywhere, which this server does not evaluate."""
    if any(has_rules(item) for item in items(schema)):
        return True
    fields = mapping(schema)
    if isinstance(fields.get("x-kubernetes-validations"), list) and fields["x-kubernetes-validations"]:
        return True
    return any(has_rules(inner) for name, inner in fields.items() if name not in ("default", "enum", "example"))


def _written(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _shape_errors(schema: dict[str, Any], field: str) -> Iterator[FieldError]:
    """Yield what has not even the type it needs, so that the other steps need not look."""
    for name in _NUMBERS:
        value = schema.get(name)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
            yield invalid_value(f"{field}.{name}", _written(value), "must be a number")
    for name, child, where in _children(schema, field):
        if is_mapping(child):
            yield from _shape_errors(child, where)
        elif name != "additionalProperties" or not isinstance(child, bool):
            yield invalid_value(where, _written(child), "must be a schema")


def _children(schema: dict[str, Any], field: str) -> Iterator[tuple[str, Any, str]]:
    for name, child in mapping(schema.get("properties")).items():
        yield "properties", child, f"{field}.properties[{name}]"
    for name in ("additionalProperties", "items", "not"):
        if schema.get(name) is not None:
            yield name, schema[name], f"{field}.{name}"
    for name in ("allOf", "anyOf", "oneOf"):
        for position, child in enumerate(items(schema.get(name))):
            yield name, child, f"{field}.{name}[{position}]"


def _node_errors(schema: dict[str, Any], field: str, level: str) -> Iterator[FieldError]:
    yield from _type_errors(schema, field, level)
    yield from _unsupported_errors(schema, field)
    yield from _extension_errors(schema, field)
    yield from _list_errors(schema, field)
    properties = mapping(schema.get("properties"))
    additional = schema.get("additionalProperties")
    if additional is False:
        yield forbidden_field(f"{field}.additionalProperties", "additionalProperties cannot be set to false")
    if properties and additional is not None:
        text = "additionalProperties and properties are mutual exclusive"
        yield forbidden_field(f"{field}.additionalProperties", text)
    for name, child in properties.items():
        yield from _node_errors(mapping(child), f"{field}.properties[{name}]", "object fields")
    if is_mapping(additional):
        yield from _node_errors(additional, f"{field}.additionalProperties", "object fields")
    if is_mapping(schema.get("items")):
        yield from _node_errors(mapping(schema["items"]), f"{field}.items", "array items")
    for name, child, where in _children(schema, field):
        if name in ("allOf", "anyOf", "oneOf", "not"):
            yield from _value_errors(mapping(child), schema, where, schema)


def _type_errors(schema: dict[str, Any], field: str, level: str) -> Iterator[FieldError]:
    wanted = schema.get("type") or ""
    is_open = (
        schema.get("x-kubernetes-preserve-unknown-fields") is True or schema.get("x-kubernetes-int-or-string") is True
    )
    if level == "root":
        if not wanted:
            yield required(f"{field}.type", "must not be empty at the root")
        elif wanted != "object":
            yield invalid_value(f"{field}.type", _written(wanted), "must be object at the root")
    elif not wanted:
        if not is_open:
            yield required(f"{field}.type", f"must not be empty for specified {level}")
    elif wanted not in _TYPES:
        yield not_supported(f"{field}.type", str(wanted), _TYPES)
    if wanted == "array" and schema.get("items") is None:
        yield required(f"{field}.items", "must be specified")


def _unsupported_errors(schema: dict[str, Any], field: str) -> Iterator[FieldError]:
    for name in _UNSUPPORTED:
        if schema.get(name):
            yield forbidden_field(f"{field}.{name}", f"{name} is not supported")
    if schema.get("uniqueItems") is True:
        text = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        yield forbidden_field(f"{field}.uniqueItems", text)


def _extension_errors(schema: dict[str, Any], field: str) -> Iterator[FieldError]:
    wanted = schema.get("type") or ""
    preserve = schema.get("x-kubernetes-preserve-unknown-fields")
    preserve_field = f"{field}.x-kubernetes-preserve-unknown-fields"
    if preserve is not None and preserve is not True:
        yield invalid_value(preserve_field, _written(preserve), "must be true or undefined")
    if preserve is True and wanted not in ("", "object"):
        text = "must be object if x-kubernetes-preserve-unknown-fields is true"
        yield invalid_value(f"{field}.type", _written(wanted), text)
    if schema.get("x-kubernetes-int-or-string") is True and wanted:
        text = "must be empty if x-kubernetes-int-or-string is true"
        yield invalid_value(f"{field}.type", _written(wanted), text)
    if schema.get("x-kubernetes-embedded-resource") is True:
        if wanted != "object":
            text = "must be object if x-kubernetes-embedded-resource is true"
            if wanted:
                yield invalid_value(f"{field}.type", _written(wanted), text)
            else:
                yield required(f"{field}.type", text)
        if not schema.get("properties") and preserve is not True:
            text = (
                "must not be empty if x-kubernetes-embedded-resource is true without "
                "x-kubernetes-preserve-unknown-fields"
            )
            yield required(f"{field}.properties", text)


def _list_errors(schema: dict[str, Any], field: str) -> Iterator[FieldError]:
    kind = schema.get("x-kubernetes-list-type")
    keys = texts(schema.get("x-kubernetes-list-map-keys"))
    at_keys = f"{field}.x-kubernetes-list-map-keys"
    if kind is None:
        if keys:
            yield required(f"{field}.x-kubernetes-list-type", "must be map if x-kubernetes-list-map-keys is non-empty")
        return
    if kind not in ("atomic", "set", "map"):
        yield not_supported(f"{field}.x-kubernetes-list-type", str(kind), ("atomic", "set", "map"))
        return
    if schema.get("type") != "array":
        text = f"must be array if x-kubernetes-list-type is {kind}"
        yield invalid_value(f"{field}.type", _written(schema.get("type") or ""), text)
    item = mapping(schema.get("items"))
    if kind != "map":
        if keys:
            yield forbidden_field(at_keys, "must be empty if x-kubernetes-list-type is not map")
        if kind == "set" and item.get("nullable") is True:
            text = "cannot be nullable when x-kubernetes-list-type is set"
            yield forbidden_field(f"{field}.items.nullable", text)
        return
    if not keys:
        yield required(at_keys, "must not be empty if x-kubernetes-list-type is map")
    if item.get("type") != "object":
        text = "must be object if parent array's x-kubernetes-list-type is map"
        yield invalid_value(f"{field}.items.type", _written(item.get("type") or ""), text)
    for position, key in enumerate(keys):
        if key not in mapping(item.get("properties")):
            text = "entries must all be names of item properties"
            yield invalid_value(f"{at_keys}[{position}]", _written(key), text)
        elif key not in texts(item.get("required")) and "default" not in mapping(mapping(item["properties"])[key]):
            text = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property"
            yield required(f"{field}.items.properties[{key}].default", text)


def _value_errors(
    schema: dict[str, Any], structure: dict[str, Any], field: str, parent: dict[str, Any]
) -> Iterator[FieldError]:
    """Yield what a schema inside allOf and its kin must not have; ``structure`` describes the same place outside."""
    int_or_string = parent.get("x-kubernetes-int-or-string") is True
    # The one form that may name types: the two of an int-or-string.
    allowed = int_or_string and schema in _INT_OR_STRING
    for name in _ONLY_STRUCTURAL:
        if name in schema and not (name == "type" and allowed) and schema[name] not in (None, "", False):
            yield forbidden_field(f"{field}.{name}", "must be empty to be structural")
    outside = mapping(structure.get("properties"))
    for name, child in mapping(schema.get("properties")).items():
        where = f"{field}.properties[{name}]"
        if name not in outside and structure.get("additionalProperties") is None:
            yield required(_outside(field, name), f"because it is defined in {where}")
        yield from _value_errors(mapping(child), mapping(outside.get(name)), where, {})
    if is_mapping(schema.get("items")):
        yield from _value_errors(mapping(schema["items"]), mapping(structure.get("items")), f"{field}.items", {})
    for name, child, where in _children(schema, field):
        if name in ("allOf", "anyOf", "oneOf", "not"):
            yield from _value_errors(mapping(child), structure, where, parent)


def _outside(field: str, name: str) -> str:
    """Return where the structural part should have described a property of a schema inside allOf and its kin."""
    kept = [part for part in field.split(".") if part != "not" and not part.startswith(("allOf[", "anyOf[", "oneOf["))]
    return f"{'.'.join(kept)}.properties[{name}]"


def _default_errors(schema: dict[str, Any], field: str) -> Iterator[FieldError]:
    if schema.get("default") is not None:
        node = compile_schema(schema)
        value = copy.deepcopy(schema["default"])
        at_default = f"{field}.default"
        unknown = prune_value(node, value)
        if unknown:
            yield invalid_value(at_default, _written(schema["default"]), "must not have unknown fields")
        for error in validate_value(node, value):
            place = "" if error.field == "<nil>" else error.field
            joined = place if place.startswith("[") or not place else f".{place}"
            yield FieldError(f"{at_default}{joined}", error.reason, error.text)
    for name, child, where in _children(schema, field):
        if name in ("properties", "additionalProperties", "items") and is_mapping(child):
            yield from _default_errors(child, where)
