"""OpenAPI: enough for kubectl to believe in a resource and to leave validation to the server.

kubectl asks whether a PATCH of a kind takes the query parameter ``fieldValidation``; if so, it sends ``Strict`` and
checks nothing itself. So each group version has a document with one PATCH per kind. Schemas are there for custom
resources, whose CRD has them, so that ``kubectl explain`` can show them; built-in kinds are plain objects.

kubectl up to 1.28 asks for OpenAPI v2 in protobuf instead, where an empty message, zero bytes, is a valid document.

Source: kube-openapi pkg/handler3; kubectl pkg/util/openapi and pkg/cmd/util (``query_param_verifier_v3.go``).
"""

from __future__ import annotations

import hashlib
from typing import Any, Final

import msgspec

from deltaloop.apiserver.core.json_values import mapping
from deltaloop.apiserver.core.patching import JSON_PATCH, MERGE_PATCH
from deltaloop.apiserver.core.registry import Registry
from deltaloop.apiserver.core.served_resource import ServedResource

V2_CONTENT_TYPE: Final = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
V2_BODY: Final = b""

# Where strategic merge patch is listed, kubectl computes such patches from the schemas and warns when they are missing;
# where it is not, kubectl takes the built-in kinds' merge keys from its own types, and sends the same patches.
_PATCH_TYPES: Final = (JSON_PATCH, MERGE_PATCH)
_FIELD_VALIDATION: Final = {
    "name": "fieldValidation",
    "in": "query",
    "description": "What to do about unknown and duplicate fields: Ignore, Warn (the default) or Strict.",
    "schema": {"type": "string", "uniqueItems": True},
}


def index_document(registry: Registry) -> dict[str, Any]:
    """Return the answer to ``/openapi/v3``: each group version's path, and its URL with the document's hash."""
    paths: dict[str, Any] = {}
    for group in registry.groups():
        for version in registry.versions(group):
            path = _path(group, version)
            digest = document_hash(registry, group, version)
            paths[path] = {"serverRelativeURL": f"/openapi/v3/{path}?hash={digest}"}
    return {"paths": paths}


def document(registry: Registry, group: str, version: str) -> dict[str, Any] | None:
    """Return the answer to ``/openapi/v3/apis/{group}/{version}`` or ``/openapi/v3/api/{version}``; None means 404."""
    served = registry.in_version(group, version)
    if not served:
        return None
    paths: dict[str, Any] = {}
    schemas: dict[str, Any] = {}
    for resource in served:
        name = schema_name(resource)
        schemas[name] = _schema(resource)
        if "patch" in resource.verbs:
            parts = [_path(group, version), resource.type.plural, "{name}"]
            if resource.type.namespaced:
                parts.insert(1, "namespaces/{namespace}")
            paths["/" + "/".join(parts)] = {"patch": _patch(resource, name)}
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "deltaloop"},
        "paths": paths,
        "components": {"schemas": schemas},
    }


def document_hash(registry: Registry, group: str, version: str) -> str:
    """Return the hash of a group version's document; the empty string if it is not served."""
    found = document(registry, group, version)
    return hashlib.sha512(msgspec.json.encode(found)).hexdigest().upper() if found is not None else ""


def schema_name(resource: ServedResource) -> str:
    """Return a kind's name among the schemas, such as ``com.example.v1.Foo`` or ``io.k8s.api.apps.v1.Deployment``."""
    kind = resource.type
    if resource.custom:
        return ".".join([*reversed(kind.group.split(".")), kind.version, kind.kind])
    return ".".join(["io.k8s.api", kind.group.partition(".")[0] or "core", kind.version, kind.kind])


def _path(group: str, version: str) -> str:
    return f"apis/{group}/{version}" if group else f"api/{version}"


def _gvk(resource: ServedResource) -> dict[str, str]:
    kind = resource.type
    return {"group": kind.group, "kind": kind.kind, "version": kind.version}


def _patch(resource: ServedResource, name: str) -> dict[str, Any]:
    body = {"schema": {"type": "object"}}
    return {
        "operationId": f"patch{resource.type.kind}",
        "parameters": [_FIELD_VALIDATION],
        "requestBody": {"content": dict.fromkeys(_PATCH_TYPES, body)},
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
    if resource.schema:
        schema = mapping(msgspec.json.decode(resource.schema))
    standard = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"}}
    return {
        **schema,
        "properties": {**standard, **mapping(schema.get("properties"))},
        "x-kubernetes-group-version-kind": [_gvk(resource)],
    }
