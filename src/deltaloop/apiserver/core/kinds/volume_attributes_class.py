"""VolumeAttributesClass: stays as long as a volume or a claim names it.

Source: Kubernetes pkg/controller/volume/vacprotection; pkg/printers/internalversion/printers.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from deltaloop.api import kinds
from deltaloop.api.json_values import at
from deltaloop.api.resource import Resource
from deltaloop.apiserver.core.strategy import Protection, Stored, Strategy
from deltaloop.schemas.faults import FieldError, forbidden_field

_NAMED: Final = (
    ("spec", "volumeAttributesClassName"),
    ("status", "currentVolumeAttributesClassName"),
    ("status", "modifyVolumeStatus", "targetVolumeAttributesClassName"),
)


def _is_in_use(attributes: Resource, store: Stored) -> bool:
    users = (kinds.PERSISTENT_VOLUME_CLAIM, kinds.PERSISTENT_VOLUME)
    named = (
        at(user.to_dict(), *way) for kind in users for user in store.list(kind.group_resource).items for way in _NAMED
    )
    return attributes.name in named


def _update_errors(before: Mapping[str, object], after: Mapping[str, object]) -> Iterator[FieldError]:
    for name in ("driverName", "parameters"):
        if before.get(name) != after.get(name):
            yield forbidden_field(name, f"updates to {name} are forbidden.")


STRATEGY: Final = Strategy(
    validate_update=_update_errors,
    protection=Protection("kubernetes.io/vac-protection", _is_in_use),
)
