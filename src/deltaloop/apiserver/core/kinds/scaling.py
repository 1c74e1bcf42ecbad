"""The ``scale`` subresource: how many replicas an object asks for, has, and selects, as an ``autoscaling/v1 Scale``.

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
from deltaloop.schemas.field_errors import invalid_value

_SCALE: Final = ResourceType[Resource]("autoscaling", "v1", "Scale", "scales", True)
_MOST_REPLICAS: Final = 2**31 - 1
# What a patch is shown of a custom resource that says nothing about its replicas: the smallest number of 32 bits.
_UNSET: Final = -(1 << 31)
SCALE_VERSION: Final = "autoscaling/v1"
_COPIED: Final = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def scale_of(served: ServedResource, fields: dict[str, object], *, may_be_unset: bool = False) -> dict[str, object]:
    """Return the ``Scale`` of an object.

    Args:
        served: The kind that the request names, as it is served.
        fields: The object that is scaled.
        may_be_unset: Whether a custom resource that says nothing about its replicas counts as having none; so it does
            for a patch, which sets them.

    Raises:
        NotFoundError: If the resource has no such subresource.
        InternalServerError: If a custom resource says nothing about its replicas.
    """
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
    """Refuse a ``Scale`` that cannot be read: with another type where a number or a text belongs.

    Args:
        scale: As it was sent, or as a patch made it.
        patched: Whether a patch made it.

    Raises:
        ApiError: 422 for what a patch made, 400 otherwise; it names the field and both types, never the value.
    """
    why = _unreadable(scale)
    if why and patched:
        raise status_errors.invalid_patch(invalid_value("patch", "the object that results", why))
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
    """Return the object with the replicas of a ``Scale``, and with its resource version and uid as conditions.

    Raises:
        NotFoundError: If the resource has no such subresource.
        BadRequestError: If a patch leaves a custom resource without a number that had none.
        InvalidError: If the number of a built-in kind is negative; that of a custom resource is looked at with the rest
            of the object.
    """
    paths = _paths(served)
    replicas = integer(at(scale, "spec", "replicas"))
    if paths.default is None and replicas == _UNSET:
        raise status_errors.bad_request(f'the spec replicas field "{paths.spec_replicas}" cannot be empty')
    metadata = dict(mapping(current["metadata"]))
    name = text(metadata.get("name"))
    # Another uid is looked at before, by the update.
    another = text(at(scale, "metadata", "uid")) not in ("", metadata.get("uid"))
    if replicas < 0 and not (paths.default is None or another):
        error = invalid_value("spec.replicas", str(replicas), "must be greater than or equal to 0")
        raise status_errors.invalid(_SCALE, name, [error])
    for name in ("name", "namespace", "uid", "resourceVersion"):
        sent = at(scale, "metadata", name)
        if isinstance(sent, str) and sent:
            metadata[name] = sent
    return _with_replicas({**current, "metadata": metadata}, paths, replicas)


def scale_config(served: ServedResource, name: str, namespace: str, scale: dict[str, object]) -> dict[str, object]:
    """Return the object that somebody applies who applies this ``Scale``.

    Raises:
        NotFoundError: If the resource has no such subresource.
    """
    metadata = {**mapping(scale.get("metadata")), "name": name, **({"namespace": namespace} if namespace else {})}
    result: dict[str, object] = {"apiVersion": served.type.api_version, "kind": served.type.kind, "metadata": metadata}
    replicas = at(scale, "spec", "replicas")
    return result if replicas is None else _with_replicas(result, _paths(served), replicas)


def _with_replicas(fields: dict[str, object], paths: ScalePaths, replicas: object) -> dict[str, object]:
    """Return an object with another number of replicas; it shares what is not on the way there."""
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
