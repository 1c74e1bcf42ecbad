"""What ``make -C lab corpus`` found: requests about other projects' kinds, in a short form of our own."""

from __future__ import annotations

from typing import Any, cast

from tests.apiserver.serving import Answer
from tests.conformance.target import CRDS, Api, conformance, widget_crd


def _warnings(answer: Answer) -> list[str]:
    headers: list[str] = cast("Any", answer.headers).getall("Warning", [])  # a multi-dict
    return headers


_TEXTS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "at": {"type": "string", "format": "date-time"},
        "other": {"type": "string", "format": "unheard-of"},
        "data": {"type": "string", "format": "byte"},
        "plain": {"type": "string"},
    },
}
_KEYED: dict[str, Any] = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["name"],
    "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}},
}
_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "spec": {**_TEXTS, "properties": {**_TEXTS["properties"], "list": _KEYED}},
        "status": {**_TEXTS, "properties": {**_TEXTS["properties"], "list": _KEYED}},
    },
}


@conformance(
    "apply: a text that has a format may be any value for merging; what it is, is looked at later",
    ("a number for a time", {"at": 5}, 422),
    ("a boolean for a time", {"at": True}, 422),
    ("a number for an unknown format", {"other": 5}, 422),
    ("a list for a time", {"at": [1]}, 500),
    ("an object for a time", {"at": {"a": 1}}, 500),
    ("a number for bytes", {"data": 5}, 500),
    ("a number for a plain text", {"plain": 5}, 500),
    ("a text for a time", {"at": "2024-01-02T03:04:05Z"}, 201),
)
async def test_texts_with_formats(api: Api, spec: dict[str, Any], code: int) -> None:
    path = await api.widgets(schema=_SCHEMA, scale=False)
    answer = await api.apply(f"{path}/a", api.widget("a", spec))
    assert answer.status == code, answer.text


@conformance("apply: the status of a new object is left out, whatever is in it")
async def test_status_in_apply_that_creates(api: Api) -> None:
    path = await api.widgets(schema=_SCHEMA, scale=False)
    body = {**api.widget("a", {}), "status": {"at": 5, "list": [{"name": None}]}}
    answer = await api.apply(f"{path}/a", body)
    assert answer.status == 201, answer.text
    assert "status" not in answer.json
    created = await api.post(path, {**api.widget("b", {"plain": "x"}), "status": {"at": 5}})
    assert created.json["metadata"]["managedFields"][0]["fieldsV1"] == {"f:spec": {".": {}, "f:plain": {}}}


@conformance("apply: an item whose key is null has its key, and is refused for its type")
async def test_items_whose_key_is_null(api: Api) -> None:
    path = await api.widgets(schema=_SCHEMA, scale=False)
    answer = await api.apply(f"{path}/a", api.widget("a", {"list": [{"name": None}]}))
    answer.refuses(422, "Invalid")
    assert "spec.list[0].name" in {cause["field"] for cause in answer.json["details"]["causes"]}
    missing = await api.apply(f"{path}/a", api.widget("a", {"list": [{}]}))
    assert missing.status == 500, missing.text


@conformance(
    "metadata of a custom resource: a field that is unknown is told, or refused",
    ("created", "POST"),
    ("patched", "PATCH"),
)
async def test_unknown_fields_of_metadata(api: Api, method: str) -> None:
    path = await api.widgets(scale=False)
    await api.created(path, api.widget("a"))
    body = api.widget("b", {}, colour="red")

    async def send(query: str) -> Answer:
        if method == "POST":
            return await api.post(f"{path}?dryRun=All{query}", body)
        return await api.patch(f"{path}/a?dryRun=All{query}", {"metadata": {"colour": "red"}})

    warned = await send("")
    assert warned.status < 300, warned.text
    assert "colour" not in warned.json["metadata"]
    assert _warnings(warned) == ['299 - "unknown field \\"metadata.colour\\""']
    refused = await send("&fieldValidation=Strict")
    assert refused.status == (422 if method == "PATCH" else 400), refused.text
    assert 'unknown field "metadata.colour"' in refused.json["message"]


@conformance("Scale: a patch that makes text of a number is refused as a patch")
async def test_scale_of_a_wrong_type(api: Api) -> None:
    path = await api.widgets()
    await api.created(path, api.widget("a", {"size": 1}))
    answer = await api.patch(f"{path}/a/scale", {"spec": {"replicas": "x"}})
    answer.refuses(422, "Invalid")
    assert [cause["field"] for cause in answer.json["details"]["causes"]] == ["patch"]


@conformance("CRD: its status belongs to the server")
async def test_managed_fields_of_crd_status(api: Api) -> None:
    crd = widget_crd(api.group(), scale=False)
    await api.define(crd)

    async def has_entry() -> bool:
        read = await api.get(f"{CRDS}/{crd['metadata']['name']}")
        entries = {entry["manager"]: entry for entry in read.json["metadata"]["managedFields"]}
        found = entries.get("kube-apiserver")
        if found is None:
            return False
        assert (found["operation"], found["subresource"], found["apiVersion"]) == (
            "Update",
            "status",
            "apiextensions.k8s.io/v1",
        )
        status = found["fieldsV1"]["f:status"]
        assert sorted(status) == ["f:acceptedNames", "f:conditions"]
        assert sorted(status["f:acceptedNames"]) == ["f:kind", "f:listKind", "f:plural", "f:singular"]
        return sorted(status["f:conditions"]) == ['k:{"type":"Established"}', 'k:{"type":"NamesAccepted"}']

    await api.eventually(has_entry)


@conformance(
    "managedFields: a number in a set is named as it is stored, and what does not fit its type ends all tracking"
)
async def test_managed_fields_of_unusual_values(api: Api) -> None:
    numbers = {"type": "array", "items": {"type": "integer"}, "x-kubernetes-list-type": "set"}
    spec = {"type": "object", "properties": {"set": numbers, "link": {"type": "string", "format": "uri"}}}
    schema = {"type": "object", "properties": {"spec": spec}}
    path = await api.widgets(schema=schema, scale=False, status=False)
    made = await api.created(path, api.widget("a", {"set": [1.0, 2]}))
    (entry,) = made.json["metadata"]["managedFields"]
    assert sorted(entry["fieldsV1"]["f:spec"]["f:set"]) == [".", "v:1", "v:2"]
    changed = await api.patch(f"{path}/a", {"spec": {"set": [3.0]}})
    entries = changed.json["metadata"]["managedFields"]
    assert sorted(entries[-1]["fieldsV1"]["f:spec"]["f:set"]) == ["v:3"] or len(entries) == 1
    odd = await api.created(path, api.widget("b", {"link": []}))
    assert "managedFields" not in odd.json["metadata"]


@conformance(
    "finalizers of custom resources: one that is added and might be another's brings a warning",
    ("one word", ["short"], "short", ""),
    ("a domain", ["a.example.com"], "a.example.com", " including a path (/)"),
    ("a path", ["a.example.com/b"], "", ""),
    ("one of Kubernetes", ["orphan"], "", ""),
)
async def test_warnings_about_finalizers(api: Api, finalizers: list[str], named: str, more: str) -> None:
    path = await api.widgets(scale=False)
    advice = (
        f'299 - "metadata.finalizers: \\"{named}\\": prefer a domain-qualified finalizer name{more} to avoid accidental'
    )
    wanted = [f'{advice} conflicts with other finalizer writers"'] if named else []
    body = api.widget("a", {}, finalizers=finalizers)
    created = await api.created(path, body)
    assert _warnings(created) == wanted
    again = await api.post(path, body)
    again.refuses(409, "AlreadyExists")
    assert _warnings(again) == wanted
    body["metadata"] |= {"name": "c", "resourceVersion": "5"}
    versioned = await api.post(path, body)
    assert (versioned.status, _warnings(versioned)) == (500, wanted)
    same = await api.patch(f"{path}/a", {"metadata": {"labels": {"a": "b"}}})
    assert _warnings(same) == []
    added = await api.patch(f"{path}/a", {"metadata": {"finalizers": [*finalizers, "example.com/more"]}})
    assert _warnings(added) == []
    applied = await api.apply(f"{path}/b", api.widget("b", {}, finalizers=finalizers))
    assert _warnings(applied) == wanted
    applied = await api.apply(f"{path}/b", api.widget("b", {}, finalizers=[*finalizers, "other"]))
    (text,) = _warnings(applied)
    assert text.startswith('299 - "metadata.finalizers: \\"other\\": prefer')
    refused = await api.post(path, api.widget("c", {"size": "x"}, finalizers=finalizers))
    refused.refuses(422, "Invalid")
    assert _warnings(refused) == []


@conformance("OpenAPI v3: what may be a number or a text says so")
async def test_published_int_or_string(api: Api) -> None:
    await api.widgets(scale=False)

    async def published() -> bool:
        answer = await api.get(f"/openapi/v3/apis/{api.group()}/v1")
        if answer.status != 200 or '"Widget"' not in answer.text:
            return False
        schemas = answer.json["components"]["schemas"].values()
        widget = next(each for each in schemas if "spec" in each.get("properties", {}))
        port = widget["properties"]["spec"]["properties"]["port"]
        assert port == {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]}
        return True

    await api.eventually(published)


@conformance(
    "CRD: a format that nobody knows brings a warning",
    ("one", {"a": {"type": "string", "format": "new"}}, ["new"]),
    ("two", {"a": {"type": "string", "format": "new"}, "b": {"type": "integer", "format": "newer"}}, ["new", "newer"]),
    ("the same twice", {"a": {"type": "string", "format": "new"}, "b": {"type": "string", "format": "new"}}, ["new"]),
    ("of another type", {"a": {"type": "string", "format": "int32"}}, ["int32"]),
    (
        "known",
        {"a": {"type": "string", "format": "date-time"}, "b": {"type": "string", "format": "k8s-short-name"}},
        [],
    ),
)
async def test_warnings_about_formats(api: Api, properties: dict[str, Any], formats: list[str]) -> None:
    spec = {"type": "object", "properties": properties}
    crd = widget_crd(api.group(), schema={"type": "object", "properties": {"spec": spec}}, status=False, scale=False)
    made = await api.created(CRDS, crd)
    # The real server walks through a map of Go's, in any order.
    assert sorted(_warnings(made)) == sorted(f'299 - "unrecognized format \\"{name}\\""' for name in formats)


@conformance(
    "CRD: every answer about a deprecated version says so",
    ("in its author's words", {"deprecated": True, "deprecationWarning": 'use "v9"'}, 'use \\"v9\\"'),
    ("in Kubernetes' words", {"deprecated": True}, "GROUP/v1beta1 Widget is deprecated; use GROUP/v2 Widget"),
)
async def test_deprecated_versions(api: Api, fields: dict[str, Any], text: str) -> None:
    crd = widget_crd(api.group(), scale=False, versions=("v1beta1", "v1", "v2", "v3alpha1"))
    crd["spec"]["versions"][0] |= fields
    crd["spec"]["versions"][1]["served"] = False
    path = await api.define(crd)
    wanted = [f'299 - "{text}"'.replace("GROUP", api.group())]
    widget = {**api.widget("a"), "apiVersion": f"{api.group()}/v1beta1"}
    answers = [
        await api.post(path, widget),
        await api.post(path, {}),
        await api.patch(f"{path}/a", {"spec": {"size": 2}}),
    ]
    answers += [await api.get(f"{path}{name}") for name in ("", "/a", "/none", "/a/status", "/a/scale")]
    answers += [await api.call("PUT", path), await api.delete(f"{path}/a")]
    assert [_warnings(answer) for answer in answers] == [wanted] * len(answers)
    async with api.stream(f"{path}?watch=1&timeoutSeconds=1") as watched:
        assert watched.headers.getall("Warning", []) == wanted
    assert _warnings(await api.get(path.replace("v1beta1", "v2"))) == []


@conformance("CRD: a deprecated version that no other follows is deprecated, and that is all")
async def test_deprecated_versions_without_a_newer_one(api: Api) -> None:
    crd = widget_crd(api.group(), scale=False, versions=("v2", "v1"), deprecated=True)
    path = await api.define(crd)
    assert _warnings(await api.get(path)) == [f'299 - "{api.group()}/v2 Widget is deprecated"']


@conformance("status of a custom resource: what names no field is said of the status")
async def test_causes_of_a_status(api: Api) -> None:
    path = await api.widgets(scale=False)
    await api.created(path, api.widget("a"))
    answer = await api.patch(f"{path}/a/status", {"status": {"size": 1.5}})
    answer.refuses(422, "Invalid")
    assert {cause["field"] for cause in answer.json["details"]["causes"]} == {"status", "status.size"}
    whole = await api.patch(f"{path}/a", {"spec": {"size": 1.5}})
    whole.refuses(422, "Invalid")
    assert {cause["field"] for cause in whole.json["details"]["causes"]} == {"<nil>", "spec.size"}
