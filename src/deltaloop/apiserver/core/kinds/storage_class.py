"""StorageClass: what provides volumes, which stays so.

Source: Kubernetes pkg/apis/storage/validation/validation.go, pkg/api/storage.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from deltaloop.apiserver.core.kinds.cells import is_true_at, marked_default, text_at
from deltaloop.apiserver.core.kinds.field_checks import each, immutable, set_to_one_of
from deltaloop.apiserver.core.kinds.node_labels import DEPRECATED_LABELS
from deltaloop.apiserver.core.strategy import Strategy
from deltaloop.schemas.faults import FieldError, required
from deltaloop.schemas.json_values import text

_BINDING_MODES: Final = ("Immediate", "WaitForFirstConsumer")
_FIXED: Final = ("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode")
_DEFAULT: Final = ("storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class")


def _errors(storage_class: Mapping[str, object]) -> Iterator[FieldError]:
    if not storage_class.get("provisioner"):
        yield required("provisioner")
    yield from set_to_one_of(storage_class, "volumeBindingMode", _BINDING_MODES)


def _update_errors(before: Mapping[str, object], after: Mapping[str, object]) -> Iterator[FieldError]:
    return immutable(before, after, *_FIXED)


def _warnings(storage_class: Mapping[str, object]) -> Iterator[str]:
    for path, term in each(storage_class, "allowedTopologies"):
        for where, expression in each(term, "matchLabelExpressions", path):
            key = text(expression.get("key"))
            if key in DEPRECATED_LABELS:
                yield f"{where}.key: {DEPRECATED_LABELS[key]}"


STRATEGY: Final = Strategy(
    validate=_errors,
    validate_update=_update_errors,
    warn=_warnings,
    cells={
        "Name": marked_default(*_DEFAULT),
        "Provisioner": "provisioner",
        "ReclaimPolicy": text_at("reclaimPolicy", "Delete"),
        "VolumeBindingMode": text_at("volumeBindingMode", "Immediate"),
        "AllowVolumeExpansion": is_true_at("allowVolumeExpansion"),
    },
)
