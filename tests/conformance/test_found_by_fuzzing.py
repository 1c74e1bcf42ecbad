"""What random requests showed to be different once: what is looked at first, and what is said beside a refusal."""

from __future__ import annotations

from typing import Any

from tests.conformance.target import Api, config_map, conformance, widget_crd

OWNER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "u1"}


def _leases(api: Api) -> str:
    return f"/apis/coordination.k8s.io/v1/namespaces/{api.namespace}/leases"


def _lease(name: str, spec: dict[str, Any] | None = None, **metadata: Any) -> dict[str, Any]:
    body = {"kind": "Lease", "apiVersion": "coordination.k8s.io/v1", "metadata": {"name": name, **metadata}}
    return body if spec is None else {**body, "spec": spec}


@conformance("update: put creates what is not there, for kinds that allow it")
async def test_put_creates_a_lease(api: Api) -> None:
    answer = await api.put(f"{_leases(api)}/a", _lease("a", {"holderIdentity": "me"}, resourceVersion="5"))
    assert answer.status == 201, answer.text
    assert (await api.get(f"{_leases(api)}/a")).json["spec"] == {"holderIdentity": "me"}


@conformance("update: put that names a uid creates nothing")
async def test_put_with_uid_does_not_create(api: Api) -> None:
    answer = await api.put(f"{_leases(api)}/a", _lease("a", {}, uid="u1"))
    assert "Precondition failed: UID in precondition: u1, UID in object meta: " in answer.refuses(409, "Conflict")


@conformance("update: a put without a name is 400")
async def test_put_without_a_name(api: Api) -> None:
    await api.config_map("a")
    message = (await api.put(f"{api.config_maps}/a", {"data": {}})).refuses(400, "BadRequest")
    assert message == "the name of the object (a based on URL) was undeterminable: name must be provided"


@conformance("update: a version that is no number is 500 without a reason")
async def test_put_with_non_numeric_resource_version(api: Api) -> None:
    await api.config_map("a")
    answer = await api.put(f"{api.config_maps}/a", config_map("a", resourceVersion="abc"))
    assert answer.refuses(500, "") == 'strconv.ParseUint: parsing "abc": invalid syntax'


@conformance("update: a custom resource of another kind is looked at after its version")
async def test_put_of_another_kind(api: Api) -> None:
    path = await api.widgets()
    await api.created(path, api.widget("a"))
    other = {**api.widget("a", resourceVersion="1"), "kind": "Other"}
    (await api.put(f"{path}/a", other)).refuses(409, "Conflict")


@conformance("patch: another uid is 422", ("of a built-in kind", False), ("of a custom resource", True))
async def test_patch_with_another_uid(api: Api, custom: bool) -> None:
    path = await api.widgets() if custom else api.config_maps
    await api.created(path, api.widget("a") if custom else config_map("a"))
    answer = await api.patch(f"{path}/a", {"metadata": {"uid": "x"}})
    assert 'metadata.uid: Invalid value: "x": field is immutable' in answer.refuses(422, "Invalid")


@conformance("delete: the mark cannot be set by an update")
async def test_deletion_timestamp_cannot_be_set(api: Api) -> None:
    await api.config_map("a")
    answer = await api.patch(f"{api.config_maps}/a", {"metadata": {"deletionTimestamp": "2020-01-02T03:04:05Z"}})
    text = 'metadata.deletionTimestamp: Invalid value: "2020-01-02T03:04:05Z": field is immutable'
    assert text in answer.refuses(422, "Invalid")


@conformance("deletecollection: the items are as they were before")
async def test_deletecollection_returns_deleted_objects(api: Api) -> None:
    await api.config_map("a", finalizers=["example.com/f"])
    assert "deletionTimestamp" not in (await api.delete(api.config_maps)).json["items"][0]["metadata"]
    assert "deletionTimestamp" in (await api.get(f"{api.config_maps}/a")).json["metadata"]


@conformance("delete: two errors of the options are both told")
async def test_both_errors_of_delete_options(api: Api) -> None:
    await api.config_map("a")
    answer = await api.delete(f"{api.config_maps}/a", {"propagationPolicy": "Other", "orphanDependents": True})
    answer.refuses(422, "Invalid")
    reasons = [cause["reason"] for cause in answer.json["details"]["causes"]]
    assert reasons == ["FieldValueInvalid", "FieldValueNotSupported"]


@conformance(
    "bytes: base64 that is none cannot be decoded",
    ("a letter", "?"),
    ("in the middle", "YWJj!"),
    ("half", "YQ"),
)
async def test_invalid_base64(api: Api, value: str) -> None:
    answer = await api.post(api.config_maps, {**config_map("a"), "binaryData": {"b": value}})
    assert "cannot be handled as a ConfigMap: illegal base64 data" in answer.refuses(400, "BadRequest")


@conformance("bytes: base64 is written in its own form", ("a line break", "Y\nQ=="), ("spare bits", "YR=="))
async def test_base64_is_normalized(api: Api, value: str) -> None:
    made = await api.created(api.config_maps, {**config_map("a"), "binaryData": {"b": value}})
    assert made.json["binaryData"] == {"b": "YQ=="}


@conformance(
    "micro times: six digits, or it cannot be decoded",
    ("none", "2026-01-02T03:04:05Z"),
    ("one", "2026-01-02T03:04:05.1Z"),
    ("seven", "2026-01-02T03:04:05.1234567Z"),
    ("no time", "x"),
)
async def test_micro_times(api: Api, value: str) -> None:
    answer = await api.post(_leases(api), _lease("a", {"renewTime": value}))
    assert 'Lease in version "v1" cannot be handled as a Lease: parsing time ' in answer.refuses(400, "BadRequest")


@conformance("micro times: they are written in UTC")
async def test_micro_times_in_utc(api: Api) -> None:
    made = await api.created(_leases(api), _lease("a", {"renewTime": "2026-01-02T03:04:05.123456+02:00"}))
    assert made.json["spec"] == {"renewTime": "2026-01-02T01:04:05.123456Z"}


@conformance(
    "leases: numbers have a least value",
    ("a duration of 0", {"leaseDurationSeconds": 0}, "spec.leaseDurationSeconds: Invalid value: 0: must be greater"),
    ("transitions of -1", {"leaseTransitions": -1}, "spec.leaseTransitions: Invalid value: -1: must be greater than"),
)
async def test_numbers_of_a_lease(api: Api, spec: dict[str, Any], message: str) -> None:
    assert message in (await api.post(_leases(api), _lease("a", spec))).refuses(422, "Invalid")


@conformance("leases: the spec is there, be it empty, and then nobody owns it")
async def test_an_empty_lease(api: Api) -> None:
    made = (await api.created(_leases(api), _lease("a"))).json
    assert made["spec"] == {}
    assert "managedFields" not in made["metadata"]


@conformance("finalizers: an unqualified one is refused for older groups", ("a ConfigMap", False), ("a Lease", True))
async def test_unqualified_finalizers(api: Api, lease: bool) -> None:
    if lease:
        await api.created(_leases(api), _lease("a", finalizers=["x"]))
        return
    answer = await api.post(api.config_maps, config_map("a", finalizers=["x"]))
    assert "metadata.finalizers[0]: Invalid value" in answer.refuses(422, "Invalid")


@conformance("finalizers: an unqualified one of a custom resource is a warning")
async def test_unqualified_finalizers_of_a_custom_resource(api: Api) -> None:
    path = await api.widgets()
    made = await api.created(path, api.widget("a", finalizers=["x"]))
    assert 'metadata.finalizers: \\"x\\": prefer a domain-qualified finalizer name' in made.headers["Warning"]


@conformance("owners: one is kept once, and a uid given twice is a warning")
async def test_duplicate_owners_are_removed(api: Api) -> None:
    made = await api.created(api.config_maps, config_map("a", ownerReferences=[OWNER, OWNER]))
    assert made.json["metadata"]["ownerReferences"] == [OWNER]
    assert ".metadata.ownerReferences contains duplicate entries; API server dedups" in made.headers["Warning"]


@conformance("KEP-2885: a refusal carries the warnings about the body, too", min_version="1.25")
async def test_warnings_with_rejection(api: Api) -> None:
    path = await api.widgets()
    answer = await api.post(path, api.widget("a", {"size": 11, "bogus": 1}))
    answer.refuses(422, "Invalid")
    assert answer.headers["Warning"] == '299 - "unknown field \\"spec.bogus\\""'


@conformance(
    "scale: negative numbers of a custom resource are 422",
    ("in its spec", "", {"spec": {"size": -1}}, ".spec.size"),
    ("in its status", "/status", {"status": {"size": -1}}, ".status.size"),
)
async def test_negative_replicas(api: Api, part: str, change: dict[str, Any], field: str) -> None:
    path = await api.widgets()
    await api.created(path, api.widget("a"))
    answer = await api.patch(f"{path}/a{part}", change)
    assert f"{field}: Invalid value: -1: should be a non-negative integer" in answer.refuses(422, "Invalid")


@conformance("dry run: a create by apply answers with the version that was sent")
async def test_dry_run_keeps_the_version_that_was_sent(api: Api) -> None:
    body = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a", "resourceVersion": "5"}}
    assert (await api.apply(f"{api.config_maps}/a", body, query="&dryRun=All")).revision == "5"


@conformance("KEP-3157: the end mark of a built-in kind has its empty spec", min_version="1.34")
async def test_initial_events_bookmark_has_empty_spec(api: Api) -> None:
    query = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    async with api.watch(f"{_leases(api)}?{query}") as watch:
        event = await api.next_event(watch)
    assert (event["type"], event["object"]["spec"]) == ("BOOKMARK", {})


@conformance(
    "apply: empty metadata of a custom resource is not there when it is read",
    ("labels", {"labels": {}}),
    ("finalizers", {"finalizers": []}),
)
async def test_empty_metadata_that_is_applied(api: Api, empty: dict[str, Any]) -> None:
    path = await api.widgets()
    applied = await api.apply(f"{path}/a", api.widget("a", **empty))
    assert not set(empty) & set(applied.json["metadata"])
    written = await api.patch(f"{path}/a", {})
    assert (await api.patch(f"{path}/a", {})).revision == written.revision


@conformance("apply: a null that a custom resource may not have is refused, not dropped")
async def test_a_null_that_is_applied(api: Api) -> None:
    path = await api.widgets()
    message = (await api.apply(f"{path}/a", api.widget("a", {"word": None}))).refuses(422, "Invalid")
    assert 'spec.word in body must be of type string: "null"' in message


@conformance(
    "json patch: what is missing reads as null",
    ("a copy to itself", [{"op": "copy", "from": "/binaryData", "path": "/binaryData"}], {"k": "1"}),
    ("a copy of a missing key", [{"op": "copy", "from": "/data/no", "path": "/data/z"}], {"k": "1", "z": ""}),
    ("a test", [{"op": "test", "path": "/binaryData", "value": None}], {"k": "1"}),
    ("an addition without a value", [{"op": "add", "path": "/data/q"}], {"k": "1", "q": ""}),
    ("no patch at all", None, {"k": "1"}),
)
async def test_json_patch_of_missing_field(api: Api, patch: object, data: dict[str, str]) -> None:
    await api.config_map("a", {"k": "1"})
    answer = await api.patch_with(f"{api.config_maps}/a", "json-patch+json", patch)
    assert (answer.status, answer.json["data"]) == (200, data), answer.text


@conformance(
    "json patch: an index may be negative",
    ("added", {"op": "add", "path": "/metadata/finalizers/-1", "value": "a.b/z"}, ["a.b/x", "a.b/y", "a.b/z"]),
    ("removed", {"op": "remove", "path": "/metadata/finalizers/-1"}, ["a.b/x"]),
)
async def test_json_patch_with_a_negative_index(api: Api, operation: dict[str, Any], after: list[str]) -> None:
    await api.config_map("a", finalizers=["a.b/x", "a.b/y"])
    answer = await api.patch_with(f"{api.config_maps}/a", "json-patch+json", [operation])
    assert answer.json["metadata"]["finalizers"] == after


@conformance(
    "json patch: what cannot be applied is 422",
    ("a move of what is missing", {"op": "move", "from": "/binaryData", "path": "/data/z"}),
    ("beneath what is missing", {"op": "copy", "from": "/binaryData/x", "path": "/data/z"}),
    ("an index outside", {"op": "add", "path": "/metadata/finalizers/7", "value": "a.b/z"}),
    ("the whole", {"op": "add", "path": "", "value": {}}),
)
async def test_json_patch_that_cannot_be_applied(api: Api, operation: dict[str, Any]) -> None:
    await api.config_map("a", finalizers=["a.b/x"])
    (await api.patch_with(f"{api.config_maps}/a", "json-patch+json", [operation])).refuses(422, "Invalid")


@conformance("json patch: a field that no operation has is a warning, and refused when strict")
async def test_json_patch_with_an_unknown_field(api: Api) -> None:
    await api.config_map("a", {"k": "1"})
    patch = [{"op": "add", "path": "/data/k", "value": "2", "more": 1}]
    answer = await api.patch_with(f"{api.config_maps}/a", "json-patch+json", patch)
    assert answer.headers["Warning"] == '299 - "json patch unknown field \\"[0].more\\""'
    strict = await api.patch_with(f"{api.config_maps}/a?fieldValidation=Strict", "json-patch+json", patch)
    assert strict.refuses(422, "Invalid").endswith('strict decoding error: json patch unknown field "[0].more"')


@conformance(
    "patch: what it is to be cannot be decoded",
    (
        "labels of a built-in kind",
        False,
        {"metadata": {"labels": {"a": 5}}},
        "field ObjectMeta.metadata.labels of type",
    ),
    ("labels of a custom resource", True, {"metadata": {"labels": {"a": 5}}}, "field ObjectMeta.labels of type string"),
    ("another kind", False, {"kind": "Secret"}, "converting (v1.Secret) to (core.ConfigMap): unknown conversion"),
    ("no kind", True, {"kind": ""}, "Object 'Kind' is missing in "),
)
async def test_a_patch_that_cannot_be_decoded(api: Api, custom: bool, patch: dict[str, Any], message: str) -> None:
    path = await api.widgets() if custom else api.config_maps
    await api.created(path, api.widget("a") if custom else config_map("a"))
    assert message in (await api.patch(f"{path}/a", patch)).refuses(422, "Invalid")


@conformance("patch: a strategic one does not change what an object is")
async def test_a_strategic_patch_of_the_kind(api: Api) -> None:
    await api.config_map("a")
    patch = {"kind": "Secret", "apiVersion": "v2"}
    assert (await api.patch(f"{api.config_maps}/a", patch, "strategic-merge-patch+json")).json["kind"] == "ConfigMap"


@conformance("patch: a custom resource of no version is 500, of another 422")
async def test_a_patch_of_the_version(api: Api) -> None:
    path = await api.widgets()
    await api.created(path, api.widget("a"))
    (await api.patch(f"{path}/a", {"apiVersion": None})).refuses(500, "InternalError")
    message = (await api.patch(f"{path}/a", {"apiVersion": "other/v1"})).refuses(422, "Invalid")
    assert message.startswith('Widget.other "a" is invalid: apiVersion: Invalid value: "other/v1": must be ')


@conformance("merge patch: objects in a new list lose their nulls")
async def test_nulls_in_a_list_of_a_merge_patch(api: Api) -> None:
    path = await api.widgets()
    await api.created(path, api.widget("a"))
    patched = await api.patch(f"{path}/a", {"spec": {"free": {"l": [{"n": None}]}}})
    assert patched.json["spec"]["free"] == {"l": [{}]}


@conformance("decoding: a null in a map or a list of text is empty text")
async def test_nulls_among_text(api: Api) -> None:
    body = {**config_map("a", annotations={"y": None}), "data": {"k": None}}
    made = (await api.created(api.config_maps, body)).json
    assert (made["data"], made["metadata"]["annotations"]) == ({"k": ""}, {"y": ""})


@conformance(
    "config maps and secrets: keys could be names of files",
    ("a space", {"a b": "1"}, "a valid config key must consist of alphanumeric characters"),
    ("two dots", {"..": "1"}, "must not be '..'"),
    ("two dots in front", {"..a": "1"}, "must not start with '..'"),
    ("too long", {"a" * 254: "1"}, "must be no more than 253 characters"),
)
async def test_keys_of_data(api: Api, data: dict[str, str], message: str) -> None:
    assert message in (await api.post(api.config_maps, config_map("a", data))).refuses(422, "Invalid")
    secret = {"kind": "Secret", "apiVersion": "v1", "metadata": {"name": "a"}, "stringData": data}
    assert message in (await api.post(f"{api.core}/secrets", secret)).refuses(422, "Invalid")


@conformance("config maps: a key is in data or in binaryData")
async def test_a_key_in_both(api: Api) -> None:
    answer = await api.post(api.config_maps, {**config_map("a", {"k": "1"}), "binaryData": {"k": "YQ=="}})
    assert 'data[k]: Invalid value: "k": duplicate of key present in binaryData' in answer.refuses(422, "Invalid")


@conformance("deletecollection: the list has the version from before")
async def test_the_version_of_a_deleted_collection(api: Api) -> None:
    made = await api.config_map("a")
    before = (await api.get(api.config_maps)).revision
    deleted = await api.delete(api.config_maps)
    assert int(made.revision) <= int(deleted.revision) <= int(before)


@conformance(
    "managedFields: marks of a deletion in a PUT that creates have an owner, those in a POST have none",
    ("time", {"deletionTimestamp": "2020-01-01T00:00:00Z"}, {"f:deletionTimestamp": {}}),
    ("seconds", {"deletionGracePeriodSeconds": 0}, {"f:deletionGracePeriodSeconds": {}}),
    ("nothing", {"deletionTimestamp": None}, {}),
)
async def test_managed_fields_of_deletion_timestamp(api: Api, marks: dict[str, Any], owned: dict[str, Any]) -> None:
    labels = {"labels": {"a": "b"}}
    of_labels: dict[str, Any] = {"f:labels": {".": {}, "f:a": {}}}
    put = await api.put(f"{_leases(api)}/a", _lease("a", **labels, **marks))
    post = await api.post(_leases(api), _lease("b", **labels, **marks))
    for answer, expected in ((put, {**owned, **of_labels}), (post, of_labels)):
        assert answer.status == 201
        (entry,) = answer.json["metadata"]["managedFields"]
        assert entry["fieldsV1"] == {"f:metadata": expected}
        assert not marks.keys() & answer.json["metadata"].keys()


_KEYED: dict[str, Any] = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["name"],
    "items": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
}
_FORMER: dict[str, Any] = {
    "type": "object",
    "additionalProperties": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    "x-kubernetes-validations": [{"rule": "self.?a.hasValue()"}],
}
_NO_OBJECT = "must be an object for an array of list-type map"


def _wrong_type(where: str, found: str) -> str:
    return f'{where}: Invalid value: "{found}": {where} in body must be of type object: "{found}"'


@conformance(
    "custom resources: what was stored with another schema, and is still there",
    (
        "an item is no object",
        _KEYED,
        [{"name": "a"}],
        [1, 2],
        {f"spec.f[0]: Invalid value: 1: {_NO_OBJECT}", *(_wrong_type(f"spec.f[{n}]", "integer") for n in range(2))},
    ),
    ("it was none before", _KEYED, [1], [1, {"name": "b"}], {_wrong_type("spec.f[0]", "integer")}),
    ("a null was there before", _KEYED, [None], [None], {_wrong_type("spec.f[0]", "null")}),
    ("it came twice before", _KEYED, [{"name": "a"}] * 2, [{"name": "b"}] * 2, set[str]()),
    (
        "a rule asks for it",
        _FORMER,
        {"a": 1},
        {"a": 1, "b": {}},
        {
            (
                'spec.f: Invalid value: "object": invalid data, expected a map for the provided schema with '
                "type=object evaluating rule: self.?a.hasValue()"
            )
        },
    ),
)
async def test_objects_stored_with_earlier_schema(
    api: Api, schema: dict[str, Any], before: Any, after: Any, wrong: set[str]
) -> None:
    spec = {"type": "object", "properties": {"f": schema}}
    crd = widget_crd(api.group(), schema={"type": "object", "properties": {"spec": spec}}, versions=("v1", "v2"))
    is_open = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    crd["spec"]["versions"][1]["schema"] = {"openAPIV3Schema": is_open}
    path = await api.define(crd)
    widget = api.widget("w", {"f": before}) | {"apiVersion": f"{api.group()}/v2"}
    stored = await api.created(path.replace("/v1/", "/v2/"), widget)
    changed = {**stored.json, "apiVersion": f"{api.group()}/v1", "spec": {"f": after}}
    answer = await api.put(f"{path}/w", changed)
    causes: list[dict[str, str]] = [] if answer.status == 200 else answer.json["details"]["causes"]
    assert {f"{cause['field']}: {cause['message']}" for cause in causes} == wrong
