"""OpenAPI v2: one document of all kinds, for clients that know no v3.

Definitions are those of ``openapi``; what version 2 has no word for (alternatives, null) is left out, as by a real
server. Each resource has the paths of its collection and of its objects, with the parameters that clients look for.

kubectl up to 1.28 asks for protobuf, where an empty message, zero bytes, is a valid document; that is what it gets.

Source: apiextensions-apiserver pkg/controller/openapi/v2/conversion.go; kube-openapi pkg/handler.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, cast

import msgspec

from deltaloop.apiserver.core.answers.openapi import PATCH_TYPES, published_name, schema_name
from deltaloop.apiserver.core.answers.published import PublishedSchemas
from deltaloop.apiserver.core.served_resource import ServedResource
from deltaloop.apiserver.core.wire.media_types import AcceptClause
from deltaloop.schemas.json_values import items, mapping, texts

PROTOBUF: Final = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
_PROTOBUF_NAMES: Final = frozenset({PROTOBUF, "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"})
_DEFS: Final = "#/$defs/"
_DEFINITIONS: Final = "#/definitions/"
_LEFT_OUT: Final = ("allOf", "anyOf", "not", "oneOf", "nullable")
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
# Verb of the resource, method, action, and whether it is about one object.
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
    """Return the form that was asked for first and can be given: JSON or protobuf; None for neither."""
    for clause in clauses:
        if clause.media_type in _PROTOBUF_NAMES:
            return PROTOBUF
        if clause.accepts_json:
            return "application/json"
    return None


def document(resources: Iterable[ServedResource], published: PublishedSchemas | None = None) -> dict[str, Any]:
    """Return the document.

    Args:
        resources: What is served.
        published: The published schemas of the built-in kinds, if they are there.
    """
    known: dict[str, Any] = {}
    paths: dict[str, Any] = {}
    if published is not None:
        known |= {name: _converted(schema) for name, schema in published.definitions.items()}
    for resource in resources:
        found = published_name(published, resource)
        name = found or schema_name(resource)
        if found is None:
            known[name] = _own_schema(resource)
        for one in (False, True):
            operations = {
                method: _operation(resource, name, method, action)
                for verb, method, action, of_one in _OPERATIONS
                if of_one is one and verb in resource.verbs
            }
            if operations:
                paths[_path(resource, one=one)] = operations
    return {
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": "deltaloop"},
        "paths": dict(sorted(paths.items())),
        "definitions": dict(sorted(known.items())),
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


def _operation(resource: ServedResource, name: str, method: str, action: str) -> dict[str, Any]:
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
        "consumes": list(PATCH_TYPES) if method == "patch" else ["*/*"],
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


def _own_schema(resource: ServedResource) -> dict[str, Any]:
    schema = _converted(msgspec.json.decode(resource.schema.source)) if resource.schema.source else {"type": "object"}
    standard = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"}}
    kind = resource.type
    gvk = {"group": kind.group, "kind": kind.kind, "version": kind.version}
    properties = {**standard, **mapping(schema.get("properties"))}
    return {**schema, "properties": properties, "x-kubernetes-group-version-kind": [gvk]}


def _converted(schema: Any) -> Any:
    """Turn a schema of version 3, or JSON schema, into one of version 2."""
    if isinstance(schema, list):
        return [_converted(item) for item in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    source = cast("dict[str, Any]", schema)
    kinds = source.get("type")
    result: dict[str, Any] = {}
    for name, inner in source.items():
        if name == "$ref":
            result[name] = _DEFINITIONS + str(inner).removeprefix(_DEFS)
        elif name == "type" and isinstance(kinds, list):
            result[name] = next(kind for kind in cast("list[str]", kinds) if kind != "null")
        elif name == "properties":
            result[name] = {field: _converted(below) for field, below in mapping(inner).items()}
        elif name not in _LEFT_OUT:
            result[name] = _converted(inner)
    _leave_out_null(source, result)
    return result


def _leave_out_null(source: dict[str, Any], result: dict[str, Any]) -> None:
    """Say nothing of the type of what may be null, or hold what no schema says; neither is there in version 2."""
    free = source.get("x-kubernetes-preserve-unknown-fields") is True
    nullable = source.get("nullable") is True
    if free or nullable:
        for name in ("items", "properties"):
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
