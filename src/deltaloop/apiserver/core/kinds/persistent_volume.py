"""PersistentVolume and PersistentVolumeClaim: validation, immutable fields and protection (see ``claim_spec``).

Source: Kubernetes pkg/registry/core/persistentvolume/strategy.go; pkg/apis/core/validation/validation.go;
pkg/api/persistentvolume; pkg/printers/internalversion/printers.go; pkg/controller/volume/{pvprotection,pvcprotection}.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from deltaloop.api import kinds
from deltaloop.api.json_values import at, is_mapping, items, mapping, text, texts
from deltaloop.api.resource import Resource
from deltaloop.apiserver.core.kinds import claim_spec
from deltaloop.apiserver.core.kinds.cells import access_modes
from deltaloop.apiserver.core.kinds.cluster import node_term_warnings
from deltaloop.apiserver.core.kinds.field_checks import each
from deltaloop.apiserver.core.kinds.pod_warnings import volume_source_warnings
from deltaloop.apiserver.core.strategy import Cell, Given, Protection, Stored, Strategy
from deltaloop.schemas.checking import IMMUTABLE, Place
from deltaloop.schemas.field_errors import SchemaError, forbidden_field, invalid_value, required, shown
from deltaloop.schemas.quantity import amount

_SOURCES: Final = (
    "awsElasticBlockStore", "azureDisk", "azureFile", "cephfs", "cinder", "csi", "fc", "flexVolume", "flocker",
    "gcePersistentDisk", "glusterfs", "hostPath", "iscsi", "local", "nfs", "photonPersistentDisk", "portworxVolume",
    "quobyte", "rbd", "scaleIO", "storageos", "vsphereVolume",
)  # fmt: skip
_OTHER_MODES: Final = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce")
_DEPRECATED: Final = ("cephfs", "photonPersistentDisk", "scaleIO", "storageos", "glusterfs", "rbd")
_ANNOTATIONS: Final = {
    claim_spec.CLASS_ANNOTATION: claim_spec.CLASS_WARNING,
    "volume.beta.kubernetes.io/mount-options": 'deprecated since v1.31; use "mountOptions" attribute instead',
}


def _finish_new(volume: dict[str, object], _store: Stored, given: Given) -> tuple[()]:
    volume["status"] = {"phase": "Pending", "lastPhaseTransitionTime": given.time}
    return ()


def _capacity_errors(place: Place) -> Iterator[SchemaError]:
    if place.name == "inlineVolumeSpec":
        yield from _inline_errors(place)
        return
    capacity, path = mapping(place.fields.get("capacity")), place.below("capacity")
    if not capacity:
        yield required(path)
    if [*capacity] != ["storage"]:
        text_ = f'Unsupported value: {shown(capacity or None)}: supported values: "storage"'
        yield SchemaError(path, "FieldValueNotSupported", text_)
    for name, value in capacity.items():
        if amount(value) <= 0:
            yield invalid_value(f"{path}[{name}]", value, "must be greater than zero")


def _inline_errors(place: Place) -> Iterator[SchemaError]:
    spec, text_ = place.fields, "may not be specified in the context of inline volumes"
    for name in ("claimRef", "capacity", "nodeAffinity", "storageClassName"):
        if spec.get(name):
            yield forbidden_field(place.below(name), text_)
    if not is_mapping(spec.get("csi")):
        yield required(place.below("csi"), "has to be specified in the context of inline volumes")
    if spec.get("persistentVolumeReclaimPolicy") not in (None, "", "Retain"):
        yield forbidden_field(place.below("persistentVolumeReclaimPolicy"), text_)
    if spec.get("volumeMode") not in (None, "Filesystem"):
        yield forbidden_field(place.below("volumeMode"), text_)


def _spec_errors(place: Place) -> Iterator[SchemaError]:
    spec, inline = place.fields, place.name == "inlineVolumeSpec"
    modes = texts(spec.get("accessModes"))
    if "ReadWriteOncePod" in modes and {*modes} & {*_OTHER_MODES}:
        yield forbidden_field(place.below("accessModes"), "may not use ReadWriteOncePod with other access modes")
    if is_mapping(spec.get("nodeAffinity")) and not inline and not is_mapping(at(spec, "nodeAffinity", "required")):
        yield required(place.below("nodeAffinity.required"), "must specify required node constraints")
    if is_mapping(spec.get("local")) and not is_mapping(spec.get("nodeAffinity")):
        yield required(place.below("nodeAffinity"), "Local volume requires node affinity")
    root = text(at(spec, "hostPath", "path"))
    if root and posixpath.normpath(root) in ("/", "//") and spec.get("persistentVolumeReclaimPolicy") == "Recycle":
        text_ = "may not be 'recycle' for a hostPath mount of '/'"
        yield forbidden_field(place.below("persistentVolumeReclaimPolicy"), text_)
    if spec.get("volumeAttributesClassName") is not None and not is_mapping(spec.get("csi")):
        yield required(place.below("csi"), "has to be specified when using volumeAttributesClassName")


def _update_errors(before: Mapping[str, object], after: Mapping[str, object]) -> Iterator[SchemaError]:
    old, new = mapping(before.get("spec")), mapping(after.get("spec"))
    sources = [{name: spec.get(name) for name in _SOURCES if spec.get(name) is not None} for spec in (old, new)]
    if is_mapping(old.get("csi")) and at(old, "csi", "controllerExpandSecretRef") is None:
        for spec in sources:
            spec["csi"] = {**mapping(spec.get("csi")), "controllerExpandSecretRef": None}
    if sources[0] != sources[1]:
        yield forbidden_field("spec.persistentvolumesource", "spec.persistentvolumesource is immutable after creation")
    if old.get("volumeMode") != new.get("volumeMode"):
        yield invalid_value("volumeMode", new.get("volumeMode"), IMMUTABLE)
    affinity = old.get("nodeAffinity")
    if affinity is not None and affinity != new.get("nodeAffinity"):
        yield invalid_value("nodeAffinity", new.get("nodeAffinity"), IMMUTABLE)
    if old.get("volumeAttributesClassName") is not None and new.get("volumeAttributesClassName") is None:
        yield forbidden_field("spec.volumeAttributesClassName", "update from non-nil value to nil is forbidden")


def _defaults(volume: dict[str, object]) -> None:
    """Set the defaults of volumes, which do not apply to inline volumes of attachments."""
    spec = mapping(volume.setdefault("spec", {}))
    spec["persistentVolumeReclaimPolicy"] = spec.get("persistentVolumeReclaimPolicy") or "Retain"
    spec.setdefault("volumeMode", "Filesystem")


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
    defaults={"core.v1.PersistentVolume": _defaults},
    checks={"capacity": _capacity_errors, "volume_spec": _spec_errors},
    validate_update=_update_errors,
    warn=_warnings,
    finish_new=_finish_new,
    cells={
        "Access Modes": lambda volume: access_modes(at(volume, "spec", "accessModes")),
        "Status": claim_spec.phase,
        "Claim": _claim,
        "StorageClass": claim_spec.storage_class,
    },
)


_REFUSAL: Final = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
)


def _claim_update_errors(before: Mapping[str, object], after: Mapping[str, object]) -> Iterator[SchemaError]:
    """Yield an error for a changed immutable field; the message does not contain the real server's diff."""
    old, new = dict(mapping(before.get("spec"))), dict(mapping(after.get("spec")))
    claim_spec.copy_source(new)
    for name, unset in (("volumeName", (None, "")), ("storageClassName", (None,))):
        if old.get(name) in unset:  # can be set once
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


def _finish_new_claim(claim: dict[str, object], _store: Stored, _given: Given) -> tuple[()]:
    claim_spec.copy_source(mapping(claim.get("spec")))
    return ()


def _finish_update(_before: Mapping[str, object], claim: dict[str, object], store: Stored, given: Given) -> tuple[()]:
    return _finish_new_claim(claim, store, given)


def _claim_warnings(claim: Mapping[str, object]) -> Iterator[str]:
    if at(claim, "metadata", "annotations", claim_spec.CLASS_ANNOTATION) is not None:
        yield f"metadata.annotations[{claim_spec.CLASS_ANNOTATION}]: {claim_spec.CLASS_WARNING}"
    yield from claim_spec.claim_spec_warnings(claim.get("spec"), "spec")


def _is_claim_in_use(claim: Resource, store: Stored) -> bool:
    """Return whether a scheduled pod uses a claim. Other pods are not scheduled while it is being deleted."""
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


CLAIM: Final = Strategy(
    protection=Protection("kubernetes.io/pvc-protection", _is_claim_in_use),
    default=claim_spec.drop_sources,
    finish_new=_finish_new_claim,
    finish_update=_finish_update,
    checks={
        "claim_source": claim_spec.claim_source_errors,
        "claimed_storage": claim_spec.claimed_storage_errors,
    },
    validate_update=_claim_update_errors,
    warn=_claim_warnings,
    cells={
        "Status": claim_spec.phase,
        "Capacity": _if_bound(claim_spec.shown_storage, "capacity"),
        "Access Modes": _if_bound(access_modes, "accessModes"),
        "StorageClass": claim_spec.storage_class,
    },
)
