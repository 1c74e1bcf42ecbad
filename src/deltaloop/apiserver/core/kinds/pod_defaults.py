"""Defaults of pods and pod templates that depend on other fields, and parsing of image names.

Source: Kubernetes pkg/apis/core/v1/defaults.go, conversion.go; pkg/features/kube_features.go;
github.com/distribution/reference.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from deltaloop.api.json_values import at, integer, is_mapping, items, mapping, text
from deltaloop.apiserver.core.kinds.field_checks import agree_on_first

_LABEL: Final = "[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?"
_DOMAIN: Final = rf"(?:{_LABEL}(?:\.{_LABEL})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?"
_PART: Final = "[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_REFERENCE: Final = re.compile(
    rf"{_DOMAIN}/(?P<path>{_PART}(?:/{_PART})*)(?::(?P<tag>\w[\w.-]{{0,127}}))?(?:@(?P<digest>[^@]+))?", re.ASCII
)
_DIGEST: Final = re.compile("sha256:[a-f0-9]{64}|sha384:[a-f0-9]{96}|sha512:[a-f0-9]{128}")
_IDENTIFIER: Final = re.compile("[a-f0-9]{64}")
_LONGEST_PATH: Final = 255
_HUB: Final = "docker.io"
_OLD_HUB: Final = "index.docker.io"


def image_tag(image: str) -> str:
    """Return the tag of an image: ``latest`` without tag and digest, or an empty string for an invalid reference."""
    domain, slash, name = image.partition("/")
    is_domain = domain in ("localhost", _OLD_HUB) or domain != domain.lower() or any(sign in domain for sign in ".:")
    if not (slash and is_domain):
        domain, name = _HUB, image
    if domain in (_HUB, _OLD_HUB):
        domain, name = _HUB, name if "/" in name else f"library/{name}"
    found = _REFERENCE.fullmatch(f"{domain}/{name}")
    if found is None or _IDENTIFIER.fullmatch(image) or len(found["path"]) > _LONGEST_PATH:
        return ""
    if found["digest"] and not _DIGEST.fullmatch(found["digest"]):
        return ""
    return found["tag"] or ("" if found["digest"] else "latest")


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
    """Set a pod's own requests to its limits for resources that its containers do not request."""
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
    # Keep the old and the new field name in sync.
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account:
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    if integer(spec.get("terminationGracePeriodSeconds")) < 0:
        spec["terminationGracePeriodSeconds"] = 1


def _container(container: dict[str, object]) -> None:
    container["imagePullPolicy"] = container.get("imagePullPolicy") or pull_policy(text(container.get("image")))


def pull_policy(image: str) -> str:
    """Return the default pull policy: Always if the image is valid and its tag is ``latest`` or missing."""
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
