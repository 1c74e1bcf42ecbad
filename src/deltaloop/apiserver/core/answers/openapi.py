"""OpenAPI: what kubectl needs to believe in a resource, to leave validation to the server, and to explain fields.

kubectl asks whether a PATCH of a kind takes the query parameter ``fieldValidation``; if so, it sends ``Strict`` and
checks nothing itself. So each group version has a document with one PATCH per kind. Schemas are there for custom
resources, whose CRD has them, so that ``kubectl explain`` can show them, and for built-in kinds where the published
definitions are given (the extra ``schemas``); without them built-in kinds are plain objects, and say so.

Source: kube-openapi pkg/handler3; kubectl pkg/util/openapi and pkg/cmd/util (``query_param_verifier_v3.go``).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Final, cast

import msgspec

from deltaloop.apiserver.core.registry import Registry
from deltaloop.apiserver.core.served_resource import ServedResource
from deltaloop.apiserver.core.writes.apply.options import APPLY_PATCH
from deltaloop.apiserver.core.writes.patching import JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH
from deltaloop.schemas.json_values import items, mapping

# Where strategic merge patch is listed, kubectl computes such patches from the schemas and warns when they are missing;
# where it is not, kubectl takes the built-in kinds' merge keys from its own types, and sends the same patches.
_WITHOUT_STRATEGIC: Final = (JSON_PATCH, MERGE_PATCH, APPLY_PATCH)
PATCH_TYPES: Final = (JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH, APPLY_PATCH)
_NO_SCHEMA: Final = "This server has no schemas of built-in kinds; install deltaloop[schemas] where it runs."
_DEFS: Final = "#/$defs/"
_COMPONENTS: Final = "#/components/schemas/"

Definitions = Mapping[str, Any]
_FIELD_VALIDATION: Final = {
    "name": "fieldValidation",
    "in": "query",
    "description": "What to do about unknown and duplicate fields: Ignore, Warn (the default) or Strict.",
    "schema": {"type": "string", "uniqueItems": True},
}


def index_document(registry: Registry, definitions: Definitions | None = None) -> dict[str, Any]:
    """Return the answer to ``/openapi/v3``: each group version's path, and its URL with the document's hash."""
    paths: dict[str, Any] = {}
    for group in registry.groups():
        for version in registry.versions(group):
            path = _path(group, version)
            digest = document_hash(registry, group, version, definitions)
            paths[path] = {"serverRelativeURL": f"/openapi/v3/{path}?hash={digest}"}
    return {"paths": paths}


def document(
    registry: Registry, group: str, version: str, definitions: Definitions | None = None
) -> dict[str, Any] | None:
    """Return the answer to ``/openapi/v3/apis/{group}/{version}`` or ``/openapi/v3/api/{version}``; None means 404.

    Args:
        registry: What is served.
        group: API group.
        version: API version.
        definitions: The published schemas of the built-in kinds, if they are there.
    """
    served = registry.in_version(group, version)
    if not served:
        return None
    paths: dict[str, Any] = {}
    schemas: dict[str, Any] = {}
    for resource in served:
        published = None if definitions is None else published_name(definitions, resource)
        name = published or schema_name(resource)
        if published is not None and definitions is not None:
            _add_published(schemas, definitions, published)
        else:
            schemas[name] = _schema(resource)
        if "patch" in resource.verbs:
            parts = [_path(group, version), resource.type.plural, "{name}"]
            if resource.type.namespaced:
                parts.insert(1, "namespaces/{namespace}")
            paths["/" + "/".join(parts)] = {"patch": _patch(resource, name, strategic=published is not None)}
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "deltaloop"},
        "paths": paths,
        "components": {"schemas": schemas},
    }


def document_hash(registry: Registry, group: str, version: str, definitions: Definitions | None = None) -> str:
    """Return a hash that changes whenever a group version's document does; the empty string if it is not served."""
    served = registry.in_version(group, version)
    if not served:
        return ""
    # The published schemas never change while the server runs, so it is enough to say how many there are.
    known = len(definitions) if definitions is not None else 0
    return hashlib.sha512(f"{known} {served!r}".encode()).hexdigest().upper()


def schema_name(resource: ServedResource) -> str:
    """Return a kind's name among the schemas, such as ``com.example.v1.Foo`` or ``io.k8s.api.apps.v1.Deployment``."""
    kind = resource.type
    if resource.schema.source:
        return ".".join([*reversed(kind.group.split(".")), kind.version, kind.kind])
    return ".".join(["io.k8s.api", kind.group.partition(".")[0] or "core", kind.version, kind.kind])


def _path(group: str, version: str) -> str:
    return f"apis/{group}/{version}" if group else f"api/{version}"


def _gvk(resource: ServedResource) -> dict[str, str]:
    kind = resource.type
    return {"group": kind.group, "kind": kind.kind, "version": kind.version}


def _patch(resource: ServedResource, name: str, *, strategic: bool) -> dict[str, Any]:
    body = {"schema": {"type": "object"}}
    return {
        "operationId": f"patch{resource.type.kind}",
        "parameters": [_FIELD_VALIDATION],
        "requestBody": {"content": dict.fromkeys(PATCH_TYPES if strategic else _WITHOUT_STRATEGIC, body)},
        "responses": {
            "200": {
                "description": "OK",
                "content": {"application/json": {"schema": {"$ref": f"#/components/schemas/{name}"}}},
            }
        },
        "x-kubernetes-action": "patch",
        "x-kubernetes-group-version-kind": _gvk(resource),
    }


def _schema(resource: ServedResource) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object"}
    if not resource.schema.source:
        schema["description"] = _NO_SCHEMA
    if resource.schema.source:
        schema = mapping(_with_either(msgspec.json.decode(resource.schema.source)))
    standard = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"}}
    return {
        **schema,
        "properties": {**standard, **mapping(schema.get("properties"))},
        "x-kubernetes-group-version-kind": [_gvk(resource)],
    }


def _with_either(schema: Any) -> Any:
    """Return a schema whose nodes that may be a number or a text say so in words that every reader of OpenAPI knows."""
    if not isinstance(schema, dict):
        return schema
    source = cast("dict[str, Any]", schema)
    result = {name: _with_either(inner) if name in _ONE_SCHEMA else inner for name, inner in source.items()}
    if "properties" in source:
        # Their names are the kind's own; one of them may be called like a keyword.
        result["properties"] = {name: _with_either(inner) for name, inner in mapping(source["properties"]).items()}
    if source.get("x-kubernetes-int-or-string") is True:
        result.setdefault("anyOf", [{"type": "integer"}, {"type": "string"}])
    return result


_ONE_SCHEMA: Final = frozenset({"items", "additionalProperties"})


def published_name(definitions: Definitions, resource: ServedResource) -> str | None:
    """Return the name of a built-in kind's published schema; None if it is not there."""
    wanted = _gvk(resource)
    name = schema_name(resource)
    candidates = [name] if name in definitions else list(definitions)
    return next((name for name in candidates if wanted in _kinds(definitions[name])), None)


def _kinds(definition: object) -> list[Any]:
    return items(mapping(definition).get("x-kubernetes-group-version-kind"))


def _add_published(schemas: dict[str, Any], definitions: Definitions, name: str) -> None:
    """Add a published schema and all that it refers to, as OpenAPI writes them."""
    waiting = [name]
    while waiting:
        current = waiting.pop()
        if current not in schemas and current in definitions:
            schemas[current] = _converted(definitions[current], waiting)


def _converted(value: object, references: list[str]) -> Any:
    """Turn JSON schema into OpenAPI: references lead to components, null is no type of its own."""
    if isinstance(value, list):
        return [_converted(item, references) for item in cast("list[object]", value)]
    if not isinstance(value, dict):
        return value
    source = cast("dict[str, Any]", value)
    result: dict[str, Any] = {}
    for name, inner in source.items():
        if name == "$ref" and isinstance(inner, str):
            target = inner.removeprefix(_DEFS)
            references.append(target)
            reference = {"$ref": _COMPONENTS + target}
            result.update(reference if len(source) == 1 else {"allOf": [reference], "default": {}})
        elif name == "type" and isinstance(inner, list):
            result[name] = next(kind for kind in cast("list[str]", inner) if kind != "null")
        elif name == "properties":
            # Their names are the kind's own; one of them may be called like a keyword.
            result[name] = {field: _converted(below, references) for field, below in mapping(inner).items()}
        elif name != "enum":  # only of apiVersion and kind, where the real documents have none
            result[name] = _converted(inner, references)
    return result
