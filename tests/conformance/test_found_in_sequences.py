"""What sequences of requests with an aim showed to be different once: deletes, definitions, compaction, ownership."""

from __future__ import annotations

from typing import Any

from tests.conformance.target import CRDS, Api, conformance, pod, widget_crd

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


def stored_as_v2(api: Api, *specs: dict[str, Any]) -> dict[str, Any]:
    """A definition of v2, which is stored, and v1, whose specs have these fields."""
    crd = widget_crd(api.group(), versions=("v2", "v1"), scale=False)
    for version, properties in zip(crd["spec"]["versions"], specs, strict=True):
        spec = {"type": "object", "properties": properties}
        version["schema"] = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    return crd


@conformance(
    "delete: a pod that goes at once is marked first, and its watchers see both",
    ("on no node", {}, {}, None),
    ("without grace", {"nodeName": "n1"}, {}, {"gracePeriodSeconds": 0}),
    ("finished", {"nodeName": "n1"}, {"phase": "Succeeded"}, None),
)
async def test_deletion_timestamp_of_pod_precedes_removal(
    api: Api, spec: dict[str, Any], status: dict[str, Any], options: Any
) -> None:
    await api.created(api.pods, pod("a", **spec))
    if status:
        assert (await api.patch(f"{api.pods}/a/status", {"status": status})).status == 200
    at = (await api.get(f"{api.pods}/a")).revision
    async with api.watch(f"{api.pods}?watch=1&resourceVersion={at}") as watch:
        answer = await api.delete(f"{api.pods}/a", options)
        events = [await api.next_event(watch) for _ in range(2)]
    assert [event["type"] for event in events] == ["MODIFIED", "DELETED"]
    for metadata in (answer.json["metadata"], *(event["object"]["metadata"] for event in events)):
        assert "deletionTimestamp" in metadata
        assert (metadata["deletionGracePeriodSeconds"], metadata["generation"]) == (0, 2)
    (await api.get(f"{api.pods}/a")).refuses(404, "NotFound")


@conformance("compaction: a watch that runs outlives it")
async def test_a_running_watch_outlives_a_compaction(api: Api) -> None:
    made = await api.config_map("a")
    async with api.watch(f"{api.config_maps}?watch=1&resourceVersion={made.revision}") as watch:
        await api.config_map("b")
        assert (await api.next_event(watch))["object"]["metadata"]["name"] == "b"
        await api.created(f"{api.core}/secrets", {"metadata": {"name": "s"}})
        await api.compact()
        await api.config_map("c")
        event = await api.next_event(watch)
    assert (event["type"], event["object"]["metadata"].get("name")) == ("ADDED", "c")


@conformance("apply: an empty object that is applied twice has no owners")
async def test_an_empty_lease_applied_twice(api: Api) -> None:
    leases = f"/apis/coordination.k8s.io/v1/namespaces/{api.namespace}/leases"
    body = {"kind": "Lease", "apiVersion": "coordination.k8s.io/v1", "metadata": {"name": "a"}}
    for _ in range(2):
        answer = await api.apply(f"{leases}/a", body)
        assert answer.status in (200, 201), answer.text
        assert "managedFields" not in answer.json["metadata"]


@conformance("owners: an item that is twice in a set is one thing, an item that is there once another")
async def test_duplicate_finalizer(api: Api) -> None:
    await api.created(
        f"{api.config_maps}?fieldManager=first",
        {"metadata": {"name": "a", "finalizers": ["e.com/f", "e.com/f", "e.com/g"]}},
    )
    changed = {"metadata": {"finalizers": ["e.com/f", "e.com/g"]}}
    patched = await api.patch(f"{api.config_maps}/a?fieldManager=second", changed)
    owned = {
        entry["manager"]: entry["fieldsV1"]["f:metadata"]["f:finalizers"]
        for entry in patched.json["metadata"]["managedFields"]
    }
    assert owned == {"first": {".": {}, 'v:"e.com/g"': {}}, "second": {'v:"e.com/f"': {}}}


@conformance("decoding: wrong metadata is told before a wrong value after it")
async def test_first_wrong_value_is_reported(api: Api) -> None:
    body = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a", "annotations": {"a": True}}}
    answer = await api.post(api.config_maps, {**body, "binaryData": {"b": "?"}})
    assert "json: cannot unmarshal bool into Go struct field" in answer.refuses(400, "BadRequest")


def _numbers(default: object) -> dict[str, Any]:
    return {"type": "object", "properties": {"size": {"type": "integer", "default": default}}}


@conformance(
    "CRDs: what all versions have alike is named as a field of the spec",
    ("one version", ("v1",), "spec.validation.openAPIV3Schema.properties[size].default"),
    ("two that are alike", ("v1", "v2"), "spec.validation.openAPIV3Schema.properties[size].default"),
)
async def test_path_of_schema_errors(api: Api, versions: tuple[str, ...], field: str) -> None:
    answer = await api.post(CRDS, widget_crd(api.group(), versions=versions, schema=_numbers("x")))
    answer.refuses(422, "Invalid")
    causes = [(cause["field"], cause["message"]) for cause in answer.json["details"]["causes"]]
    assert causes == [(field, 'Invalid value: "string":  in body must be of type integer: "string"')]


@conformance("CRDs: a wrong schema of one of several versions is named there")
async def test_path_of_single_schema_error(api: Api) -> None:
    crd = widget_crd(api.group(), versions=("v1", "v2"))
    crd["spec"]["versions"][1]["schema"] = {"openAPIV3Schema": _numbers("x")}
    answer = await api.post(CRDS, crd)
    answer.refuses(422, "Invalid")
    fields = [cause["field"] for cause in answer.json["details"]["causes"]]
    assert fields == ["spec.versions[1].schema.openAPIV3Schema.properties[size].default"]


@conformance("CRDs: a printer column without a description is given one; an empty Table has no token")
async def test_the_table_of_a_custom_resource(api: Api) -> None:
    path = await api.widgets(columns=[{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}])
    table = (await api.get(path, Accept=TABLE)).json
    description = "Custom resource definition column (in JSONPath format): .spec.size"
    assert table["columnDefinitions"][1]["description"] == description
    assert "continue" not in table["metadata"]


@conformance("apply: what a subresource does not take changes no owner")
async def test_fields_ignored_by_status_keep_their_owner(api: Api) -> None:
    await api.created(f"{api.pods}?fieldManager=first", pod("a", terminationGracePeriodSeconds=30))
    body = {"kind": "Pod", "apiVersion": "v1", **pod("a", terminationGracePeriodSeconds=5)}
    answer = await api.apply(f"{api.pods}/a/status", body, query="&force=true")
    assert answer.status == 200, answer.text
    assert answer.json["spec"]["terminationGracePeriodSeconds"] == 30
    owned = next(each for each in answer.json["metadata"]["managedFields"] if each["manager"] == "first")
    assert "f:terminationGracePeriodSeconds" in owned["fieldsV1"]["f:spec"]


@conformance("delete: an object that is returned has the version of its removal")
async def test_the_version_of_a_removal(api: Api) -> None:
    services = f"{api.core}/services"
    made = await api.created(services, {"metadata": {"name": "a"}, "spec": {"ports": [{"port": 80}]}})
    async with api.watch(f"{services}?watch=1&resourceVersion={made.revision}") as watch:
        answer = await api.delete(f"{services}/a")
        event = await api.next_event(watch)
    assert event["object"]["metadata"]["resourceVersion"] == answer.revision != made.revision


@conformance(
    "patch: what one leaves without an apiVersion has no fields that are known",
    ("warned of", "", 400, ["data", "metadata"]),
    ("strict", "?fieldValidation=Strict", 422, []),
)
async def test_a_patch_that_takes_the_version(api: Api, query: str, code: int, unknown: list[str]) -> None:
    await api.config_map("a", {"k": "v"})
    answer = await api.patch(f"{api.config_maps}/a{query}", {"apiVersion": ""})
    assert answer.status == code, answer.text
    headers: Any = answer.headers
    assert headers.getall("Warning", []) == [f'299 - "unknown field \\"{name}\\""' for name in unknown]
    words = "undeterminable" if code == 400 else 'strict decoding error: unknown field "data", unknown field "metadata"'
    assert words in answer.json["message"]


@conformance(
    "patch: what one makes another kind of is refused",
    ("no version", "", "Secret", "YQ==", ".Secret) to (core.ConfigMap): unknown conversion"),
    ("of another group", "", "Deployment", "", 'no kind "Deployment" is registered for '),
    ("a version", "v1", "Secret", "YQ==", "converting (v1.Secret) to (core.ConfigMap): unknown conversion"),
    ("with wrong data", "v1", "Secret", "v", ""),
    ("unknown", "v1", "Nonsense", "", 'no kind "Nonsense" is registered for version "v1"'),
)
async def test_patch_that_changes_kind(api: Api, version: str, kind: str, value: str, words: str) -> None:
    await api.config_map("a", {"k": value})
    answer = await api.patch(f"{api.config_maps}/a", {"apiVersion": version, "kind": kind})
    assert answer.status == 422, answer.text
    assert words in answer.json["details"]["causes"][0]["message"]


@conformance(
    "secrets: bytes that are not base64",
    *((value, value) for value in (
        "v", "YQ==Y", "YWJjY", "YWJjYQ", "YWJjYQ=", "YWJj=", "YW=j", "Y===", "YWE==", "Y?==", "YWJj?", "YWJjYQ==YWJj",
    )),
)  # fmt: skip
async def test_bytes_that_are_not_base64(api: Api, value: str) -> None:
    answer = await api.post(f"{api.core}/secrets", {"metadata": {"name": "a"}, "data": {"k": value}})
    assert "illegal base64 data" in answer.refuses(400, "BadRequest")


@conformance("apply: a status that is not written here gives the manager a time, and is no change the second time")
async def test_an_apply_with_a_status(api: Api) -> None:
    body = pod("a")
    await api.created(api.pods, body)
    await api.apply(f"{api.pods}/a", body, manager="plain")
    applied = {**body, "status": {"phase": "Running"}}
    first = await api.apply(f"{api.pods}/a", applied, manager="with-status")
    again = await api.apply(f"{api.pods}/a", applied, manager="with-status")
    assert first.json["status"]["phase"] == "Pending"
    assert again.revision == first.revision
    times = {entry["manager"]: "time" in entry for entry in first.json["metadata"]["managedFields"]}
    assert times["with-status"]


@conformance(
    "built-in kinds: what is neither a number nor text is read as a number",
    ("true", True),
    ("object", {}),
    ("1.5", 1.5),
)
async def test_int_or_string_value(api: Api, value: Any) -> None:
    budgets = f"/apis/policy/v1/namespaces/{api.namespace}/poddisruptionbudgets"
    answer = await api.post(budgets, {"metadata": {"name": "a"}, "spec": {"minAvailable": value, "selector": {}}})
    assert answer.status == 400, answer.text
    assert answer.json["message"].endswith(
        "into Go struct field PodDisruptionBudgetSpec.spec.minAvailable of type int32"
    )


@conformance(
    "definitions: what the version that is stored does not have is lost, whatever the version that is served has"
)
async def test_fields_that_are_not_stored(api: Api) -> None:
    word = {"type": "string"}
    specs = ({"two": {**word, "default": "d"}, "both": word}, {"one": word, "both": word})
    await api.define(stored_as_v2(api, *specs))
    path = f"/apis/{api.group()}/v1/namespaces/{api.namespace}/widgets"
    body = api.widget("a", {"one": "x", "both": "y"})
    made = await api.created(path, body)
    assert made.json["spec"] == {"both": "y"}
    same = await api.patch(f"{path}/a", {"spec": {"one": "z"}})
    assert same.json["spec"] == {"both": "y"}
    at_v2 = await api.get(path.replace("/v1/", "/v2/") + "/a")
    assert at_v2.json["spec"] == {"two": "d", "both": "y"}
    dry = await api.post(f"{path}?dryRun=All", api.widget("b", {"one": "x"}))
    assert dry.json["spec"] == {}


@conformance(
    "status: what is sent beside it is not written, and takes no field from its owner whether it fits its type or not",
    ("fits", {"size": 7, "unknown": 1}),
    ("has items twice", {"names": ["x", "x"], "parts": [{"name": "p"}, {"name": "p"}]}),
    ("does not fit", {"size": "x"}),
    ("no object", "x"),
    min_version="1.37",
)
async def test_other_fields_in_status_update(api: Api, sent: Any) -> None:
    widgets = await api.widgets()
    made = await api.apply(f"{widgets}/a", api.widget("a", {"size": 1}))
    patch = [{"op": "add", "path": "/spec", "value": sent}]
    answer = await api.patch_with(f"{widgets}/a/status", "json-patch+json", patch)
    assert answer.status == 200, answer.text
    assert answer.json["spec"] == made.json["spec"]
    assert answer.json["metadata"]["managedFields"] == made.json["metadata"]["managedFields"]


@conformance(
    "bytes: a null among them is read as none",
    ("secret", "secrets", "data"),
    ("config map", "configmaps", "binaryData"),
)
async def test_null_among_bytes(api: Api, plural: str, field: str) -> None:
    path = f"{api.core}/{plural}"
    made = await api.created(path, {"metadata": {"name": "a"}, field: {"k": None}})
    assert made.json[field] == {"k": ""}


@conformance(
    "status: with one that does not fit its type nobody owns a new object, and an old one's owners stay",
    min_version="1.37",
)
async def test_managed_fields_with_invalid_status(api: Api) -> None:
    widgets = await api.widgets()
    made = await api.created(widgets, {**api.widget("a", {"size": 1}), "status": "x"})
    assert "managedFields" not in made.json["metadata"]
    applied = await api.apply(f"{widgets}/a", api.widget("a", {"size": 1}))
    assert len(applied.json["metadata"]["managedFields"]) == 2
    answer = await api.patch(f"{widgets}/a", {"status": {"size": "x"}})
    assert answer.status == 200, answer.text
    assert answer.json["metadata"]["managedFields"] == applied.json["metadata"]["managedFields"]


@conformance("Scale: an object that had no other fields has their defaults beside the replicas")
async def test_scaling_sets_defaults_of_other_fields(api: Api) -> None:
    widgets = await api.widgets()
    body = {name: value for name, value in api.widget("a").items() if name != "spec"}
    await api.created(widgets, body)
    await api.patch(f"{widgets}/a/scale", {"spec": {"replicas": 1}})
    assert (await api.get(f"{widgets}/a")).json["spec"] == {"mode": "plain", "size": 1}
    await api.patch(f"{widgets}/a", {})
    scaled = await api.patch(f"{widgets}/a/scale", {"spec": {"replicas": 2}})
    assert (await api.patch(f"{widgets}/a", {})).revision == scaled.revision


@conformance("strategic merge patch: a list that cannot be merged is a 500 without a reason or details")
async def test_a_list_that_cannot_be_merged(api: Api) -> None:
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "00000000-0000-0000-0000-000000000001"}
    await api.config_map("a", ownerReferences=[owner])
    patch: dict[str, Any] = {"metadata": {"ownerReferences": [{}]}}
    answer = await api.patch_with(f"{api.config_maps}/a", "strategic-merge-patch+json", patch)
    assert answer.status == 500
    assert "declared merge key: uid" in answer.json["message"]
    assert answer.json.keys().isdisjoint({"reason", "details"})


@conformance("definitions: defaults are those of the version that is stored")
async def test_defaults_of_storage_version(api: Api) -> None:
    number = {"type": "integer"}
    specs = ({"one": number, "two": {**number, "default": 2}}, {"one": {**number, "default": 1}, "two": number})
    await api.define(stored_as_v2(api, *specs))
    path = f"/apis/{api.group()}/v1/namespaces/{api.namespace}/widgets"
    made = await api.created(path, api.widget("a", {}))
    assert made.json["spec"] == {"one": 1, "two": 2}
    less = await api.patch(f"{path}/a", {"spec": {"one": None, "two": None}})
    assert less.json["spec"] == {"one": 1, "two": 2}
    bare = await api.created(path.replace("/v1/", "/v2/"), {**api.widget("b", {}), "apiVersion": f"{api.group()}/v2"})
    assert bare.json["spec"] == {"two": 2}
    assert (await api.get(f"{path}/b")).json["spec"] == {"two": 2}


@conformance(
    "definitions: what an update leaves as it was is not held against it when a schema has become stricter",
    ("labels", {"metadata": {"labels": {"a": "b"}}}, []),
    ("another field", {"spec": {"new": 1}}, ["spec.gone"]),
    ("order of keyed items", {"spec": {"parts": [{"n": "y", "v": 6}, {"n": "x", "v": 5}]}}, []),
    ("a keyed item", {"spec": {"parts": [{"n": "x", "v": 7}, {"n": "y", "v": 6}]}}, ["spec.gone", "spec.parts[0].v"]),
    ("items without keys", {"spec": {"list": ["aa", "b"]}}, ["spec.gone", "spec.list[0]"]),
    ("the value itself", {"spec": {"size": 8}}, ["spec.gone", "spec.size"]),
)  # fmt: skip
async def test_a_stricter_schema(api: Api, changes: dict[str, Any], wrong: list[str]) -> None:
    def crd(*, most: int, longest: int, needed: list[str]) -> dict[str, Any]:
        number, text = {"type": "integer", "maximum": most}, {"type": "string", "maxLength": longest}
        part = {"type": "object", "required": ["n"], "properties": {"n": {"type": "string"}, "v": number}}
        keyed = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["n"]}
        properties: dict[str, Any] = {
            "size": number,
            "new": number,
            "list": {"type": "array", "items": text},
            "parts": {"type": "array", "items": part, **keyed},
        }
        spec = {"type": "object", "properties": properties, **({"required": needed} if needed else {})}
        return widget_crd(api.group(), scale=False, schema={"type": "object", "properties": {"spec": spec}})

    loose, strict = crd(most=9, longest=9, needed=[]), crd(most=1, longest=1, needed=["gone"])
    widgets = await api.define(loose)
    values = {"size": 9, "list": ["aa"], "parts": [{"n": "x", "v": 5}, {"n": "y", "v": 6}]}
    await api.created(widgets, api.widget("a", values))
    name = loose["metadata"]["name"]
    assert (await api.patch(f"{CRDS}/{name}", {"spec": strict["spec"]})).status == 200

    async def refused_anew() -> bool:
        return (await api.post(f"{widgets}?dryRun=All", api.widget("b", values))).status == 422

    await api.eventually(refused_anew)
    answer = await api.patch(f"{widgets}/a?dryRun=All", changes)
    assert answer.status == (422 if wrong else 200), answer.text
    if wrong:
        assert sorted(cause["field"] for cause in answer.json["details"]["causes"]) == wrong


@conformance("update: a link that was sent is not stored")
async def test_self_link_is_ignored(api: Api) -> None:
    await api.config_map("a")
    metadata = {"metadata": {"selfLink": "/me"}}
    assert "selfLink" not in (await api.patch(f"{api.config_maps}/a", metadata)).json["metadata"]
