"""Claims, volumes and their classes: StorageObjectInUseProtection, DefaultStorageClass, PersistentVolumeClaimResize.

Source: Kubernetes plugin/pkg/admission/storage; pkg/volume/util/storageclass.go.
"""

from __future__ import annotations

from typing import Final

from deltaloop.api import kinds
from deltaloop.apiserver.core.admission.attributes import AdmissionAttributes
from deltaloop.apiserver.core.admission.chain import Plugin
from deltaloop.schemas.json_values import mapping, texts

_CLAIMS: Final = frozenset({kinds.PERSISTENT_VOLUME_CLAIM.group_resource})
_PROTECTED: Final = _CLAIMS | {kinds.PERSISTENT_VOLUME.group_resource, "volumeattributesclasses.storage.k8s.io"}


def _protect(attributes: AdmissionAttributes) -> dict[str, object] | None:
    """Give a new object the finalizer that keeps it as long as it is in use."""
    fields, protection = mapping(attributes.after), attributes.served.strategy.protection
    metadata = mapping(fields.get("metadata"))
    present = texts(metadata.get("finalizers"))
    if protection is None or protection.finalizer in present:
        return None
    return {**fields, "metadata": {**metadata, "finalizers": [*present, protection.finalizer]}}


STORAGE_OBJECT_IN_USE_PROTECTION: Final = Plugin(
    operations=frozenset({"CREATE"}), resources=_PROTECTED, mutate=_protect
)
