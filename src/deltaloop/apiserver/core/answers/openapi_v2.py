"""OpenAPI v2 document of all kinds, for clients without support for v3.

Alternatives, null and defaults are omitted, like on a real server. client-go requests protobuf, see
``openapi_v2_protobuf``.

Source: apiextensions-apiserver pkg/controller/openapi/v2/conversion.go; kube-openapi pkg/handler.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, cast

from deltaloop.api.json_values import items, mapping, text, texts
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
