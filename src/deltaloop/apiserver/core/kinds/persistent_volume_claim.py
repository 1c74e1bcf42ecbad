"""PersistentVolumeClaim: what it asks for (``claim_spec``), and that it stays so once it is bound.

Source: Kubernetes pkg/apis/core/validation/validation.go; pkg/printers/internalversion/printers.go;
pkg/controller/volume/pvcprotection (what is in use).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from deltaloop.api import kinds
from deltaloop.api.json_values import at, items, mapping
from deltaloop.api.resource import Resource
from deltaloop.apiserver.core.kinds import claim_spec
from deltaloop.apiserver.core.kinds.cells import access_modes
from deltaloop.apiserver.core.strategy import Cell, Given, Protection, Stored, Strategy
from deltaloop.schemas.faults import FieldError, forbidden_field
from deltaloop.schemas.quantity import amount

_REFUSAL: Final = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
)


def _update_errors(before: Mapping[str, object], after: Mapping[str, object]) -> Iterator[FieldError]:
    """Yield an error if an update changes a claim; its message ends before the real server's diff."""
    old, new = dict(mapping(before.get("spec"))), dict(mapping(after.get("spec")))
    claim_spec.copy_source(new)
    for name, unset in (("volumeName", (None, "")), ("storageClassName", (None,))):
        if old.get(name) in unset:  # may be set once
            old.pop(name, None)
            new.pop(name, None)
    if at(after, "status", "phase") == "Bound":
        for spec in (old, new):
            spec.pop("volumeAttributesClassName", None)
            requests = {**mapping(at(spec, "resources", "requests")), "storage": None}
            spec["resources"] = {**mapping(spec.get("resources")), "requests": requests}
    if old != new:
        yield forbidden_field("spec", _REFUSAL)
    sizes = [amount(at(claim, "spec", "resources", "requests", "storage")) for claim in (before, after)]
    if sizes[1] < sizes[0] and sizes[1] <= amount(at(before, "status", "capacity", "storage")):
        yield forbidden_field("spec.resources.requests.storage", "field can not be less than status.capacity")


def _finish_new(claim: dict[str, object], _store: Stored, _given: Given) -> tuple[()]:
    claim_spec.copy_source(mapping(claim.get("spec")))
    return ()


def _finish_update(_before: Mapping[str, object], claim: dict[str, object], store: Stored, given: Given) -> tuple[()]:
    return _finish_new(claim, store, given)


def _warnings(claim: Mapping[str, object]) -> Iterator[str]:
    if at(claim, "metadata", "annotations", claim_spec.CLASS_ANNOTATION) is not None:
        yield f"metadata.annotations[{claim_spec.CLASS_ANNOTATION}]: {claim_spec.CLASS_WARNING}"
    yield from claim_spec.claim_spec_warnings(claim.get("spec"), "spec")


def _is_in_use(claim: Resource, store: Stored) -> bool:
    """Tell whether a pod that has a node uses a claim; others get none while the claim is being deleted."""
    pods = store.list(kinds.POD.group_resource, prefix=f"{claim.namespace}/").items
    return any(_uses(pod, claim) for pod in pods)


def _uses(pod: Resource, claim: Resource) -> bool:
    spec = mapping(pod.to_dict().get("spec"))
    if not spec.get("nodeName"):
        return False
    for volume in items(spec.get("volumes")):
        made = at(volume, "ephemeral") is not None and f"{pod.name}-{at(volume, 'name')}" == claim.name
        if at(volume, "persistentVolumeClaim", "claimName") == claim.name:
            return True
        if made and any(owner.uid == pod.uid for owner in claim.owner_references):
            return True
    return False


def _if_bound(shown: Callable[[object], str], field: str) -> Cell:
    return lambda claim: shown(at(claim, "status", field)) if at(claim, "spec", "volumeName") else ""


STRATEGY: Final = Strategy(
    protection=Protection("kubernetes.io/pvc-protection", _is_in_use),
    default=claim_spec.drop_sources,
    finish_new=_finish_new,
    finish_update=_finish_update,
    checks={
        "claim_source": claim_spec.claim_source_errors,
        "claimed_storage": claim_spec.claimed_storage_errors,
    },
    validate_update=_update_errors,
    warn=_warnings,
    cells={
        "Status": claim_spec.phase,
        "Capacity": _if_bound(claim_spec.shown_storage, "capacity"),
        "Access Modes": _if_bound(access_modes, "accessModes"),
        "StorageClass": claim_spec.storage_class,
    },
)
