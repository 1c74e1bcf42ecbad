"""EndpointSlice controller: one slice with the addresses of the Pods for each Service that selects Pods."""

from __future__ import annotations

from typing import Final

from deltaloop.api import kinds
from deltaloop.api.json_values import at, integer, items, mapping, text
from deltaloop.testing.cluster_models.core.agenda import EnvironmentStep
from deltaloop.testing.cluster_models.core.cluster_view import (
    ClusterObject,
    ClusterView,
    creates,
    in_order,
    patches,
    reference_of,
    selects,
)
from deltaloop.testing.cluster_models.core.pods import is_ready

_SERVICE: Final = "kubernetes.io/service-name"
_MANAGED_BY: Final = {"endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io"}


def endpoints(view: ClusterView) -> list[EnvironmentStep]:
    return [step for each in view.of(kinds.SERVICE) for step in _of(each, view)]


def _of(service: ClusterObject, view: ClusterView) -> list[EnvironmentStep]:
    if service.deleted or not service.spec.get("selector") or service.spec.get("type") == "ExternalName":
        return []
    pods = [
        pod
        for pod in in_order(view.of(kinds.POD))
        if pod.namespace == service.namespace
        and selects(service.spec.get("selector"), pod.labels)
        and pod.status.get("podIP")
        and pod.phase == "Running"
    ]
    wanted = {
        "endpoints": [_endpoint(pod, publishes=bool(service.spec.get("publishNotReadyAddresses"))) for pod in pods],
        "ports": [_port(port, pods) for port in items(service.spec.get("ports"))],
    }
    slices = [each for each in view.controlled_by(service, kinds.ENDPOINT_SLICE) if not each.deleted]
    if not slices:
        metadata: dict[str, object] = {
            "generateName": f"{service.name}-",
            "labels": {_SERVICE: service.name, **_MANAGED_BY},
            "ownerReferences": [reference_of(service)],
        }
        body = {"metadata": metadata, "addressType": "IPv4", **wanted}
        return [creates(service, kinds.ENDPOINT_SLICE, body, f"an EndpointSlice is created for {service}")]
    present = {"endpoints": items(slices[0].fields.get("endpoints")), "ports": items(slices[0].fields.get("ports"))}
    return [] if present == wanted else [patches(slices[0], wanted, f"the endpoints of {service} are written")]


def _endpoint(pod: ClusterObject, *, publishes: bool) -> dict[str, object]:
    serving = publishes or is_ready(pod)
    hostname = text(pod.spec.get("hostname")) if pod.spec.get("subdomain") else ""
    return {
        "addresses": [text(pod.status.get("podIP"))],
        "conditions": {
            "ready": serving and (publishes or not pod.deleted),
            "serving": serving,
            "terminating": pod.deleted,
        },
        **({"hostname": hostname} if hostname else {}),
        "targetRef": {"kind": "Pod", "namespace": pod.namespace, "name": pod.name, "uid": pod.uid},
        "nodeName": text(pod.spec.get("nodeName")),
    }


def _port(port: object, pods: list[ClusterObject]) -> dict[str, object]:
    target = at(port, "targetPort")
    number = integer(target) or integer(at(port, "port"))
    if isinstance(target, str):
        containers = [mapping(each) for pod in pods for each in items(pod.spec.get("containers"))]
        named = [each for container in containers for each in items(container.get("ports"))]
        number = next((integer(at(each, "containerPort")) for each in named if at(each, "name") == target), number)
    protocol = text(at(port, "protocol")) or "TCP"
    return {"name": text(at(port, "name")), "port": number, "protocol": protocol}
