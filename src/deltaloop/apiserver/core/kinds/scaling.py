"""The ``scale`` subresource, an ``autoscaling/v1 Scale`` with desired replicas, current replicas and selector.

Source: apiextensions-apiserver pkg/registry/customresource/etcd.go; Kubernetes pkg/registry/apps.
"""

from __future__ import annotations

from typing import Final

from deltaloop.api.json_values import at, integer, is_mapping, json_type, mapping, text
from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.apiserver.core import status_errors
from deltaloop.apiserver.core.kinds.cells import format_selector
from deltaloop.apiserver.core.served_resource import ScalePaths, ServedResource
from deltaloop.schemas.field_errors import invalid_text, invalid_value

_SCALE: Final = ResourceType[Resource]("autoscaling", "v1", "Scale", "scales", True)
_MOST_REPLICAS: Final = 2**31 - 1
# Replicas that a patch sees in a custom resource without a number: the smallest 32-bit integer.
_UNSET: Final = -(1 << 31)
SCALE_VERSION: Final = "autoscaling/v1"
_COPIED: Final = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def scale_of(served: ServedResource, fields: dict[str, object], *, may_be_unset: bool = False) -> dict[str, object]:
    """Return the ``Scale`` of an object; ``may_be_unset`` accepts missing replicas, because a patch can set them."""
    paths = _paths(served)
    wanted = _first(paths.spec_replicas, fields)
    if wanted is None and paths.default is None and not may_be_unset:
        raise status_errors.internal(f'the spec replicas field "{paths.spec_replicas}" does not exist')
    metadata = mapping(fields["metadata"])
    metadata = {name: metadata[name] for name in _COPIED if name in metadata}
    status: dict[str, object] = {"replicas": integer(_first(paths.status_replicas, fields))}
    selector = _selector(_first(paths.label_selector, fields)) if paths.label_selector else ""
    if selector:
        status["selector"] = selector
    unset = _UNSET if paths.default is None else paths.default
    replicas = unset if wanted is None else integer(wanted)
    return {
        "kind": "Scale",
        "apiVersion": SCALE_VERSION,
        "metadata": metadata,
        "spec": {"replicas": replicas} if replicas else {},
        "status": status,
    }


def check_scale(scale: dict[str, object], *, patched: bool) -> None:
    """Reject a ``Scale`` with wrong types by ApiError, 422 for a patch and 400 otherwise, without the value."""
    why = _unreadable(scale)
    if why and patched:
        raise status_errors.invalid_patch(invalid_text("patch", "the object that results", why))
    if why:
        raise status_errors.unreadable("Scale", why, version="v1")


def _unreadable(scale: dict[str, object]) -> str:
    for field, wanted in (("spec", "ScaleSpec"), ("status", "ScaleStatus")):
        part = scale.get(field)
        if part is not None and not is_mapping(part):
            return f"json: cannot unmarshal {json_type(part)} into Go struct field Scale.{field} of type v1.{wanted}"
        value = mapping(part).get("replicas")
        if value is not None and (type(value) is not int or not -_MOST_REPLICAS <= value + 1 <= _MOST_REPLICAS + 1):
            found = f"number {value}" if type(value) in (int, float) else json_type(value)
            return f"json: cannot unmarshal {found} into Go struct field {wanted}.{field}.replicas of type int32"
    selector = at(scale, "status", "selector")
    if selector is not None and not isinstance(selector, str):
        found = json_type(selector)
        return f"json: cannot unmarshal {found} into Go struct field ScaleStatus.status.selector of type string"
    return ""


def apply_scale(served: ServedResource, current: dict[str, object], scale: dict[str, object]) -> dict[str, object]:
    """Return the object with the replicas of a ``Scale``; its resource version and UID become preconditions."""
    paths = _paths(served)
    replicas = integer(at(scale, "spec", "replicas"))
    if paths.default is None and replicas == _UNSET:
        raise status_errors.bad_request(f'the spec replicas field "{paths.spec_replicas}" cannot be empty')
    metadata = dict(mapping(current["metadata"]))
    name = text(metadata.get("name"))
    # The update rejects a different UID earlier.
    another = text(at(scale, "metadata", "uid")) not in ("", metadata.get("uid"))
    if replicas < 0 and not (paths.default is None or another):
        error = invalid_value("spec.replicas", replicas, "must be greater than or equal to 0")
        raise status_errors.invalid(_SCALE, name, [error])
    for name in ("name", "namespace", "uid", "resourceVersion"):
        sent = at(scale, "metadata", name)
        if isinstance(sent, str) and sent:
            metadata[name] = sent
    return _with_replicas({**current, "metadata": metadata}, paths, replicas)


def scale_config(served: ServedResource, name: str, namespace: str, scale: dict[str, object]) -> dict[str, object]:
    """Return the configuration to apply for an applied ``Scale``, or raise NotFoundError."""
    metadata = {**mapping(scale.get("metadata")), "name": name, **({"namespace": namespace} if namespace else {})}
    result: dict[str, object] = {"apiVersion": served.type.api_version, "kind": served.type.kind, "metadata": metadata}
    replicas = at(scale, "spec", "replicas")
    return result if replicas is None else _with_replicas(result, _paths(served), replicas)


def _with_replicas(fields: dict[str, object], paths: ScalePaths, replicas: object) -> dict[str, object]:
    """Return the object with changed replicas; it shares unchanged parts with the original."""
    result = target = dict(fields)
    *way, last = paths.spec_replicas.strip(".").split(".")
    for segment in way:
        target[segment] = below = dict(mapping(target.get(segment)))
        target = below
    target[last] = replicas
    return result


def _paths(served: ServedResource) -> ScalePaths:
    if served.scale_paths is None:
        raise status_errors.path_not_found()
    return served.scale_paths


def _first(path: str, fields: dict[str, object]) -> object:
    return at(fields, *path.removeprefix(".").split("."))


def _selector(value: object) -> str:
    if isinstance(value, str):
        return value
    plain = any(isinstance(label, str) for label in mapping(value).values())  # of a ReplicationController
    return format_selector({"matchLabels": value} if plain else value, empty="")
