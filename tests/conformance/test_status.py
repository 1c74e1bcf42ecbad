"""What a write to ``/status`` changes beside the status: it depends on the kind.

Source: ``PrepareForUpdate`` and ``GetResetFields`` of the status strategies in Kubernetes pkg/registry, kube-aggregator
and apiextensions-apiserver.
"""

from __future__ import annotations

import json
from typing import Any

from deltaloop.api.kubernetes_version import MINOR
from tests.conformance.builtin_facts import CLUSTER_WIDE, read_facts
from tests.conformance.target import Api, conformance, pod, widget_crd

ALL = ("annotations", "finalizers", "labels", "ownerReferences")
FINALIZER = "example.com/held"
MARKS: dict[str, Any] = {
    "annotations": {"of": "status"},
    "finalizers": [FINALIZER],
    "labels": {"of": "status"},
    "ownerReferences": [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "6f8a2f2e-2b7d-4c1b-9f0e-2d7f0a1b3c4d"}
    ],
}
REQUEST = (
    "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlITE1ISUNBUUF3RURFT01Bd0dBMVVFQXd3RllXeHBZMlV3V1RB"
    "VEJnY3Foa2pPUFFJQkJnZ3Foa2pPUFFNQgpCd05DQUFRYlZHaWJKS1MrMmZkV2FYMnZENjlhaVpiZkZ3QzU3b3ZFUFVlQW1OQ2Ra"
    "RnpqSkxUQXJ0dnJDcHk0Ci8xQUJaR2s2WmwrVlYyUDdmemZ2QVBXL2pCSU9vQUF3Q2dZSUtvWkl6ajBFQXdJRFNRQXdSZ0loQUlx"
    "ZElSL1MKTmpuZEJzeVBySDcvM09kMnFxZUlYdjhvTlVFQUtYcmxvRTFMQWlFQXNkczN2QkNPNjdPcWZWWHZjVytIWGQvTApZYUd0"
    "L2JzUllnUmVwK2NSMWlVPQotLS0tLUVORCBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0K"
)
RULES = {
    "matchConstraints": {
        "resourceRules": [
            {"apiGroups": ["example.org"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["none"]}
        ]
    },
    "validations": [{"expression": "true"}],
}
# What no fact creates; kinds of the cluster.
BODIES: dict[str, dict[str, Any]] = {
    "certificatesigningrequests": {
        "spec": {"request": REQUEST, "signerName": "example.com/none", "usages": ["client auth"]}
    },
    "flowschemas": {"spec": {"matchingPrecedence": 9000, "priorityLevelConfiguration": {"name": "global-default"}}},
    "namespaces": {},
    "prioritylevelconfigurations": {
        "spec": {"type": "Limited", "limited": {"nominalConcurrencyShares": 1, "limitResponse": {"type": "Reject"}}}
    },
    "servicecidrs": {"spec": {"cidrs": ["10.231.0.0/24"]}},
    "validatingadmissionpolicies": {"spec": RULES},
    "volumeattachments": {
        "spec": {"attacher": "csi.example.com", "nodeName": "n", "source": {"persistentVolumeName": "v"}}
    },
}
NOTHING: tuple[str, ...] = ()


def body_of(group_version: str, plural: str) -> dict[str, Any]:
    """Return an object that can be created, with a name of ``$NAME``."""
    if plural in BODIES:
        return {"metadata": {"name": "$NAME"}, **BODIES[plural]}
    return next(
        dict(fact["steps"][0]["body"])
        for fact in read_facts()
        if fact["where"] == f"{group_version} {plural}" and fact["steps"][0].get("code") == 201
    )


@conformance(
    "status: which metadata a write to it changes, and whose it is then",
    ("namespaces", "/api/v1", "namespaces", ALL),
    ("nodes", "/api/v1", "nodes", ALL),
    ("persistentvolumes", "/api/v1", "persistentvolumes", ALL),
    ("persistentvolumeclaims", "/api/v1", "persistentvolumeclaims", ALL),
    ("pods", "/api/v1", "pods", ("annotations", "finalizers", "labels")),
    ("replicationcontrollers", "/api/v1", "replicationcontrollers", ALL),
    ("resourcequotas", "/api/v1", "resourcequotas", ALL),
    ("services", "/api/v1", "services", ALL),
    ("daemonsets", "/apis/apps/v1", "daemonsets", ALL),
    ("deployments", "/apis/apps/v1", "deployments", ("annotations", "finalizers", "ownerReferences")),
    ("replicasets", "/apis/apps/v1", "replicasets", ALL),
    ("statefulsets", "/apis/apps/v1", "statefulsets", ALL),
    ("horizontalpodautoscalers v1", "/apis/autoscaling/v1", "horizontalpodautoscalers", ALL),
    ("horizontalpodautoscalers v2", "/apis/autoscaling/v2", "horizontalpodautoscalers", ALL),
    ("cronjobs", "/apis/batch/v1", "cronjobs", ALL),
    ("jobs", "/apis/batch/v1", "jobs", ALL),
    ("certificatesigningrequests", "/apis/certificates.k8s.io/v1", "certificatesigningrequests", ALL),
    ("ingresses", "/apis/networking.k8s.io/v1", "ingresses", ALL),
    ("poddisruptionbudgets", "/apis/policy/v1", "poddisruptionbudgets", ALL),
    ("flowschemas", "/apis/flowcontrol.apiserver.k8s.io/v1", "flowschemas", NOTHING),
    ("prioritylevels", "/apis/flowcontrol.apiserver.k8s.io/v1", "prioritylevelconfigurations", NOTHING),
    ("resourceclaims", "/apis/resource.k8s.io/v1", "resourceclaims", NOTHING),
    ("servicecidrs", "/apis/networking.k8s.io/v1", "servicecidrs", NOTHING),
    ("admission policies", "/apis/admissionregistration.k8s.io/v1", "validatingadmissionpolicies", NOTHING),
    ("volumeattachments", "/apis/storage.k8s.io/v1", "volumeattachments", NOTHING),
    min_version=MINOR,
)
async def test_metadata_through_status(api: Api, group_version: str, plural: str, taken: tuple[str, ...]) -> None:
    name = f"status-{api.number}"
    wide = plural in CLUSTER_WIDE or plural in BODIES
    path = f"{group_version}/{plural}" if wide else f"{group_version}/namespaces/{api.namespace}/{plural}"
    text = json.dumps(body_of(group_version, plural)).replace("$NAME", name).replace("$NS", api.namespace)
    body = json.loads(text)
    body["metadata"]["labels"] = {"here": "before"}  # without any field of its own an object's managers are not tracked
    await api.created(path, body)
    after = await api.patch(f"{path}/{name}/status?fieldManager=marker", {"metadata": MARKS})
    assert after.status == 200, after.text
    metadata = after.json["metadata"]
    assert [field for field in ALL if metadata.get(field, {}) and holds(metadata[field], MARKS[field])] == [*taken]
    owned = [each["fieldsV1"]["f:metadata"] for each in metadata["managedFields"] if each["manager"] == "marker"]
    assert [sorted(each) for each in owned] == ([[f"f:{field}" for field in taken]] if taken else [])
    gone = await api.delete(f"{path}/{name}", {"gracePeriodSeconds": 0})
    assert gone.status in (200, 202), gone.text
    if taken:
        assert (await api.get(f"{path}/{name}")).json["metadata"]["deletionTimestamp"]
        freed = await api.patch(f"{path}/{name}/status", {"metadata": {"finalizers": None}})
        assert freed.status == 200, freed.text
    if plural != "namespaces":  # those end when somebody has emptied them
        assert (await api.get(f"{path}/{name}")).status == 404


def holds(found: Any, marks: Any) -> bool:
    """Tell whether what was sent is there, perhaps beside what the server had set."""
    return bool(marks.items() <= found.items() if isinstance(marks, dict) else found == marks)


@conformance("status: a definition's metadata can be changed through it")
async def test_metadata_through_the_status_of_a_definition(api: Api) -> None:
    group = f"status-{api.number}.example.com"
    crd = widget_crd(group)
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    await api.created(path, crd)
    name = crd["metadata"]["name"]
    after = await api.patch(f"{path}/{name}/status", {"metadata": {"labels": {"of": "status"}}})
    assert after.json["metadata"]["labels"] == {"of": "status"}
    assert (await api.delete(f"{path}/{name}")).status == 200


@conformance("status: a pod keeps its quality of service whatever is sent")
async def test_quality_of_service(api: Api) -> None:
    made = (await api.created(api.pods, pod("a"))).json
    after = await api.put(f"{api.pods}/a/status", {**made, "status": {"phase": "Running"}})
    assert after.json["status"] == {"phase": "Running", "qosClass": "BestEffort"}


@conformance(
    "namespaces: the label of their name is put back", ("whole", ""), ("status", "/status"), ("finalize", "/finalize")
)
async def test_the_label_of_a_namespace(api: Api, below: str) -> None:
    name = f"labelled-{api.number}"
    path = f"/api/v1/namespaces/{name}"
    made = (await api.created("/api/v1/namespaces", {"metadata": {"name": name}})).json
    made["metadata"]["labels"] = {"a": "b"}
    after = await api.put(f"{path}{below}", made)
    assert after.status == 200, after.text
    assert after.json["metadata"]["labels"] == {"a": "b", "kubernetes.io/metadata.name": name}


@conformance("pods: one address and the first of several are the same, and one of each family is enough")
async def test_addresses_of_a_pod(api: Api) -> None:
    await api.created(api.pods, pod("a"))
    path = f"{api.pods}/a/status"

    async def after(**status: Any) -> tuple[Any, Any]:
        answer = await api.patch(path, {"status": status})
        assert answer.status == 200, answer.text
        return answer.json["status"].get("podIP"), answer.json["status"].get("podIPs")

    assert await after(podIP="10.1.2.3") == ("10.1.2.3", [{"ip": "10.1.2.3"}])
    both = [{"ip": "10.1.2.3"}, {"ip": "fd00::1"}]
    assert await after(podIPs=both) == ("10.1.2.3", both)
    assert await after(podIP=None) == ("10.1.2.3", both)
    assert await after(podIP="10.1.2.4") == ("10.1.2.4", [{"ip": "10.1.2.4"}])
    assert await after(podIP=None, podIPs=None) == (None, None)
    for addresses, field, words in (
        (["x"], "status.podIPs[0]", "must be a valid IP address"),
        (["10.1.2.3", "10.1.2.4"], "status.podIPs", "may specify no more than one IP for each IP family"),
    ):
        refused = await api.patch(path, {"status": {"podIPs": [{"ip": address} for address in addresses]}})
        refused.refuses(422, "Invalid")
        assert (refused.json["details"]["causes"][0]["field"]) == field
        assert words in refused.json["message"]
    hosts = await api.patch(path, {"status": {"hostIPs": [{"ip": "10.0.0.1"}]}})
    hosts.refuses(422, "Invalid")
    assert hosts.json["details"]["causes"][0]["field"] == "status.hostIPs[0].ip"


@conformance("nodes: one range of addresses for pods and the first of several are the same")
async def test_ranges_of_a_node(api: Api) -> None:
    name = api.name("node")
    made = await api.created("/api/v1/nodes", {"metadata": {"name": name}, "spec": {"podCIDR": "10.1.0.0/24"}})
    assert made.json["spec"]["podCIDRs"] == ["10.1.0.0/24"]
    refused = await api.post("/api/v1/nodes", {"metadata": {"name": f"{name}-b"}, "spec": {"podCIDRs": ["x"]}})
    refused.refuses(422, "Invalid")
    assert "must be a valid CIDR value" in refused.json["message"]
    await api.delete(f"/api/v1/nodes/{name}")


@conformance(
    "status: what is wrong with metadata is told if the kind's status does not put it back before",
    ("widgets", True, (200, 200, 200)),
    ("pods", False, (422, 200, 422)),
    ("budgets", False, (422, 422, 422)),
)
async def test_invalid_metadata_in_status_update(api: Api, custom: bool, codes: tuple[int, ...]) -> None:
    budget: dict[str, Any] = {"metadata": {"name": "a"}, "spec": {"minAvailable": 1, "selector": {}}}
    if custom:
        path, body = await api.widgets(), api.widget("a")
    elif codes[1] == 200:
        path, body = api.pods, pod("a")
    else:
        path, body = f"/apis/policy/v1/namespaces/{api.namespace}/poddisruptionbudgets", budget
    made = await api.created(path, body)
    wrong: tuple[dict[str, Any], ...] = (
        {"uid": "other"},
        {"deletionTimestamp": "2020-01-02T03:04:05Z"},
        {"deletionGracePeriodSeconds": 5},
    )
    for metadata, code in zip(wrong, codes, strict=True):
        answer = await api.patch(f"{path}/a/status", {"metadata": metadata})
        assert answer.status == code, answer.text
        if code == 200:
            assert answer.json["metadata"]["uid"] == made.json["metadata"]["uid"]
            assert "deletionTimestamp" not in answer.json["metadata"]


@conformance("status: conditions of a signing request are owned by who writes them to /approval, its spec by nobody")
async def test_owners_of_a_signing_request(api: Api) -> None:
    path, name = "/apis/certificates.k8s.io/v1/certificatesigningrequests", api.name("csr")
    labels = {"labels": {"a": "b"}}
    body = {**BODIES["certificatesigningrequests"], "metadata": {"name": name, **labels}}
    made = await api.created(f"{path}?fieldManager=c", body)

    def owners(fields: dict[str, Any]) -> dict[tuple[str, str], Any]:
        entries = fields["metadata"]["managedFields"]
        return {(entry["manager"], entry.get("subresource", "")): entry["fieldsV1"] for entry in entries}

    creator: dict[str, Any] = {"f:metadata": {"f:labels": {".": {}, "f:a": {}}}}
    assert owners(made.json) == {("c", ""): creator}
    conditions = [{"type": kind, "status": "True", "reason": "x", "message": "m"} for kind in ("Approved", "Failed")]
    status = {"metadata": {"labels": {"s": "t"}}, "status": {"conditions": conditions[1:]}}
    answer = await api.patch(f"{path}/{name}/status?fieldManager=s", status)
    assert answer.status == 200, answer.text
    written: dict[str, Any] = {"f:metadata": {"f:labels": {"f:s": {}}}}
    assert owners(answer.json) == {("c", ""): creator, ("s", "status"): written}
    listed = [conditions[0], *answer.json["status"]["conditions"]]
    approval = {"metadata": {"labels": {"u": "v"}}, "status": {"conditions": listed, "certificate": "eA=="}}
    answer = await api.patch(f"{path}/{name}/approval?fieldManager=p", approval)
    assert answer.json["metadata"]["labels"] == {"a": "b", "s": "t", "u": "v"}
    assert "certificate" not in answer.json["status"]
    approved = owners(answer.json)["p", "approval"]
    assert approved["f:metadata"] == {"f:labels": {"f:u": {}}}
    assert list(approved) == ["f:metadata", "f:status"]
    assert list(approved["f:status"]["f:conditions"]) == ['k:{"type":"Approved"}']
    await api.delete(f"{path}/{name}")


@conformance("status: a patch of a custom resource's is held to the version that it names, and not to the uid")
async def test_status_patch_checks_resource_version_and_not_uid(api: Api) -> None:
    widgets = await api.widgets()
    made = (await api.created(widgets, api.widget("a"))).json["metadata"]
    other = "6f8a2f2e-2b7d-4c1b-9f0e-2d7f0a1b3c4d"

    async def patched(size: int, **metadata: str) -> int:
        answer = await api.patch(f"{widgets}/a/status", {"metadata": metadata, "status": {"size": size}})
        return answer.status

    assert await patched(2, uid=other, resourceVersion=made["resourceVersion"]) == 200
    assert await patched(3, uid=made["uid"], resourceVersion=made["resourceVersion"]) == 409
    assert (await api.get(f"{widgets}/a")).json["status"]["size"] == 2
    assert (await api.patch(f"{widgets}/none/status", {"status": {}})).json["details"]["name"] == "none"


@conformance("status: a patch of it is not found where there is no subresource, as that of an object that is not there")
async def test_status_without_subresource(api: Api) -> None:
    widgets = await api.widgets(status=False, scale=False)
    await api.created(widgets, api.widget("a"))
    for name in ("a", "none"):
        answer = await api.patch(f"{widgets}/{name}/status", {"status": {"size": 2}})
        answer.refuses(404, "NotFound")
        assert answer.json["details"]["name"] == name
