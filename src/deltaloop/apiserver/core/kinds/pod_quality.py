"""The quality of service of a pod: by what its containers request and are limited to.

Source: Kubernetes pkg/apis/core/helper/qos.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from deltaloop.api.json_values import at, items, mapping
from deltaloop.schemas.quantity import canonical_quantity

_COUNTED: Final = ("cpu", "memory")


def qos_class(spec: Mapping[str, object]) -> str:
    """Return the class of a pod by what its containers request and are limited to."""
    containers = [*items(spec.get("containers")), *items(spec.get("initContainers"))]
    of_pod = mapping(spec.get("resources"))
    if of_pod.get("limits") or of_pod.get("requests"):
        containers = [{"resources": of_pod}]  # what the pod says for itself counts, and nothing else
    requested = limited = False
    guaranteed = True
    for container in containers:
        requests = _counted(at(container, "resources", "requests"))
        limits = _counted(at(container, "resources", "limits"))
        requested, limited = requested or bool(requests), limited or bool(limits)
        guaranteed = guaranteed and len(limits) == len(_COUNTED) and requests == limits
    if not requested and not limited:
        return "BestEffort"
    return "Guaranteed" if guaranteed else "Burstable"


def _counted(amounts: object) -> dict[str, str]:
    found = {name: canonical_quantity(str(at(amounts, name))) for name in _COUNTED if at(amounts, name) is not None}
    return {name: value for name, value in found.items() if value != "0"}
