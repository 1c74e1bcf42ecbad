"""Values of a wrong type: where they are refused, and in whose words, which depends on how the object came about.

An object that is sent is decoded; one that a strategic merge or an apply made of others is converted value by value.
"""

from __future__ import annotations

import json
from typing import Any

from tests.conformance.target import Api, conformance, deployment

STRATEGIC, MERGE = "strategic-merge-patch+json", "merge-patch+json"
UNREADABLE = "couldn't get version/kind; json parse error: json: cannot unmarshal"


def at(place: str, value: Any) -> dict[str, Any]:
    for name in reversed(place.split(".")):
        value = {name: value}
    result: dict[str, Any] = value
    return result


POD, UPDATE = "spec.template.spec", "spec.strategy.rollingUpdate"
SECURE, ROLLING = f"{POD}.securityContext", "RollingUpdateDeployment"


@conformance(
    "patch: a wrong type that a strategic merge makes is refused in a converter's words, any other in a decoder's",
    ("metadata", "metadata", 1, "restore struct from: int64", "number", "Deployment", "v1.ObjectMeta"),
    ("labels", "metadata.labels", [1], "restore map from slice", "array", "ObjectMeta", "map[string]string"),
    ("label", "metadata.labels.a", 1, "convert int64 to string", "number", "ObjectMeta", "string"),
    ("fraction", "metadata.labels.a", 1.5, "unrecognized type: string", "number", "ObjectMeta", "string"),
    ("finalizers", "metadata.finalizers", "x", "restore slice from string", "string", "ObjectMeta", "[]string"),
    ("time", "metadata.creationTimestamp", 1, "number into Go value of type string", "number", "ObjectMeta", "string"),
    ("32 bits", "spec.replicas", 1.5, "convert float64 to int32", "number 1.5", "DeploymentSpec", "int32"),
    ("64 bits", f"{SECURE}.runAsUser", "x", "unrecognized type: int64", "string", "PodSecurityContext", "int64"),
    ("truth", f"{POD}.hostNetwork", 1, "unrecognized type: bool", "number", "PodSpec", "bool"),
    (
        "part of one",
        f"{UPDATE}.maxSurge",
        1.5,
        "number 1.5 into Go value of type int32",
        "number 1.5",
        ROLLING,
        "int32",
    ),
    (
        "no time",
        "metadata.creationTimestamp",
        1.5,
        "number into Go value of type string",
        "number",
        "ObjectMeta",
        "string",
    ),
    ("or text", f"{UPDATE}.maxSurge", [], "array into Go value of type int32", "array", ROLLING, "int32"),
    ("quantities", f"{POD}.overhead", 1, "restore map from int64", "number", "PodSpec", "v1.ResourceList"),
)
async def test_a_wrong_type_in_a_patch(
    api: Api, place: str, value: Any, converter: str, found: str, struct: str, go: str
) -> None:
    await api.created(api.deployments, deployment("a"))
    # A decoder says where, but not which label.
    field = place.removesuffix(".a") if place.startswith("metadata") else place
    decoder = f"json: cannot unmarshal {found} into Go struct field {struct}.{field} of type {go}"
    for content_type, words in ((STRATEGIC, converter), (MERGE, decoder)):
        answer = await api.patch_with(f"{api.deployments}/a", content_type, at(place, value))
        answer.refuses(422, "Invalid")
        assert answer.json["message"].endswith(words), answer.json["message"]


@conformance(
    "patch: a whole number may be written with a point in a strategic merge and in an apply",
    ("replicas", "spec.replicas", 2.0, 2),
    ("number or text", "spec.strategy.rollingUpdate.maxSurge", 2.0, 2),
)
async def test_a_whole_number_with_a_point(api: Api, place: str, value: float, kept: int) -> None:
    await api.created(api.deployments, deployment("a"))
    patches = ((STRATEGIC, ""), ("apply-patch+yaml", "?fieldManager=m&force=true"))
    for content_type, query in patches:
        body = at(place, value)
        if query:
            body |= {"apiVersion": "apps/v1", "kind": "Deployment"}
        answer = await api.patch_with(f"{api.deployments}/a{query}", content_type, body)
        assert answer.status == 200, answer.text
        found: Any = answer.json
        for name in place.split("."):
            found = found[name]
        assert found == kept
        assert type(found) is int
    assert (await api.patch(f"{api.deployments}/a", at(place, value))).status == 422


@conformance(
    "kind and apiVersion: what is no text is refused before anything else",
    ("kind", "kind", 1, "number"),
    ("empty", "kind", {}, "object"),
    ("list", "kind", ["x"], "array"),
    ("version", "apiVersion", True, "bool"),
    ("empty version", "apiVersion", [], "array"),
)
async def test_kind_that_is_not_a_string(api: Api, field: str, value: Any, found: str) -> None:
    words = f"{UNREADABLE} {found} into Go struct field .{field} of type string"
    widgets = await api.widgets()
    objects = ((api.config_maps, {"apiVersion": "v1", "kind": "ConfigMap"}), (widgets, api.widget("a")))
    for path, body in objects:
        whole = {**body, "metadata": {"name": "a"}}
        await api.created(path, whole)
        for answer in (
            await api.post(path, {**whole, "metadata": {"name": "b"}, field: value}),
            await api.put(f"{path}/a", {**whole, field: value}),
        ):
            answer.refuses(400, "BadRequest")
            assert words in answer.json["message"]
        operation = {"op": "add", "path": f"/{field}", "value": value}
        for content_type, patch in ((MERGE, {field: value}), ("json-patch+json", [operation])):
            answer = await api.patch_with(f"{path}/a", content_type, patch)
            answer.refuses(422, "Invalid")
            assert words in answer.json["details"]["causes"][0]["message"]


@conformance(
    "metadata: what the server sets must be readable all the same, but for what is applied to a custom resource",
    ("creationTimestamp", "creationTimestamp", "x", "parsing time"),
    ("deletionTimestamp", "deletionTimestamp", "", "parsing time"),
    ("time of a manager", "managedFields", [{"time": "x"}], "parsing time"),
    ("name of a manager", "managedFields", [{"manager": 1}], "ManagedFieldsEntry."),
    ("generation", "generation", 1.5, "number 1.5 into Go struct field ObjectMeta."),
    ("selfLink", "selfLink", 1, "number into Go struct field ObjectMeta."),
    min_version="1.37",
)
async def test_metadata_of_the_server(api: Api, field: str, value: Any, words: str) -> None:
    widgets = await api.widgets()
    objects = ((api.config_maps, {"apiVersion": "v1", "kind": "ConfigMap"}), (widgets, api.widget("a")))
    for path, body in objects:
        await api.created(path, {**body, "metadata": {"name": "a"}})
        created = await api.post(path, {**body, "metadata": {"name": "b", field: value}})
        created.refuses(400, "BadRequest")
        patched = await api.patch(f"{path}/a", {"metadata": {field: value}})
        patched.refuses(422, "Invalid")
        assert words in created.json["message"]
        assert words in patched.json["details"]["causes"][0]["message"]
        applied = await api.apply(f"{path}/a", {**body, "metadata": {"name": "a", field: value}})
        # Types that merging needs are looked at first, and are a 500 everywhere.
        typed = field == "selfLink" or value == [{"manager": 1}]
        refused = 422 if field == "deletionTimestamp" else 200
        assert applied.status == (500 if typed or path == api.config_maps else refused), applied.text
        if applied.status == 200:
            assert value not in applied.json["metadata"].values()


@conformance(
    "times and bytes: every field of a built-in kind that holds one is read",
    ("time", {"status": {"startTime": "x"}}, "parsing time"),
    ("time of a condition", {"status": {"conditions": [{"type": "Ready", "lastTransitionTime": "x"}]}}, "parsing time"),
)
async def test_invalid_time(api: Api, changes: dict[str, Any], words: str) -> None:
    pod = {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    answer = await api.post(api.pods, {**pod, **changes})
    answer.refuses(400, "BadRequest")
    assert words in answer.json["message"]
    await api.created(api.pods, pod)
    late = {"status": {"startTime": "2026-01-02T04:04:05.5+01:00"}}
    answer = await api.patch(f"{api.pods}/a/status", late)
    assert answer.json["status"]["startTime"] == "2026-01-02T03:04:05Z"


@conformance(
    "apply: what is in a list or an object that is one value must fit its type, too",
    ("owner", {"metadata": {"ownerReferences": [{"uid": 1}]}}),
    ("arguments", {"spec": {"containers": [{"name": "c", "image": "i", "args": [1]}]}}),
    ("unknown", {"spec": {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"x": 1}}}}}),
)
async def test_wrong_types_in_atomic_fields(api: Api, fields: dict[str, Any]) -> None:
    body = {"apiVersion": "v1", "kind": "Pod", **fields, "metadata": {"name": "a", **fields.get("metadata", {})}}
    answer = await api.apply(f"{api.pods}/a", body)
    assert answer.status == 500, answer.text
    assert "failed to create typed patch object" in answer.json["message"]


@conformance("metadata: kinds that are validated by newer code take finalizers without a group")
async def test_finalizers_without_a_group(api: Api) -> None:
    namespace = api.namespace
    subject = {"kind": "Pod", "name": "p", "namespace": namespace}
    kinds: tuple[tuple[str, dict[str, Any]], ...] = (
        (f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets", {"spec": {"minAvailable": 1, "selector": {}}}),
        (f"{api.core}/events", {"involvedObject": subject}),
        ("/apis/node.k8s.io/v1/runtimeclasses", {"handler": "h"}),
        ("/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations", {}),
        (f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases", {}),
    )
    name = api.name("held")
    for path, fields in kinds:
        await api.created(path, {"metadata": {"name": name, "finalizers": ["nogroup"]}, **fields})
        assert (await api.patch(f"{path}/{name}", {"metadata": {"finalizers": None}})).status == 200
        await api.delete(f"{path}/{name}")
    refused = await api.post(api.config_maps, {"metadata": {"name": name, "finalizers": ["nogroup"]}})
    refused.refuses(422, "Invalid")


@conformance(
    "fieldValidation: what cannot be read is refused before anybody hears of unknown fields",
    ("type", {"data": 1}, "cannot unmarshal number"),
    ("bytes", {"binaryData": {"k": "?"}}, "illegal base64"),
    ("metadata", {"metadata": {"name": "a", "labels": 1}}, "cannot unmarshal number"),
    ("another kind", {"kind": "Secret"}, "unknown conversion"),
    ("no kind", {"kind": "Other"}, "no kind"),
)
async def test_unknown_fields_in_unreadable_object(api: Api, wrong: dict[str, Any], words: str) -> None:
    await api.config_map("a")
    path = f"{api.config_maps}/a"
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "unknown": 1, **wrong}
    operations = [{"op": "add", "path": f"/{name}", "value": value, "more": 1} for name, value in wrong.items()]
    for query in ("", "?fieldValidation=Strict"):
        for answer in (
            await api.put(f"{path}{query}", body),
            await api.patch(f"{path}{query}", {"unknown": 1, **wrong}),
            await api.patch_with(f"{path}{query}", "json-patch+json", operations),
        ):
            assert answer.status in (400, 422), answer.text
            causes = answer.json.get("details", {}).get("causes", [{"message": answer.json["message"]}])
            assert words in causes[0]["message"]
            assert "Warning" not in answer.headers


@conformance(
    "fieldValidation: unknown fields of a custom resource are told if it is of the resource's kind and version"
)
async def test_unknown_fields_of_another_kind(api: Api) -> None:
    widgets = await api.widgets()
    await api.created(widgets, api.widget("a"))
    for changes, field in (({"kind": "Other"}, "kind"), ({"apiVersion": "v2"}, "apiVersion")):
        answer = await api.patch(f"{widgets}/a?fieldValidation=Strict", {"unknown": 1, **changes})
        answer.refuses(422, "Invalid")
        assert answer.json["details"]["causes"][0]["field"] == field


@conformance(
    "patch: what one leaves without a version is not read, whatever is wrong with it",
    ("data", {"data": 1}),
    ("labels", {"metadata": {"labels": {"a": 1}}}),
    ("metadata", {"metadata": 1}),
)
async def test_wrong_types_without_a_version(api: Api, wrong: dict[str, Any]) -> None:
    await api.config_map("a")
    answer = await api.patch(f"{api.config_maps}/a", {"apiVersion": "", **wrong})
    assert "was undeterminable" in answer.refuses(400, "BadRequest")


LABELS, BYTES = {"metadata": {"name": "b", "labels": {"a": 1}}}, {"binaryData": {"k": "?"}}


@conformance(
    "several wrong types: one of them is told",
    ("metadata first", {**LABELS, **BYTES}),
    ("bytes first", {**BYTES, **LABELS}),
)
async def test_several_wrong_types(api: Api, wrong: dict[str, Any]) -> None:
    await api.config_map("b")
    typed = {"kind": "ConfigMap", "apiVersion": "v1", **wrong}
    sent = await api.post(api.config_maps, typed)
    in_yaml = await api.call(
        "POST", api.config_maps, json.dumps(typed).encode(), **{"Content-Type": "application/yaml"}
    )
    patched = await api.patch(f"{api.config_maps}/b", wrong)
    for answer, code, reason in ((sent, 400, "BadRequest"), (in_yaml, 400, "BadRequest"), (patched, 422, "Invalid")):
        message = answer.refuses(code, reason)
        assert "ObjectMeta.metadata.labels" in message or "illegal base64" in message


@conformance("warnings: nobody hears of owners that come twice in what cannot be read")
async def test_owners_in_unreadable_object(api: Api) -> None:
    await api.config_map("a")
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "00000000-0000-0000-0000-000000000001"}
    for metadata, code in (({}, 200), ({"labels": {"a": 1}}, 422)):
        changes = {"metadata": {"ownerReferences": [owner, owner], **metadata}}
        answer = await api.patch(f"{api.config_maps}/a?dryRun=All", changes)
        assert answer.status == code, answer.text
        assert ("Warning" in answer.headers) is (code == 200)


APPLY, JSON_PATCH, YAML = "apply-patch+yaml", "json-patch+json", "yaml"
NUMBERS = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"n": {"type": "number"}}}}}


@conformance(
    "numbers: what is none is refused by every way of reading a body",
    *(
        (f"{number} in {form}", number, form)
        for number in ("NaN", "-Infinity", ".nan", "-.inf")
        for form in ("json", YAML, MERGE, STRATEGIC, APPLY, JSON_PATCH)
        if form in (YAML, APPLY) or "." not in number
    ),
)
async def test_invalid_numbers_are_rejected(api: Api, number: str, form: str) -> None:
    custom = form != STRATEGIC
    path = await api.widgets(schema=NUMBERS) if custom else api.deployments
    kind = {"apiVersion": f"{api.group()}/v1", "kind": "Widget"} if custom else {}
    made = await api.created(path, {**kind, "metadata": {"name": "a"}, "spec": {"n": 1}} if custom else deployment("a"))
    name = "b" if form in ("json", YAML) else "a"
    fields = json.dumps({**kind, "metadata": {"name": name}, "spec": {"n": "$"}})
    if form == JSON_PATCH:
        fields = json.dumps([{"op": "replace", "path": "/spec/n", "value": "$"}])
    body, headers = fields.replace('"$"', number).encode(), {"Content-Type": f"application/{form}"}
    creates = form in ("json", YAML)
    answer = await api.call(
        "POST" if creates else "PATCH", path if creates else f"{path}/a?fieldManager=m", body, **headers
    )
    assert answer.status in (400, 422, 500), answer.text
    left = (await api.get(path)).json["items"]
    assert [item["metadata"]["resourceVersion"] for item in left] == [made.json["metadata"]["resourceVersion"]]
