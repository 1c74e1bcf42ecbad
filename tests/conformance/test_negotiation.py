"""What a client may ask for: tables, partial metadata, YAML; discovery and OpenAPI; reviews and evictions.

Source: KEP-555 (Table), KEP-3352 (aggregated discovery), KEP-2896 (OpenAPI v3); the API of authorization.k8s.io.
"""

from __future__ import annotations

import gzip
import json
from typing import Any

from deltaloop.api.yaml_reader import read_yaml
from tests.conformance.target import Api, config_map, conformance, pod

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
    assert answer.text.startswith('apiVersion: v1\ndata:\n  k: "1"\nkind: ConfigMap\nmetadata:\n  creationTimestamp: "')


YAML = {"Accept": "application/yaml", "Content-Type": "application/yaml"}


@conformance("negotiation: failures are YAML, too")
async def test_failures_in_yaml(api: Api) -> None:
    answer = await api.get(f"{api.config_maps}/none", Accept="application/yaml")
    assert (answer.status, answer.headers["Content-Type"]) == (404, "application/yaml")
    assert answer.text == (
        "apiVersion: v1\ncode: 404\ndetails:\n  kind: configmaps\n  name: none\nkind: Status\n"
        'message: configmaps "none" not found\nmetadata: {}\nreason: NotFound\nstatus: Failure\n'
    )


@conformance(
    "negotiation: a watch is never YAML",
    ("YAML alone", "application/yaml"),
    ("YAML first", "application/yaml,application/json"),
)
async def test_watch_in_yaml_is_not_acceptable(api: Api, accept: str) -> None:
    answer = await api.get(f"{api.config_maps}?watch=1", Accept=accept)
    assert (answer.status, answer.headers["Content-Type"]) == (406, "application/yaml")
    assert read_yaml(answer.text)["message"].startswith("only the following media types are accepted: ")


@conformance(
    "negotiation: the first clause that can be served counts",
    ("YAML behind what is unknown", "text/html,application/yaml", "application/yaml"),
    ("YAML of less quality", "application/yaml;q=0.5,application/json", "application/json"),
    ("a Table", "application/yaml;as=Table;v=v1;g=meta.k8s.io", "application/yaml"),
    (
        "metadata only, of a list",
        "application/yaml;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
        "application/yaml",
    ),
)
async def test_accept_headers_for_yaml(api: Api, accept: str, content_type: str) -> None:
    answer = await api.get(api.config_maps, Accept=accept)
    assert (answer.status, answer.headers["Content-Type"]) == (200, content_type)


@conformance("negotiation: discovery in YAML", ("groups", "/apis"), ("resources", "/api/v1"), ("versions", "/api"))
async def test_discovery_in_yaml(api: Api, path: str) -> None:
    answer = await api.get(path, Accept="application/yaml")
    assert (answer.status, answer.headers["Content-Type"]) == (200, "application/yaml")
    assert read_yaml(answer.text)["kind"] in ("APIGroupList", "APIResourceList", "APIVersions")


@conformance("negotiation: the version is JSON only")
async def test_version_in_yaml_is_not_acceptable(api: Api) -> None:
    answer = await api.get("/version", Accept="application/yaml")
    assert (answer.status, answer.headers["Content-Type"]) == (406, "application/yaml")


@conformance("bodies: YAML is read by every verb that takes an object")
async def test_bodies_in_yaml(api: Api) -> None:
    made = await api.call(
        "POST", api.config_maps, b"kind: ConfigMap\napiVersion: v1\nmetadata: {name: a}\ndata:\n  1: a\n", **YAML
    )
    assert (made.status, read_yaml(made.text)["data"]) == (201, {"1": "a"}), made.text
    put = await api.call("PUT", f"{api.config_maps}/a", b"metadata:\n  name: a\ndata: {b: c}\n", **YAML)
    assert (put.status, read_yaml(put.text)["data"]) == (200, {"b": "c"}), put.text
    patched = await api.call("PATCH", f"{api.config_maps}/a", b"data: {b: d}\n", **YAML)
    assert (patched.status, read_yaml(patched.text)["message"]) == (415, "415: Unsupported Media Type")
    kept = await api.call("DELETE", f"{api.config_maps}/a", b"preconditions:\n  uid: other\n", **YAML)
    assert kept.status == 409, kept.text
    gone = await api.call("DELETE", f"{api.config_maps}/a", b"gracePeriodSeconds: 0\n", **YAML)
    assert (gone.status, read_yaml(gone.text)["status"]) == (200, "Success"), gone.text


@conformance(
    "bodies: a key that is twice in YAML is a warning, or refused when strict",
    ("warn", "", 201, ['299 - "line 6: key \\"k\\" already set in map"']),
    ("ignore", "?fieldValidation=Ignore", 201, []),
    ("strict", "?fieldValidation=Strict", 400, []),
)
async def test_a_key_twice_in_yaml(api: Api, query: str, status: int, warnings: list[str]) -> None:
    body = b"kind: ConfigMap\napiVersion: v1\nmetadata: {name: a}\ndata:\n  k: b\n  k: c\n"
    answer = await api.call("POST", f"{api.config_maps}{query}", body, **YAML)
    headers: Any = answer.headers
    assert (answer.status, headers.getall("Warning", [])) == (status, warnings), answer.text
    if status == 400:
        expected = 'strict decoding error: yaml: unmarshal errors:\n  line 6: key "k" already set in map'
        assert read_yaml(answer.text)["message"].endswith(expected)


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


OLD_PROTOBUF = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"


@conformance(
    "OpenAPI v2: JSON unless something else is asked for, protobuf under both of its names, 406 for others",
    ("nothing", "", 200, "application/json"),
    ("anything", "*/*", 200, "application/json"),
    ("any application", "application/*", 200, "application/json"),
    ("JSON", "application/json", 200, "application/json"),
    ("JSON with parameters", "application/json;as=Table", 200, "application/json"),
    ("JSON behind another", "application/xml, application/json", 200, "application/json"),
    ("protobuf", OLD_PROTOBUF, 200, OLD_PROTOBUF),
    ("protobuf by its old name", OLD_PROTOBUF.replace("v2.v1", "v2@v1"), 200, OLD_PROTOBUF),
    ("YAML", "application/yaml", 406, None),
    ("XML", "application/xml", 406, None),
)
async def test_forms_of_openapi_v2(api: Api, accept: str, code: int, content_type: str | None) -> None:
    answer = await api.get("/openapi/v2", Accept=accept)
    assert (answer.status, answer.headers.get("Content-Type") if code == 200 else None) == (code, content_type)
    if code == 406:
        assert answer.body == b""


@conformance("OpenAPI v2: definitions and paths of what is served")
async def test_openapi_v2(api: Api) -> None:
    collection = await api.widgets()
    name = f"{'.'.join(reversed(api.group().split('.')))}.v1.Widget"

    async def described() -> bool:
        return name in (await api.get("/openapi/v2")).json["definitions"]

    await api.eventually(described)
    found = (await api.get("/openapi/v2")).json
    assert found["swagger"] == "2.0"
    assert found["info"]["title"] == "Kubernetes"
    kind = {"group": api.group(), "kind": "Widget", "version": "v1"}
    widget = found["definitions"][name]
    assert kind in widget["x-kubernetes-group-version-kind"]
    spec = widget["properties"]["spec"]["properties"]
    assert spec["colour"] == {"type": "string", "enum": ["red", "green"]}
    assert {field: spec[field].get("type") for field in ("free", "maybe", "port")} == dict.fromkeys(
        ("free", "maybe", "port")
    )
    path = collection.replace(f"/{api.namespace}/", "/{namespace}/")
    assert {"get", "post", "delete"} <= set(found["paths"][path])
    assert {"get", "put", "patch", "delete"} <= set(found["paths"][path + "/{name}"])
    patch = found["paths"][path + "/{name}"]["patch"]
    assert patch["x-kubernetes-group-version-kind"] == kind
    assert "fieldValidation" in {parameter.get("name") for parameter in patch["parameters"]}
    deployment = found["definitions"]["io.k8s.api.apps.v1.Deployment"]
    assert deployment["x-kubernetes-group-version-kind"] == [{"group": "apps", "kind": "Deployment", "version": "v1"}]


@conformance(
    "negotiation: answers in JSON are one line with its end",
    ("object", "GET", "/api/v1/namespaces/default", None, ""),
    ("list", "GET", "/api/v1/namespaces", None, ""),
    ("Table", "GET", "/api/v1/namespaces", None, TABLE),
    ("partial metadata", "GET", "/api/v1/namespaces", None, PARTIAL_LIST),
    ("not found", "GET", "/api/v1/namespaces/nope", None, ""),
    ("no such resource", "GET", "/api/v1/nope", None, ""),
    ("versions", "GET", "/api", None, ""),
    ("groups", "GET", "/apis", None, ""),
    ("aggregated discovery", "GET", "/apis", None, AGGREGATED),
    ("group", "GET", "/apis/apps", None, ""),
    ("resources", "GET", "/apis/apps/v1", None, ""),
    ("create", "POST", "/api/v1/namespaces/default/configmaps?dryRun=All", {"metadata": {"name": "x"}}, ""),
    ("bad body", "POST", "/api/v1/namespaces/default/configmaps", b"{", ""),
    ("review", "POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", {}, ""),
    ("delete", "DELETE", "/api/v1/namespaces/default/configmaps?labelSelector=a=b", None, ""),
)
async def test_answers_end_with_a_newline(api: Api, method: str, path: str, body: Any, accept: str) -> None:
    answer = await api.call(method, path, body, Accept=accept or "application/json")
    assert (answer.body[-2:-1], answer.body[-1:], answer.body.count(b"\n")) == (b"}", b"\n", 1)


@conformance(
    "negotiation: some answers in JSON are indented, and have no newline at their end",
    ("version", "/version", "application/json"),
    ("no form of a list", "/api/v1/namespaces", "application/xml"),
    ("no form of a document", "/apis/apps", "application/xml"),
)
async def test_indented_answers(api: Api, path: str, accept: str) -> None:
    answer = await api.get(path, Accept=accept)
    assert answer.body == json.dumps(answer.json, indent=2).encode()


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
async def test_self_subject_review(api: Api) -> None:
    made = await api.created(f"{REVIEWS}/selfsubjectaccessreviews", _asks(api.namespace))
    assert made.json["status"]["allowed"] is True


@conformance("reviews: rules of my own")
async def test_self_subject_rules_review(api: Api) -> None:
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
async def test_eviction_of_missing_pod(api: Api) -> None:
    body = {"kind": "Eviction", "apiVersion": "policy/v1", "metadata": {"name": "a"}}
    (await api.post(f"{api.pods}/a/eviction", body)).refuses(404, "NotFound")


@conformance("bodies: Content-Encoding is not looked at", ("gzip", "gzip"), ("deflate", "deflate"), ("zstd", "zstd"))
async def test_compressed_body_is_not_decompressed(api: Api, encoding: str) -> None:
    body = json.dumps(config_map("a")).encode()
    headers = {"Content-Type": "application/json", "Content-Encoding": encoding}
    assert (await api.call("POST", api.config_maps, body, **headers)).status == 201
    (await api.call("POST", api.config_maps, gzip.compress(body), **headers)).refuses(400, "BadRequest")


@conformance("bodies: one above 3 MiB is refused, and the connection is closed")
async def test_a_body_that_is_too_large(api: Api) -> None:
    answer = await api.post(api.config_maps, {**config_map("a"), "data": {"a": "x" * 4 * 2**20}})
    assert answer.refuses(413, "RequestEntityTooLarge") == "Request entity too large: limit is 3145728"
    assert answer.headers["Connection"] == "close"
