"""Bindings, with which a scheduler assigns a pod to a node.

A binding sets the node and the condition ``PodScheduled``, without field manager and without a new generation. Its
labels and annotations are merged into the pod.

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
    """Assign a pod to a node, or raise ApiError: 400 for another pod, 404 if missing, and 409 if it cannot be bound."""
    check_binding(asked.fields, name=asked.name)
    pod = writes.fields_of(kinds.POD, asked.namespace, asked.name)
    after = bound_pod(pod, asked.fields, now=given.now)
    if not asked.dry_run:
        writes.put(kinds.POD, after)


def check_binding(binding: dict[str, object], *, name: str) -> None:
    """Check a binding.

    Raises BadRequestError for another pod, and InternalServerError for a target that is not a node.
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
    """Return a bound pod, or raise ConflictError; the binding was checked, and ``now`` is in seconds since 1970."""
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
