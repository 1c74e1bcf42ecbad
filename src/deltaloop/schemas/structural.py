"""Check that a CRD's schema is structural: it specifies the type of every field, which pruning needs.

Source: apiextensions-apiserver pkg/apiserver/schema/validation.go, complete.go, and
https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#specifying-a-structural-schema.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from deltaloop.api.json_values import at, is_mapping, items, mapping, text
from deltaloop.schemas.field_errors import SchemaError, forbidden_field, invalid_value, required
from deltaloop.schemas.formats import FORMATS
from deltaloop.schemas.patterns.matching import pattern_error

OPEN: Final = "x-kubernetes-preserve-unknown-fields"
EMBEDDED: Final = "x-kubernetes-embedded-resource"
INT_OR_STRING: Final = "x-kubernetes-int-or-string"
JUNCTORS: Final = ("allOf", "anyOf", "oneOf")
_INT_OR_STRING_TYPES: Final = [{"type": "integer"}, {"type": "string"}]
_MAY_BE_RESTRICTED: Final = ({"name"}, {"generateName"}, {"name", "generateName"})
_NO_STRUCTURE_OF_METADATA: Final = (
    "additionalProperties",
    "description",
    "externalDocs",
    "example",
    "items",
    "nullable",
    "title",
    EMBEDDED,
    INT_OR_STRING,
    OPEN,
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
    "x-kubernetes-validations",
)
_LEVELS: Final = {
    "root": "must not be empty at the root",
    "items": "must not be empty for specified array items",
    "field": "must not be empty for specified object fields",
}
# Keywords that are only allowed in the structure, with the errors for other schemas.
_ONLY_OUTSIDE: Final = (
    ("type", "must be empty to be structural"),
    ("default", "must be undefined to be structural"),
    ("title", "must be empty to be structural"),
    ("description", "must be empty to be structural"),
    ("nullable", "must be false to be structural"),
    (OPEN, "must be false to be structural"),
    (EMBEDDED, "must be false to be structural"),
    (INT_OR_STRING, "must be false to be structural"),
    ("x-kubernetes-list-map-keys", "must be empty to be structural"),
    ("x-kubernetes-list-type", "must be undefined to be structural"),
    ("x-kubernetes-map-type", "must be undefined to be structural"),
    ("x-kubernetes-validations", "must be empty to be structural"),
)


def structural_errors(schema: dict[str, object], field: str) -> list[SchemaError]:
    """Return the sorted reasons why a schema at ``field`` of the CRD is not structural."""
    errors = [*_node_errors(schema, field, "root"), *_completeness_errors(schema, schema, field, field)]
    return sorted(errors, key=str)


def unknown_formats(schemas: Iterable[dict[str, object]]) -> Iterator[str]:
    """Yield the formats that the real server does not know for their types (pkg/apiserver/validation/formats.go)."""
    for fields in schemas:
        name = text(fields.get("format"))
        if name and name.replace("-", "") not in _FORMATS.get(text(fields.get("type")), FORMATS):
            yield name


def unsupported_sets(schemas: Iterable[dict[str, object]]) -> Iterator[str]:
    """Yield the item type of each set whose items are not scalars."""
    for fields in schemas:
        if fields.get("x-kubernetes-list-type") == "set":
            kind = at(fields, "items", "type")
            if kind in ("object", "array"):
                yield text(kind)


def schemas_in(schema: object) -> Iterator[dict[str, object]]:
    """Yield a schema and the schemas inside it."""
    waiting = [schema]
    while waiting:
        fields = mapping(waiting.pop())
        yield fields
        inner = [fields[word] for word in ("items", "additionalProperties", "not") if word in fields]
        inner += mapping(fields.get("properties")).values()
        inner += [item for word in ("allOf", "anyOf", "oneOf") if word in fields for item in items(fields[word])]
        waiting += reversed(inner)


_NUMBERS: Final = frozenset({"int32", "int64", "float", "double"})
_FORMATS: Final = {"integer": _NUMBERS, "number": _NUMBERS}


def _node_errors(schema: dict[str, object], field: str, level: str) -> Iterator[SchemaError]:
    if schema.get("type") == "array" and not is_mapping(schema.get("items")):
        yield required(f"{field}.items", "must be specified")
    if is_mapping(item := schema.get("items")):
        yield from _node_errors(item, f"{field}.items", "items")
    for name, child in mapping(schema.get("properties")).items():
        yield from _node_errors(mapping(child), f"{field}.properties[{name}]", "field")
    additional = schema.get("additionalProperties")
    if additional is not None and level == "root":
        yield forbidden_field(f"{field}.additionalProperties", "must not be used at the root")
    if is_mapping(additional):
        yield from _node_errors(additional, f"{field}.additionalProperties", "field")
    yield from _type_errors(schema, field, level)
    yield from _extension_errors(schema, field)
    yield from _identity_errors(schema, field, level)
    yield from _value_errors(schema, field, is_structure=True)


def _type_errors(schema: dict[str, object], field: str, level: str) -> Iterator[SchemaError]:
    wanted = schema.get("type") or ""
    if schema.get(EMBEDDED) is True and wanted != "object":
        words = "must be object if x-kubernetes-embedded-resource is true"
        yield invalid_value(f"{field}.type", wanted, words) if wanted else required(f"{field}.type", words)
    elif not wanted and schema.get(INT_OR_STRING) is not True and schema.get(OPEN) is not True:
        yield required(f"{field}.type", _LEVELS[level])
    if level == "root" and wanted and wanted != "object":
        yield invalid_value(f"{field}.type", wanted, "must be object at the root")


def _extension_errors(schema: dict[str, object], field: str) -> Iterator[SchemaError]:
    if schema.get(INT_OR_STRING) is True:
        for name in (OPEN, EMBEDDED):
            if schema.get(name) is True:
                yield invalid_value(f"{field}.{name}", True, "must be false if x-kubernetes-int-or-string is true")
    if schema.get(EMBEDDED) is not True:
        return
    if schema.get("additionalProperties") is not None:
        yield forbidden_field(
            f"{field}.additionalProperties", "must not be used if x-kubernetes-embedded-resource is set"
        )
    if not schema.get("properties") and schema.get(OPEN) is not True:
        words = (
            "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields"
        )
        yield required(f"{field}.properties", words)


def _identity_errors(schema: dict[str, object], field: str, level: str) -> Iterator[SchemaError]:
    if level != "root" and schema.get(EMBEDDED) is not True:
        return
    properties = mapping(schema.get("properties"))
    for name, wanted in (("kind", "string"), ("apiVersion", "string"), ("metadata", "object")):
        found = mapping(properties.get(name)).get("type") or ""
        if name in properties and found != wanted:
            yield invalid_value(f"{field}.properties[{name}].type", found, f"must be {wanted}")
    if level != "root" or "metadata" not in properties:
        return
    metadata = mapping(properties["metadata"])
    restricted = set(mapping(metadata.get("properties")))
    if (restricted and restricted not in _MAY_BE_RESTRICTED) or _says_more(metadata):
        words = "must not specify anything other than name and generateName, but metadata is implicitly specified"
        yield forbidden_field(f"{field}.properties[metadata]", words)


def _says_more(metadata: dict[str, object]) -> bool:
    own = (*_NO_STRUCTURE_OF_METADATA, *_VALUE_VALIDATIONS)
    return any(metadata.get(name) not in (None, "", False, [], {}) for name in own) or any(
        metadata.get(name) is not None for name in _POINTERS
    )


# Go stores these as pointers, so zero values count.
_POINTERS: Final = (
    "additionalProperties",
    "maximum",
    "minimum",
    "maxLength",
    "minLength",
    "maxItems",
    "minItems",
    "maxProperties",
    "minProperties",
    "multipleOf",
    "not",
)
_VALUE_VALIDATIONS: Final = (
    "allOf",
    "anyOf",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "oneOf",
    "pattern",
    "required",
    "uniqueItems",
)


def _value_errors(
    schema: dict[str, object], field: str, *, is_structure: bool, first: bool = False
) -> Iterator[SchemaError]:
    """Yield the errors of the value restrictions in a schema; ``first`` may list both types of an int-or-string."""
    for junctor in JUNCTORS:
        parts = items(schema.get(junctor))
        if junctor == "anyOf" and (is_structure or first) and parts == _INT_OR_STRING_TYPES:
            continue
        for position, part in enumerate(parts):
            leads = is_structure and junctor == "allOf" and position == 0
            yield from _nested_errors(mapping(part), f"{field}.{junctor}[{position}]", first=leads)
    if is_mapping(other := schema.get("not")):
        yield from _nested_errors(other, f"{field}.not")
    pattern = text(schema.get("pattern"))
    if pattern and (why := pattern_error(pattern)):
        yield invalid_value(f"{field}.pattern", pattern, f"must be a valid regular expression, but isn't: {why}")


def _nested_errors(schema: dict[str, object], field: str, *, first: bool = False) -> Iterator[SchemaError]:
    yield from _value_errors(schema, field, is_structure=False, first=first)
    if is_mapping(item := schema.get("items")):
        yield from _nested_errors(item, f"{field}.items")
    for name, child in mapping(schema.get("properties")).items():
        yield from _nested_errors(mapping(child), f"{field}.properties[{name}]")
    if schema.get("additionalProperties") not in (None, False):
        yield forbidden_field(f"{field}.additionalProperties", "must be undefined to be structural")
    for name, words in _ONLY_OUTSIDE:
        said = schema.get(name)
        # Defaults and list types always count, the other keywords only if they have a value.
        if said not in (None, "", False, []) or (said is not None and "undefined" in words):
            yield forbidden_field(f"{field}.{name}", words)
    if "metadata" in mapping(schema.get("properties")):
        yield forbidden_field(f"{field}.properties[metadata]", "must not be specified in a nested context")


def _completeness_errors(
    values: dict[str, object], structure: dict[str, object] | None, place: str, field: str
) -> Iterator[SchemaError]:
    """Yield the fields that a schema restricts but the structure, if any, does not describe."""
    parts = [
        (f"{field}.{junctor}[{position}]", part)
        for junctor in JUNCTORS
        for position, part in enumerate(items(values.get(junctor)))
    ]
    if is_mapping(values.get("not")):
        parts.append((f"{field}.not", values["not"]))
    for where, part in parts:
        yield from _nested_completeness_errors(mapping(part), structure, place, where)


def _nested_completeness_errors(
    values: dict[str, object], structure: dict[str, object] | None, place: str, field: str
) -> Iterator[SchemaError]:
    if structure is None:
        yield required(place, f"because it is defined in {field}")
        return
    yield from _completeness_errors(values, structure, place, field)
    if is_mapping(values.get("items")):
        inner = structure.get("items")
        below = inner if is_mapping(inner) else None
        yield from _nested_completeness_errors(mapping(values["items"]), below, f"{place}.items", f"{field}.items")
    described = mapping(structure.get("properties"))
    for name, child in mapping(values.get("properties")).items():
        below = mapping(described[name]) if name in described else None
        step = f".properties[{name}]"
        yield from _nested_completeness_errors(mapping(child), below, place + step, field + step)
