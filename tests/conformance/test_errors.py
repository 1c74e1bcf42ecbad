"""How requests are refused: code, reason, message and details of each Status.

Source: Kubernetes documentation, "API Conventions", Response Status Kind; apimachinery pkg/api/errors.
"""

from __future__ import annotations

import json
from typing import Any, cast

from multidict import CIMultiDict

from tests.apiserver.serving import Answer
from tests.conformance.target import CRDS, Api, config_map, conformance, pod, widget_crd

JSON = {"Content-Type": "application/json"}
YAML = {"Content-Type": "application/yaml"}


@conformance("Status: an object that is not there is 404, and details name it")
async def test_not_found(api: Api) -> None:
    answer = await api.get(f"{api.config_maps}/x")
    assert answer.refuses(404, "NotFound") == 'configmaps "x" not found'
    assert answer.json["details"] == {"name": "x", "kind": "configmaps"}
    assert answer.json["metadata"] == {}


@conformance("Status: a resource of a group is named with it")
async def test_not_found_in_a_group(api: Api) -> None:
    answer = await api.get(f"{api.deployments}/x")
    assert answer.refuses(404, "NotFound") == 'deployments.apps "x" not found'
    assert answer.json["details"] == {"name": "x", "group": "apps", "kind": "deployments"}


@conformance(
    "Status: not found for every verb that needs the object",
    ("put", "PUT", "", config_map("x")),
    ("patch", "PATCH", "", {}),
    ("delete", "DELETE", "", None),
)
async def test_not_found_by_verb(api: Api, method: str, query: str, body: Any) -> None:
    content_type = "application/merge-patch+json" if method == "PATCH" else "application/json"
    data = b"" if body is None else json.dumps(body).encode()
    answer = await api.call(method, f"{api.config_maps}/x{query}", data, **{"Content-Type": content_type})
    assert answer.refuses(404, "NotFound") == 'configmaps "x" not found'


@conformance("Status: an object that exists is 409 AlreadyExists")
async def test_already_exists(api: Api) -> None:
    await api.config_map("a")
    answer = await api.post(api.config_maps, config_map("a"))
    assert answer.refuses(409, "AlreadyExists") == 'configmaps "a" already exists'
    assert answer.json["details"] == {"name": "a", "kind": "configmaps"}


@conformance("Status: an object that is being deleted says so when it is in the way")
async def test_already_exists_and_is_being_deleted(api: Api) -> None:
    await api.config_map("a", finalizers=["example.com/f"])
    await api.delete(f"{api.config_maps}/a")
    answer = await api.post(api.config_maps, config_map("a"))
    assert answer.refuses(409, "AlreadyExists") == 'object is being deleted: configmaps "a" already exists'


@conformance("Status: a stale version is 409 Conflict")
async def test_conflict(api: Api) -> None:
    made = (await api.config_map("a")).json
    await api.patch(f"{api.config_maps}/a", {"data": {"k": "1"}})
    answer = await api.put(f"{api.config_maps}/a", {**made, "data": {"k": "2"}})
    assert answer.refuses(409, "Conflict") == (
        'Operation cannot be fulfilled on configmaps "a": the object has been modified; '
        "please apply your changes to the latest version and try again"
    )
    assert answer.json["details"] == {"name": "a", "kind": "configmaps"}


@conformance("Status: a stale version in a patch is 409 Conflict")
async def test_conflict_of_a_patch(api: Api) -> None:
    made = await api.config_map("a")
    await api.patch(f"{api.config_maps}/a", {"data": {"k": "1"}})
    stale = {"metadata": {"resourceVersion": made.revision}, "data": {"k": "2"}}
    answer = await api.patch(f"{api.config_maps}/a", stale)
    assert "the object has been modified" in answer.refuses(409, "Conflict")


@conformance("Status: another uid in an update is 409 Conflict")
async def test_another_uid(api: Api) -> None:
    made = (await api.config_map("a")).json
    made["metadata"]["uid"] = "00000000-0000-0000-0000-000000000000"
    del made["metadata"]["resourceVersion"]
    answer = await api.put(f"{api.config_maps}/a", made)
    message = answer.refuses(409, "Conflict")
    assert "Precondition failed: UID in precondition: 00000000-0000-0000-0000-000000000000, UID in object" in message


@conformance("Status: what is invalid is 422 with one cause for each field")
async def test_invalid(api: Api) -> None:
    path = await api.widgets()
    answer = await api.post(path, api.widget("a", {"size": 30, "colour": "blue"}))
    message = answer.refuses(422, "Invalid")
    assert message.startswith(f'Widget.{api.group()} "a" is invalid: [')
    assert "spec.size: Invalid value: 30: spec.size in body should be less than or equal to 10" in message
    assert 'spec.colour: Unsupported value: "blue": supported values: "red", "green"' in message
    details = answer.json["details"]
    assert (details["name"], details["group"], details["kind"]) == ("a", api.group(), "Widget")
    found = {(cause["reason"], cause["field"]) for cause in details["causes"]}
    assert found == {("FieldValueInvalid", "spec.size"), ("FieldValueNotSupported", "spec.colour")}


@conformance("Status: a namespace that does not exist is 404")
async def test_create_in_missing_namespace(api: Api) -> None:
    answer = await api.post("/api/v1/namespaces/there-is-none/configmaps", config_map("a"))
    assert answer.refuses(404, "NotFound") == 'namespaces "there-is-none" not found'
    assert answer.json["details"] == {"name": "there-is-none", "kind": "namespaces"}


@conformance("Status: nothing new in a namespace that is being deleted: 403")
async def test_a_terminating_namespace(api: Api) -> None:
    await api.delete(f"/api/v1/namespaces/{api.namespace}")

    async def refused() -> bool:
        return (await api.post(f"{api.config_maps}?dryRun=All", config_map("a"))).status == 403

    await api.eventually(refused)
    answer = await api.post(api.config_maps, config_map("a"))
    message = answer.refuses(403, "Forbidden")
    assert message == (
        f'configmaps "a" is forbidden: unable to create new content in namespace {api.namespace} because it is being '
        "terminated"
    )
    causes = answer.json["details"]["causes"]
    assert [cause["reason"] for cause in causes] == ["NamespaceTerminating"]
    assert causes[0]["field"] == "metadata.namespace"


@conformance(
    "Status: 400 for a body that does not fit its URL",
    (
        "another name",
        "PUT",
        "/a",
        config_map("b"),
        "the name of the object (b) does not match the name on the URL (a)",
    ),
    (
        "another namespace",
        "POST",
        "",
        config_map("a", namespace="elsewhere"),
        "the namespace of the provided object does not match the namespace sent on the request",
    ),
    (
        "another version",
        "POST",
        "",
        {"apiVersion": "v2", "kind": "ConfigMap", "metadata": {"name": "a"}},
        'no kind "ConfigMap" is registered for version "v2"',
    ),
    (
        "another kind",
        "POST",
        "",
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}},
        'Secret in version "v1" cannot be handled as a ConfigMap',
    ),
    (
        "another type of a field",
        "POST",
        "",
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": 1}},
        'ConfigMap in version "v1" cannot be handled as a ConfigMap',
    ),
)
async def test_body_not_matching_url(api: Api, method: str, name: str, body: Any, message: str) -> None:
    await api.config_map("a") if method == "PUT" else None
    answer = await api.call(method, f"{api.config_maps}{name}", json.dumps(body).encode(), **JSON)
    assert message in answer.refuses(400, "BadRequest")


@conformance("Status: 400 for a body that is no JSON", ("half", b"{"), ("a word", b"word"))
async def test_body_that_is_not_json(api: Api, body: bytes) -> None:
    answer = await api.call("POST", api.config_maps, body, **JSON)
    answer.refuses(400, "BadRequest")


@conformance("Status: a version on a create is 500 without a reason")
async def test_a_version_on_create(api: Api) -> None:
    answer = await api.post(api.config_maps, config_map("a", resourceVersion="5"))
    assert answer.refuses(500, "") == "resourceVersion should not be set on objects to be created"


@conformance(
    "Status: a body in an unknown format is 415, and the formats are named",
    ("CBOR", "application/x-none"),
    ("text", "text/plain"),
)
async def test_unsupported_media_type(api: Api, content_type: str) -> None:
    answer = await api.call("POST", api.config_maps, b"x", **{"Content-Type": content_type})
    message = answer.refuses(415, "UnsupportedMediaType")
    assert message.startswith("the body of the request was in an unknown format - accepted media types include: ")
    assert "application/json" in message


@conformance("Status: an answer that cannot be given is 406, and the formats are named")
async def test_not_acceptable(api: Api) -> None:
    answer = await api.get(api.config_maps, Accept="text/html")
    message = answer.refuses(406, "NotAcceptable")
    assert message.startswith("406: Not Acceptable\n\nAvailable representations: application/json")


@conformance(
    "paths: what no resource has is a plain 404",
    ("an unknown group", "/apis/none.example.com/v1/things"),
    ("an unknown group's resources", "/apis/none.example.com/v1"),
    ("an unknown root", "/nothing"),
)
async def test_unknown_paths(api: Api, path: str) -> None:
    answer = await api.get(path)
    assert (answer.status, answer.text) == (404, "404 page not found\n")
    assert answer.headers["Content-Type"].startswith("text/plain")


@conformance(
    "paths: what a group does not have is 404 with a Status",
    ("an unknown version", "/api/v9/configmaps"),
    ("an unknown version's resources", "/apis/apps/v9"),
    ("an unknown resource", "/apis/apps/v1/things"),
    ("an unknown resource in a namespace", "/api/v1/namespaces/default/things/a"),
)
async def test_unknown_paths_in_a_group(api: Api, path: str) -> None:
    answer = await api.get(path)
    assert answer.refuses(404, "NotFound") == "the server could not find the requested resource"


@conformance("paths: a subresource that a built-in kind does not have is 404")
async def test_an_unknown_subresource(api: Api) -> None:
    await api.config_map("a")
    answer = await api.get(f"{api.config_maps}/a/none")
    assert answer.refuses(404, "NotFound") == "the server could not find the requested resource"


@conformance("paths: a subresource that a custom resource does not have is 404 with a Status")
async def test_an_unknown_subresource_of_a_custom_resource(api: Api) -> None:
    path = await api.widgets(status=False, scale=False)
    await api.created(path, api.widget("a"))
    answer = await api.get(f"{path}/a/status")
    assert answer.refuses(404, "NotFound") == f'widgets.{api.group()} "a" not found'


@conformance(
    "Status: a verb that a path does not have is 405",
    ("post to an object", "POST", "/a"),
    ("put to a collection", "PUT", ""),
    ("patch to a collection", "PATCH", ""),
)
async def test_method_not_allowed(api: Api, method: str, name: str) -> None:
    await api.config_map("a")
    answer = await api.call(method, f"{api.config_maps}{name}", b"{}", **JSON)
    message = answer.refuses(405, "MethodNotAllowed")
    assert message == "the server does not allow this method on the requested resource"


@conformance("Status: deletecollection of namespaces is 405")
async def test_no_deletecollection_of_namespaces(api: Api) -> None:
    answer = await api.delete("/api/v1/namespaces?labelSelector=none%3Dnone")
    answer.refuses(405, "MethodNotAllowed")


@conformance("Status: a body of more than 3 MiB is 413")
async def test_a_body_that_is_too_large(api: Api) -> None:
    answer = await api.post(api.config_maps, config_map("a", {"k": "v" * (3 * 1024 * 1024)}))
    assert "limit is 3145728" in answer.refuses(413, "RequestEntityTooLarge")


@conformance(
    "headers: every answer has them",
    ("an object", "/api/v1/namespaces/default"),
    ("a list", "/api/v1/namespaces"),
    ("a failure", "/api/v1/namespaces/there-is-none"),
)
async def test_headers(api: Api, path: str) -> None:
    headers = (await api.get(path)).headers
    assert headers["Cache-Control"] == "no-cache, private"
    assert headers["Content-Type"] == "application/json"
    assert "X-Kubernetes-Pf-Flowschema-Uid" in headers
    assert "X-Kubernetes-Pf-Prioritylevel-Uid" in headers


@conformance("Status: a custom resource without a kind is 400, with another kind 422")
async def test_kinds_of_custom_resources(api: Api) -> None:
    path = await api.widgets()
    missing = await api.post(path, {"metadata": {"name": "a"}})
    assert "Object 'Kind' is missing in" in missing.refuses(400, "BadRequest")
    other = await api.post(path, {**api.widget("a"), "kind": "Gadget"})
    message = other.refuses(422, "Invalid")
    assert message == f'Gadget.{api.group()} "a" is invalid: kind: Invalid value: "Gadget": must be Widget'


@conformance("Status: a custom resource of another version than its URL is 400")
async def test_versions_of_custom_resources(api: Api) -> None:
    path = await api.widgets()
    other = await api.post(path, {**api.widget("a"), "apiVersion": f"{api.group()}/v7"})
    message = other.refuses(400, "BadRequest")
    assert message == (
        f"the API version in the data ({api.group()}/v7) does not match the expected API version ({api.group()}/v1)"
    )


@conformance("Status: an update of a custom resource without a version is 422")
async def test_update_of_custom_resource_without_resource_version(api: Api) -> None:
    path = await api.widgets()
    await api.created(path, api.widget("a"))
    answer = await api.put(f"{path}/a", api.widget("a", {"size": 2}))
    assert answer.refuses(422, "Invalid") == (
        f'widgets.{api.group()} "a" is invalid: metadata.resourceVersion: Invalid value: 0: '
        "must be specified for an update"
    )


@conformance(
    "Status: names are checked",
    ("capitals", "UP", "a lowercase RFC 1123 subdomain must consist of"),
    ("a sign", "a_b", "a lowercase RFC 1123 subdomain must consist of"),
    ("the end", "a-", "a lowercase RFC 1123 subdomain must consist of"),
    ("too long", "a" * 254, "must be no more than 253 characters"),
)
async def test_names(api: Api, name: str, message: str) -> None:
    answer = await api.post(api.config_maps, config_map(name))
    text = answer.refuses(422, "Invalid")
    assert text.startswith(f'ConfigMap "{name}" is invalid: metadata.name: Invalid value: "{name}": ')
    assert message in text
    assert answer.json["details"]["causes"][0]["field"] == "metadata.name"


@conformance("Status: an object needs a name or generateName")
async def test_no_name(api: Api) -> None:
    answer = await api.post(api.config_maps, {"metadata": {}})
    message = answer.refuses(422, "Invalid")
    assert message == 'ConfigMap "" is invalid: metadata.name: Required value: name or generateName is required'


@conformance(
    "Status: metadata is checked",
    ("a label's value", {"labels": {"a": "-"}}, "metadata.labels", "a valid label must be an empty string or consist"),
    ("a label's key", {"labels": {"-": "a"}}, "metadata.labels", "name part must consist of alphanumeric characters"),
    ("a label's length", {"labels": {"a": "b" * 64}}, "metadata.labels", "must be no more than 63"),
    ("an annotation's key", {"annotations": {"a/b/c": ""}}, "metadata.annotations", "a valid label key must"),
    (
        "a finalizer",
        {"finalizers": ["x"]},
        "metadata.finalizers[0]",
        "name is neither a standard finalizer name nor is",
    ),
    (
        "an owner without a uid",
        {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": ""}]},
        "metadata.ownerReferences[0].uid",
        "must not be empty",
    ),
    (
        "an owner without a version",
        {"ownerReferences": [{"apiVersion": "", "kind": "Pod", "name": "a", "uid": "1"}]},
        "metadata.ownerReferences[0].apiVersion",
        "must not be empty",
    ),
    (
        "two controllers",
        {
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "1", "controller": True},
                {"apiVersion": "v1", "kind": "Pod", "name": "b", "uid": "2", "controller": True},
            ]
        },
        "metadata.ownerReferences",
        'Only one reference can have Controller set to true. Found "true" in references for Pod/a and Pod/b',
    ),
)
async def test_metadata(api: Api, metadata: Any, field: str, message: str) -> None:
    answer = await api.post(api.config_maps, config_map("a", **metadata))
    assert message in answer.refuses(422, "Invalid")
    assert answer.json["details"]["causes"][0]["field"] == field


@conformance("Status: a namespace's name is a label")
async def test_names_of_namespaces(api: Api) -> None:
    answer = await api.post("/api/v1/namespaces", {"metadata": {"name": "A-b"}})
    assert "a lowercase RFC 1123 label must consist of" in answer.refuses(422, "Invalid")


@conformance("Status: a namespace's name has no dots")
async def test_dots_in_names_of_namespaces(api: Api) -> None:
    answer = await api.post("/api/v1/namespaces", {"metadata": {"name": "a.b"}})
    message = answer.refuses(422, "Invalid")
    assert message == 'Namespace "a.b" is invalid: metadata.name: Invalid value: "a.b": must not contain dots'


@conformance("Status: the first namespaces may not be deleted")
async def test_the_first_namespaces(api: Api) -> None:
    answer = await api.delete("/api/v1/namespaces/default")
    message = answer.refuses(403, "Forbidden")
    assert message == 'namespaces "default" is forbidden: this namespace may not be deleted'


@conformance("Status: a CRD whose name is not plural.group is 422")
async def test_a_crd_of_another_name(api: Api) -> None:
    crd = widget_crd(api.group())
    crd["metadata"]["name"] = f"gadgets.{api.group()}"
    answer = await api.post(CRDS, crd)
    assert "must be spec.names.plural+" in answer.refuses(422, "Invalid")


@conformance("metadata: the namespace of a cluster-wide object is dropped")
async def test_namespace_of_cluster_scoped_object_is_dropped(api: Api) -> None:
    body = {"metadata": {"name": f"{api.namespace}-x", "namespace": "default"}}
    made = await api.created("/api/v1/namespaces", body)
    assert "namespace" not in made.json["metadata"]


@conformance("Status: a negative generation is 422")
async def test_a_negative_generation(api: Api) -> None:
    answer = await api.post(api.config_maps, config_map("a", generation=-1))
    message = answer.refuses(422, "Invalid")
    assert "metadata.generation: Invalid value: -1: must be greater than or equal to 0" in message


@conformance("Status: generateName is checked like a name")
async def test_a_bad_generate_name(api: Api) -> None:
    answer = await api.post(api.config_maps, {"metadata": {"generateName": "A"}})
    assert 'metadata.generateName: Invalid value: "A": a lowercase RFC 1123' in answer.refuses(422, "Invalid")


@conformance("field managers: a name of more than 128 bytes is 422")
async def test_a_long_field_manager(api: Api) -> None:
    answer = await api.post(f"{api.config_maps}?fieldManager={'a' * 129}", config_map("a"))
    message = answer.refuses(422, "Invalid")
    assert 'CreateOptions.meta.k8s.io "" is invalid: fieldManager: Too long: may not be more than 128 bytes' in message


@conformance("Status: a pod needs containers")
async def test_a_pod_without_containers(api: Api) -> None:
    body = pod("a")
    body["spec"]["containers"] = []
    answer = await api.post(api.pods, body)
    message = answer.refuses(422, "Invalid")
    assert message == 'Pod "a" is invalid: spec.containers: Required value'


def _nested(levels: int, sign: str) -> bytes:
    opening, closing = (b"[", b"]") if sign == "list" else (b'{"a":', b"}")
    return opening * levels + b"1" + closing * levels


@conformance(
    "Status: what nests deeper than may be is 400, and never more than that", ("lists", "list"), ("objects", "object")
)
async def test_too_deeply_nested_body(api: Api, sign: str) -> None:
    await api.config_map("a")
    path = f"{api.config_maps}/a"
    for levels, codes in ((100, (200, 201)), (10_001, (400,)), (100_000, (400,))):
        body = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a%d"},"z":' % levels
        body += _nested(levels, sign) + b"}"
        patch = b'[{"op":"test","path":"/z","value":' + _nested(levels, sign) + b"}]"
        answers = [
            await api.call("POST", api.config_maps, body, **JSON),
            await api.call("POST", f"{api.config_maps}?dryRun=All", body.replace(b"a%d" % levels, b"b"), **YAML),
            await api.patch_with(path, "merge-patch+json", b'{"z":' + _nested(levels, sign) + b"}"),
            await api.patch_with(path, "strategic-merge-patch+json", b'{"z":' + _nested(levels, sign) + b"}"),
        ]
        assert all(answer.status in codes for answer in answers), [answer.text[:200] for answer in answers]
        assert (await api.patch_with(path, "json-patch+json", patch)).status in (400, 422)
        assert (await api.apply(path, body)).status in (400, 500)


@conformance("Status: a CRD whose schema nests too deeply is 400")
async def test_too_deeply_nested_schema(api: Api) -> None:
    crd = json.dumps(
        widget_crd(api.group(), schema={"type": "object", "properties": {"a": {"type": "string", "not": 0}}})
    )
    for levels, code in ((40, 201), (10_001, 400)):
        body = crd.replace('"not": 0', '"not":' + '{"not":' * levels + '{"minLength":1}' + "}" * levels)
        answer = await api.call("POST", f"{CRDS}?dryRun=All", body.encode(), **JSON)
        assert answer.status == code, answer.text[:300]


@conformance(
    "warnings: so many are sent as clients can read, each once", ("few", 20, 20), ("many", 120, 100), ("long", 60, 16)
)
async def test_many_warnings(api: Api, count: int, sent: int) -> None:
    name = "x" * (240 if count == 60 else 3)
    made = await api.post(api.config_maps, {**config_map("a"), **{f"{name}{place:03}": 1 for place in range(count)}})
    assert made.status == 201
    warnings = cast("CIMultiDict[str]", made.headers).getall("Warning")
    assert len(warnings) == sent
    assert warnings[0].startswith(f'299 - "unknown field \\"{name}0')
    assert max(map(len, warnings)) <= 256 + len('299 - "\\\\"')


LONG = "a" * 129
WRONG_OPTIONS = [
    ("fieldManager", "Too long: may not be more than 128 bytes"),
    ("dryRun", 'Unsupported value: ["All","x<"]: supported values: "All"'.replace("<", "\\u003c")),
    ("fieldValidation", 'Unsupported value: "y": supported values: "", "Ignore", "Strict", "Warn"'),
]
CONFIG_MAP_KIND = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
EVICTION = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "a"}}


def option_causes(answer: Answer, kind: str) -> list[tuple[str, str]]:
    answer.refuses(422, "Invalid")
    assert answer.json["details"]["kind"] == kind
    return [(cause["field"], cause["message"]) for cause in answer.json["details"]["causes"]]


@conformance(
    "options of writes: all that is wrong with them is told together",
    ("create", "POST", "configmaps", CONFIG_MAP_KIND, "", "CreateOptions", []),
    ("update", "PUT", "configmaps/a", CONFIG_MAP_KIND, "", "UpdateOptions", []),
    ("patch", "PATCH", "configmaps/a", {}, "merge-patch+json", "PatchOptions", ["force"]),
    ("apply", "PATCH", "configmaps/a", CONFIG_MAP_KIND, "apply-patch+yaml", "PatchOptions", []),
    ("evict", "POST", "pods/a/eviction", EVICTION, "", "CreateOptions", []),
    ("token", "POST", "serviceaccounts/a/token", {"spec": {}}, "", "CreateOptions", []),
)
async def test_options_of_writes(
    api: Api, method: str, path: str, body: dict[str, Any], form: str, kind: str, more: list[str]
) -> None:
    query = f"?dryRun=All&dryRun=x%3C&fieldValidation=y&force=true&fieldManager={LONG}"
    headers = {"Content-Type": f"application/{form or 'json'}"}
    answer = await api.call(method, f"{api.core}/{path}{query}", json.dumps(body).encode(), **headers)
    found = option_causes(answer, kind)
    assert [name for name, _ in found if name == "force"] == more
    assert [cause for cause in found if cause[0] != "force"] == WRONG_OPTIONS


@conformance("options of writes: a field manager is a word that can be printed")
async def test_names_of_managers(api: Api) -> None:
    answer = await api.post(f"{api.config_maps}?fieldManager=%C3%BC%01%22", config_map("a"))
    words = r'Invalid value: "\u00fc\x01\"": invalid character U+0001 (at position 2)'.replace(r"\u00fc", "\u00fc")
    assert option_causes(answer, "CreateOptions") == [("fieldManager", words)]
    applied = await api.apply(f"{api.config_maps}/a", CONFIG_MAP_KIND, manager="")
    assert option_causes(applied, "PatchOptions") == [("fieldManager", "Required value: is required for apply patch")]


@conformance("options of writes: of a review, too")
async def test_options_of_reviews(api: Api) -> None:
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews?dryRun=All&dryRun=x%3C&fieldValidation=y"
    answer = await api.post(path, {"spec": {"nonResourceAttributes": {"path": "/", "verb": "get"}}})
    assert option_causes(answer, "CreateOptions") == WRONG_OPTIONS[1:]


@conformance(
    "Status: what is wrong with metadata is told in one order",
    ("a built-in kind", False),
    ("a custom resource", True),
)
async def test_order_of_causes(api: Api, custom: bool) -> None:
    path = await api.widgets() if custom else api.config_maps
    body = api.widget("a") if custom else config_map("a")
    wrong: dict[str, Any] = {
        "labels": {"a b": "c"},
        "annotations": {"x y": "z"},
        "ownerReferences": [{}],
        "finalizers": ["a b"],
    }
    body["metadata"] |= {"generateName": "X_", **wrong}
    answer = await api.post(path, body)
    answer.refuses(422, "Invalid")
    fields = [cause["field"].removeprefix("metadata.") for cause in answer.json["details"]["causes"]]
    owner = [f"ownerReferences[0].{name}" for name in ("apiVersion", "kind", "name", "uid")]
    in_order = ["generateName", "labels", "annotations", *owner, "finalizers"]
    assert fields == (in_order if custom else [*in_order, "finalizers[0]"])
