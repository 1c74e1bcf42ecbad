"""Cells of volumes, claims, and what provides them; and of devices, which are claimed alike.

Source: Kubernetes pkg/printers/internalversion/printers.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from deltaloop.apiserver.core.kinds.cells.shared import NONE, UNSET, Cells, Object, access_modes, marked_default
from deltaloop.schemas.json_values import at, items, text, texts

_CLASS_ANNOTATION: Final = "volume.beta.kubernetes.io/storage-class"


def _persistent_volume(obj: Object, _: float) -> dict[str, Any]:
    spec = at(obj, "spec")
    claim = at(spec, "claimRef")
    deleting = at(obj, "metadata", "deletionTimestamp")
    return {
        "Capacity": _storage(at(spec, "capacity")),
        "Access Modes": access_modes(at(spec, "accessModes")),
        "Reclaim Policy": text(at(spec, "persistentVolumeReclaimPolicy")),
        "Status": "Terminating" if deleting else text(at(obj, "status", "phase")),
        "Claim": f"{text(at(claim, 'namespace'))}/{text(at(claim, 'name'))}" if claim else "",
        "StorageClass": _storage_class_of(obj),
        "VolumeAttributesClass": _text_or_unset(at(spec, "volumeAttributesClassName")),
        "Reason": text(at(obj, "status", "reason")),
        "VolumeMode": text(at(spec, "volumeMode")) or UNSET,
    }


def _persistent_volume_claim(obj: Object, _: float) -> dict[str, Any]:
    spec, status = at(obj, "spec"), at(obj, "status")
    bound = bool(at(spec, "volumeName"))
    return {
        "Status": "Terminating" if at(obj, "metadata", "deletionTimestamp") else text(at(status, "phase")),
        "Volume": text(at(spec, "volumeName")),
        "Capacity": _storage(at(status, "capacity")) if bound else "",
        "Access Modes": access_modes(at(status, "accessModes")) if bound else "",
        "StorageClass": _storage_class_of(obj),
        "VolumeAttributesClass": _text_or_unset(at(spec, "volumeAttributesClassName")),
        "VolumeMode": text(at(spec, "volumeMode")) or UNSET,
    }


def _storage(amounts: object) -> str:
    value = at(amounts, "storage")
    return "0" if value is None else str(value)


def _storage_class_of(obj: Object) -> str:
    annotated = at(obj, "metadata", "annotations", _CLASS_ANNOTATION)
    return text(at(obj, "spec", "storageClassName") if annotated is None else annotated)


def _text_or_unset(value: object) -> str:
    return UNSET if value is None else text(value)


def _storage_class(obj: Object, _: float) -> dict[str, Any]:
    prefix = "kubernetes.io/is-default-class"
    return {
        "Name": marked_default(obj, f"storageclass.{prefix}", f"storageclass.beta.{prefix}"),
        "Provisioner": text(at(obj, "provisioner")),
        "ReclaimPolicy": text(at(obj, "reclaimPolicy")) or "Delete",
        "VolumeBindingMode": text(at(obj, "volumeBindingMode")) or "Immediate",
        "AllowVolumeExpansion": at(obj, "allowVolumeExpansion") is True,
    }


def _csi_driver(obj: Object, _: float) -> dict[str, Any]:
    spec = at(obj, "spec")
    requests = at(spec, "tokenRequests")
    audiences = ",".join(text(at(item, "audience")) for item in items(requests))
    return {
        "AttachRequired": at(spec, "attachRequired") is not False,
        "PodInfoOnMount": at(spec, "podInfoOnMount") is True,
        "StorageCapacity": at(spec, "storageCapacity") is True,
        "TokenRequests": UNSET if requests is None else audiences,
        "RequiresRepublish": at(spec, "requiresRepublish") is True,
        "Modes": ",".join(texts(at(spec, "volumeLifecycleModes"))) or NONE,
    }


def _csi_node(obj: Object, _: float) -> dict[str, Any]:
    return {"Drivers": len(items(at(obj, "spec", "drivers")))}


def _volume_attachment(obj: Object, _: float) -> dict[str, Any]:
    spec = at(obj, "spec")
    return {
        "Attacher": text(at(spec, "attacher")),
        "PV": text(at(spec, "source", "persistentVolumeName")),
        "Node": text(at(spec, "nodeName")),
        "Attached": at(obj, "status", "attached") is True,
    }


def _volume_attributes_class(obj: Object, _: float) -> dict[str, Any]:
    return {"DriverName": text(at(obj, "driverName"))}


def _resource_claim(obj: Object, _: float) -> dict[str, Any]:
    deleted = at(obj, "metadata", "deletionTimestamp") is not None
    states = ["deleted"] if deleted else []
    if at(obj, "status", "allocation") is None:
        states += [] if deleted else ["pending"]
    else:
        states.append("allocated")
        states += ["reserved"] if items(at(obj, "status", "reservedFor")) else []
    return {"State": ",".join(states)}


def _resource_slice(obj: Object, _: float) -> dict[str, Any]:
    spec = at(obj, "spec")
    return {
        "Node": text(at(spec, "nodeName")),
        "Driver": text(at(spec, "driver")),
        "Pool": text(at(spec, "pool", "name")),
    }


CELLS: Final[Mapping[tuple[str, str], Cells]] = {
    ("", "PersistentVolume"): _persistent_volume,
    ("", "PersistentVolumeClaim"): _persistent_volume_claim,
    ("resource.k8s.io", "ResourceClaim"): _resource_claim,
    ("resource.k8s.io", "ResourceSlice"): _resource_slice,
    ("storage.k8s.io", "CSIDriver"): _csi_driver,
    ("storage.k8s.io", "CSINode"): _csi_node,
    ("storage.k8s.io", "StorageClass"): _storage_class,
    ("storage.k8s.io", "VolumeAttachment"): _volume_attachment,
    ("storage.k8s.io", "VolumeAttributesClass"): _volume_attributes_class,
}
