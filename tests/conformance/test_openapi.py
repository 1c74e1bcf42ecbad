"""What OpenAPI v3 says of custom resources, which `kubectl explain` shows."""

from __future__ import annotations

import importlib.util
import re
from typing import Any

import pytest

from deltaloop.api.json_values import at, is_mapping, items, mapping
from deltaloop.api.kubernetes_version import MINOR
from deltaloop.apiserver.builtin_tables import published_schemas
from deltaloop.apiserver.core.answers import openapi, openapi_v2
from tests.apiserver.core.built_in import built_in_registry
from tests.conformance import openapi_reader
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


def without_sentences(value: object) -> object:
    if is_mapping(value):
        return {
            name: without_sentences(inner)
            for name, inner in value.items()
            if not isinstance(inner, str) or name != "description"
        }
    listed = items(value)
    return [without_sentences(item) for item in listed] if listed else value


@needs_extra
@conformance("OpenAPI: schemas of built-in kinds, but for their sentences", min_version=MINOR)
async def test_all_schemas(api: Api) -> None:
    """What the embedded server would say is what either server says: enums, defaults, references."""
    registry = built_in_registry()
    ours = openapi_v2.document(registry.resources(), published_schemas())["definitions"]
    said = (await api.get("/openapi/v2")).json["definitions"]
    assert without_sentences(ours) == without_sentences({name: said.get(name) for name in ours})
    for group in registry.groups():
        path = f"/openapi/v3/{'apis/' + group if group else 'api'}/"
        for version in registry.versions(group):
            document = openapi.document(registry, group, version, published_schemas())
            ours = mapping(at(document, "components", "schemas"))
            said = (await api.get(path + version)).json["components"]["schemas"]
            assert without_sentences(ours) == without_sentences({name: said.get(name) for name in ours}), path


@needs_extra
@conformance("OpenAPI: enums of built-in kinds are told, and listed in the description")
async def test_enums(api: Api) -> None:
    schemas = (await api.get("/openapi/v3/api/v1")).json["components"]["schemas"]
    old = (await api.get("/openapi/v2")).json["definitions"]
    for found in (schemas, old):
        policy = found["io.k8s.api.core.v1.PodSpec"]["properties"]["restartPolicy"]
        assert policy["enum"] == ["Always", "Never", "OnFailure"]
        values = '\n\nPossible enum values:\n - `"Always"`\n - `"Never"`\n - `"OnFailure"`'
        assert policy["description"].endswith(values)
        modes = found["io.k8s.api.core.v1.PersistentVolumeSpec"]["properties"]["accessModes"]["items"]["enum"]
        assert modes == ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"]
        assert "enum" not in found["io.k8s.api.core.v1.Pod"]["properties"]["kind"]
    container = schemas["io.k8s.api.core.v1.ContainerPort"]["properties"]
    assert (container["protocol"]["default"], container["containerPort"]["default"]) == ("TCP", 0)
    assert schemas["io.k8s.api.core.v1.Pod"]["properties"]["spec"]["default"] == {}
    assert "default" not in schemas["io.k8s.api.core.v1.PodSpec"]["properties"]["affinity"]


@needs_extra
@conformance("OpenAPI v2: what is served, and references where there are descriptions")
async def test_version_2(api: Api) -> None:
    definitions = (await api.get("/openapi/v2")).json["definitions"]
    assert not [name for name in definitions if ".resource.v1beta" in name]
    metadata = definitions["io.k8s.api.core.v1.Pod"]["properties"]["metadata"]
    assert metadata["$ref"] == f"#/definitions/{OBJECT_META}"
    assert metadata["description"]
    assert definitions["io.k8s.apimachinery.pkg.api.resource.Quantity"]["type"] == "string"
    number_or_text = definitions["io.k8s.apimachinery.pkg.util.intstr.IntOrString"]
    assert (number_or_text["type"], number_or_text["format"]) == ("string", "int-or-string")


@needs_extra
@conformance("OpenAPI v2: custom resources and their lists have the metadata of all objects, and no defaults")
async def test_custom_resources_in_version_2(api: Api) -> None:
    spec = {"type": "object", "properties": {"size": {"type": "integer", "default": 3}, "inner": EMBEDDED}}
    await api.define(widget_crd(api.group(), schema={"type": "object", "properties": {"spec": spec}}))
    name = f"com.example.g{api.number}.v1.Widget"
    found: dict[str, Any] = {}

    async def there() -> bool:
        found.update((await api.get("/openapi/v2")).json["definitions"])
        return name in found

    await api.eventually(there, seconds=30)
    fields, listed = found[name]["properties"], found[f"{name}List"]["properties"]
    assert fields["metadata"]["$ref"] == f"#/definitions/{OBJECT_META}"
    assert listed["metadata"]["$ref"] == f"#/definitions/{LIST_META}"
    assert listed["items"]["items"] == {"$ref": f"#/definitions/{name}"}
    assert fields["spec"]["properties"]["size"] == {"type": "integer"}
    kept = {"x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True}
    assert fields["spec"]["properties"]["inner"] == kept


@conformance("OpenAPI v2: protobuf has the same definitions and operations as JSON")
async def test_openapi_v2_in_protobuf(api: Api) -> None:
    await api.widgets()
    protobuf = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
    name = f"{'.'.join(reversed(api.group().split('.')))}.v1.Widget"

    async def described() -> bool:
        both = [await api.get("/openapi/v2", Accept=accept) for accept in (protobuf, "application/json")]
        return all(name.encode() in answer.body for answer in both)

    await api.eventually(described)
    document = (await api.get("/openapi/v2")).json
    message = (await api.get("/openapi/v2", Accept=protobuf)).body
    found = openapi_reader.definitions(message)
    assert found.keys() == document["definitions"].keys()
    for kind in (name, "io.k8s.api.apps.v1.Deployment", "io.k8s.api.core.v1.Container", "io.k8s.api.core.v1.PodSpec"):
        wanted = document["definitions"][kind]
        assert found[kind].keys() == wanted.keys()
        assert found[kind].get("required", []) == wanted.get("required", [])
        for field, schema in wanted.get("properties", {}).items():
            read = found[kind]["properties"][field]
            for part in ("type", "format", "$ref", "description"):
                assert read.get(part) == schema.get(part), (kind, field, part)
            assert read.get("items", {}).get("$ref") == schema.get("items", {}).get("$ref")
    group = found["io.k8s.api.apps.v1.Deployment"]["x-kubernetes-group-version-kind"]
    assert {"group", "kind", "version", "apps", "Deployment", "v1"} <= {*re.findall(r"\w+", group)}
    operations = openapi_reader.operations(message)
    assert operations.keys() == document["paths"].keys()
    path = "/apis/apps/v1/namespaces/{namespace}/deployments/{name}"
    patch = document["paths"][path]["patch"]
    wanted = {parameter["name"] for parameter in patch["parameters"] if "name" in parameter}
    assert operations[path]["patch"] == (patch["operationId"], wanted)
    assert {"get", "put", "patch", "delete"} <= operations[path].keys()
    custom = next(
        item for path, item in document["paths"].items() if path.endswith("/widgets/{name}") and api.group() in path
    )
    for item, strategic in ((custom, False), (document["paths"][path], _HAS_SCHEMAS)):
        assert ("application/strategic-merge-patch+json" in item["patch"]["consumes"]) is strategic
