"""PersistentVolume: one source, a capacity; a new one waits for what it is bound to.

Source: Kubernetes pkg/registry/core/persistentvolume/strategy.go; pkg/apis/core/validation/validation.go;
pkg/api/persistentvolume; pkg/printers/internalversion/printers.go; pkg/controller/volume/pvprotection.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from deltaloop.api.resource import Resource
from deltaloop.apiserver.core.kinds import claim_spec
from deltaloop.apiserver.core.kinds.cells import access_modes
from deltaloop.apiserver.core.kinds.field_checks import each
from deltaloop.apiserver.core.kinds.node_labels import node_term_warnings
from deltaloop.apiserver.core.kinds.pod_warnings import volume_source_warnings
from deltaloop.apiserver.core.strategy import Given, Protection, Stored, Strategy
from deltaloop.schemas.checking import Place, shown
from deltaloop.schemas.faults import FieldError, invalid_value
from deltaloop.schemas.json_values import at, mapping, text
from deltaloop.schemas.quantity import amount

_DEPRECATED: Final = ("cephfs", "photonPersistentDisk", "scaleIO", "storageos", "glusterfs", "rbd")
_ANNOTATIONS: Final = {
    claim_spec.CLASS_ANNOTATION: claim_spec.CLASS_WARNING,
    "volume.beta.kubernetes.io/mount-options": 'deprecated since v1.31; use "mountOptions" attribute instead',
}


def _finish_new(volume: dict[str, object], _store: Stored, given: Given) -> tuple[()]:
    volume["status"] = {"phase": "Pending", "lastPhaseTransitionTime": given.time}
    return ()


def _capacity_errors(place: Place) -> Iterator[FieldError]:
    capacity, path = mapping(place.fields.get("capacity")), place.below("capacity")
    if "storage" not in capacity:
        text_ = f'Unsupported value: {shown(capacity or None)}: supported values: "storage"'
        yield FieldError(path, "FieldValueNotSupported", text_)
    for name, value in capacity.items():
        if amount(value) <= 0:
            yield invalid_value(f"{path}[{name}]", shown(value), "must be greater than zero")


def _warnings(volume: Mapping[str, object]) -> Iterator[str]:
    annotations, spec = mapping(at(volume, "metadata", "annotations")), mapping(volume.get("spec"))
    for name, told in _ANNOTATIONS.items():
        if name in annotations:
            yield f"metadata.annotations[{name}]: {told}"
    if spec.get("persistentVolumeReclaimPolicy") == "Recycle":
        yield (
            "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the recommended "
            "approach is to use dynamic provisioning."
        )
    required_terms = at(spec, "nodeAffinity", "required")
    for where, term in each(required_terms, "nodeSelectorTerms", "spec.nodeAffinity.required"):
        yield from node_term_warnings(term, where)
    yield from volume_source_warnings(spec, "spec", _DEPRECATED)


def _claim(volume: Mapping[str, object]) -> str:
    claim = at(volume, "spec", "claimRef")
    return f"{text(at(claim, 'namespace'))}/{text(at(claim, 'name'))}" if claim else ""


def _is_in_use(volume: Resource, _store: Stored) -> bool:
    return at(volume.to_dict(), "status", "phase") == "Bound"


STRATEGY: Final = Strategy(
    protection=Protection("kubernetes.io/pv-protection", _is_in_use),
    checks={"capacity": _capacity_errors},
    warn=_warnings,
    finish_new=_finish_new,
    cells={
        "Access Modes": lambda volume: access_modes(at(volume, "spec", "accessModes")),
        "Status": claim_spec.phase,
        "Claim": _claim,
        "StorageClass": claim_spec.storage_class,
    },
)
