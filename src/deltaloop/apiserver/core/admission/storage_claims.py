"""Admission of claims and volumes: StorageObjectInUseProtection and PersistentVolumeClaimResize.

Source: Kubernetes plugin/pkg/admission/storage; pkg/volume/util/storageclass.go.
"""

from __future__ import annotations

from typing import Final

from deltaloop.api import kinds
from deltaloop.api.json_values import at, mapping, text, texts
from deltaloop.apiserver.core.admission.attributes import AdmissionAttributes
from deltaloop.apiserver.core.admission.chain import Plugin
from deltaloop.schemas.quantity import amount

_CLAIMS: Final = frozenset({kinds.PERSISTENT_VOLUME_CLAIM.group_resource})
_PROTECTED: Final = _CLAIMS | {kinds.PERSISTENT_VOLUME.group_resource, "volumeattributesclasses.storage.k8s.io"}


def _protect(attributes: AdmissionAttributes) -> dict[str, object] | None:
    """Add the finalizer that protects an object in use."""
    fields, protection = mapping(attributes.after), attributes.served.strategy.protection
    metadata = mapping(fields.get("metadata"))
    present = texts(metadata.get("finalizers"))
    if protection is None or protection.finalizer in present:
        return None
    return {**fields, "metadata": {**metadata, "finalizers": [*present, protection.finalizer]}}


def _check_growth(attributes: AdmissionAttributes) -> None:
    before, after = attributes.before, attributes.after
    old, new = (amount(at(claim, "spec", "resources", "requests", "storage") or 0) for claim in (before, after))
    if new <= old:
        return
    if at(before, "status", "phase") != "Bound":
        raise attributes.refused("Only bound persistent volume claims can be expanded")
    was, name = _class_of(before), _class_of(after)
    found = attributes.objects.get(kinds.STORAGE_CLASS.group_resource, name) if name and name == was else None
    if found is None or at(found.to_dict(), "allowVolumeExpansion") is not True:
        raise attributes.refused(
            "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support "
            "resize"
        )


def _class_of(claim: object) -> str:
    annotated = at(claim, "metadata", "annotations", "volume.beta.kubernetes.io/storage-class")
    return text(at(claim, "spec", "storageClassName") if annotated is None else annotated)


STORAGE_OBJECT_IN_USE_PROTECTION: Final = Plugin(
    operations=frozenset({"CREATE"}), resources=_PROTECTED, mutate=_protect
)
PERSISTENT_VOLUME_CLAIM_RESIZE: Final = Plugin(
    operations=frozenset({"UPDATE"}), resources=_CLAIMS, validate=_check_growth
)
