"""What a claim says of the volume that it needs, in an object of its own, a StatefulSet or a pod; volumes are alike.

Source: Kubernetes pkg/apis/core/validation/validation.go, pkg/api/persistentvolumeclaim.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from deltaloop.schemas.checking import Place, shown
from deltaloop.schemas.faults import FieldError, invalid_value, required
from deltaloop.schemas.json_values import at, is_mapping, mapping, text
from deltaloop.schemas.quantity import amount

CLASS_ANNOTATION: Final = "volume.beta.kubernetes.io/storage-class"
CLASS_WARNING: Final = 'deprecated since v1.8; use "storageClassName" attribute instead'


def claim_spec_defaults(spec: dict[str, object]) -> None:
    """Let the old and the new name of what a claim is filled from say the same; other namespaces are off by default."""
    old, new = spec.get("dataSource"), spec.get("dataSourceRef")
    if is_mapping(new) and new.get("namespace"):
        del spec["dataSourceRef"]
    elif is_mapping(old) and new is None:
        spec["dataSourceRef"] = {"apiGroup": None, **old}
    elif is_mapping(new) and old is None:
        spec["dataSource"] = {"apiGroup": None, **new}


def claimed_storage_errors(place: Place) -> Iterator[FieldError]:
    """Yield an error unless the spec of a claim, or of a template of claims, asks for some storage."""
    storage, path = at(place.fields, "resources", "requests", "storage"), place.below("resources[storage]")
    if storage is None:
        yield required(path)
    elif amount(storage) <= 0:
        yield invalid_value(path, shown(storage), "must be greater than zero")


def claim_spec_warnings(spec: object, path: str) -> Iterator[str]:
    """Yield a warning for each size of a claim that is no whole number of bytes."""
    for group in ("requests", "limits"):
        yield from fraction_warnings(mapping(at(spec, "resources", group)), f"{path}.resources.{group}", "storage")


def fraction_warnings(amounts: Mapping[str, object], path: str, *names: str) -> Iterator[str]:
    """Yield a warning for each of these amounts that is no whole number of bytes."""
    for name in names:
        if name in amounts and amount(amounts[name]).denominator != 1:
            yield f'{path}[{name}]: fractional byte value "{amounts[name]}" is invalid, must be an integer'


def storage_class(obj: Mapping[str, object]) -> str:
    """A cell: the class of a claim or a volume."""
    annotated = at(obj, "metadata", "annotations", CLASS_ANNOTATION)
    return text(at(obj, "spec", "storageClassName") if annotated is None else annotated)


def phase(obj: Mapping[str, object]) -> str:
    """A cell: the phase of a claim or a volume, unless it is being deleted."""
    return "Terminating" if at(obj, "metadata", "deletionTimestamp") else text(at(obj, "status", "phase"))


def shown_storage(amounts: object) -> str:
    """Write how much storage there is."""
    storage = at(amounts, "storage")
    return "0" if storage is None else str(storage)
