"""What fills in pods and pod templates where one field follows from another.

Source: Kubernetes pkg/apis/core/v1/defaults.go, conversion.go; pkg/features/kube_features.go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from deltaloop.api.json_values import at, integer, is_mapping, items, mapping, text
from deltaloop.apiserver.core.kinds.agreeing_fields import agree_on_first
from deltaloop.apiserver.core.kinds.image_reference import image_tag


def _pod(pod: dict[str, object]) -> None:
    spec = mapping(pod.setdefault("spec", {}))
    _requests_of_pod(spec)
    for container in map(mapping, (*items(spec.get("containers")), *items(spec.get("initContainers")))):
        _requests_from_limits(mapping(container.get("resources")))
        if spec.get("hostNetwork") is True:
            for port in map(mapping, items(container.get("ports"))):
                port["hostPort"] = port.get("hostPort") or port.get("containerPort")
    spec.setdefault("enableServiceLinks", True)


def _requests_from_limits(resources: dict[str, object]) -> None:
    limits = mapping(resources.get("limits"))
    if limits:
        resources["requests"] = {**limits, **mapping(resources.get("requests"))}


def _requests_of_pod(spec: dict[str, object]) -> None:
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


def _pod_spec(spec: dict[str, object]) -> None:
    # The old name of the field goes with the new one.
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account:
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    if integer(spec.get("terminationGracePeriodSeconds")) < 0:
        spec["terminationGracePeriodSeconds"] = 1


def _container(container: dict[str, object]) -> None:
    container["imagePullPolicy"] = container.get("imagePullPolicy") or pull_policy(text(container.get("image")))


def pull_policy(image: str) -> str:
    """Return the default pull policy of an image: always, if the tag of a valid reference is ``latest`` or missing."""
    return "Always" if image_tag(image) == "latest" else "IfNotPresent"


def _volume(volume: dict[str, object]) -> None:
    if not any(is_mapping(value) for value in volume.values()):
        volume["emptyDir"] = {}
    image = volume.get("image")
    if is_mapping(image):
        image["pullPolicy"] = image.get("pullPolicy") or pull_policy(text(image.get("reference")))


DEFAULTS: Final[Mapping[str, Callable[[dict[str, object]], object]]] = {
    "core.v1.Container": _container,
    "core.v1.EphemeralContainer": _container,
    "core.v1.Pod": _pod,
    "core.v1.PodSpec": _pod_spec,
    "core.v1.PodStatus": lambda status: agree_on_first(status, "podIP", "podIPs", key="ip"),
    "core.v1.Volume": _volume,
}
