"""The scale subresource of custom resources whose objects do not have what its paths point to.

Source: apiextensions-apiserver pkg/registry/customresource.
"""

from __future__ import annotations

from typing import Any

from tests.conformance.target import Api, conformance, deployment, widget_crd

FREE = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
SCALE = {
    "specReplicasPath": ".spec.a.b",
    "statusReplicasPath": ".status.c.d",
    "labelSelectorPath": ".status.e.f",
}


async def deep(api: Api) -> str:
    crd = widget_crd(api.group(), scale=False, status=False, schema=FREE)
    crd["spec"]["versions"][0]["subresources"] = {"scale": SCALE}
    return await api.define(crd)


@conformance(
    "Scale: what a path of it cannot reach, or is none, is 422, with the place and the type",
    ("a number on the way", {"spec": {"a": 5}}, ".spec.a.b", "0", ".spec.a.b", "int64", "map[string]interface{}"),
    ("a text on the way", {"spec": "foo"}, ".spec.a.b", "0", ".spec.a", "string", "map[string]interface{}"),
    ("a text", {"spec": {"a": {"b": "three"}}}, ".spec.a.b", "0", ".spec.a.b", "string", "int64"),
    ("a fraction", {"spec": {"a": {"b": 3.5}}}, ".spec.a.b", "0", ".spec.a.b", "float64", "int64"),
    ("a list", {"spec": {"a": {"b": [1]}}}, ".spec.a.b", "0", ".spec.a.b", "[]interface {}", "int64"),
    ("an object", {"spec": {"a": {"b": {"x": 1}}}}, ".spec.a.b", "0", ".spec.a.b", "map[string]interface {}", "int64"),
    ("of the status", {"status": {"c": {"d": "x"}}}, ".status.c.d", "0", ".status.c.d", "string", "int64"),
    ("of the selector", {"status": {"e": {"f": 5}}}, ".status.e.f", '""', ".status.e.f", "int64", "string"),
)
async def test_wrong_types(
    api: Api, fields: dict[str, Any], field: str, shown: str, place: str, found: str, wanted: str
) -> None:
    path = await deep(api)
    body = {key: part for key, part in api.widget("w").items() if key != "spec"}
    answer = await api.post(path, {**body, **fields})
    answer.refuses(422, "Invalid")
    (cause,) = answer.json["details"]["causes"]
    assert (cause["reason"], cause["field"]) == ("FieldValueInvalid", field)
    assert cause["message"].startswith(f"Invalid value: {shown}: {place} accessor error: ")
    assert cause["message"].endswith(f" is of the type {found}, expected {wanted}")


@conformance(
    "Scale: numbers have bounds",
    ("below", -1, "should be a non-negative integer"),
    ("above", 1 << 40, "should be less than or equal to 2147483647"),
)
async def test_bounds(api: Api, replicas: int, why: str) -> None:
    path = await deep(api)
    answer = await api.post(path, api.widget("w", {"a": {"b": replicas}}))
    wanted = f'Widget.{api.group()} "w" is invalid: .spec.a.b: Invalid value: {replicas}: {why}'
    assert answer.refuses(422, "Invalid") == wanted


@conformance("Scale: an object that says nothing cannot be read, but a patch sets it")
async def test_unset_replicas(api: Api) -> None:
    path = await deep(api)
    await api.created(path, api.widget("w"))
    message = (await api.get(f"{path}/w/scale")).refuses(500, "InternalError")
    assert message == 'Internal error occurred: the spec replicas field ".spec.a.b" does not exist'
    answer = await api.patch(f"{path}/w/scale", {"spec": {"replicas": 2}})
    assert (answer.status, answer.json["spec"]) == (200, {"replicas": 2})
    assert (await api.get(f"{path}/w")).json["spec"] == {"a": {"b": 2}}


@conformance("Scale: a patch that leaves an object without a number that had none is a 400, and one below 0 a 422")
async def test_scale_without_replicas(api: Api) -> None:
    path = await deep(api)
    await api.created(path, api.widget("w"))
    message = (await api.patch(f"{path}/w/scale", {})).refuses(400, "BadRequest")
    assert message == 'the spec replicas field ".spec.a.b" cannot be empty'
    answer = await api.patch(f"{path}/w/scale", {"spec": {"replicas": -1}})
    answer.refuses(422, "Invalid")
    assert answer.json["details"]["causes"][0]["field"] == ".spec.a.b"


@conformance(
    "Scale: who changes the replicas through it owns them, without a time",
    ("by patch", True),
    ("by update", False),
)
async def test_managed_fields_of_replicas(api: Api, by_patch: bool) -> None:
    path = f"{api.deployments}/a"
    await api.created(api.deployments, deployment("a", replicas=2))
    for replicas in (3, 1):
        spec = {"spec": {"replicas": replicas}}
        scale = {**(await api.get(f"{path}/scale")).json, **spec}
        answer = await (api.patch(f"{path}/scale", spec) if by_patch else api.put(f"{path}/scale", scale))
        assert answer.status == 200, answer.text
        entries = (await api.get(path)).json["metadata"]["managedFields"]
        owned = {entry.get("subresource"): "f:replicas" in entry["fieldsV1"]["f:spec"] for entry in entries}
        assert owned == {None: False, "scale": True}
        assert ["time" in entry for entry in entries if entry.get("subresource")] == [False]


@conformance("Scale: an applier of the replicas stays their owner, whoever writes them through it")
async def test_an_applier_of_the_replicas(api: Api) -> None:
    path = f"{api.deployments}/a"
    made = await api.apply(path, deployment("a", replicas=2))
    answer = await api.patch(f"{path}/scale", {})
    assert answer.revision == made.revision
    assert (await api.get(path)).json["metadata"]["managedFields"] == made.json["metadata"]["managedFields"]


@conformance("Scale: one to nothing has an empty spec")
async def test_scale_to_zero(api: Api) -> None:
    path = f"{api.deployments}/a"
    await api.created(api.deployments, deployment("a", replicas=2))
    answer = await api.patch(f"{path}/scale", {"spec": {"replicas": 0}})
    assert (answer.status, answer.json["spec"]) == (200, {})


@conformance(
    "Scale: of a built-in kind it is checked as what it is, after its uid, and conflicts are told in its version"
)
async def test_a_scale_of_a_built_in_kind(api: Api) -> None:
    path = f"{api.deployments}/a/scale"
    await api.created(api.deployments, deployment("a"))
    message = (await api.patch(path, {"spec": {"replicas": -1}})).refuses(422, "Invalid")
    wanted = "spec.replicas: Invalid value: -1: must be greater than or equal to 0"
    assert message == f'Scale.autoscaling "a" is invalid: {wanted}'
    scale: dict[str, Any] = {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {"name": "a", "namespace": api.namespace},
        "spec": {"replicas": -1},
    }
    conflict = (await api.apply(path, scale)).refuses(409, "Conflict")
    assert conflict.endswith('conflict with "conformance" using autoscaling/v1: .spec.replicas')
    scale["metadata"]["uid"] = "other"
    assert "Precondition failed: UID in precondition" in (await api.put(path, scale)).refuses(409, "Conflict")


EXPRESSIONS = [
    {"key": "b", "operator": "In", "values": ["y", "x"]},
    {"key": "d", "operator": "DoesNotExist"},
    {"key": "c", "operator": "NotIn", "values": ["z"]},
    {"key": "a", "operator": "Exists"},
]
TEMPLATE = {
    "metadata": {"labels": {"a": "1", "b": "x"}},
    "spec": {"containers": [{"name": "c", "image": "web:1"}]},
}


@conformance(
    "Scale: the selector of a built-in kind is text, with its expressions",
    ("Deployment", "apps/v1", "deployments"),
    ("ReplicaSet", "apps/v1", "replicasets"),
    ("StatefulSet", "apps/v1", "statefulsets"),
)
async def test_selectors(api: Api, version: str, plural: str) -> None:
    path = f"/apis/{version}/namespaces/{api.namespace}/{plural}"
    rows = (
        ({"matchExpressions": EXPRESSIONS}, "a,b in (x,y),c notin (z),!d"),
        ({"matchExpressions": EXPRESSIONS, "matchLabels": {"b": "x"}}, "a,b=x,b in (x,y),c notin (z),!d"),
        ({"matchLabels": {"b": "x", "a": "1"}}, "a=1,b=x"),
    )
    for number, (selector, expected) in enumerate(rows):
        name = f"s{number}"
        await api.created(path, {"metadata": {"name": name}, "spec": {"selector": selector, "template": TEMPLATE}})
        scale = (await api.get(f"{path}/{name}/scale")).json
        assert scale["status"]["selector"] == expected
        changed = await api.patch(f"{path}/{name}/scale", {"spec": {"replicas": 3}})
        assert changed.json["status"]["selector"] == expected


@conformance("Scale: the selector of a ReplicationController is a plain map")
async def test_selector_of_a_replication_controller(api: Api) -> None:
    path = f"{api.core}/replicationcontrollers"
    await api.created(path, {"metadata": {"name": "a"}, "spec": {"selector": {"b": "x"}, "template": TEMPLATE}})
    assert (await api.get(f"{path}/a/scale")).json["status"] == {"replicas": 0, "selector": "b=x"}
