"""A schema compiled to a small tree, once for each version of a CRD.

Every later step (prune, default, validate) walks an object and this tree side by side, and never reads JSON schema
again. Nodes inside allOf, anyOf, oneOf and not only validate: they neither keep fields nor give defaults.

Source: apiextensions-apiserver pkg/apiserver/schema/structural.go.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import msgspec

from deltaloop.schemas.json_values import is_mapping, items, mapping, text, texts
from deltaloop.schemas.patterns.matching import Pattern, compile_pattern
from deltaloop.schemas.patterns.syntax import PatternSyntaxError

NO_DEFAULT: Final = object()


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaNode:
    """One schema.

    Attributes:
        types: JSON types that a value may have; empty means any.
        nullable: Whether null is a value.
        properties: Schemas of the named fields.
        additional: Schema of all other fields, if the schema gives one.
        open: Whether fields that no schema names are kept.
        items: Schema of a list's items.
        default: What a missing field becomes; ``NO_DEFAULT`` without one.
        embedded: Whether the value is a whole Kubernetes object.
        has_defaults: Whether this node or one below has a default.
        list_type: ``atomic``, ``set``, ``map`` or "".
        list_keys: Fields that identify an item of a ``map``.
        checks_lists: Whether this node or one below is a set, a map or an embedded object.
    """

    types: tuple[str, ...] = ()
    nullable: bool = False
    properties: dict[str, SchemaNode]
    additional: SchemaNode | None = None
    open: bool = False
    items: SchemaNode | None = None
    default: Any = NO_DEFAULT
    embedded: bool = False
    has_defaults: bool = False
    list_type: str = ""
    list_keys: tuple[str, ...] = ()
    checks_lists: bool = False
    required: tuple[str, ...] = ()
    enum: tuple[Any, ...] | None = None
    minimum: float | None = None
    exclusive_minimum: bool = False
    maximum: float | None = None
    exclusive_maximum: bool = False
    multiple_of: float | None = None
    min_length: int | None = None
    max_length: int | None = None
    pattern: Pattern | None = None
    pattern_text: str = ""
    format: str = ""
    min_items: int | None = None
    max_items: int | None = None
    min_properties: int | None = None
    max_properties: int | None = None
    all_of: tuple[SchemaNode, ...] = ()
    any_of: tuple[SchemaNode, ...] = ()
    one_of: tuple[SchemaNode, ...] = ()
    not_: SchemaNode | None = None

    def keeps(self, name: str) -> bool:
        """Tell whether a field of this name has a place here."""
        return self.open or self.additional is not None or name in self.properties


@lru_cache(maxsize=512)
def compiled(schema: bytes) -> SchemaNode:
    """Return the tree of a schema in JSON, made once for the same bytes."""
    return compile_schema(msgspec.json.decode(schema))


def _types(source: dict[str, Any], *, either: bool) -> tuple[str, ...]:
    if source.get("x-kubernetes-int-or-string") is True and either:
        return "integer", "string"
    return (text(source["type"]),) if source.get("type") else ()


def _pattern(pattern: str) -> Pattern | None:
    """Return a pattern; None for what is none, which a schema that is stored does not have."""
    try:
        return compile_pattern(pattern)
    except PatternSyntaxError:
        return None


def compile_schema(schema: object, *, either: bool = True) -> SchemaNode:
    """Return the tree of a decoded schema.

    Args:
        schema: The schema.
        either: Whether an int-or-string must be one of both; the real server does not hold defaults to that.
    """
    source: dict[str, Any] = mapping(schema)
    children = {name: compile_schema(child, either=either) for name, child in mapping(source.get("properties")).items()}
    given = source.get("additionalProperties")
    additional = compile_schema(given, either=either) if is_mapping(given) else None
    item = source.get("items")
    item_node = compile_schema(item, either=either) if is_mapping(item) else None
    below = [*children.values(), *(node for node in (additional, item_node) if node is not None)]
    default = source["default"] if source.get("default") is not None else NO_DEFAULT
    list_type = text(source.get("x-kubernetes-list-type"))
    embedded = source.get("x-kubernetes-embedded-resource") is True
    pattern = text(source.get("pattern"))
    no_schema = source.get("not")
    return SchemaNode(
        types=_types(source, either=either),
        nullable=source.get("nullable") is True,
        properties=children,
        additional=additional,
        open=source.get("x-kubernetes-preserve-unknown-fields") is True or given is True,
        items=item_node,
        default=default,
        embedded=embedded,
        has_defaults=default is not NO_DEFAULT or any(node.has_defaults for node in below),
        list_type=list_type,
        list_keys=texts(source.get("x-kubernetes-list-map-keys")),
        checks_lists=embedded or list_type in ("set", "map") or any(node.checks_lists for node in below),
        required=texts(source.get("required")),
        enum=tuple(items(source["enum"])) if source.get("enum") else None,
        minimum=source.get("minimum"),
        exclusive_minimum=source.get("exclusiveMinimum") is True,
        maximum=source.get("maximum"),
        exclusive_maximum=source.get("exclusiveMaximum") is True,
        multiple_of=source.get("multipleOf"),
        min_length=source.get("minLength"),
        max_length=source.get("maxLength"),
        pattern=_pattern(pattern) if pattern else None,
        pattern_text=pattern,
        format=text(source.get("format")),
        min_items=source.get("minItems"),
        max_items=source.get("maxItems"),
        min_properties=source.get("minProperties"),
        max_properties=source.get("maxProperties"),
        all_of=tuple(compile_schema(part) for part in items(source.get("allOf"))),
        any_of=tuple(compile_schema(part) for part in items(source.get("anyOf"))),
        one_of=tuple(compile_schema(part) for part in items(source.get("oneOf"))),
        not_=compile_schema(no_schema) if is_mapping(no_schema) else None,
    )
