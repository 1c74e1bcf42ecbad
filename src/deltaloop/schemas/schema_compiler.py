"""Compile the schema of a CRD to a tree of types, with a cache.

Source: apiextensions-apiserver pkg/apiserver/schema/structural.go; kube-openapi pkg/schemaconv.
"""

from __future__ import annotations

from functools import lru_cache, partial
from hashlib import sha256
from typing import Any, Final

import msgspec

from deltaloop.api.json_values import is_mapping, items, mapping, text, texts
from deltaloop.schemas.formats import format_of
from deltaloop.schemas.object_meta import UNTYPED, WHOLE_OBJECT
from deltaloop.schemas.patterns.matching import Pattern, compile_pattern
from deltaloop.schemas.patterns.syntax import PatternSyntaxError
from deltaloop.schemas.types import FREE, NO_DEFAULT, NOTHING, Form, Merging, Rules, Schema, TypeNode

# Cost of a default in addition to its text, so that many small defaults are also limited.
_AROUND: Final = 20
_OPEN: Final = "x-kubernetes-preserve-unknown-fields"
# String formats that merge as strings. Other formats may be numbers for merging (kube-openapi pkg/schemaconv).
_FORMATS_OF_TEXT: Final = ("", "byte")
_SCALARS: Final = ("string", "integer", "number", "boolean")
_FORMS: Final[dict[str, Form]] = {
    "array": "list",
    "string": "string",
    "integer": "integer",
    "number": "number",
    "boolean": "boolean",
}
_RULES: Final = frozenset(
    {
        "required", "enum", "minimum", "maximum", "multipleOf", "minLength", "maxLength", "pattern", "format",
        "minItems", "maxItems", "minProperties", "maxProperties", "allOf", "anyOf", "oneOf", "not",
    }
)  # fmt: skip


def schema_from_json(source: bytes) -> Schema:
    """Return a schema that is compiled on first use."""
    return Schema(sha256(source).hexdigest(), partial(_whole, source), source=source) if source else UNTYPED


@lru_cache(maxsize=512)
def _whole(source: bytes) -> TypeNode:
    """Compile an object's schema. Its metadata always merges like other metadata, however the schema describes it."""
    node = compile_schema(msgspec.json.decode(source))
    element = node.element if node.merging == "map" else FREE
    fields = {**node.merge_fields, **WHOLE_OBJECT}
    return msgspec.structs.replace(node, merging="map", accepts="map", element=element, merge_fields=fields, zero={})


def compile_schema(schema: object, *, either: bool = True, preserve: bool = False) -> TypeNode:
    """Compile a decoded structural schema."""
    source = mapping(schema)
    get = source.get
    is_open = get(_OPEN) is True
    preserve = preserve or is_open
    fields = {
        name: compile_schema(child, either=either, preserve=preserve)
        for name, child in mapping(get("properties")).items()
    }
    given, item = get("additionalProperties"), get("items")
    other = compile_schema(given, either=either, preserve=preserve) if is_mapping(given) else None
    item_node = compile_schema(item, either=either, preserve=preserve) if is_mapping(item) else None
    below = [*fields.values(), *(node for node in (other, item_node) if node is not None)]
    default: object = get("default")
    default = NO_DEFAULT if default is None else default
    list_type, embedded = text(get("x-kubernetes-list-type")), get("x-kubernetes-embedded-resource") is True
    kind = text(get("type"))
    is_object = kind == "object" or (kind != "array" and bool(fields))
    merging, accepts = _merging(source, kind, is_object=is_object)
    # An object without a description is free. Fields that are not allowed are pruned after merging.
    is_free = is_object and (given is True or (given is None and (preserve or not fields)))
    element = item_node if kind == "array" else FREE if is_free else other if is_object else None
    keys, types = texts(get("x-kubernetes-list-map-keys")), _types(source, kind, either=either)
    return TypeNode(
        form="object" if is_object else _FORMS.get(kind, "any"),
        fields=fields,
        other=NOTHING if isinstance(given, bool) else other,
        items=item_node,
        open=is_open,
        types=types,
        nullable=get("nullable") is True,
        embedded=embedded,
        default=default,
        default_size=0 if default is NO_DEFAULT else len(msgspec.json.encode(default)) + _AROUND,
        has_defaults=default is not NO_DEFAULT or any(node.has_defaults for node in below),
        list_type=list_type,
        list_keys=keys,
        checks_lists=embedded or list_type in ("set", "map") or any(node.checks_lists for node in below),
        rules=_rules(source, types) if given is False or not _RULES.isdisjoint(source) else None,
        merging=merging,
        accepts=accepts,
        merge_fields={} if not is_object else {**fields, **WHOLE_OBJECT} if embedded else fields,
        element=element,
        keys=keys if merging == "keyed" else (),
        key_defaults=_key_defaults(item_node, keys) if merging == "keyed" and item_node is not None else {},
    )


def _key_defaults(item: TypeNode, keys: tuple[str, ...]) -> dict[str, object]:
    found = {key: item.fields[key].default for key in keys if key in item.fields}
    return {key: default for key, default in found.items() if default is not NO_DEFAULT}


def _merging(source: dict[str, object], kind: str, *, is_object: bool) -> tuple[Merging, str]:
    if kind == "array":
        relation = source.get("x-kubernetes-list-type")
        return "set" if relation == "set" else "keyed" if relation == "map" else "scalar", "list"
    if is_object:
        return "scalar" if source.get("x-kubernetes-map-type") == "atomic" else "map", "map"
    if kind == "string" and text(source.get("format")) not in _FORMATS_OF_TEXT:
        return "scalar", "scalar"
    return ("scalar", kind) if kind in _SCALARS else ("free", "")


def _types(source: dict[str, object], kind: str, *, either: bool) -> tuple[str, ...]:
    if source.get("x-kubernetes-int-or-string") is True and either:
        return "integer", "string"
    return (kind,) if kind else ()


def _rules(source: dict[str, Any], types: tuple[str, ...]) -> Rules:
    get = source.get
    pattern, no_schema = text(get("pattern")), get("not")
    return Rules(
        required=texts(get("required")),
        enum=tuple(items(source["enum"])) if get("enum") else None,
        enum_values=_hashed(items(source["enum"])) if get("enum") else None,
        minimum=get("minimum"),
        exclusive_minimum=get("exclusiveMinimum") is True,
        maximum=get("maximum"),
        exclusive_maximum=get("exclusiveMaximum") is True,
        multiple_of=get("multipleOf"),
        min_length=get("minLength"),
        max_length=get("maxLength"),
        pattern=_pattern(pattern) if pattern else None,
        pattern_text=pattern,
        format=format_of(types, text(get("format"))),
        min_items=get("minItems"),
        max_items=get("maxItems"),
        min_properties=get("minProperties"),
        max_properties=get("maxProperties"),
        closed=get("additionalProperties") is False,
        all_of=tuple(compile_schema(part) for part in items(get("allOf"))),
        any_of=tuple(compile_schema(part) for part in items(get("anyOf"))),
        one_of=tuple(compile_schema(part) for part in items(get("oneOf"))),
        not_=compile_schema(no_schema) if is_mapping(no_schema) else None,
    )


def _pattern(pattern: str) -> Pattern | None:
    """Compile a pattern. Return None if it is invalid, which does not occur in stored schemas."""
    try:
        return compile_pattern(pattern)
    except PatternSyntaxError:
        return None


def _hashed(allowed: list[object]) -> frozenset[object] | None:
    """Return an enum as a set if all items are strings or integers, for which Python's equality is correct."""
    return frozenset(allowed) if all(type(item) in (str, int) for item in allowed) else None
