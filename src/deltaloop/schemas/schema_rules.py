"""Validate the schema of a CRD, in the real server's order.

Source: apiextensions-apiserver pkg/apis/apiextensions/validation/validation.go, pkg/apiserver/schema/defaulting.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Protocol

import msgspec

from deltaloop.api.json_values import is_mapping, items, mapping, text, texts
from deltaloop.schemas.completing import prune_value
from deltaloop.schemas.described_fields import described_field
from deltaloop.schemas.field_errors import SchemaError, forbidden_field, invalid_value, not_supported, required
from deltaloop.schemas.schema_compiler import compile_schema
from deltaloop.schemas.structural import EMBEDDED, JUNCTORS, OPEN, structural_errors
from deltaloop.schemas.validating import validate_value

_TYPES: Final = ("array", "boolean", "integer", "number", "object", "string")
_LIST_TYPES: Final = ("atomic", "set", "map")
_EXPRESSIONS: Final = "x-kubernetes-validations"
_REASONS: Final = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")
_NEW_LINE: Final = re.compile(r"[\n\r]")
_IDENTITY: Final = ("metadata", "kind", "apiVersion")
_UNSUPPORTED_IF_SAID: Final = ("$ref", "additionalItems", "dependencies")
_UNSUPPORTED: Final = ("id", "definitions", "patternProperties")
_SCHEMA_WITH_STATUS: Final = (
    "Description", "Type", "Format", "Title", "Maximum", "ExclusiveMaximum", "Minimum", "ExclusiveMinimum", "MaxLength",
    "MinLength", "Pattern", "MaxItems", "MinItems", "UniqueItems", "MultipleOf", "Required", "Items", "Properties",
    "ExternalDocs", "Example", "XPreserveUnknownFields", "XValidations",
)  # fmt: skip
_AT_ROOT: Final = frozenset({name[0].lower() + name[1:] for name in _SCHEMA_WITH_STATUS} | {OPEN, _EXPRESSIONS})


class ExpressionChecks(Protocol):
    def wrong_rules(
        self, schema: dict[str, object], field: str, others: Sequence[SchemaError]
    ) -> Iterable[SchemaError]:
        """Return the errors of the rules, given the other errors of the schema."""
        ...

    def wrong_default(
        self, schema: dict[str, object], default: object, field: str, *, is_root: bool
    ) -> Sequence[SchemaError]: ...


def schema_errors(
    schema: dict[str, object], field: str, *, with_status: bool, expressions: ExpressionChecks | None
) -> list[SchemaError]:
    """Return the errors of a version's schema; ``with_status`` restricts the root, because status is a subresource."""
    errors = list(_root_errors(schema, field, with_status=with_status))
    unsupported = _has_unsupported(schema)
    structural: list[SchemaError] = []
    if not unsupported:
        structural = structural_errors(schema, field) or list(_default_errors(schema, field, expressions, is_root=True))
        errors += structural
    others = list(_rule_errors(schema, field, _Inside(), is_root=True))
    errors += others
    if expressions is not None and not unsupported and not structural:
        errors += expressions.wrong_rules(schema, field, others)
    if not errors and unsupported:
        errors.append(invalid_value(field, "", "OpenAPIV3Schema 'schema' is not supported"))
    return errors


def _root_errors(schema: dict[str, object], field: str, *, with_status: bool) -> Iterator[SchemaError]:
    if with_status:
        said = {name for name, value in schema.items() if value not in (None, "", False, [], {})}
        if (schema.get("type") or "object") != "object":
            words = (
                'only "object" is allowed as the type at the root of the schema if the status subresource is enabled'
            )
            yield invalid_value(f"{field}.type", schema["type"], words)
        elif said - _AT_ROOT:
            listed = " ".join(_SCHEMA_WITH_STATUS)
            words = f"only [{listed}] fields are allowed at the root of the schema if the status subresource is enabled"
            yield invalid_value(field, schema, words)
    if schema.get("nullable") is True:
        yield forbidden_field(f"{field}.nullable", "nullable cannot be true at the root")


def _has_unsupported(schema: dict[str, object]) -> bool:
    if any(schema.get(name) for name in (*_UNSUPPORTED, "$ref", "$schema", "dependencies")):
        return True
    if schema.get("additionalItems") is not None or schema.get(OPEN) is False or items(schema.get("items")):
        return True
    return any(_has_unsupported(child) for _, child, _ in children(schema, ""))


def children(schema: dict[str, object], field: str) -> Iterator[tuple[str, dict[str, object], str]]:
    for keyword in ("properties", "definitions"):
        for name, child in mapping(schema.get(keyword)).items():
            yield keyword, mapping(child), f"{field}.{keyword}[{name}]"
    for keyword in ("additionalProperties", "items", "not"):
        if is_mapping(child := schema.get(keyword)):
            yield keyword, child, f"{field}.{keyword}"
    for keyword in (*JUNCTORS, "items"):
        for position, child in enumerate(items(schema.get(keyword))):
            yield keyword, mapping(child), f"{field}.{keyword}[{position}]"
    for name, child in mapping(schema.get("dependencies")).items():
        if is_mapping(child):
            yield "dependencies", child, f"{field}.dependencies[{name}]"


class _Inside(msgspec.Struct, frozen=True):
    """Context of a schema; ``no_default`` is the reason why a default is not allowed, or ""."""

    metadata: bool = False
    no_default: str = ""


def _rule_errors(
    schema: dict[str, object], field: str, inside: _Inside, *, is_root: bool = False
) -> Iterator[SchemaError]:
    yield from _keyword_errors(schema, field, inside)
    if schema.get("uniqueItems") is True:
        words = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        yield forbidden_field(f"{field}.uniqueItems", words)
    additional = schema.get("additionalProperties")
    if schema.get("properties") and additional is not None and additional is not True:
        words = "additionalProperties and properties are mutual exclusive"
        yield forbidden_field(f"{field}.additionalProperties", words)
    for keyword, child, where in children(schema, field):
        yield from _rule_errors(child, where, _inside_child(schema, keyword, where, inside, is_root=is_root))
    if schema.get(OPEN) is False:
        yield invalid_value(f"{field}.{OPEN}", False, "must be true or undefined")
    yield from _map_type_errors(schema, field)
    yield from _list_type_errors(schema, field)
    yield from _list_key_errors(schema, field)
    yield from _keyed_item_errors(schema, field)
    for position, rule in enumerate(items(schema.get(_EXPRESSIONS))):
        yield from _expression_errors(mapping(rule), f"{field}.{_EXPRESSIONS}[{position}]", schema)


def _expression_errors(rule: dict[str, object], field: str, schema: dict[str, object]) -> Iterator[SchemaError]:
    test, message, own, path = (text(rule.get(name)) for name in ("rule", "message", "messageExpression", "fieldPath"))
    if not test.strip():
        yield required(f"{field}.rule", "rule is not specified")
    elif message and not message.strip():
        yield invalid_value(f"{field}.message", message, "must be non-empty if specified")
    elif _NEW_LINE.search(message.strip()):
        yield invalid_value(f"{field}.message", message, "must not contain line breaks")
    elif _NEW_LINE.search(test.strip()) and not message.strip():
        yield required(f"{field}.message", "message must be specified if rule contains line breaks")
    if own and not own.strip():
        yield required(f"{field}.messageExpression", "messageExpression must be non-empty if specified")
    reason = rule.get("reason")
    if isinstance(reason, str) and reason not in _REASONS:
        yield not_supported(f"{field}.reason", reason, _REASONS)
    where = f"{field}.fieldPath"
    if path and not path.strip():
        yield invalid_value(where, path, "must be non-empty if specified")
    if _NEW_LINE.search(path):
        yield invalid_value(where, path, "must not contain line breaks")
    if path and described_field(path, schema).why:
        yield invalid_value(where, path, "must be a valid path")


def _inside_child(schema: dict[str, object], keyword: str, where: str, inside: _Inside, *, is_root: bool) -> _Inside:
    if keyword == "additionalProperties" and inside.metadata:
        return msgspec.structs.replace(inside, no_default="inside additionalProperties applying to object metadata")
    if keyword == "properties" and (is_root or schema.get(EMBEDDED) is True):
        name = where.rpartition(".properties[")[2][:-1]
        if name in _IDENTITY:
            return _Inside(metadata=True, no_default=f"in top-level {name}" if is_root else inside.no_default)
    return inside


def _keyword_errors(schema: dict[str, object], field: str, inside: _Inside) -> Iterator[SchemaError]:
    wanted = schema.get("type") or ""
    if wanted and wanted not in _TYPES:
        yield not_supported(f"{field}.type", str(wanted), _TYPES)
    if schema.get("default") is not None and inside.no_default:
        yield forbidden_field(f"{field}.default", f"must not be set {inside.no_default}")
    for name in (*_UNSUPPORTED, *_UNSUPPORTED_IF_SAID):
        if schema.get(name) or (name in _UNSUPPORTED_IF_SAID and schema.get(name) is not None):
            yield forbidden_field(f"{field}.{name}", f"{name} is not supported")
    if wanted == "null":
        yield forbidden_field(f"{field}.type", "type cannot be set to null, use nullable as an alternative")
    if items(schema.get("items")):
        yield forbidden_field(f"{field}.items", "items must be a schema object and not an array")
    if inside.metadata and schema.get(EMBEDDED) is True:
        yield forbidden_field(f"{field}.{EMBEDDED}", "must not be used inside of resource meta")


def _map_type_errors(schema: dict[str, object], field: str) -> Iterator[SchemaError]:
    kind = schema.get("x-kubernetes-map-type")
    if kind is None:
        return
    yield from _needs_type(schema, field, "object", "x-kubernetes-map-type")
    if kind not in ("atomic", "granular"):
        yield not_supported(f"{field}.x-kubernetes-map-type", str(kind), ("atomic", "granular"))


def _needs_type(schema: dict[str, object], field: str, wanted: str, extension: str) -> Iterator[SchemaError]:
    found, words = schema.get("type") or "", f"must be {wanted} if {extension} is specified"
    if not found:
        yield required(f"{field}.type", words)
    elif found != wanted:
        yield invalid_value(f"{field}.type", found, words)


def _list_type_errors(schema: dict[str, object], field: str) -> Iterator[SchemaError]:
    kind = schema.get("x-kubernetes-list-type")
    if kind is None:
        return
    yield from _needs_type(schema, field, "array", "x-kubernetes-list-type")
    if kind == "set" and schema.get("type") == "array":
        item = mapping(schema.get("items"))
        within, words = f"{field}.items", "must be atomic as item of a list with x-kubernetes-list-type=set"
        # The real server shows the list type in both cases.
        shown = item.get("x-kubernetes-list-type")
        if item.get("type") == "array" and item.get("x-kubernetes-list-type") not in (None, "atomic"):
            yield invalid_value(f"{within}.x-kubernetes-list-type", shown, words)
        if item.get("type") == "object" and item.get("x-kubernetes-map-type") != "atomic":
            yield invalid_value(f"{within}.x-kubernetes-map-type", shown, words)
    if kind not in _LIST_TYPES:
        yield not_supported(f"{field}.x-kubernetes-list-type", str(kind), _LIST_TYPES)


def _list_key_errors(schema: dict[str, object], field: str) -> Iterator[SchemaError]:
    kind, keys = schema.get("x-kubernetes-list-type"), texts(schema.get("x-kubernetes-list-map-keys"))
    at_keys, at_type = f"{field}.x-kubernetes-list-map-keys", f"{field}.x-kubernetes-list-type"
    if keys and kind is None:
        yield required(at_type, "must be map if x-kubernetes-list-map-keys is non-empty")
    elif keys and kind != "map":
        yield invalid_value(at_type, kind, "must be map if x-kubernetes-list-map-keys is non-empty")
    if kind != "map":
        return
    if not keys:
        yield required(at_keys, "must not be empty if x-kubernetes-list-type is map")
    item = schema.get("items")
    if not is_mapping(item):
        if not items(item):
            yield required(f"{field}.items", "must have a schema if x-kubernetes-list-type is map")
        return
    found = item.get("type") or ""
    if found != "object":
        words = "must be object if parent array's x-kubernetes-list-type is map"
        yield invalid_value(f"{field}.items.type", found, words)
        return
    properties = mapping(item.get("properties"))
    for position, key in enumerate(keys):
        if key not in properties:
            yield invalid_value(at_keys, keys, "entries must all be names of item properties")
        elif mapping(properties[key]).get("type") in ("array", "object"):
            # The real server shows the type of the item.
            words = "must be a scalar type if parent array's x-kubernetes-list-type is map"
            yield invalid_value(f"{field}.items.properties[{key}].type", found, words)
        if key in keys[:position]:
            yield invalid_value(at_keys, keys, "must not contain duplicate entries")


def _keyed_item_errors(schema: dict[str, object], field: str) -> Iterator[SchemaError]:
    kind, item = schema.get("x-kubernetes-list-type"), schema.get("items")
    if kind not in ("set", "map") or not is_mapping(item):
        return
    if item.get("nullable") is True:
        yield forbidden_field(f"{field}.items.nullable", f"cannot be nullable when x-kubernetes-list-type is {kind}")
    properties = mapping(item.get("properties"))
    for key in texts(schema.get("x-kubernetes-list-map-keys")) if kind == "map" else ():
        if key not in properties:
            continue
        named, where = mapping(properties[key]), f"{field}.items.properties[{key}]"
        reason = "this property is in x-kubernetes-list-map-keys, so it"
        if key not in texts(item.get("required")) and named.get("default") is None:
            yield required(f"{where}.default", f"{reason} must have a default or be a required property")
        if named.get("nullable") is True:
            yield forbidden_field(f"{where}.nullable", f"{reason} cannot be nullable")


def _default_errors(
    schema: dict[str, object], field: str, expressions: ExpressionChecks | None, *, is_root: bool = False
) -> Iterator[SchemaError]:
    whole = is_root or schema.get(EMBEDDED) is True
    if schema.get("default") is not None:
        node = compile_schema({**schema, EMBEDDED: True} if is_root else schema, either=False)
        value = copy.deepcopy(schema["default"])
        at_default = f"{field}.default"
        if prune_value(node, value):
            yield invalid_value(at_default, schema["default"], "must not have unknown fields")
        errors = validate_value(node, schema["default"])
        if expressions is not None and not errors:
            yield from expressions.wrong_default(schema, schema["default"], at_default, is_root=whole)
        for error in errors:
            place = "" if error.field == "<nil>" else error.field
            joined = place if place.startswith("[") or not place else f".{place}"
            yield SchemaError(f"{at_default}{joined}", error.reason, error.text)
    # Defaults in additionalProperties are not validated. Defaults in an object's own metadata are not allowed, or are
    # validated with the whole object.
    if is_mapping(item := schema.get("items")):
        yield from _default_errors(item, f"{field}.items", expressions)
    for name, child in mapping(schema.get("properties")).items():
        if not (whole and name in _IDENTITY):
            yield from _default_errors(mapping(child), f"{field}.properties[{name}]", expressions)
