"""Claims, volumes and storage classes.

Source: Kubernetes pkg/apis/core/validation/validation.go, pkg/apis/storage/validation/validation.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from deltaloop.apiserver.core.kinds.validation.checks import IMMUTABLE, one_of, shown
from deltaloop.schemas.faults import FieldError, forbidden_field, invalid_value, required
from deltaloop.schemas.json_values import at, mapping, texts
from deltaloop.schemas.quantity import amount

Fields = dict[str, Any]

_ACCESS_MODES: Final = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_VOLUME_MODES: Final = ("Block", "Filesystem")
_RECLAIM_POLICIES: Final = ("Delete", "Recycle", "Retain")
_BINDING_MODES: Final = ("Immediate", "WaitForFirstConsumer")
# In the order in which they are looked at: all but the first are too many.
_SOURCES: Final = (
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "glusterfs",
    "flocker",
    "nfs",
    "rbd",
    "quobyte",
    "cephfs",
    "iscsi",
    "cinder",
    "fc",
    "flexVolume",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "scaleIO",
    "local",
    "storageos",
    "csi",
)
_CLAIM_REFUSAL: Final = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
)


def claim_errors(claim: Fields) -> Iterator[FieldError]:
    """Yield what is wrong with a PersistentVolumeClaim."""
    yield from claim_spec_errors(mapping(claim.get("spec")), "spec")


def claim_spec_errors(spec: Fields, path: str) -> Iterator[FieldError]:
    """Yield what is wrong with the spec of a claim, or of a template of claims."""
    modes = texts(spec.get("accessModes"))
    if not modes:
        yield required(f"{path}.accessModes", "at least 1 access mode is required")
    for mode in modes:
        yield from one_of(mode, f"{path}.accessModes", _ACCESS_MODES)
    storage = at(spec, "resources", "requests", "storage")
    if storage is None:
        yield required(f"{path}.resources[storage]")
    elif amount(storage) <= 0:
        yield invalid_value(f"{path}.resources[storage]", shown(storage), "must be greater than zero")
    if spec.get("volumeMode") is not None:
        yield from one_of(spec["volumeMode"], f"{path}.volumeMode", _VOLUME_MODES)


def claim_update_errors(before: Fields, after: Fields) -> Iterator[FieldError]:
    """Yield an error if an update changes a claim; its message ends before the real server's diff."""
    old, new = dict(mapping(before.get("spec"))), dict(mapping(after.get("spec")))
    for name in ("volumeName", "storageClassName"):
        if not old.get(name):  # may be set once
            old.pop(name, None)
            new.pop(name, None)
    if at(after, "status", "phase") == "Bound":
        for spec in (old, new):
            spec.pop("volumeAttributesClassName", None)
            requests = {**mapping(at(spec, "resources", "requests")), "storage": None}
            spec["resources"] = {**mapping(spec.get("resources")), "requests": requests}
    if old != new:
        yield forbidden_field("spec", _CLAIM_REFUSAL)
    sizes = [amount(at(claim, "spec", "resources", "requests", "storage")) for claim in (before, after)]
    if sizes[1] < sizes[0] and sizes[1] <= amount(at(before, "status", "capacity", "storage")):
        yield forbidden_field("spec.resources.requests.storage", "field can not be less than status.capacity")


def volume_errors(volume: Fields) -> Iterator[FieldError]:
    """Yield what is wrong with a PersistentVolume."""
    spec = mapping(volume.get("spec"))
    if not texts(spec.get("accessModes")):
        yield required("spec.accessModes")
    for mode in texts(spec.get("accessModes")):
        yield from one_of(mode, "spec.accessModes", _ACCESS_MODES)
    capacity = mapping(spec.get("capacity"))
    if not capacity:
        yield required("spec.capacity")
    if "storage" not in capacity:
        text_ = f'Unsupported value: {shown(capacity or None)}: supported values: "storage"'
        yield FieldError("spec.capacity", "FieldValueNotSupported", text_)
    for name, value in capacity.items():
        if amount(value) <= 0:
            yield invalid_value(f"spec.capacity[{name}]", shown(value), "must be greater than zero")
    if spec.get("persistentVolumeReclaimPolicy"):
        field = "spec.persistentVolumeReclaimPolicy"
        yield from one_of(spec["persistentVolumeReclaimPolicy"], field, _RECLAIM_POLICIES)
    sources = [name for name in _SOURCES if isinstance(spec.get(name), dict)]
    if not sources:
        yield required("spec", "must specify a volume type")
    for name in sources[1:]:
        yield forbidden_field(f"spec.{name}", "may not specify more than 1 volume type")
    if spec.get("volumeMode") is not None:
        yield from one_of(spec["volumeMode"], "spec.volumeMode", _VOLUME_MODES)


def storage_class_errors(storage_class: Fields) -> Iterator[FieldError]:
    """Yield what is wrong with a StorageClass."""
    if not storage_class.get("provisioner"):
        yield required("provisioner")
    if storage_class.get("volumeBindingMode") is not None:
        yield from one_of(storage_class["volumeBindingMode"], "volumeBindingMode", _BINDING_MODES)


def storage_class_update_errors(before: Fields, after: Fields) -> Iterator[FieldError]:
    """Yield an error for each part of a StorageClass that an update changes and must not."""
    for name in ("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"):
        if before.get(name) != after.get(name):
            yield invalid_value(name, shown(after.get(name)), IMMUTABLE)
