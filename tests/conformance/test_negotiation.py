"""What a client may ask for: tables, partial metadata, YAML; discovery and OpenAPI; reviews and evictions.

Source: KEP-555 (Table), KEP-3352 (aggregated discovery), KEP-2896 (OpenAPI v3); the API of authorization.k8s.io.
"""

from __future__ import annotations

from typing import Any

from deltaloop.api.yaml_reader import read_yaml
from tests.conformance.target import Api, conformance, pod

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
PARTIAL_LIST = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
REVIEWS = "/apis/authorization.k8s.io/v1"


async def _columns(api: Api, path: str) -> list[str]:
    table = (await api.get(path, Accept=TABLE)).json
    assert (table["kind"], table["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    return [column["name"] for column in table["columnDefinitions"] if column["priority"] == 0]


@conformance(
    "KEP-555: a Table has the kind's columns",
    ("ConfigMaps", "configmaps", ["Name", "Data", "Age"]),
    ("Pods", "pods", ["Name", "Ready", "Status", "Restarts", "Age"]),
    ("Secrets", "secrets", ["Name", "Type", "Data", "Age"]),
    ("Services", "services", ["Name", "Type", "Cluster-IP", "External-IP", "Port(s)", "Age"]),
    ("ServiceAccounts", "serviceaccounts", ["Name", "Age"]),
    ("Events", "events", ["Last Seen", "Type", "Reason", "Object", "Message"]),
)
async def test_columns(api: Api, plural: str, columns: list[str]) -> None:
    assert await _columns(api, f"{api.core}/{plural}") == columns


@conformance("KEP-555: a row has cells and, by default, the object's metadata")
async def test_a_row(api: Api) -> None:
    await api.config_map("a", {"k": "1", "l": "2"})
    (row,) = (await api.get(f"{api.config_maps}?fieldSelector=metadata.name=a", Accept=TABLE)).json["rows"]
    assert row["cells"][:2] == ["a", 2]
    assert (row["object"]["kind"], row["object"]["apiVersion"]) == ("PartialObjectMetadata", "meta.k8s.io/v1")
    assert "data" not in row["object"]


@conformance("KEP-555: includeObject", ("None", "None", None), ("Object", "Object", "ConfigMap"))
async def test_include_object(api: Api, value: str, kind: str | None) -> None:
    await api.config_map("a")
    answer = await api.get(f"{api.config_maps}/a?includeObject={value}", Accept=TABLE)
    found = answer.json["rows"][0]["object"]
    assert (found["kind"] if found else None) == kind


@conformance("CRDs: printer columns, and Name and Age without any")
async def test_printer_columns(api: Api) -> None:
    path = await api.widgets(columns=[{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}])
    await api.created(path, api.widget("a", {"size": 3}))
    assert await _columns(api, path) == ["Name", "Size"]
    assert (await api.get(path, Accept=TABLE)).json["rows"][0]["cells"] == ["a", 3]


@conformance("API concepts: partial metadata of one object and of a list")
async def test_partial_metadata(api: Api) -> None:
    await api.config_map("a", {"k": "1"}, labels={"x": "y"})
    one = (await api.get(f"{api.config_maps}/a", Accept=PARTIAL)).json
    assert (one["kind"], one["metadata"]["labels"], "data" in one) == ("PartialObjectMetadata", {"x": "y"}, False)
    many = (await api.get(f"{api.config_maps}?labelSelector=x", Accept=PARTIAL_LIST)).json
    assert (many["kind"], many["items"][0]["metadata"]["name"]) == ("PartialObjectMetadataList", "a")


@conformance("API concepts: answers in YAML")
async def test_yaml_answers(api: Api) -> None:
    await api.config_map("a", {"k": "1"})
    answer = await api.get(f"{api.config_maps}/a", Accept="application/yaml")
    assert answer.headers["Content-Type"] == "application/yaml"
    assert read_yaml(answer.text)["data"] == {"k": "1"}


@conformance("discovery: groups, versions and resources")
async def test_legacy_discovery(api: Api) -> None:
    assert (await api.get("/api")).json["versions"] == ["v1"]
    groups = {group["name"]: group for group in (await api.get("/apis")).json["groups"]}
    assert groups["apps"]["preferredVersion"] == {"groupVersion": "apps/v1", "version": "v1"}
    found = {each["name"]: each for each in (await api.get("/apis/apps/v1")).json["resources"]}
    deployments = found["deployments"]
    assert (deployments["kind"], deployments["namespaced"], deployments["shortNames"]) == (
        "Deployment",
        True,
        ["deploy"],
    )
    assert deployments["verbs"] == ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
    assert (found["deployments/scale"]["group"], found["deployments/scale"]["kind"]) == ("autoscaling", "Scale")


@conformance("KEP-3352: aggregated discovery", min_version="1.30")
async def test_aggregated_discovery(api: Api) -> None:
    path = await api.widgets()
    group = path.split("/")[2]

    async def found() -> bool:
        items = (await api.get("/apis", Accept=AGGREGATED)).json["items"]
        return group in [item["metadata"]["name"] for item in items]

    await api.eventually(found)
    answer = await api.get("/apis", Accept=AGGREGATED)
    assert answer.json["kind"] == "APIGroupDiscoveryList"
    (mine,) = [item for item in answer.json["items"] if item["metadata"]["name"] == group]
    (resource,) = mine["versions"][0]["resources"]
    assert (resource["resource"], resource["scope"]) == ("widgets", "Namespaced")
    assert sorted(each["subresource"] for each in resource["subresources"]) == ["scale", "status"]


@conformance("KEP-2896: OpenAPI v3 names a document for each group version")
async def test_openapi_v3(api: Api) -> None:
    paths = (await api.get("/openapi/v3")).json["paths"]
    assert {"api/v1", "apis/apps/v1"} <= set(paths)
    assert paths["api/v1"]["serverRelativeURL"].startswith("/openapi/v3/api/v1?hash=")


@conformance("version: major, minor and gitVersion")
async def test_version(api: Api) -> None:
    version = (await api.get("/version")).json
    assert version["major"] == "1"
    assert version["gitVersion"].startswith(f"v1.{version['minor']}")


@conformance("health: ok in plain text", ("healthz", "/healthz"), ("livez", "/livez"), ("readyz", "/readyz"))
async def test_health(api: Api, path: str) -> None:
    answer = await api.get(path)
    assert (answer.status, answer.text) == (200, "ok")


def _asks(namespace: str, verb: str = "create") -> dict[str, Any]:
    return {"spec": {"resourceAttributes": {"namespace": namespace, "verb": verb, "resource": "pods"}}}


@conformance("reviews: an administrator may do everything")
async def test_a_review_of_myself(api: Api) -> None:
    made = await api.created(f"{REVIEWS}/selfsubjectaccessreviews", _asks(api.namespace))
    assert made.json["status"]["allowed"] is True


@conformance("reviews: rules of my own")
async def test_my_rules(api: Api) -> None:
    made = await api.created(f"{REVIEWS}/selfsubjectrulesreviews", {"spec": {"namespace": api.namespace}})
    rules = made.json["status"]["resourceRules"]
    assert {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]} in rules


@conformance("reviews: one without anything to ask is 422")
async def test_an_empty_review(api: Api) -> None:
    (await api.post(f"{REVIEWS}/selfsubjectaccessreviews", {"spec": {}})).refuses(422, "Invalid")


@conformance("token review: a token of nobody is not authenticated")
async def test_token_review(api: Api) -> None:
    made = await api.created("/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": "none"}})
    assert made.json["status"].get("authenticated", False) is False


@conformance("pods: an eviction deletes")
async def test_eviction(api: Api) -> None:
    await api.created(f"{api.core}/serviceaccounts", {"metadata": {"name": "default"}})
    await api.created(api.pods, pod("a"))
    body = {"kind": "Eviction", "apiVersion": "policy/v1", "metadata": {"name": "a"}}
    answer = await api.post(f"{api.pods}/a/eviction", body)
    assert (answer.status, answer.json["status"]) == (201, "Success")
    (await api.get(f"{api.pods}/a")).refuses(404, "NotFound")


@conformance("pods: an eviction of nobody is 404")
async def test_eviction_of_nobody(api: Api) -> None:
    body = {"kind": "Eviction", "apiVersion": "policy/v1", "metadata": {"name": "a"}}
    (await api.post(f"{api.pods}/a/eviction", body)).refuses(404, "NotFound")
