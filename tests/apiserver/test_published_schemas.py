"""OpenAPI with and without the extra ``schemas``, and field validation of built-in kinds, which needs no extra."""

from __future__ import annotations

import importlib.util
import json
from typing import Any

import pytest

from deltaloop.api.json_values import is_mapping, items, text
from deltaloop.apiserver.builtin_tables import published_schemas
from deltaloop.apiserver.core.answers.openapi import document
from deltaloop.apiserver.core.writes.patching import STRATEGIC_MERGE_PATCH
from tests.apiserver.core.built_in import built_in_registry
from tests.apiserver.serving import CONFIG_MAPS, PODS, config_map, serving

_INSTALLED = importlib.util.find_spec("kubernetes_validate") is not None
needs_extra = pytest.mark.skipif(not _INSTALLED, reason="needs the extra `schemas`")


def schemas(found: dict[str, Any] | None) -> dict[str, Any]:
    assert found is not None
    result: dict[str, Any] = found["components"]["schemas"]
    return result


def references(value: Any) -> set[str]:
    if is_mapping(value):
        own = {text(value["$ref"])} if isinstance(value.get("$ref"), str) else set[str]()
        return own.union(*map(references, value.values()))
    return set[str]().union(*map(references, items(value)))


def test_schema_names_the_missing_extra() -> None:
    found = schemas(document(built_in_registry(), "apps", "v1"))["io.k8s.api.apps.v1.Deployment"]
    assert "deltaloop[schemas]" in found["description"]
    assert set(found["properties"]) == {"apiVersion", "kind", "metadata"}


@needs_extra
@pytest.mark.parametrize(("group", "version"), [("", "v1"), ("apps", "v1"), ("apiextensions.k8s.io", "v1")])
def test_extra_schemas_have_no_dangling_references(group: str, version: str) -> None:
    found = document(built_in_registry(), group, version, published_schemas())
    assert {name.rpartition("/")[2] for name in references(found)} <= set(schemas(found))


@needs_extra
def test_field_can_be_named_like_a_schema_keyword() -> None:
    found = schemas(document(built_in_registry(), "apiextensions.k8s.io", "v1", published_schemas()))
    prefix = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1."
    assert {"$ref", "enum", "type", "properties"} <= set(found[prefix + "JSONSchemaProps"]["properties"])
    assert "enum" not in found[prefix + "CustomResourceDefinition"]["properties"]["kind"]


@needs_extra
def test_extra_schemas_contain_list_merge_rules() -> None:
    found = document(built_in_registry(), "apps", "v1", published_schemas())
    pod_spec = schemas(found)["io.k8s.api.core.v1.PodSpec"]
    assert pod_spec["properties"]["containers"]["x-kubernetes-patch-merge-key"] == "name"
    assert pod_spec["properties"]["nodeName"]["type"] == "string"
    assert found is not None
    path = found["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]
    assert STRATEGIC_MERGE_PATCH in path["patch"]["requestBody"]["content"]


async def test_index_links_to_cacheable_documents() -> None:
    async with serving() as s:
        paths = (await s.call.get("/openapi/v3")).json["paths"]
        url = paths["apis/apps/v1"]["serverRelativeURL"]
        answer = await s.call.get(url)
        assert answer.status == 200
        assert answer.headers["Cache-Control"] == "public, immutable"
        again = await s.call.get(url, **{"If-None-Match": answer.headers["ETag"]})
        assert (again.status, again.body) == (304, b"")


@pytest.mark.parametrize("mode", ["", "Warn", "Ignore"])
async def test_unknown_fields_of_built_in_kinds_are_dropped(mode: str) -> None:
    async with serving() as s:
        made = await s.call.post(f"{CONFIG_MAPS}?fieldValidation={mode}", {**config_map("a", {"k": "v"}), "dato": {}})
        assert made.status == 201
        assert "dato" not in made.json
        assert (made.headers.get("Warning") is None) is (mode == "Ignore")
        if mode != "Ignore":
            assert made.headers["Warning"] == '299 - "unknown field \\"dato\\""'


async def test_strict_validation_rejects_unknown_and_duplicate_fields() -> None:
    pod = {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c", "imag": 1}]},
    }
    async with serving() as s:
        refused = await s.call.post(f"{PODS}?fieldValidation=Strict", pod)
        message = refused.refuses(400, "BadRequest")
        assert message.startswith('Pod in version "v1" cannot be handled as a Pod: strict decoding error: ')
        assert message.endswith('unknown field "spec.containers[0].imag"')
        body = json.dumps(config_map("a", {"k": "v"}))[:-1] + ', "data": {}}'
        double = await s.call.post(
            f"{CONFIG_MAPS}?fieldValidation=Strict", body.encode(), **{"Content-Type": "application/json"}
        )
        assert 'duplicate field "data"' in double.refuses(400, "BadRequest")
        await s.call.created(CONFIG_MAPS, config_map("a"))
        patched = await s.call.patch(f"{CONFIG_MAPS}/a?fieldValidation=Strict", {"dato": {"k": "v"}})
        assert 'unknown field "dato"' in patched.refuses(422, "Invalid")
