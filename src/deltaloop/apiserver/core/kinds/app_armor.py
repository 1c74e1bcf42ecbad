"""AppArmor annotations of Pods, which are deprecated: the server copies them to fields, and warns.

Source: Kubernetes pkg/registry/core/pod/strategy.go (``applyAppArmorVersionSkew``), pkg/api/pod/util.go, warnings.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from deltaloop.api.json_values import at, items, mapping, text

_PREFIX: Final = "container.apparmor.security.beta.kubernetes.io/"
_TYPES: Final = {"unconfined": "Unconfined", "runtime/default": "RuntimeDefault"}
_LOCAL: Final = "localhost/"
_LONGEST_PROFILE: Final = 4095


def app_armor_warnings(pod: object, path: str = "") -> Iterator[str]:
    """Yield a warning for each annotation of a Pod or template that no field replaces.

    Args:
        pod: The Pod or the template.
        path: Path of the template, which ends with a dot; "" for a Pod.
    """
    for name, _container, profile in _annotated(pod):
        if profile is None or profile != at(pod, "spec", "securityContext", "appArmorProfile"):
            key = f"{path}metadata.annotations[{_PREFIX}{name}]"
            yield f'{key}: deprecated since v1.30; use the "appArmorProfile" field instead'


def set_app_armor_profiles(pod: dict[str, object]) -> None:
    """Set the profiles of containers that only annotations specify, in place."""
    for _name, container, profile in _annotated(pod):
        if profile is not None and profile != at(pod, "spec", "securityContext", "appArmorProfile"):
            container["securityContext"] = {**mapping(container.get("securityContext")), "appArmorProfile": profile}


def is_windows(pod: object) -> bool:
    """Return whether a Pod runs on Windows, which has no AppArmor."""
    return at(pod, "spec", "os", "name") == "windows"


def _annotated(pod: object) -> Iterator[tuple[str, dict[str, object], dict[str, str] | None]]:
    """Yield the containers with an annotation and without the field: name, container, profile of the annotation."""
    annotations = mapping(at(pod, "metadata", "annotations"))
    if not any(name.startswith(_PREFIX) for name in annotations):
        return
    for group in ("initContainers", "containers", "ephemeralContainers"):
        for container in map(mapping, items(at(pod, "spec", group))):
            name = text(container.get("name"))
            if _PREFIX + name in annotations and at(container, "securityContext", "appArmorProfile") is None:
                yield name, container, _profile(text(annotations[_PREFIX + name]))


def _profile(annotation: str) -> dict[str, str] | None:
    """Return the profile that an annotation specifies, None if it is not valid."""
    if annotation in _TYPES:
        return {"type": _TYPES[annotation]}
    local = annotation.removeprefix(_LOCAL) if annotation.startswith(_LOCAL) else ""
    if not local or local != local.strip() or len(local.encode()) > _LONGEST_PROFILE:
        return None
    return {"type": "Localhost", "localhostProfile": local}
