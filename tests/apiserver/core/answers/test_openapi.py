from __future__ import annotations

import msgspec
import pytest

from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.apiserver.core.answers import openapi_v2
from deltaloop.apiserver.core.answers.openapi import (
    document,
    document_hash,
    index_document,
    schema_name,
)
from deltaloop.apiserver.core.crds.codec import CustomCodec
from deltaloop.apiserver.core.crds.definition import default_crd
from deltaloop.apiserver.core.registry import Registry
from deltaloop.apiserver.core.served_resource import ServedResource
from deltaloop.apiserver.core.wire.bodies import APPLY_PATCH, JSON_PATCH
from deltaloop.apiserver.core.writes.patching import MERGE_PATCH
from deltaloop.schemas.schema_compiler import schema_from_json
from tests.apiserver.core.built_in import built_in_registry
from tests.apiserver.core.custom_resources import GROUP, foo_crd, served_foo


@pytest.fixture
def registry() -> Registry:
    registry = built_in_registry()
    registry.apply_crd(default_crd(foo_crd()), now=0)
    return registry


def test_index_lists_every_group_version_with_its_hash(registry: Registry) -> None:
    paths = index_document(registry)["paths"]
    assert set(paths) >= {"api/v1", "apis/apps/v1", f"apis/{GROUP}/v1"}
    wanted = document_hash(registry, "apps", "v1")
    assert wanted
    assert paths["apis/apps/v1"] == {"serverRelativeURL": f"/openapi/v3/apis/apps/v1?hash={wanted}"}
    assert document_hash(registry, "apps", "v9") == ""


def test_each_kind_has_a_patch_with_field_validation(registry: Registry) -> None:
    found = document(registry, "apps", "v1")
    assert found is not None
    patch = found["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]["patch"]
    assert patch["x-kubernetes-group-version-kind"] == {"group": "apps", "version": "v1", "kind": "Deployment"}
    assert [(item["name"], item["in"]) for item in patch["parameters"]] == [("fieldValidation", "query")]
    core = document(registry, "", "v1")
    assert core is not None
    assert "/api/v1/nodes/{name}" in core["paths"]
    assert "/api/v1/namespaces/{namespace}/bindings/{name}" not in core["paths"]


def test_strategic_merge_patch_is_not_listed_without_merge_keys(registry: Registry) -> None:
    for group in ("apps", GROUP):
        found = document(registry, group, "v1")
        assert found is not None
        for path in found["paths"].values():
            assert list(path["patch"]["requestBody"]["content"]) == [JSON_PATCH, MERGE_PATCH, APPLY_PATCH]


def test_custom_kind_has_its_schema_and_standard_fields(registry: Registry) -> None:
    found = document(registry, GROUP, "v1")
    assert found is not None
    schema = found["components"]["schemas"]["com.example.samples.v1.Foo"]
    assert set(schema["properties"]) == {"apiVersion", "kind", "metadata", "spec"}
    assert schema["x-kubernetes-group-version-kind"] == [{"group": GROUP, "version": "v1", "kind": "Foo"}]
    (path,) = found["paths"].values()
    reference = path["patch"]["responses"]["200"]["content"]["application/json"]["schema"]["$ref"]
    assert reference == "#/components/schemas/com.example.samples.v1.Foo"


def test_schema_names() -> None:
    registry = built_in_registry()
    deployments, pods = registry.find("apps", "v1", "deployments"), registry.find("", "v1", "pods")
    assert deployments is not None
    assert pods is not None
    assert schema_name(deployments) == "io.k8s.api.apps.v1.Deployment"
    assert schema_name(pods) == "io.k8s.api.core.v1.Pod"
    assert schema_name(served_foo()) == "com.example.samples.v1.Foo"


def test_hash_changes_with_the_schema(registry: Registry) -> None:
    before = document_hash(registry, GROUP, "v1")
    crd = default_crd(foo_crd())
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"] = {"type": "object"}
    registry.apply_crd(crd, now=0)
    assert document_hash(registry, GROUP, "v1") != before
    assert document_hash(registry, "apps", "v1") == document_hash(built_in_registry(), "apps", "v1")


def test_unserved_group_has_no_document(registry: Registry) -> None:
    assert document(registry, "apps", "v1beta1") is None


def test_version_2_omits_unsupported_keywords() -> None:
    schema = {
        "type": "object",
        "required": ["maybe", "list"],
        "properties": {
            "maybe": {"type": "object", "nullable": True, "properties": {"a": {"type": "string"}}},
            "list": {"type": "array", "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            "nullable": {"type": "string", "anyOf": [{"minLength": 1}], "not": {"maxLength": 2}},
            "free": {"type": "array", "x-kubernetes-preserve-unknown-fields": True, "items": {"type": "string"}},
        },
    }
    kind = ResourceType[Resource]("example.com", "v1", "Foo", "foos")
    served = ServedResource(
        type=kind,
        verbs=("get", "patch"),
        singular="foo",
        list_kind="FooList",
        codec=CustomCodec(kind),
        schema=schema_from_json(msgspec.json.encode(schema)),
    )
    found = openapi_v2.document([served])
    assert found["definitions"]["com.example.v1.Foo"] == {
        "type": "object",
        "required": ["list"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "maybe": {},
            "list": {"type": "array", "items": {"x-kubernetes-preserve-unknown-fields": True}},
            "nullable": {"type": "string"},
            "free": {"x-kubernetes-preserve-unknown-fields": True},
        },
        "x-kubernetes-group-version-kind": [{"group": "example.com", "kind": "Foo", "version": "v1"}],
    }
    assert {path: [*operations] for path, operations in found["paths"].items()} == {
        "/apis/example.com/v1/namespaces/{namespace}/foos/{name}": ["get", "patch"]
    }
