"""Bindings: a scheduler gives a pod its node.

The pod is told so by its condition ``PodScheduled``. Nobody owns what a binding writes, and it does not count as a
change of what is wanted: the generation stays.

    deleted, bound, or held by scheduling gates    409, of pods/binding
    uid or resourceVersion of the binding differ   409, of the pod
    labels and annotations of the binding          become the pod's, too

Binding: what is posted to the collection binds the pod of its name.

Source: Kubernetes pkg/registry/core/pod/storage/storage.go, BindingREST.
"""

from __future__ import annotations

from typing import Final

from deltaloop.api import kinds
from deltaloop.api.json_values import at, items, mapping, text
from deltaloop.api.times import format_time, from_epoch
from deltaloop.apiserver.core import status_errors
from deltaloop.apiserver.core.strategy import Asked, Given, Strategy, Writes
from deltaloop.schemas.field_errors import SchemaError, not_supported, required

_SCHEDULED = "PodScheduled"


def bind(asked: Asked, writes: Writes, given: Given) -> None:
    """Give a pod the node that a binding names.

    Raises:
        ApiError: 400 for a binding of another pod, 404 without the pod, 409 for one that may not be bound.
    """
    check_binding(asked.fields, name=asked.name)
    pod = writes.fields_of(kinds.POD, asked.namespace, asked.name)
    after = bound_pod(pod, asked.fields, now=given.now)
    if not asked.dry_run:
        writes.put(kinds.POD, after)


def check_binding(binding: dict[str, object], *, name: str) -> None:
    """Check that a binding is about the pod in the URL, and names a node.

    Raises:
        BadRequestError: If it is about another pod.
        InternalServerError: If its target is no node.
    """
    if text(at(binding, "metadata", "name")) != name:
        raise status_errors.bad_request("name in URL does not match name in Binding object")
    errors: list[SchemaError] = []
    kind = text(at(binding, "target", "kind"))
    if kind not in ("", "Node"):
        errors.append(not_supported("target.kind", kind, ("Node", "<empty>")))
    if not text(at(binding, "target", "name")):
        errors.append(required("target.name"))
    if errors:
        told = ", ".join(map(str, errors))
        raise status_errors.unexplained(f"[{told}]" if len(errors) > 1 else told)


def bound_pod(pod: dict[str, object], binding: dict[str, object], *, now: float) -> dict[str, object]:
    """Return a pod with the node of a binding.

    Args:
        pod: As it is.
        binding: Checked by ``check_binding``.
        now: Seconds since 1970.

    Raises:
        ConflictError: If it may not be bound, or is another one than the binding says.
    """
    metadata, spec, told = mapping(pod["metadata"]), mapping(pod.get("spec")), mapping(binding.get("metadata"))
    name = text(metadata.get("name"))
    for field, shown in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
        wanted, found = text(told.get(field)), text(metadata.get(field))
        if wanted and wanted != found:
            key = f"/registry/pods/{text(metadata.get('namespace'))}/{name}"
            raise status_errors.precondition_conflict(
                kinds.POD, name, storage_key=key, field=shown, wanted=wanted, found=found
            )
    if metadata.get("deletionTimestamp"):
        raise _refused(name, f"pod {name} is being deleted, cannot be assigned to a host")
    if text(spec.get("nodeName")):
        raise _refused(name, f'pod {name} is already assigned to node "{spec["nodeName"]}"')
    if items(spec.get("schedulingGates")):
        raise _refused(name, f"pod {name} has non-empty .spec.schedulingGates")
    marks = {field: {**mapping(metadata.get(field)), **mapping(told.get(field))} for field in ("labels", "annotations")}
    return {
        **pod,
        "metadata": {**metadata, **{field: values for field, values in marks.items() if values}},
        "spec": {**spec, "nodeName": text(at(binding, "target", "name"))},
        "status": _scheduled(mapping(pod.get("status")), now),
    }


def _refused(name: str, why: str) -> Exception:
    return status_errors.conflict(kinds.POD, name, why, subresource="binding")


def _scheduled(status: dict[str, object], now: float) -> dict[str, object]:
    """Return a status whose condition says that the pod has a node, since it first did."""
    said = {"type": _SCHEDULED, "status": "True", "lastProbeTime": None}
    conditions = list(items(status.get("conditions")))
    place = next(
        (position for position, each in enumerate(conditions) if at(each, "type") == _SCHEDULED), len(conditions)
    )
    before = mapping(conditions[place]) if place < len(conditions) else {}
    since = before.get("lastTransitionTime") if before.get("status") == "True" else format_time(from_epoch(now))
    conditions[place : place + 1] = [{**said, "lastTransitionTime": since}]
    return {**status, "conditions": conditions}


BINDING: Final = Strategy(posts_to=(kinds.POD, "binding"))
