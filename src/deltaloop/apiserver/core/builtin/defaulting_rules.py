"""Defaults that depend on other fields; those that do not are in the data file.

Each rule changes a struct in place, after the struct's plain defaults and before anything below it. It is given data
that has been decoded, so its types are right, but anything may be missing.

Source: Kubernetes pkg/apis/*/v1/defaults.go and conversion.go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from deltaloop.apiserver.core.builtin.autoscaler_conversion import DEFAULT_UTILIZATION, has_metrics_beside
from deltaloop.schemas.json_values import at, integer, is_mapping, items, mapping, text, texts

Fields = dict[str, Any]
Rule = Callable[[Fields], None]

_SESSION_SECONDS: Final = 10_800
_ENDLESS: Final = 2_147_483_647
_UNSET: Final = (None, "")


def _pod(pod: Fields) -> None:
    spec = mapping(pod.setdefault("spec", {}))
    _requests_of_pod(spec)
    for name in ("containers", "initContainers"):
        for container in items(spec.get(name)):
            _requests_from_limits(mapping(container))
            if spec.get("hostNetwork") is True:
                for port in items(at(container, "ports")):
                    if mapping(port).get("hostPort") in (None, 0):
                        mapping(port)["hostPort"] = at(port, "containerPort")
    spec.setdefault("enableServiceLinks", True)


def _requests_from_limits(container: Fields) -> None:
    resources = mapping(container.get("resources"))
    limits = mapping(resources.get("limits"))
    if limits:
        resources["requests"] = {**limits, **mapping(resources.get("requests"))}


def _requests_of_pod(spec: Fields) -> None:
    """Let a pod with limits of its own request as much of what its containers do not request."""
    limits = mapping(at(spec, "resources", "limits"))
    if not limits:
        return
    asked = {
        name for container in items(spec.get("containers")) for name in mapping(at(container, "resources", "requests"))
    }
    requests = mapping(at(spec, "resources", "requests"))
    defaults = {name: value for name, value in limits.items() if name not in asked}
    mapping(spec["resources"])["requests"] = {**defaults, **requests}


def _claim_spec(spec: Fields) -> None:
    """Let the old and the new name of what a claim is filled from say the same; other namespaces are off by default."""
    old, new = spec.get("dataSource"), spec.get("dataSourceRef")
    if is_mapping(new) and at(new, "namespace"):
        del spec["dataSourceRef"]
    elif is_mapping(old) and new is None:
        spec["dataSourceRef"] = {"apiGroup": None, **old}
    elif is_mapping(new) and old is None:
        spec["dataSource"] = {"apiGroup": None, **new}


def _pod_spec(spec: Fields) -> None:
    # The old name of the field goes with the new one.
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account:
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    if integer(spec.get("terminationGracePeriodSeconds")) < 0:
        spec["terminationGracePeriodSeconds"] = 1


def _container(container: Fields) -> None:
    if container.get("imagePullPolicy") in _UNSET:
        container["imagePullPolicy"] = pull_policy(text(container.get("image")))


def pull_policy(image: str) -> str:
    """Return when an image is pulled unless somebody says so: always, if its tag is ``latest`` or missing."""
    if "@" in image:
        return "IfNotPresent"
    _, _, tag = image.rpartition("/")[2].partition(":")
    return "Always" if tag in ("", "latest") else "IfNotPresent"


def _volume(volume: Fields) -> None:
    if not any(isinstance(value, dict) for value in volume.values()):
        volume["emptyDir"] = {}
    image = volume.get("image")
    if is_mapping(image) and at(image, "pullPolicy") in _UNSET:
        mapping(volume["image"])["pullPolicy"] = pull_policy(text(at(image, "reference")))


def _service_spec(spec: Fields) -> None:
    kind = spec["type"]
    if spec["sessionAffinity"] == "None":
        spec.pop("sessionAffinityConfig", None)
    elif (
        spec["sessionAffinity"] == "ClientIP"
        and at(spec, "sessionAffinityConfig", "clientIP", "timeoutSeconds") is None
    ):
        spec["sessionAffinityConfig"] = {"clientIP": {"timeoutSeconds": _SESSION_SECONDS}}
    for port in items(spec.get("ports")):
        if mapping(port).get("targetPort") in (None, "", 0):
            mapping(port)["targetPort"] = at(port, "port") or 0
    external = kind in ("LoadBalancer", "NodePort") or (kind == "ClusterIP" and bool(items(spec.get("externalIPs"))))
    if external and spec.get("externalTrafficPolicy") in _UNSET:
        spec["externalTrafficPolicy"] = "Cluster"
    if kind in ("ClusterIP", "NodePort", "LoadBalancer"):
        spec.setdefault("internalTrafficPolicy", "Cluster")
    if kind == "LoadBalancer":
        spec.setdefault("allocateLoadBalancerNodePorts", True)


def _service(service: Fields) -> None:
    if at(service, "spec", "type") == "LoadBalancer":
        for ingress in items(at(service, "status", "loadBalancer", "ingress")):
            if at(ingress, "ip"):
                mapping(ingress).setdefault("ipMode", "VIP")


def _deployment_strategy(strategy: Fields) -> None:
    if strategy["type"] == "RollingUpdate":
        rolling = strategy.setdefault("rollingUpdate", {})
        rolling.setdefault("maxUnavailable", "25%")
        rolling.setdefault("maxSurge", "25%")


def _daemon_set_strategy(strategy: Fields) -> None:
    if strategy["type"] == "RollingUpdate":
        rolling = strategy.setdefault("rollingUpdate", {})
        rolling.setdefault("maxUnavailable", 1)
        rolling.setdefault("maxSurge", 0)


def _stateful_set_strategy(strategy: Fields) -> None:
    if strategy.get("type") in _UNSET:
        strategy["type"] = "RollingUpdate"
        strategy.setdefault("rollingUpdate", {})
    rolling = strategy.get("rollingUpdate")
    if strategy["type"] == "RollingUpdate" and isinstance(rolling, dict):
        mapping(strategy["rollingUpdate"]).setdefault("partition", 0)


def _stateful_set_spec(spec: Fields) -> None:
    for claim in items(spec.get("volumeClaimTemplates")):
        if is_mapping(claim):
            claim.update({"kind": "PersistentVolumeClaim", "apiVersion": "v1"})


def _labels_of_template(owner: Fields) -> None:
    """Give an object without labels those of its template."""
    labels = mapping(at(owner, "spec", "template", "metadata", "labels"))
    metadata = mapping(owner.get("metadata"))
    if labels and not metadata.get("labels"):
        metadata["labels"] = dict(labels)


def _replication_controller(controller: Fields) -> None:
    _labels_of_template(controller)
    spec = mapping(controller.get("spec"))
    labels = mapping(at(spec, "template", "metadata", "labels"))
    if labels and not spec.get("selector"):
        spec["selector"] = dict(labels)


def _job(job: Fields) -> None:
    # These are defaults of Jobs, not of the Jobs that a CronJob describes.
    _labels_of_template(job)
    spec = mapping(job.setdefault("spec", {}))
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    spec.setdefault("parallelism", 1)
    spec.setdefault("backoffLimit", 6 if spec.get("backoffLimitPerIndex") is None else _ENDLESS)
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("suspend", False)
    spec.setdefault("manualSelector", False)
    spec.setdefault("podReplacementPolicy", "TerminatingOrFailed" if spec.get("podFailurePolicy") is None else "Failed")


_SCALE_UP: Final[Fields] = {
    "stabilizationWindowSeconds": 0,
    "selectPolicy": "Max",
    "policies": [
        {"type": "Pods", "value": 4, "periodSeconds": 15},
        {"type": "Percent", "value": 100, "periodSeconds": 15},
    ],
}
_SCALE_DOWN: Final[Fields] = {
    "selectPolicy": "Max",
    "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}],
}


def _autoscaler_spec(spec: Fields) -> None:
    if not items(spec.get("metrics")):
        target = {"type": "Utilization", "averageUtilization": DEFAULT_UTILIZATION}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    behavior = spec.get("behavior")
    if is_mapping(behavior):
        spec["behavior"] = {
            "scaleUp": {**_SCALE_UP, **mapping(at(behavior, "scaleUp"))},
            "scaleDown": {**_SCALE_DOWN, **mapping(at(behavior, "scaleDown"))},
        }


def _autoscaler_of_v1(autoscaler: Fields) -> None:
    spec = mapping(autoscaler.setdefault("spec", {}))
    unset = spec.get("targetCPUUtilizationPercentage") is None
    if unset and not has_metrics_beside(mapping(at(autoscaler, "metadata", "annotations"))):
        spec["targetCPUUtilizationPercentage"] = DEFAULT_UTILIZATION


def _network_policy_spec(spec: Fields) -> None:
    if not texts(spec.get("policyTypes")):
        spec["policyTypes"] = ["Ingress", "Egress"] if items(spec.get("egress")) else ["Ingress"]


def _subject(subject: Fields) -> None:
    if subject.get("apiGroup") in _UNSET and subject.get("kind") in ("User", "Group"):
        subject["apiGroup"] = "rbac.authorization.k8s.io"


def _limit_range_item(item: Fields) -> None:
    if item.get("type") != "Container":
        return
    limits = {**mapping(item.get("max")), **mapping(item.get("default"))}
    requests = {**mapping(item.get("min")), **limits, **mapping(item.get("defaultRequest"))}
    for name, values in (("default", limits), ("defaultRequest", requests)):
        if values:
            item[name] = values


def _node_status(status: Fields) -> None:
    if status.get("allocatable") is None and status.get("capacity"):
        status["allocatable"] = dict(mapping(status["capacity"]))


def _device_request(request: Fields) -> None:
    if request.get("allocationMode") in _UNSET:
        request["allocationMode"] = "ExactCount"
    if request["allocationMode"] == "ExactCount" and not request.get("count"):
        request["count"] = 1


DISABLED: Final[Mapping[str, tuple[str, ...]]] = {
    "apps.v1.RollingUpdateStatefulSetStrategy": ("maxUnavailable",),
    "core.v1.Lifecycle": ("stopSignal",),
}
"""Fields of features that are off unless a cluster turns them on, by type; what is sent of them is dropped.

Source: Kubernetes pkg/features/kube_features.go.
"""

OBJECT_RULES: Final[Mapping[str, Rule]] = {
    "autoscaling.v1.HorizontalPodAutoscaler": _autoscaler_of_v1,
    "core.v1.Pod": _pod,
    "core.v1.ReplicationController": _replication_controller,
    "core.v1.Service": _service,
    "batch.v1.Job": _job,
}
"""Rules of whole objects, by type; they come first."""

RULES: Final[Mapping[str, Rule]] = {
    "apps.v1.DaemonSetUpdateStrategy": _daemon_set_strategy,
    "apps.v1.DeploymentStrategy": _deployment_strategy,
    "apps.v1.StatefulSetSpec": _stateful_set_spec,
    "apps.v1.StatefulSetUpdateStrategy": _stateful_set_strategy,
    "autoscaling.v2.HorizontalPodAutoscalerSpec": _autoscaler_spec,
    "core.v1.Container": _container,
    "core.v1.EphemeralContainer": _container,
    "core.v1.LimitRangeItem": _limit_range_item,
    "core.v1.NodeStatus": _node_status,
    "core.v1.PersistentVolumeClaimSpec": _claim_spec,
    "core.v1.PodSpec": _pod_spec,
    "core.v1.ServiceSpec": _service_spec,
    "core.v1.Volume": _volume,
    "networking.v1.NetworkPolicySpec": _network_policy_spec,
    "rbac.v1.Subject": _subject,
    "resource.v1.DeviceSubRequest": _device_request,
    "resource.v1.ExactDeviceRequest": _device_request,
}
"""Rules of structs, by type."""
