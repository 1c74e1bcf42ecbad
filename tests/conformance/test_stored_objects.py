"""Built-in objects as they are stored: defaults, values that the server replaces, fields that templates may omit.

Source: Kubernetes pkg/apis/core/v1/defaults.go, pkg/apis/batch/v1/defaults.go, pkg/apis/core/validation/validation.go.
"""

from __future__ import annotations

from typing import Any

from tests.conformance.target import Api, conformance, pod

LABELS = {"a": "b"}


def template(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"labels": LABELS}, "spec": {"containers": [container()], **spec}}


def container(*ports: dict[str, int], **fields: Any) -> dict[str, Any]:
    return {"name": "c", "image": "web:1", **({"ports": ports} if ports else {}), **fields}


def workload(plural: str, **spec: Any) -> dict[str, Any]:
    """Return an object of a kind with a template of Pods."""
    made = template(**spec)
    if plural == "podtemplates":
        return {"metadata": {"name": "a"}, "template": made}
    if plural == "replicationcontrollers":
        return {"metadata": {"name": "a"}, "spec": {"template": made}}
    if plural in ("jobs", "cronjobs"):
        made["spec"]["restartPolicy"] = "Never"
        job = {"template": made}
        spec = {"schedule": "* * * * *", "jobTemplate": {"spec": job}} if plural == "cronjobs" else job
        return {"metadata": {"name": "a"}, "spec": spec}
    return {"metadata": {"name": "a"}, "spec": {"selector": {"matchLabels": LABELS}, "template": made}}


def collection(api: Api, plural: str) -> str:
    if plural in ("podtemplates", "replicationcontrollers", "pods"):
        return f"{api.core}/{plural}"
    group = "batch" if plural in ("jobs", "cronjobs") else "apps"
    return f"/apis/{group}/v1/namespaces/{api.namespace}/{plural}"


@conformance(
    "host network: a template may leave hostPort out",
    *(
        (plural, plural)
        for plural in (
            "daemonsets",
            "deployments",
            "replicasets",
            "statefulsets",
            "jobs",
            "cronjobs",
            "podtemplates",
            "replicationcontrollers",
        )
    ),
)
async def test_host_ports_of_templates(api: Api, plural: str) -> None:
    path = collection(api, plural)
    rows = ({"containerPort": 80}, 201), ({"containerPort": 80, "hostPort": 80}, 201)
    for port, code in (*rows, ({"containerPort": 80, "hostPort": 81}, 422)):
        spec = {"hostNetwork": True, "containers": [container(port)]}
        answer = await api.post(f"{path}?dryRun=All", workload(plural, **spec))
        assert answer.status == code, answer.text
        if code == 422:
            assert answer.text.count("must match `containerPort` when `hostNetwork` is true") == 2


@conformance("host network: a Pod gets its host ports, and only its containers must have the same ones")
async def test_host_ports_of_pods(api: Api) -> None:
    first = container({"containerPort": 80, "hostPort": 81}, name="i")
    spec = {"hostNetwork": True, "containers": [container({"containerPort": 80})], "initContainers": [first]}
    made = (await api.created(api.pods, pod("a", **spec))).json["spec"]
    assert made["containers"][0]["ports"] == [{"containerPort": 80, "hostPort": 80, "protocol": "TCP"}]
    assert made["initContainers"][0]["ports"] == [{"containerPort": 80, "hostPort": 81, "protocol": "TCP"}]
    spec["containers"] = [first]
    assert "must match `containerPort`" in (await api.post(api.pods, pod("b", **spec))).refuses(422, "Invalid")


JOB = {"metadata": {"labels": {"a": "b"}}, "spec": {"restartPolicy": "Never", "containers": [container()]}}
ADDED = ("batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name", "controller-uid", "job-name")


@conformance(
    "Job: only labels that were defaulted from its template get the labels that the server adds",
    ("labels of its own", {"a": "b"}, JOB, {"a": "b"}),
    ("other labels", {"c": "d"}, JOB, {"c": "d"}),
    ("none", None, JOB, None),
    ("none in either", None, {"spec": JOB["spec"]}, None),
)
async def test_labels_of_jobs(api: Api, labels: Any, made_of: Any, expected: Any) -> None:
    path = collection(api, "jobs")
    metadata = {"name": "a", **({"labels": labels} if labels else {})}
    body = {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"template": made_of}}
    for made in (
        await api.created(path, body),
        await api.apply(f"{path}/b", {**body, "metadata": {**metadata, "name": "b"}}),
    ):
        metadata = made.json["metadata"]
        uid, name = metadata["uid"], metadata["name"]
        added = dict(zip(ADDED, (uid, name, uid, name), strict=True))
        assert made.json["spec"]["template"]["metadata"]["labels"] == {
            **made_of.get("metadata", {}).get("labels", {}),
            **added,
        }
        assert metadata["labels"] == (
            made.json["spec"]["template"]["metadata"]["labels"] if expected is None else expected
        )
        assert made.json["spec"]["selector"] == {"matchLabels": {ADDED[0]: uid}}


@conformance(
    "Job: labels and selectors that belong to another Job are refused",
    ("the uid", {"template": {**JOB, "metadata": {"labels": {"controller-uid": "x"}}}}),
    ("the name", {"template": {**JOB, "metadata": {"labels": {"batch.kubernetes.io/job-name": "x"}}}}),
    ("the selector", {"template": JOB, "selector": {"matchLabels": {"batch.kubernetes.io/controller-uid": "x"}}}),
    ("more in the selector", {"template": JOB, "selector": {"matchLabels": {"a": "b"}}}),
)
async def test_copied_jobs(api: Api, spec: Any) -> None:
    answer = await api.post(collection(api, "jobs"), {"metadata": {"name": "a"}, "spec": spec})
    assert "must be '" in answer.text or "`selector` not auto-generated" in answer.text
    answer.refuses(422, "Invalid")


@conformance("Job: a selector may name the labels that the server adds")
async def test_selector_by_name(api: Api) -> None:
    spec = {"template": JOB, "selector": {"matchLabels": {"job-name": "a"}}}
    made = (await api.created(collection(api, "jobs"), {"metadata": {"name": "a"}, "spec": spec})).json
    assert made["spec"]["selector"]["matchLabels"] == {ADDED[0]: made["metadata"]["uid"], "job-name": "a"}


@conformance(
    "images: the default pull policy follows the tag of a valid reference",
    ("latest", "web", "Always"),
    ("another tag", "host:5000/web:1", "IfNotPresent"),
    ("not valid", "ko://example.com/web", "IfNotPresent"),
    ("upper case", "team/Web", "IfNotPresent"),
    ("a template", "{{ image }}", "IfNotPresent"),
    ("a digest", f"web@sha256:{'a' * 64}", "IfNotPresent"),
    ("a tag and a digest", f"web:latest@sha256:{'a' * 64}", "Always"),
    ("a digest that is too short", f"web:latest@sha256:{'a' * 32}", "IfNotPresent"),
    ("a long hexadecimal number", "a" * 64, "IfNotPresent"),
    ("a path that is too long", "a" * 255, "IfNotPresent"),
    ("a host with upper case", "Host/web", "Always"),
)
async def test_pull_policies(api: Api, image: str, policy: str) -> None:
    volume = {"name": "v", "image": {"reference": image}}
    made = (await api.created(api.pods, pod("a", containers=[container(image=image)], volumes=[volume]))).json["spec"]
    assert (made["containers"][0]["imagePullPolicy"], made["volumes"][0]["image"]["pullPolicy"]) == (policy, policy)


@conformance("defaults: they replace empty texts and zeros of Pods")
async def test_empty_texts_and_zeros_of_pods(api: Api) -> None:
    probe = {"httpGet": {"port": 80, "path": "", "scheme": ""}, "periodSeconds": 0, "failureThreshold": 0}
    sent = container(terminationMessagePath="", terminationMessagePolicy="", livenessProbe=probe)
    sent["ports"] = [{"containerPort": 80, "protocol": ""}]
    body = pod("a", containers=[sent], restartPolicy="", dnsPolicy="", schedulerName="")
    made = (await api.created(api.pods, body)).json["spec"]
    policies = [made[name] for name in ("restartPolicy", "dnsPolicy", "schedulerName")]
    assert policies == ["Always", "ClusterFirst", "default-scheduler"]
    stored = made["containers"][0]
    messages = [stored[name] for name in ("terminationMessagePath", "terminationMessagePolicy")]
    assert messages == ["/dev/termination-log", "File"]
    assert stored["ports"] == [{"containerPort": 80, "protocol": "TCP"}]
    probed = stored["livenessProbe"]
    assert probed["httpGet"] == {"port": 80, "path": "/", "scheme": "HTTP"}
    assert [probed[name] for name in ("periodSeconds", "failureThreshold")] == [10, 3]


NULLS: Any = (
    ("rules of a network policy", "networkpolicies", "spec", {"podSelector": {}, "ingress": [None]}, {"ingress": [{}]}),
    (
        "ports of a rule",
        "networkpolicies",
        "spec",
        {"podSelector": {}, "ingress": [{"ports": [None]}]},
        {"ingress": [{"ports": [{"protocol": "TCP"}]}]},
    ),
    ("texts", "configmaps", "data", {"a": None}, {"a": ""}),
    (
        "tolerations",
        "pods",
        "spec",
        {"containers": [container(args=[None, "x"])], "tolerations": [None]},
        None,
    ),
)


@conformance("null: in a list of structs it is an empty one, with its defaults", *NULLS)
async def test_nulls_in_lists(api: Api, plural: str, field: str, value: Any, expected: Any) -> None:
    group = "/apis/networking.k8s.io/v1" if plural == "networkpolicies" else "/api/v1"
    path = f"{group}/namespaces/{api.namespace}/{plural}"
    answer = await api.post(path, {"metadata": {"name": "a"}, field: value})
    if expected is None:
        answer.refuses(422, "Invalid")
        assert "null" not in answer.text
        return
    found = answer.json[field]
    assert {name: found[name] for name in expected} == expected
    again = await api.put(f"{path}/a", {"metadata": {"name": "a"}, field: value})
    assert {name: again.json[field][name] for name in expected} == expected


@conformance("StorageClass: an empty reclaim policy is allowed, and stays")
async def test_empty_reclaim_policy(api: Api) -> None:
    path, name = "/apis/storage.k8s.io/v1/storageclasses", api.name("c")
    body = {"metadata": {"name": name}, "provisioner": "example.com/p"}
    made = (await api.created(path, {**body, "reclaimPolicy": ""})).json
    assert made["reclaimPolicy"] == ""
    assert (await api.patch(f"{path}/{name}", {"metadata": {"labels": {"a": "b"}}})).json["reclaimPolicy"] == ""
    await api.delete(f"{path}/{name}")
    (await api.post(path, {**body, "reclaimPolicy": "Recycle"})).refuses(422, "Invalid")


@conformance("ServiceCIDR: Services may have addresses of a network that was added")
async def test_added_networks(api: Api) -> None:
    path, name = "/apis/networking.k8s.io/v1/servicecidrs", api.name("n")
    await api.created(path, {"metadata": {"name": name}, "spec": {"cidrs": ["10.201.7.0/28"]}})

    def service(name: str, address: str) -> dict[str, Any]:
        return {"metadata": {"name": name}, "spec": {"clusterIP": address, "ports": [{"port": 80}]}}

    async def allocated() -> bool:
        return (await api.post(f"{api.core}/services", service("a", "10.201.7.3"))).status == 201

    await api.eventually(allocated)
    assert "already allocated" in (await api.post(f"{api.core}/services", service("b", "10.201.7.3"))).text
    for address in ("10.201.7.0", "10.201.7.15", "10.201.8.1"):
        answer = await api.post(f"{api.core}/services", service("c", address))
        assert "the provided network does not match the current range" in answer.refuses(422, "Invalid")
    await api.delete(f"{api.core}/services/a")
    await api.delete(f"{path}/{name}")
    await api.patch(f"{path}/{name}", {"metadata": {"finalizers": None}})


@conformance("componentstatuses: the store, the controller manager and the scheduler")
async def test_component_statuses(api: Api) -> None:
    path = "/api/v1/componentstatuses"
    listed = (await api.get(path)).json
    assert listed["metadata"] == {}
    found = {item["metadata"]["name"]: item for item in listed["items"]}
    assert sorted(found) == ["controller-manager", "etcd-0", "scheduler"]
    for name, item in found.items():
        assert item["metadata"] == {"name": name}
        alone = (await api.get(f"{path}/{name}")).json
        assert (alone["kind"], alone["metadata"], alone["conditions"]) == (
            "ComponentStatus",
            {"name": name},
            item["conditions"],
        )
    assert found["etcd-0"]["conditions"] == [{"type": "Healthy", "status": "True", "message": "ok"}]
    assert found["scheduler"]["conditions"] == [
        {
            "type": "Healthy",
            "status": "False",
            "message": 'Get "https://127.0.0.1:10259/healthz": dial tcp 127.0.0.1:10259: connect: connection refused',
        }
    ]
    assert (await api.get(f"{path}?fieldSelector=metadata.name%3Detcd-0")).names == ["etcd-0"]
    assert (await api.get(f"{path}?labelSelector=a")).names == []
    (await api.get(f"{path}/none")).refuses(404, "NotFound")
    assert (await api.get(f"{path}?watch=1")).status == 405
    table = (await api.get(path, Accept="application/json;as=Table;g=meta.k8s.io;v=v1")).json
    cells = sorted(row["cells"] for row in table["rows"])
    assert cells[1] == ["etcd-0", "Healthy", "ok", ""]
    assert cells[2][:2] == ["scheduler", "Unhealthy"]


@conformance("leases: what belongs to coordinated elections is dropped where they are off")
async def test_a_lease_without_coordinated_elections(api: Api) -> None:
    path = f"/apis/coordination.k8s.io/v1/namespaces/{api.namespace}/leases"
    spec = {"holderIdentity": "a", "strategy": "OldestEmulationVersion", "preferredHolder": "b"}
    assert (await api.post(path, {"metadata": {"name": "a"}, "spec": spec})).json["spec"] == {"holderIdentity": "a"}
    patched = await api.patch(f"{path}/a", {"spec": {"strategy": "OldestEmulationVersion", "leaseTransitions": 1}})
    assert patched.json["spec"] == {"holderIdentity": "a", "leaseTransitions": 1}


@conformance("autoscalers: an empty list of policies is not replaced by the default ones")
async def test_an_autoscaler_without_policies(api: Api) -> None:
    path = f"/apis/autoscaling/v2/namespaces/{api.namespace}/horizontalpodautoscalers"
    target = {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"}
    spec: dict[str, Any] = {
        "maxReplicas": 3,
        "scaleTargetRef": target,
        "behavior": {"scaleUp": {"policies": []}, "scaleDown": {}},
    }
    answer = await api.post(path, {"metadata": {"name": "a"}, "spec": spec})
    message = "spec.behavior.scaleUp.policies: Required value: must specify at least one Policy"
    assert message in answer.refuses(422, "Invalid")
