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
