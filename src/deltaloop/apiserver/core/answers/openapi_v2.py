"""OpenAPI v2 document of all kinds, for clients without support for v3.

Alternatives, null and defaults are omitted, like on a real server. client-go requests protobuf, see
``openapi_v2_protobuf``.

Source: apiextensions-apiserver pkg/controller/openapi/v2/conversion.go; kube-openapi pkg/handler;
github.com/google/gnostic-models openapiv2/OpenAPIv2.proto.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias, cast

import msgspec

from deltaloop.api.json_values import is_mapping, items, mapping, text, texts
from deltaloop.apiserver.core.answers.openapi import add_schemas, patch_types
from deltaloop.apiserver.core.answers.published import COMPONENTS, PublishedSchemas, Schema
from deltaloop.apiserver.core.served_resource import ServedResource
from deltaloop.apiserver.core.wire.media_types import AcceptClause

PROTOBUF: Final = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
_PROTOBUF_NAMES: Final = frozenset({PROTOBUF, "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"})
_DEFINITIONS: Final = "#/definitions/"
_LEFT_OUT: Final = ("anyOf", "default", "not", "oneOf", "nullable")
_PRODUCED: Final = ("application/json", "application/yaml")
_QUERIES: Final[Mapping[str, tuple[str, ...]]] = {
    "delete": ("dryRun", "gracePeriodSeconds", "propagationPolicy"),
    "deletecollection": ("continue", "dryRun", "fieldSelector", "labelSelector", "limit", "propagationPolicy"),
    "get": (),
    "list": ("continue", "fieldSelector", "labelSelector", "limit", "resourceVersion", "timeoutSeconds", "watch"),
    "patch": ("dryRun", "fieldManager", "fieldValidation", "force"),
    "post": ("dryRun", "fieldManager", "fieldValidation"),
    "put": ("dryRun", "fieldManager", "fieldValidation"),
}
_TYPES: Final = {
    "force": "boolean",
    "gracePeriodSeconds": "integer",
    "limit": "integer",
    "timeoutSeconds": "integer",
    "watch": "boolean",
}
# Verb of the resource, HTTP method, action, and whether the operation is for a single object.
_OPERATIONS: Final = (
    ("list", "get", "list", False),
    ("create", "post", "post", False),
    ("deletecollection", "delete", "deletecollection", False),
    ("get", "get", "get", True),
    ("update", "put", "put", True),
    ("patch", "patch", "patch", True),
    ("delete", "delete", "delete", True),
)


def content_type(clauses: Iterable[AcceptClause]) -> str | None:
    """Return the first supported content type, JSON or protobuf, or None."""
    for clause in clauses:
        if clause.media_type in _PROTOBUF_NAMES:
            return PROTOBUF
        if clause.accepts_json:
            return "application/json"
    return None


def document(resources: Iterable[ServedResource], published: PublishedSchemas | None = None) -> dict[str, Any]:
    schemas: dict[str, object] = {}
    paths: dict[str, Any] = {}
    for resource in resources:
        name = add_schemas(schemas, resource, published)
        for one in (False, True):
            operations = {
                method: _operation(resource, name, method, action, patch_types(resource, published))
                for verb, method, action, of_one in _OPERATIONS
                if of_one is one and verb in resource.verbs
            }
            if operations:
                paths[_path(resource, one=one)] = operations
    return {
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": "deltaloop"},
        "paths": dict(sorted(paths.items())),
        "definitions": {name: _definition(schemas[name]) for name in sorted(schemas)},
    }


def _path(resource: ServedResource, *, one: bool) -> str:
    kind = resource.type
    parts = ["", "apis", kind.group, kind.version] if kind.group else ["", "api", kind.version]
    if kind.namespaced:
        parts += ["namespaces", "{namespace}"]
    parts.append(kind.plural)
    if one:
        parts.append("{name}")
    return "/".join(parts)


def _operation(
    resource: ServedResource, name: str, method: str, action: str, patches: tuple[str, ...]
) -> dict[str, Any]:
    kind = resource.type
    group = kind.group.partition(".")[0].capitalize() or "Core"
    namespaced = "Namespaced" if kind.namespaced else ""
    parameters: list[dict[str, Any]] = [*_parameters(action)]
    reference = {"$ref": _DEFINITIONS + name}
    if method in ("post", "put", "patch"):
        schema = {"type": "object"} if method == "patch" else reference
        parameters.append({"name": "body", "in": "body", "required": True, "schema": schema})
    answer = reference if action not in ("delete", "deletecollection", "list") else {"type": "object"}
    return {
        "operationId": f"{action}{group}{kind.version.capitalize()}{namespaced}{kind.kind}",
        "consumes": list(patches) if method == "patch" else ["*/*"],
        "produces": list(_PRODUCED),
        "schemes": ["https"],
        "parameters": parameters,
        "responses": {"200": {"description": "OK", "schema": answer}, "401": {"description": "Unauthorized"}},
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": {"group": kind.group, "kind": kind.kind, "version": kind.version},
    }


def _parameters(action: str) -> Iterator[dict[str, Any]]:
    for name in _QUERIES[action]:
        yield {"name": name, "in": "query", "type": _TYPES.get(name, "string"), "uniqueItems": True}


def _definition(schema: object) -> Schema:
    """Convert a definition to version 2, in which quantities and other number-or-string values become strings."""
    either = "oneOf" in mapping(schema) and "type" not in mapping(schema)
    return {**({"type": "string"} if either else {}), **mapping(_converted(schema))}


def _converted(schema: object) -> object:
    if isinstance(schema, list):
        return [_converted(item) for item in cast("list[object]", schema)]
    if not isinstance(schema, dict):
        return schema
    source = cast("Schema", schema)
    result: Schema = {}
    for name, inner in source.items():
        if name == "$ref":
            result[name] = _DEFINITIONS + text(inner).removeprefix(COMPONENTS)
        elif name == "properties":
            result[name] = {field: _converted(below) for field, below in mapping(inner).items()}
        elif name == "allOf":  # around a reference with a description
            for one in items(inner):
                if "$ref" in mapping(one):
                    result |= mapping(_converted(one))
        elif name not in _LEFT_OUT:
            result[name] = _converted(inner)
    _leave_out_null(source, result)
    return result


def _leave_out_null(source: Schema, result: Schema) -> None:
    """Remove the parts of a nullable or free-form schema that version 2 cannot express."""
    free = source.get("x-kubernetes-preserve-unknown-fields") is True
    nullable = source.get("nullable") is True
    if free or nullable:
        for name in ("items", "properties", *(("required",) if "x-kubernetes-embedded-resource" in source else ())):
            result.pop(name, None)
    if (
        nullable
        or (free and result.get("type") == "object")
        or (result.get("type") == "array" and "items" not in result)
    ):
        result.pop("type", None)
    may_be_null = {name for name, below in mapping(source.get("properties")).items() if _is_nullable(below)}
    required = [name for name in texts(source.get("required")) if name not in may_be_null]
    if items(source.get("required")) and may_be_null:
        result["required"] = required
        if not required:
            del result["required"]


def _is_nullable(schema: object) -> bool:
    return mapping(schema).get("nullable") is True


_Fields: TypeAlias = Mapping[str, tuple[int, str]]

# Field number and value form by JSON name. A form is a scalar, a message, or a special form for values that JSON
# encodes differently.
_MESSAGES: Final[Mapping[str, _Fields]] = {
    "Document": {
        "swagger": (1, "text"),
        "info": (2, "Info"),
        "paths": (8, "paths"),
        "definitions": (9, "schemas"),
    },
    "Info": {"title": (1, "text"), "version": (2, "text"), "description": (3, "text")},
    "Schema": {
        "$ref": (1, "text"),
        "format": (2, "text"),
        "title": (3, "text"),
        "description": (4, "text"),
        "default": (5, "any"),
        "multipleOf": (6, "double"),
        "maximum": (7, "double"),
        "exclusiveMaximum": (8, "integer"),
        "minimum": (9, "double"),
        "exclusiveMinimum": (10, "integer"),
        "maxLength": (11, "integer"),
        "minLength": (12, "integer"),
        "pattern": (13, "text"),
        "maxItems": (14, "integer"),
        "minItems": (15, "integer"),
        "uniqueItems": (16, "integer"),
        "maxProperties": (17, "integer"),
        "minProperties": (18, "integer"),
        "required": (19, "texts"),
        "enum": (20, "anys"),
        "additionalProperties": (21, "schema or boolean"),
        "type": (22, "type"),
        "items": (23, "items"),
        "properties": (25, "schemas"),
        "example": (30, "any"),
        "x-": (31, "extension"),
    },
    "PathItem": {
        "get": (2, "Operation"),
        "put": (3, "Operation"),
        "post": (4, "Operation"),
        "delete": (5, "Operation"),
        "patch": (8, "Operation"),
    },
    "Operation": {
        "description": (3, "text"),
        "operationId": (5, "text"),
        "produces": (6, "texts"),
        "consumes": (7, "texts"),
        "parameters": (8, "parameters"),
        "responses": (9, "responses"),
        "schemes": (10, "texts"),
        "x-": (13, "extension"),
    },
    "BodyParameter": {"name": (2, "text"), "in": (3, "text"), "required": (4, "integer"), "schema": (5, "Schema")},
    "QueryParameter": {"in": (2, "text"), "name": (4, "text"), "type": (6, "text"), "uniqueItems": (20, "integer")},
    "Response": {"description": (1, "text"), "schema": (2, "one schema")},
}
_encode: Final = msgspec.json.Encoder(order="sorted").encode


def to_protobuf(document: Mapping[str, object]) -> bytes:
    return _message("Document", document)


def _message(name: str, value: Mapping[str, object]) -> bytes:
    fields, parts = _MESSAGES[name], list[bytes]()
    for key, below in value.items():
        number, form = fields.get("x-" if key.startswith("x-") else key, (0, ""))
        if form == "extension":
            parts.append(_named(number, key, _any(below)))
        elif form:
            parts += _field(number, form, below)
    return b"".join(parts)


def _field(number: int, form: str, value: object) -> Iterator[bytes]:
    match form:
        case "text":
            yield _span(number, text(value).encode())
        case "texts":
            yield from (_span(number, text(each).encode()) for each in items(value))
        case "integer" if isinstance(value, int):
            yield _varint(number << 3) + _varint(int(value))
        case "double" if isinstance(value, int | float):
            yield _varint(number << 3 | 1) + struct.pack("<d", value)
        case "any":
            yield _span(number, _any(value))
        case "anys":
            yield from (_span(number, _any(each)) for each in items(value))
        case "type":
            yield _span(number, b"".join(_span(1, text(each).encode()) for each in (items(value) or [value])))
        case "items" | "one schema" | "schema or boolean" if is_mapping(value):
            yield _span(number, _span(1, _message("Schema", value)))
        case "schema or boolean":
            yield _span(number, _varint(2 << 3) + _varint(value is True))
        case "schemas" | "paths":
            at, name = (1, "Schema") if form == "schemas" else (2, "PathItem")
            named = (_named(at, key, _message(name, mapping(each))) for key, each in mapping(value).items())
            yield _span(number, b"".join(named))
        case "responses":
            found = mapping(value).items()
            responses = (_named(1, key, _span(1, _message("Response", mapping(each)))) for key, each in found)
            yield _span(number, b"".join(responses))
        case "parameters":
            yield from (_span(number, _span(1, _parameter(mapping(each)))) for each in items(value))
        case _:
            if form in _MESSAGES:
                yield _span(number, _message(form, mapping(value)))


def _parameter(parameter: Mapping[str, object]) -> bytes:
    if parameter.get("in") == "body":
        return _span(1, _message("BodyParameter", parameter))
    return _span(2, _span(3, _message("QueryParameter", parameter)))


def _any(value: object) -> bytes:
    """Encode a value of any type. The message contains YAML, and JSON is valid YAML."""
    return _span(2, _encode(value) + b"\n")


def _named(number: int, name: str, value: bytes) -> bytes:
    return _span(number, _span(1, name.encode()) + _span(2, value))


def _span(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    if value < 0x80:
        return bytes((value,)) if value >= 0 else _varint(value & 0xFFFF_FFFF_FFFF_FFFF)
    written = bytearray()
    while value > 0x7F:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*written, value))
