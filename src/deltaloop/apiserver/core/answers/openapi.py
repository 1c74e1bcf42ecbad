"""OpenAPI v3 documents for kubectl, for server-side validation and ``kubectl explain``.

Each kind has a PATCH operation, because kubectl looks there whether the server validates fields. Built-in kinds are
plain objects without the extra ``schemas``.

Source: kube-openapi pkg/handler3; kubectl pkg/util/openapi and pkg/cmd/util (``query_param_verifier_v3.go``).
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import Any, Final

import msgspec

from deltaloop.api.json_values import mapping, texts
from deltaloop.apiserver.core.answers.published import PublishedSchemas, Schema, identity_fields
from deltaloop.apiserver.core.registry import Registry
from deltaloop.apiserver.core.served_resource import ServedResource
from deltaloop.apiserver.core.wire.bodies import APPLY_PATCH, JSON_PATCH
from deltaloop.apiserver.core.writes.patching import MERGE_PATCH, STRATEGIC_MERGE_PATCH

# If strategic merge patch is listed, kubectl computes the patch from the schemas and warns if they are missing.
# Otherwise kubectl uses the merge keys of its own types and sends the same patch.
_WITHOUT_STRATEGIC: Final = (JSON_PATCH, MERGE_PATCH, APPLY_PATCH)
_WITH_STRATEGIC: Final = (JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH, APPLY_PATCH)
_NO_SCHEMA: Final = "This server has no schemas of built-in kinds; install deltaloop[schemas] where it runs."
_FIELD_VALIDATION: Final = {
    "name": "fieldValidation",
    "in": "query",
    "description": "What to do about unknown and duplicate fields: Ignore, Warn (the default) or Strict.",
    "schema": {"type": "string", "uniqueItems": True},
}


def index_document(registry: Registry, published: PublishedSchemas | None = None) -> dict[str, Any]:
    """Return the document for ``/openapi/v3``: the URL of each group version's document, with its hash."""
    paths: dict[str, Any] = {}
    for group in registry.groups():
        for version in registry.versions(group):
            path = _path(group, version)
            digest = document_hash(registry, group, version, published)
            paths[path] = {"serverRelativeURL": f"/openapi/v3/{path}?hash={digest}"}
    return {"paths": paths}


def document(
    registry: Registry, group: str, version: str, published: PublishedSchemas | None = None
) -> dict[str, Any] | None:
    served = registry.in_version(group, version)
    if not served:
        return None
    paths: dict[str, Any] = {}
    schemas: dict[str, Any] = {}
    for resource in served:
        name = add_schemas(schemas, resource, published)
        if "patch" in resource.verbs:
            parts = [_path(group, version), resource.type.plural, "{name}"]
            if resource.type.namespaced:
                parts.insert(1, "namespaces/{namespace}")
            paths["/" + "/".join(parts)] = {"patch": _patch(resource, name, patch_types(resource, published))}
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "deltaloop"},
        "paths": paths,
        "components": {"schemas": schemas},
    }


def add_schemas(schemas: Schema, resource: ServedResource, published: PublishedSchemas | None) -> str:
    """Add the schemas of a kind, of its list, and of their references; return the name of the kind's schema."""
    known = published_name(published, resource)
    name = known or schema_name(resource)
    if published is not None and known is not None:
        published.add_to(schemas, known)
    else:
        schemas[name] = _schema(resource, identity_fields(published, schemas))
    if "list" in resource.verbs:
        _add_list(schemas, resource, name, published)
    return name


def published_name(published: PublishedSchemas | None, resource: ServedResource) -> str | None:
    """Return the name of the published schema of a built-in kind, or None if it is missing."""
    kind = resource.type
    return published.name_of(kind.group, kind.version, kind.kind) if published is not None else None


def document_hash(registry: Registry, group: str, version: str, published: PublishedSchemas | None = None) -> str:
    served = registry.in_version(group, version)
    if not served:
        return ""
    # The published schemas are constant while the server runs, so their number is sufficient.
    return _hash_of(served, len(published.definitions) if published is not None else 0)


@lru_cache(maxsize=1024)
def _hash_of(served: tuple[ServedResource, ...], known: int) -> str:
    return hashlib.sha512(f"{known} {served!r}".encode()).hexdigest().upper()


def schema_name(resource: ServedResource) -> str:
    """Return the schema name, for example ``com.example.v1.Foo`` or ``io.k8s.api.apps.v1.Deployment``."""
    kind = resource.type
    if resource.schema.source:
        return ".".join([*reversed(kind.group.split(".")), kind.version, kind.kind])
    return ".".join(["io.k8s.api", kind.group.partition(".")[0] or "core", kind.version, kind.kind])


def _path(group: str, version: str) -> str:
    return f"apis/{group}/{version}" if group else f"api/{version}"


def _gvk(resource: ServedResource) -> dict[str, str]:
    kind = resource.type
    return {"group": kind.group, "kind": kind.kind, "version": kind.version}


def patch_types(resource: ServedResource, published: PublishedSchemas | None) -> tuple[str, ...]:
    return _WITH_STRATEGIC if published_name(published, resource) is not None else _WITHOUT_STRATEGIC


def _patch(resource: ServedResource, name: str, types: tuple[str, ...]) -> dict[str, Any]:
    body = {"schema": {"type": "object"}}
    return {
        "operationId": f"patch{resource.type.kind}",
        "parameters": [_FIELD_VALIDATION],
        "requestBody": {"content": dict.fromkeys(types, body)},
        "responses": {
            "200": {
                "description": "OK",
                "content": {"application/json": {"schema": {"$ref": f"#/components/schemas/{name}"}}},
            }
        },
        "x-kubernetes-action": "patch",
        "x-kubernetes-group-version-kind": _gvk(resource),
    }


def _schema(resource: ServedResource, identity: Schema) -> Schema:
    source = resource.schema.source
    selectable = [{"fieldPath": label} for label in resource.field_labels] if source else []
    plain: Schema = {"type": "object", "description": _NO_SCHEMA}
    schema = _described(msgspec.json.decode(source), identity) if source else plain
    return {
        **schema,
        "properties": {**mapping(schema.get("properties")), **identity},
        "x-kubernetes-group-version-kind": [_gvk(resource)],
        **({"x-kubernetes-selectable-fields": selectable} if selectable else {}),
    }


def _add_list(schemas: Schema, resource: ServedResource, name: str, published: PublishedSchemas | None) -> None:
    kind = resource.type
    known = published.name_of(kind.group, kind.version, resource.list_kind) if published is not None else None
    if published is not None and known is not None:
        published.add_to(schemas, known)
        return
    items = {
        "description": f"List of {kind.plural}.",
        "type": "array",
        "items": {"$ref": f"#/components/schemas/{name}"},
    }
    listed: Schema = {
        "description": f"{resource.list_kind} is a list of {kind.kind}",
        "type": "object",
        "required": ["items"],
        "properties": identity_fields(published, schemas, of_list=True) | {"items": items},
        "x-kubernetes-group-version-kind": [{**_gvk(resource), "kind": resource.list_kind}],
    }
    schemas[f"{name.removesuffix(kind.kind)}{resource.list_kind}"] = listed


def _described(schema: object, identity: Schema) -> Schema:
    """Return a CRD schema in standard OpenAPI, with alternatives for int-or-string values."""
    result = dict(mapping(schema))
    for name in _ONE_SCHEMA:
        if isinstance(result.get(name), dict):
            result[name] = _described(result[name], identity)
    if "properties" in result:
        result["properties"] = {
            name: _described(inner, identity) for name, inner in mapping(result["properties"]).items()
        }
    if result.get("x-kubernetes-int-or-string") is True:
        result.setdefault("anyOf", [{"type": "integer"}, {"type": "string"}])
    if result.get("x-kubernetes-embedded-resource") is True:
        result["properties"] = {**mapping(result.get("properties")), **identity}
        result["required"] = [*dict.fromkeys((*texts(result.get("required")), "kind", "apiVersion"))]
    return result


_ONE_SCHEMA: Final = ("items", "additionalProperties")
