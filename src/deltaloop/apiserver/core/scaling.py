"""The ``scale`` subresource: how many replicas an object asks for, has, and selects, as an ``autoscaling/v1 Scale``.

Source: apiextensions-apiserver pkg/registry/customresource/etcd.go; Kubernetes pkg/registry/apps.
"""

from __future__ import annotations

from typing import Any, Final

from deltaloop.api.errors import InvalidPathError
from deltaloop.apiserver.core import failures
from deltaloop.apiserver.core.failures import FieldError, invalid_value
from deltaloop.apiserver.core.json_path import JsonPath
from deltaloop.apiserver.core.json_values import at, integer, mapping, text
from deltaloop.apiserver.core.served_resource import ScalePaths, ServedResource

_API_VERSION: Final = "autoscaling/v1"
_COPIED: Final = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def scale_of(served: ServedResource, fields: dict[str, Any]) -> dict[str, Any]:
    """Return the ``Scale`` of an object.

    Raises:
        NotFoundError: If the resource has no such subresource.
        InternalServerError: If a custom resource says nothing about its replicas.
    """
    paths = _paths(served)
    wanted = _first(paths.spec_replicas, fields)
    if wanted is None and served.custom:
        raise failures.internal(f'the spec replicas field "{paths.spec_replicas}" does not exist')
    metadata = {name: fields["metadata"][name] for name in _COPIED if name in fields["metadata"]}
    status: dict[str, Any] = {"replicas": integer(_first(paths.status_replicas, fields))}
    selector = _selector(_first(paths.label_selector, fields)) if paths.label_selector else ""
    if selector:
        status["selector"] = selector
    # A built-in kind without the field has one replica, which is its default.
    replicas = 1 if wanted is None else integer(wanted)
    return {
        "kind": "Scale",
        "apiVersion": _API_VERSION,
        "metadata": metadata,
        "spec": {"replicas": replicas} if replicas else {},
        "status": status,
    }


def replicas_errors(paths: ScalePaths, fields: dict[str, Any]) -> list[FieldError]:
    """Return what is wrong with the numbers of a custom resource that can be scaled."""
    found: list[FieldError] = []
    for path in (paths.spec_replicas, paths.status_replicas):
        value = _first(path, fields)
        if isinstance(value, int) and value < 0:
            found.append(invalid_value(path, str(value), "should be a non-negative integer"))
    return found


def apply_scale(served: ServedResource, current: dict[str, Any], scale: dict[str, Any]) -> dict[str, Any]:
    """Return the object with the replicas of a ``Scale``, and with its resource version and uid as conditions.

    Raises:
        NotFoundError: If the resource has no such subresource.
        InvalidError: If the number is negative or none.
    """
    paths = _paths(served)
    replicas = at(scale, "spec", "replicas")
    replicas = 0 if replicas is None else replicas
    if not isinstance(replicas, int) or isinstance(replicas, bool) or replicas < 0:
        error = invalid_value("spec.replicas", "-1", "should be a non-negative integer")
        raise failures.invalid(served.type, text(current["metadata"].get("name")), [error])
    metadata = {**current["metadata"]}
    for name in ("name", "namespace", "uid", "resourceVersion"):
        sent = at(scale, "metadata", name)
        if isinstance(sent, str) and sent:
            metadata[name] = sent
    result = {**current, "metadata": metadata}
    target = result
    *way, last = paths.spec_replicas.strip(".").split(".")
    for segment in way:
        target[segment] = dict(mapping(target.get(segment)))
        target = target[segment]
    target[last] = replicas
    return result


def scale_config(served: ServedResource, name: str, namespace: str, scale: dict[str, Any]) -> dict[str, Any]:
    """Return the object that somebody applies who applies this ``Scale``.

    Raises:
        NotFoundError: If the resource has no such subresource.
    """
    result: dict[str, Any] = {
        "apiVersion": served.type.api_version,
        "kind": served.type.kind,
        "metadata": {**mapping(scale.get("metadata")), "name": name},
    }
    if namespace:
        result["metadata"]["namespace"] = namespace
    replicas = at(scale, "spec", "replicas")
    if replicas is None:
        return result
    target = result
    *way, last = _paths(served).spec_replicas.strip(".").split(".")
    for segment in way:
        target = target.setdefault(segment, {})
    target[last] = replicas
    return result


def _paths(served: ServedResource) -> ScalePaths:
    if served.scale_paths is None:
        raise failures.path_not_found()
    return served.scale_paths


def _first(path: str, fields: dict[str, Any]) -> Any:
    try:
        return JsonPath.parse(path).first(fields)
    except InvalidPathError:
        return None


def _selector(value: object) -> str:
    if isinstance(value, str):
        return value
    labels = mapping(at(value, "matchLabels") or value)
    return ",".join(f"{name}={label}" for name, label in sorted(labels.items()) if isinstance(label, str))
