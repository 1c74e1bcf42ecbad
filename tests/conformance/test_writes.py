"""Create and update: which fields are the server's, generation, generateName, dry run, field validation.

Source: Kubernetes documentation, "API Conventions" (metadata), "API Concepts" (dry run, field validation); KEP-2885.
"""

from __future__ import annotations

import re
from typing import Any

from tests.conformance.target import Api, config_map, conformance, deployment, pod


@conformance("metadata: create answers 201 with the object, its kind and what the server filled in")
async def test_create(api: Api) -> None:
    made = await api.post(api.config_maps, config_map("a", {"k": "v"}))
    assert made.status == 201
    assert (made.json["kind"], made.json["apiVersion"], made.json["data"]) == ("ConfigMap", "v1", {"k": "v"})
    metadata = made.json["metadata"]
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", metadata["uid"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", metadata["creationTimestamp"])
    assert metadata["namespace"] == api.namespace


@conformance(
    "metadata: create wipes what is the server's",
    ("uid", "uid", "00000000-0000-0000-0000-000000000000"),
    ("creationTimestamp", "creationTimestamp", "2000-01-01T00:00:00Z"),
    ("deletionTimestamp", "deletionTimestamp", "2000-01-01T00:00:00Z"),
    ("deletionGracePeriodSeconds", "deletionGracePeriodSeconds", 5),
    ("selfLink", "selfLink", "/x"),
)
async def test_create_clears_server_fields(api: Api, name: str, value: Any) -> None:
    made = await api.config_map("a", None, **{name: value})
    assert made.json["metadata"].get(name) != value


@conformance("metadata: a kind whose generation is not counted keeps the client's")
async def test_generation_that_is_not_counted(api: Api) -> None:
    assert (await api.config_map("a", generation=7)).json["metadata"]["generation"] == 7


@conformance("metadata: kind and apiVersion may be missing for built-in kinds")
async def test_create_without_kind(api: Api) -> None:
    made = await api.created(api.config_maps, {"metadata": {"name": "a"}})
    assert made.json["kind"] == "ConfigMap"


@conformance("API concepts: bodies may be YAML")
async def test_yaml(api: Api) -> None:
    body = b"kind: ConfigMap\napiVersion: v1\nmetadata:\n  name: a\ndata:\n  k: 'yes'\n"
    made = await api.call("POST", api.config_maps, body, **{"Content-Type": "application/yaml"})
    assert (made.status, made.json["data"]) == (201, {"k": "yes"})


@conformance("API concepts: a body without a content type is read as JSON")
async def test_create_without_content_type(api: Api) -> None:
    made = await api.call("POST", api.config_maps, b'{"metadata":{"name":"a"}}', **{"Content-Type": ""})
    assert made.status == 201, made.text


@conformance("metadata: generateName gets five more signs")
async def test_generate_name(api: Api) -> None:
    made = await api.created(api.config_maps, {"metadata": {"generateName": "job-"}})
    assert re.fullmatch(r"job-[bcdfghjklmnpqrstvwxz2456789]{5}", made.json["metadata"]["name"])
    assert made.json["metadata"]["generateName"] == "job-"


@conformance("metadata: generateName is cut to leave room")
async def test_a_long_generate_name(api: Api) -> None:
    made = await api.created(api.config_maps, {"metadata": {"generateName": "b" * 100}})
    assert len(made.json["metadata"]["name"]) == 63


@conformance("metadata: a name wins over generateName")
async def test_name_and_generate_name(api: Api) -> None:
    made = await api.created(api.config_maps, {"metadata": {"generateName": "job-", "name": "mine"}})
    assert made.json["metadata"]["name"] == "mine"


@conformance("update: put keeps uid and creationTimestamp whatever is sent")
async def test_put_keeps_server_fields(api: Api) -> None:
    made = (await api.config_map("a", {"k": "1"})).json
    changed = config_map("a", {"k": "2"}, creationTimestamp="2000-01-01T00:00:00Z")
    after = (await api.put(f"{api.config_maps}/a", changed)).json
    assert after["metadata"]["uid"] == made["metadata"]["uid"]
    assert after["metadata"]["creationTimestamp"] == made["metadata"]["creationTimestamp"]
    assert after["data"] == {"k": "2"}


@conformance("update: put without a version overwrites, for kinds that allow it")
async def test_put_without_a_version(api: Api) -> None:
    await api.config_map("a", {"k": "1"})
    answer = await api.put(f"{api.config_maps}/a", config_map("a", {"k": "2"}))
    assert (answer.status, answer.json["data"]) == (200, {"k": "2"})


@conformance("update: put removes what it does not send")
async def test_put_removes(api: Api) -> None:
    await api.config_map("a", {"k": "1"}, labels={"l": "1"})
    answer = await api.put(f"{api.config_maps}/a", {"metadata": {"name": "a"}})
    assert "data" not in answer.json
    assert "labels" not in answer.json["metadata"]


@conformance("update: put never creates")
async def test_put_never_creates(api: Api) -> None:
    answer = await api.put(f"{api.config_maps}/a", config_map("a"))
    answer.refuses(404, "NotFound")
    assert (await api.get(f"{api.config_maps}/a")).status == 404


@conformance("generation: of a custom resource it is 1, and grows with its spec only")
async def test_generation(api: Api) -> None:
    path = await api.widgets()
    made = await api.created(path, api.widget("a", {"size": 1}))
    labelled = await api.patch(f"{path}/a", {"metadata": {"labels": {"l": "1"}}})
    resized = await api.patch(f"{path}/a", {"spec": {"size": 2}})
    status = await api.patch(f"{path}/a/status", {"status": {"size": 2}})
    counted = [answer.json["metadata"]["generation"] for answer in (made, labelled, resized, status)]
    assert counted == [1, 1, 2, 2]


@conformance("generation: without a status subresource, a status counts")
async def test_generation_without_a_status_subresource(api: Api) -> None:
    path = await api.widgets(status=False, scale=False)
    await api.created(path, {**api.widget("a"), "status": {"size": 1}})
    after = await api.patch(f"{path}/a", {"status": {"size": 2}})
    assert (after.json["status"], after.json["metadata"]["generation"]) == ({"size": 2}, 2)


@conformance("generation: of a deployment it grows with its spec and its annotations")
async def test_generation_of_a_deployment(api: Api) -> None:
    made = await api.created(api.deployments, deployment("a"))
    after = await api.patch(f"{api.deployments}/a", {"spec": {"replicas": 3}})
    same = await api.patch(f"{api.deployments}/a", {"metadata": {"labels": {"l": "1"}}})
    annotated = await api.patch(f"{api.deployments}/a", {"metadata": {"annotations": {"n": "1"}}})
    status = await api.patch(f"{api.deployments}/a/status", {"metadata": {"annotations": {"n": "2"}}})
    counted = [answer.json["metadata"]["generation"] for answer in (made, after, same, annotated, status)]
    assert counted == [1, 2, 2, 3, 3]


@conformance("generation: the mark of a deletion counts")
async def test_generation_of_a_deletion(api: Api) -> None:
    path = await api.widgets()
    await api.created(path, api.widget("a", None, finalizers=["example.com/f"]))
    marked = await api.delete(f"{path}/a")
    assert marked.json["metadata"]["generation"] == 2


@conformance("status: create and update leave it alone where it is a subresource")
async def test_update_ignores_status(api: Api) -> None:
    path = await api.widgets()
    made = await api.created(path, {**api.widget("a", {"size": 1}), "status": {"size": 9}})
    assert "status" not in made.json
    after = await api.put(f"{path}/a", {**made.json, "status": {"size": 9}})
    assert "status" not in after.json
    assert after.revision == made.revision


@conformance("status: the subresource changes nothing else", ("put", "PUT"), ("patch", "PATCH"))
async def test_the_status_subresource(api: Api, method: str) -> None:
    path = await api.widgets()
    made = await api.created(path, api.widget("a", {"size": 1}))
    changed = {**made.json, "spec": {"size": 5}, "status": {"size": 4}}
    changed["metadata"] = {**changed["metadata"], "labels": {"l": "1"}}
    if method == "PUT":
        after = await api.put(f"{path}/a/status", changed)
    else:
        after = await api.patch(f"{path}/a/status", changed)
    assert after.status == 200, after.text
    assert (after.json["spec"]["size"], after.json["status"]) == (1, {"size": 4})
    assert "labels" not in after.json["metadata"]


@conformance("status: it can be read through the subresource")
async def test_status_can_be_read(api: Api) -> None:
    path = await api.widgets()
    made = await api.created(path, api.widget("a"))
    assert (await api.get(f"{path}/a/status")).json == made.json


@conformance("status: of a pod, through the subresource only")
async def test_status_of_a_pod(api: Api) -> None:
    await api.created(api.pods, pod("a"))
    ignored = await api.patch(f"{api.pods}/a", {"status": {"phase": "Running"}})
    assert ignored.json["status"]["phase"] == "Pending"
    after = await api.patch(f"{api.pods}/a/status", {"status": {"phase": "Running"}})
    assert after.json["status"]["phase"] == "Running"


@conformance(
    "dry run: everything is answered and nothing stored",
    ("create", "POST", "", config_map("b", {"k": "v"})),
    ("put", "PUT", "/a", config_map("a", {"k": "v"})),
    ("patch", "PATCH", "/a", {"data": {"k": "v"}}),
    ("delete", "DELETE", "/a", None),
)
async def test_dry_run(api: Api, method: str, name: str, body: Any) -> None:
    made = await api.config_map("a")
    path = f"{api.config_maps}{name}?dryRun=All"
    if method == "PATCH":
        answer = await api.patch(path, body)
    else:
        answer = await api.call(method, path, body)
    assert answer.status == (201 if method == "POST" else 200), answer.text
    if body is not None:
        assert answer.json["data"] == {"k": "v"}
    assert (await api.get(api.config_maps)).names == ["a"]
    assert (await api.get(f"{api.config_maps}/a")).json == made.json


@conformance("dry run: a create has a uid and no version")
async def test_dry_run_of_a_create(api: Api) -> None:
    made = await api.created(f"{api.config_maps}?dryRun=All", config_map("a"))
    assert made.json["metadata"]["uid"]
    assert "resourceVersion" not in made.json["metadata"]


@conformance("dry run: what is wrong is refused all the same")
async def test_dry_run_refuses(api: Api) -> None:
    await api.config_map("a")
    answer = await api.post(f"{api.config_maps}?dryRun=All", config_map("a"))
    answer.refuses(409, "AlreadyExists")


@conformance(
    "dry run: another value than All is 422",
    ("create", "POST", "", "CreateOptions"),
    ("put", "PUT", "/a", "UpdateOptions"),
    ("delete", "DELETE", "/a", "DeleteOptions"),
)
async def test_a_bad_dry_run(api: Api, method: str, name: str, kind: str) -> None:
    await api.config_map("a")
    body = None if method == "DELETE" else config_map("a")
    answer = await api.call(method, f"{api.config_maps}{name}?dryRun=Some", body)
    message = answer.refuses(422, "Invalid")
    assert message == (
        f'{kind}.meta.k8s.io "" is invalid: dryRun: Unsupported value: ["Some"]: supported values: "All"'
    )


@conformance("KEP-2885: by default, an unknown field of a custom resource is a warning", min_version="1.25")
async def test_field_validation_warns(api: Api) -> None:
    path = await api.widgets()
    made = await api.created(path, api.widget("a", {"size": 1, "bogus": 1}))
    assert made.headers["Warning"] == '299 - "unknown field \\"spec.bogus\\""'
    assert "bogus" not in made.json["spec"]


@conformance("KEP-2885: Ignore drops an unknown field in silence", min_version="1.25")
async def test_field_validation_ignores(api: Api) -> None:
    path = await api.widgets()
    made = await api.created(f"{path}?fieldValidation=Ignore", api.widget("a", {"size": 1, "bogus": 1}))
    assert "Warning" not in made.headers
    assert "bogus" not in made.json["spec"]


@conformance("KEP-2885: Strict refuses an unknown field of a custom resource with 400", min_version="1.25")
async def test_field_validation_refuses(api: Api) -> None:
    path = await api.widgets()
    answer = await api.post(f"{path}?fieldValidation=Strict", api.widget("a", {"size": 1, "bogus": 1}))
    message = answer.refuses(400, "BadRequest")
    assert message == (
        'Widget in version "v1" cannot be handled as a Widget: strict decoding error: unknown field "spec.bogus"'
    )


@conformance("KEP-2885: Strict refuses a patch with an unknown field with 422", min_version="1.25")
async def test_field_validation_of_a_patch(api: Api) -> None:
    path = await api.widgets()
    await api.created(path, api.widget("a"))
    answer = await api.patch(f"{path}/a?fieldValidation=Strict", {"spec": {"bogus": 1}})
    message = answer.refuses(422, "Invalid")
    assert 'strict decoding error: unknown field "spec.bogus"' in message


@conformance("KEP-2885: Strict refuses a duplicate field", min_version="1.25")
async def test_field_validation_of_duplicates(api: Api) -> None:
    path = await api.widgets()
    body = f'{{"apiVersion":"{api.group()}/v1","kind":"Widget","metadata":{{"name":"a"}},"spec":{{"size":1,"size":2}}}}'
    answer = await api.call(
        "POST", f"{path}?fieldValidation=Strict", body.encode(), **{"Content-Type": "application/json"}
    )
    assert 'duplicate field "spec.size"' in answer.refuses(400, "BadRequest")


@conformance("KEP-2885: Strict refuses an unknown field of a built-in kind", min_version="1.25")
async def test_field_validation_of_a_built_in_kind(api: Api) -> None:
    answer = await api.post(f"{api.config_maps}?fieldValidation=Strict", {**config_map("a"), "bogus": 1})
    assert 'strict decoding error: unknown field "bogus"' in answer.refuses(400, "BadRequest")


@conformance("KEP-2885: by default, an unknown field of a built-in kind is a warning", min_version="1.25")
async def test_a_warning_about_a_built_in_kind(api: Api) -> None:
    made = await api.created(api.config_maps, {**config_map("a"), "bogus": 1})
    assert made.headers["Warning"] == '299 - "unknown field \\"bogus\\""'
    assert "bogus" not in made.json


@conformance("KEP-2885: another value is 422", min_version="1.25")
async def test_a_bad_field_validation(api: Api) -> None:
    answer = await api.post(f"{api.config_maps}?fieldValidation=Maybe", config_map("a"))
    assert 'fieldValidation: Unsupported value: "Maybe"' in answer.refuses(422, "Invalid")


@conformance("defaults: a pod gets them")
async def test_defaults_of_a_pod(api: Api) -> None:
    made = (await api.created(api.pods, pod("a"))).json
    spec = made["spec"]
    assert (spec["restartPolicy"], spec["dnsPolicy"], spec["terminationGracePeriodSeconds"]) == (
        "Always",
        "ClusterFirst",
        30,
    )
    assert spec["containers"][0]["imagePullPolicy"] == "IfNotPresent"
    assert made["status"]["phase"] == "Pending"


@conformance("defaults: a deployment gets them")
async def test_defaults_of_a_deployment(api: Api) -> None:
    body = deployment("a")
    del body["spec"]["replicas"]
    spec = (await api.created(api.deployments, body)).json["spec"]
    assert (spec["replicas"], spec["progressDeadlineSeconds"], spec["revisionHistoryLimit"]) == (1, 600, 10)
    assert spec["strategy"] == {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"},
    }


@conformance("defaults: a service gets them, and an address")
async def test_defaults_of_a_service(api: Api) -> None:
    body = {"metadata": {"name": "a"}, "spec": {"ports": [{"port": 80}], "selector": {"app": "a"}}}
    spec = (await api.created(f"{api.core}/services", body)).json["spec"]
    assert (spec["type"], spec["sessionAffinity"]) == ("ClusterIP", "None")
    assert spec["ports"] == [{"protocol": "TCP", "port": 80, "targetPort": 80}]
    assert re.fullmatch(r"10\.0\.0\.\d+", spec["clusterIP"])
    assert spec["clusterIPs"] == [spec["clusterIP"]]


@conformance("namespaces: a new one is Active, and named by a label")
async def test_a_new_namespace(api: Api) -> None:
    made = (await api.get(f"/api/v1/namespaces/{api.namespace}")).json
    assert made["status"] == {"phase": "Active"}
    assert made["spec"] == {"finalizers": ["kubernetes"]}
    assert made["metadata"]["labels"] == {"kubernetes.io/metadata.name": api.namespace}


@conformance("secrets: stringData is written into data")
async def test_string_data(api: Api) -> None:
    made = await api.created(f"{api.core}/secrets", {"metadata": {"name": "a"}, "stringData": {"k": "v"}})
    assert (made.json["data"], made.json["type"]) == ({"k": "dg=="}, "Opaque")
    assert "stringData" not in made.json


@conformance("configmaps: an immutable one cannot be changed")
async def test_immutable(api: Api) -> None:
    await api.created(api.config_maps, {**config_map("a", {"k": "1"}), "immutable": True})
    answer = await api.patch(f"{api.config_maps}/a", {"data": {"k": "2"}})
    assert "data: Forbidden: field is immutable when `immutable` is set" in answer.refuses(422, "Invalid")


@conformance("pods: most of a spec cannot be changed")
async def test_a_pods_spec(api: Api) -> None:
    await api.created(api.pods, pod("a"))
    answer = await api.patch(f"{api.pods}/a", {"spec": {"nodeName": "n1"}})
    assert "spec: Forbidden: pod updates may not change fields other than" in answer.refuses(422, "Invalid")


@conformance("leases: micro times are kept, and a version is not needed")
async def test_leases(api: Api) -> None:
    path = f"/apis/coordination.k8s.io/v1/namespaces/{api.namespace}/leases"
    spec = {"holderIdentity": "me", "leaseDurationSeconds": 15, "renewTime": "2026-01-02T03:04:05.678901Z"}
    made = await api.created(path, {"metadata": {"name": "a"}, "spec": spec})
    assert made.json["spec"] == spec
    answer = await api.put(f"{path}/a", {"metadata": {"name": "a"}, "spec": {**spec, "leaseTransitions": 1}})
    answer.refuses(422, "Invalid")


@conformance(
    "update: a kind either takes an object without a version, or does not",
    ("capacities", "/apis/storage.k8s.io/v1", "csistoragecapacities", {"storageClassName": "x"}, 422),
    ("leases", "/apis/coordination.k8s.io/v1", "leases", {}, 422),
    ("maps", "/api/v1", "configmaps", {}, 200),
)
async def test_updates_without_a_version(api: Api, group: str, plural: str, fields: dict[str, Any], code: int) -> None:
    path = f"{group}/namespaces/{api.namespace}/{plural}"
    await api.created(path, {"metadata": {"name": "a"}, **fields})
    answer = await api.put(f"{path}/a", {"metadata": {"name": "a", "labels": {"b": "c"}}, **fields})
    assert answer.status == code, answer.text


@conformance(
    "generateName: some kinds look at it again when an object is updated, and none with a status",
    ("config map", False, 422),
    ("deployment", True, 200),
)
async def test_a_changed_generate_name(api: Api, deployed: bool, code: int) -> None:
    path = api.deployments if deployed else api.config_maps
    await api.created(path, deployment("a") if deployed else {"metadata": {"name": "a"}})
    answer = await api.patch(f"{path}/a", {"metadata": {"generateName": "A B"}})
    assert answer.status == code, answer.text
    if deployed:
        assert (await api.patch(f"{path}/a/status", {"metadata": {"generateName": "A C"}})).status == 200


VERSIONS = ("", "0", "000", "-1", "v1", " 1", "+1", "0x1", "1_0", "1" + "0" * 20, "9" * 5000)


@conformance(
    "create: a resource version that is no number is none, and one that is refuses the object",
    *((version[:25] or "none", version) for version in VERSIONS),
)
async def test_creates_with_a_resource_version(api: Api, version: str) -> None:
    made = await api.config_map("a", resourceVersion=version)
    assert made.json["metadata"]["resourceVersion"] not in (version, "")
    custom = await api.post(await api.widgets(), api.widget("w", resourceVersion=version))
    assert custom.status == 201, custom.text


@conformance("create: a resource version that is a number refuses the object", ("1", "1"), ("zeros", "0" * 5000 + "1"))
async def test_creates_with_a_number(api: Api, version: str) -> None:
    refused = await api.post(api.config_maps, config_map("a", resourceVersion=version))
    assert refused.refuses(500, "") == "resourceVersion should not be set on objects to be created"


@conformance(
    "update and apply: of a new object, too, the resource version must be a number",
    ("a word", "v1", 'parsing "v1": invalid syntax'),
    ("a sign", "-1", 'parsing "-1": invalid syntax'),
    ("more than 64 bits", "18446744073709551616", 'parsing "18446744073709551616": value out of range'),
    ("64 bits", "18446744073709551615", ""),
)
async def test_new_objects_with_a_resource_version(api: Api, version: str, words: str) -> None:
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}
    leases = f"/apis/coordination.k8s.io/v1/namespaces/{api.namespace}/leases"
    widgets = await api.widgets()
    for answer in (
        await api.apply(f"{api.config_maps}/a", config_map("a", resourceVersion=version)),
        await api.apply(f"{widgets}/a", api.widget("a", resourceVersion=version)),
        await api.put(f"{leases}/a", {**lease, "metadata": {"name": "a", "resourceVersion": version}}),
    ):
        if words:
            assert answer.refuses(500, "") == f"strconv.ParseUint: {words}"
        else:
            assert answer.status == 201, answer.text


_FORBIDDEN_NAME = "x cannot be handled as a y"


@conformance("writes: a refusal carries the warnings about unknown fields, whatever words are in it")
async def test_a_refusal_carries_warnings(api: Api) -> None:
    answer = await api.post(api.config_maps, {**config_map(_FORBIDDEN_NAME), "bogus": 1})
    assert _FORBIDDEN_NAME in answer.refuses(422, "Invalid")
    assert answer.headers["Warning"] == '299 - "unknown field \\"bogus\\""'


@conformance("writes: what cannot be read carries none")
async def test_unreadable_body_has_no_warnings(api: Api) -> None:
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "00000000-0000-0000-0000-000000000001"}
    twice = config_map("a", ownerReferences=[owner, owner])
    assert "duplicate entries" in (await api.created(api.config_maps, twice)).headers["Warning"]
    for wrong in ({**config_map("b"), "bogus": 1}, {**twice, "kind": "ConfigMap"}):
        answer = await api.post(api.config_maps, {**wrong, "data": {"a": 1}})
        assert "cannot be handled as a ConfigMap" in answer.refuses(400, "BadRequest")
        assert "Warning" not in answer.headers


@conformance(
    "writes: another kind is told as it was sent",
    ("whole", "POST", ""),
    ("patched", "PATCH", "merge-patch+json"),
)
async def test_error_contains_kind_as_sent(api: Api, method: str, content_type: str) -> None:
    await api.config_map("a")
    if method == "POST":
        answer = await api.post(api.config_maps, {**config_map("b"), "kind": "Con: fig"})
    else:
        answer = await api.patch_with(f"{api.config_maps}/a", content_type, {"kind": "Con: fig"})
    message = answer.json["message"]
    assert 'no kind "Con: fig" is registered for version "v1"' in message
    assert ("fig in version" in message) == (method == "POST")


@conformance("writes: bytes of a built-in kind that are empty are left out")
async def test_empty_bytes_are_left_out(api: Api) -> None:
    webhook = {
        "name": "a.example.com",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "clientConfig": {"url": "https://example.com/", "caBundle": ""},
    }
    typed = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration"}
    path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations?dryRun=All"
    made = await api.post(path, {**typed, "metadata": {"name": "a"}, "webhooks": [webhook]})
    assert made.json["webhooks"][0]["clientConfig"] == {"url": "https://example.com/"}


EMPTY: dict[str, Any] = {}
NONE: list[Any] = []
HOOK = {
    "name": "a.example.com",
    "clientConfig": {"url": "https://127.0.0.1:1/"},
    "sideEffects": "None",
    "admissionReviewVersions": ["v1"],
    "namespaceSelector": {"matchLabels": {"no": "namespace"}},
}


@conformance(
    "generation: an empty list or map is a change at each write of a NetworkPolicy and of webhooks, and nowhere else",
    ("rules", "networkpolicies", {"spec": {"podSelector": {}, "ingress": []}}, 1),
    ("labels", "networkpolicies", {"spec": {"podSelector": {"matchLabels": {}}}}, 1),
    ("peers", "networkpolicies", {"spec": {"podSelector": {}, "egress": [{"to": NONE}]}}, 1),
    ("none", "networkpolicies", {"spec": {"podSelector": {}, "ingress": [EMPTY]}}, 0),
    ("unknown", "networkpolicies", {"spec": {"podSelector": {}, "other": []}}, 0),
    ("webhooks", "validatingwebhookconfigurations", {"webhooks": []}, 1),
    ("rules of webhooks", "mutatingwebhookconfigurations", {"webhooks": [{**HOOK, "rules": []}]}, 1),
    ("no rules of webhooks", "mutatingwebhookconfigurations", {"webhooks": [HOOK]}, 0),
    (
        "an Ingress",
        "ingresses",
        {"spec": {"defaultBackend": {"service": {"name": "s", "port": {"number": 1}}}, "rules": []}},
        0,
    ),
)
async def test_empty_lists(api: Api, plural: str, fields: Any, raised: int) -> None:
    path, name = f"/apis/networking.k8s.io/v1/namespaces/{api.namespace}/{plural}", api.name("a")
    if plural.endswith("configurations"):
        path = f"/apis/admissionregistration.k8s.io/v1/{plural}"
    made = (await api.created(path, {"metadata": {"name": name}, **fields})).json["metadata"]
    for step in (1, 2, 3):
        sent = {"metadata": {"name": name, "resourceVersion": made["resourceVersion"]}, **fields}
        answer = await api.put(f"{path}/{name}", sent) if step < 3 else await api.patch(f"{path}/{name}", fields)
        found = answer.json["metadata"]
        assert found["generation"] == 1 + step * raised
        assert (found["resourceVersion"] == made["resourceVersion"]) is not bool(raised)
        made = found
    labelled = (await api.patch(f"{path}/{name}", {"metadata": {"labels": {"a": "b"}}})).json["metadata"]
    assert labelled["generation"] == made["generation"]
    await api.delete(f"{path}/{name}")


@conformance("generation: no change of a PriorityClass raises it, and a CSIDriver gets one with its first change")
async def test_other_generations(api: Api) -> None:
    path, name = "/apis/scheduling.k8s.io/v1/priorityclasses", api.name("p")
    made = await api.created(path, {"metadata": {"name": name}, "value": 5})
    changed = await api.patch(f"{path}/{name}", {"description": "x"})
    assert made.json["metadata"]["generation"] == changed.json["metadata"]["generation"] == 1
    await api.delete(f"{path}/{name}")
    path = "/apis/storage.k8s.io/v1/csidrivers"
    made = await api.created(path, {"metadata": {"name": name}, "spec": {}})
    assert "generation" not in made.json["metadata"]
    for generation in (1, 2):
        changed = await api.patch(f"{path}/{name}", {"spec": {"requiresRepublish": generation == 1}})
        assert changed.json["metadata"]["generation"] == generation
    assert (await api.patch(f"{path}/{name}", {"metadata": {"labels": {"a": "b"}}})).json["metadata"]["generation"] == 2
    await api.delete(f"{path}/{name}")
