"""Bindings: a scheduler gives a pod its node. kube-scheduler was the first to miss what these cases hold.

Source: what a real kube-apiserver answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.apiserver.serving import Answer
from tests.conformance.target import Api, conformance, pod

NODE = {"kind": "Node", "name": "n0"}
OTHER_UID = "00000000-0000-4000-8000-000000000000"


async def bind(
    api: Api,
    name: str = "p",
    *,
    target: Mapping[str, Any] = NODE,
    query: str = "",
    metadata: Mapping[str, Any] | None = None,
) -> Answer:
    body = {"kind": "Binding", "apiVersion": "v1", "metadata": {"name": name, **(metadata or {})}, "target": target}
    return await api.post(f"{api.pods}/{name}/binding{query}", body)


async def read(api: Api, name: str = "p") -> dict[str, Any]:
    return (await api.get(f"{api.pods}/{name}")).json


def scheduled(found: dict[str, Any]) -> list[dict[str, Any]]:
    return [each for each in found["status"].get("conditions", []) if each["type"] == "PodScheduled"]


@conformance("Binding: the pod has its node and the condition PodScheduled, which nobody owns and no generation counts")
async def test_fields_written_by_binding(api: Api) -> None:
    before = (await api.created(api.pods, pod("p"))).json
    answer = await bind(api)
    assert answer.status == 201
    assert answer.json["status"] == "Success"
    after = await read(api)
    assert after["spec"] == {**before["spec"], "nodeName": "n0"}
    (condition,) = scheduled(after)
    assert condition.pop("lastTransitionTime")
    assert condition == {"type": "PodScheduled", "status": "True", "lastProbeTime": None}
    assert after["metadata"]["generation"] == 1
    assert after["metadata"]["managedFields"] == before["metadata"]["managedFields"]
    assert after["metadata"]["resourceVersion"] != before["metadata"]["resourceVersion"]


@conformance("Binding: its labels and annotations become the pod's, over those that are there")
async def test_marks(api: Api) -> None:
    body = pod("p")
    body["metadata"] |= {"labels": {"a": "pod", "b": "pod"}, "annotations": {"a": "pod", "b": "pod"}}
    await api.created(api.pods, body)
    told = {"labels": {"a": "binding", "c": "binding"}, "annotations": {"a": "binding", "c": "binding"}}
    assert (await bind(api, metadata=told)).status == 201
    metadata = (await read(api))["metadata"]
    assert metadata["labels"] == {"a": "binding", "b": "pod", "c": "binding"}
    assert metadata["annotations"] == {"a": "binding", "b": "pod", "c": "binding"}


@conformance(
    "Binding: a condition from before is replaced; one that said that there is a node keeps its time",
    ("no node", {"status": "False", "reason": "Unschedulable", "message": "no room"}, False),
    ("a node", {"status": "True", "reason": "Mine"}, True),
)
async def test_a_condition_before(api: Api, said: dict[str, str], keeps: bool) -> None:
    await api.created(api.pods, pod("p"))
    condition = {"type": "PodScheduled", "lastTransitionTime": "2026-01-01T00:00:00Z", **said}
    other = {"type": "Other", "status": "True"}
    patched = await api.patch(f"{api.pods}/p/status", {"status": {"conditions": [condition, other]}})
    assert patched.status == 200, patched.text
    assert (await bind(api)).status == 201
    found = await read(api)
    assert [each["type"] for each in found["status"]["conditions"]] == ["PodScheduled", "Other"]
    (after,) = scheduled(found)
    assert after["status"] == "True"
    assert "reason" not in after
    assert (after["lastTransitionTime"] == condition["lastTransitionTime"]) is keeps


@conformance(
    "Binding: a pod that may not be bound",
    ("has a node", {"nodeName": "n9"}, {}, 'pod p is already assigned to node "n9"'),
    ("is gated", {"schedulingGates": [{"name": "a.b/c"}]}, {}, "pod p has non-empty .spec.schedulingGates"),
    (
        "is being deleted",
        {},
        {"finalizers": ["example.com/hold"]},
        "pod p is being deleted, cannot be assigned to a host",
    ),
)
async def test_invalid_bindings_are_rejected(
    api: Api, spec: dict[str, Any], metadata: dict[str, Any], why: str
) -> None:
    body = pod("p", **spec)
    body["metadata"] |= metadata
    await api.created(api.pods, body)
    if metadata:
        await api.delete(f"{api.pods}/p")
    before = await read(api)
    answer = await bind(api)
    assert answer.refuses(409, "Conflict") == f'Operation cannot be fulfilled on pods/binding "p": {why}'
    assert answer.json["details"] == {"name": "p", "kind": "pods/binding"}
    assert await read(api) == before
    await api.patch(f"{api.pods}/p", {"metadata": {"finalizers": None}})


@conformance(
    "Binding: a precondition that does not hold",
    ("uid", {"uid": OTHER_UID}, f"UID in precondition: {OTHER_UID}, UID in object meta: "),
    ("version", {"resourceVersion": "1"}, "ResourceVersion in precondition: 1, ResourceVersion in object meta: "),
)
async def test_preconditions(api: Api, metadata: dict[str, str], why: str) -> None:
    before = (await api.created(api.pods, pod("p"))).json["metadata"]
    answer = await bind(api, metadata=metadata)
    message = answer.refuses(409, "Conflict")
    assert f"AdditionalErrorMsg: Precondition failed: {why}" in message
    assert message.endswith(before[next(iter(metadata))])
    assert answer.json["details"] == {"name": "p", "kind": "pods"}
    right = {name: before[name] for name in ("uid", "resourceVersion")}
    assert (await bind(api, metadata=right)).status == 201


@conformance(
    "Binding: a target that is no node",
    (
        "kind",
        {"kind": "Pod", "name": "n"},
        'target.kind: Unsupported value: "Pod": supported values: "Node", "<empty>"',
    ),
    ("name", {"kind": "Node"}, "target.name: Required value"),
    (
        "both",
        {"kind": "Pod"},
        '[target.kind: Unsupported value: "Pod": supported values: "Node", "<empty>", target.name: Required value]',
    ),
)
async def test_targets(api: Api, node: dict[str, str], why: str) -> None:
    await api.created(api.pods, pod("p"))
    assert (await bind(api, target=node)).refuses(500, "") == why


@conformance("Binding: one of another pod, one of no pod, a dry run, and one of the collection")
async def test_binding_name_dry_run_and_collection(api: Api) -> None:
    await api.created(api.pods, pod("p"))
    body = {"metadata": {"name": "q"}, "target": NODE}
    message = (await api.post(f"{api.pods}/p/binding", body)).refuses(400, "BadRequest")
    assert message == "name in URL does not match name in Binding object"
    assert (await bind(api, "q")).refuses(404, "NotFound") == 'pods "q" not found'
    assert (await bind(api, query="?dryRun=All")).status == 201
    assert "nodeName" not in (await read(api))["spec"]
    collection = f"/api/v1/namespaces/{api.namespace}/bindings"
    assert (await api.post(collection, {"metadata": {"name": "p"}, "target": NODE})).status == 201
    assert (await read(api))["spec"]["nodeName"] == "n0"


@conformance(
    "pods: zone and region of the node become labels, whoever names it",
    ("bound", False),
    ("made for the node", True),
)
async def test_topology_of_the_node(api: Api, at_once: bool) -> None:
    node = api.name("node")
    topology = {"topology.kubernetes.io/zone": "z1", "topology.kubernetes.io/region": "r1"}
    await api.created("/api/v1/nodes", {"metadata": {"name": node, "labels": {**topology, "other": "x"}}})
    body = pod("a")
    body["metadata"]["labels"] = {"topology.kubernetes.io/zone": "mine", "own": "x"}
    if at_once:
        body["spec"]["nodeName"] = node
    made = await api.created(api.pods, body)
    if not at_once:
        assert made.json["metadata"]["labels"] == body["metadata"]["labels"]
        target = {"metadata": {"name": "a"}, "target": {"kind": "Node", "name": node}}
        assert (await api.post(f"{api.pods}/a/binding", target)).status == 201
    found = await api.get(f"{api.pods}/a")
    assert found.json["metadata"]["labels"] == {**topology, "own": "x"}
    owned = [
        entry["fieldsV1"].get("f:metadata", {}).get("f:labels", {}) for entry in found.json["metadata"]["managedFields"]
    ]
    assert not any("f:topology.kubernetes.io/region" in labels for labels in owned)
    await api.delete(f"/api/v1/nodes/{node}")


@conformance("pods: a log of one without a node is empty, and there is nothing to run in it")
async def test_log_of_a_pod_without_a_node(api: Api) -> None:
    await api.created(api.pods, pod("a"))
    log = await api.get(f"{api.pods}/a/log")
    assert (log.status, log.text) == (204, "")
    assert "does not have a host assigned" in (await api.get(f"{api.pods}/a/exec?command=ls")).refuses(
        400, "BadRequest"
    )
    (await api.get(f"{api.pods}/none/log")).refuses(404, "NotFound")


@conformance("pods: who wants a log of, or to run something in, a container that there is not is told so")
async def test_containers(api: Api) -> None:
    second = {"name": "d", "image": "web:1"}
    body = pod("a")
    body["spec"]["containers"].append(second)
    body["spec"]["initContainers"] = [{"name": "i", "image": "web:1"}]
    await api.created(api.pods, body)
    await api.created(api.pods, pod("one"))
    choice = "a container name must be specified for pod a, choose one of: [i c d]"
    for verb in ("log", "exec", "attach"):
        path = f"{api.pods}/a/{verb}"
        assert (await api.get(path)).refuses(400, "BadRequest") == choice
        assert (await api.get(f"{path}?container=x")).refuses(400, "BadRequest") == "container x is not valid for pod a"
    for known in ("a/log?container=d", "a/log?container=i", "one/log?container=c", "one/log"):
        assert (await api.get(f"{api.pods}/{known}")).status == 204
    assert "does not have a host" in (await api.get(f"{api.pods}/a/exec?container=i")).refuses(400, "BadRequest")
    for path in ("one/exec?dryRun=All", "none/proxy?dryRun=x"):
        assert (await api.post(f"{api.pods}/{path}", None)).refuses(400, "BadRequest") == "dryRun is not supported"
