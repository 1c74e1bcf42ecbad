"""What OpenAPI v3 says of custom resources, which `kubectl explain` shows."""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest

from tests.conformance.target import Api, conformance, widget_crd

_HAS_SCHEMAS = importlib.util.find_spec("kubernetes_validate") is not None
needs_extra = pytest.mark.skipif(not _HAS_SCHEMAS, reason="needs the extra `schemas`")
OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
LIST_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta"
EMBEDDED = {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True}


async def schemas_of(api: Api) -> dict[str, Any]:
    """Define a custom resource and return the schemas of its group version, once they are there."""
    schema = {
        "type": "object",
        "description": "A widget.",
        "properties": {
            "metadata": {"type": "object", "properties": {"name": {"type": "string", "maxLength": 9}}},
            "spec": {
                "type": "object",
                "properties": {
                    "text": {"type": "string"},
                    "any": {"x-kubernetes-int-or-string": True},
                    "inner": EMBEDDED,
                    "listed": {"type": "array", "items": {**EMBEDDED, "required": ["kind"]}},
                },
            },
        },
    }
    await api.define(widget_crd(api.group(), schema=schema, selectableFields=[{"jsonPath": ".spec.text"}]))
    found: dict[str, Any] = {}

    async def there() -> bool:
        paths = (await api.get("/openapi/v3")).json["paths"]
        path = paths.get(f"apis/{api.group()}/v1")
        if path is None:
            return False
        answer = await api.get(path["serverRelativeURL"])
        found.update(answer.json["components"]["schemas"])
        return f"com.example.g{api.number}.v1.Widget" in found

    await api.eventually(there, seconds=30)
    return found


def reference(name: str) -> list[dict[str, str]]:
    return [{"$ref": f"#/components/schemas/{name}"}]


@needs_extra
@conformance("OpenAPI v3: custom resources and their lists have the metadata of all objects")
async def test_identity(api: Api) -> None:
    schemas = await schemas_of(api)
    name = f"com.example.g{api.number}.v1.Widget"
    widget, listed = schemas[name], schemas[f"{name}List"]
    assert widget["description"] == "A widget."
    assert widget["x-kubernetes-selectable-fields"] == [{"fieldPath": "spec.text"}]
    assert widget["properties"]["metadata"]["allOf"] == reference(OBJECT_META)
    assert listed["properties"]["metadata"]["allOf"] == reference(LIST_META)
    assert listed["properties"]["items"]["items"] == reference(name)[0]
    assert (listed["description"], listed["required"]) == ("WidgetList is a list of Widget", ["items"])
    kind = {"group": api.group(), "version": "v1", "kind": "WidgetList"}
    assert listed["x-kubernetes-group-version-kind"] == [kind]
    assert {"ownerReferences", "labels", "managedFields"} <= set(schemas[OBJECT_META]["properties"])
    for text in (widget["properties"], listed["properties"]):
        assert text["apiVersion"]["description"].startswith("APIVersion defines the versioned schema")


@needs_extra
@conformance("OpenAPI v3: objects in a custom resource have a type and metadata")
async def test_embedded(api: Api) -> None:
    schemas = await schemas_of(api)
    spec = schemas[f"com.example.g{api.number}.v1.Widget"]["properties"]["spec"]["properties"]
    for inner in (spec["inner"], spec["listed"]["items"]):
        assert set(inner["properties"]) == {"apiVersion", "kind", "metadata"}
        assert inner["required"] == ["kind", "apiVersion"]
        assert inner["properties"]["metadata"]["allOf"] == reference(OBJECT_META)
    assert spec["any"]["anyOf"] == [{"type": "integer"}, {"type": "string"}]
