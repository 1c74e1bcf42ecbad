"""Specs of PersistentVolumeClaims in claims, StatefulSets and pods, and common parts of volumes.

Source: Kubernetes pkg/apis/core/validation/validation.go, pkg/api/persistentvolumeclaim.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from deltaloop.api.json_values import at, is_mapping, mapping, text, texts
from deltaloop.apiserver.core.metadata.rules import label_name_errors, subdomain_errors
from deltaloop.schemas.checking import Place
from deltaloop.schemas.field_errors import SchemaError, forbidden_field, invalid_value, required
from deltaloop.schemas.quantity import amount

CLASS_ANNOTATION: Final = "volume.beta.kubernetes.io/storage-class"
_SOURCES: Final = (("", "PersistentVolumeClaim"), ("snapshot.storage.k8s.io", "VolumeSnapshot"))
CLASS_WARNING: Final = 'deprecated since v1.8; use "storageClassName" attribute instead'


def drop_sources(claim: dict[str, object]) -> None:
    """Drop unsupported data sources: objects in other namespaces and, in the old field, most kinds."""
    spec = mapping(claim.get("spec"))
    old, new = spec.get("dataSource"), spec.get("dataSourceRef")
    if is_mapping(new) and new.get("namespace"):
        new = None
        del spec["dataSourceRef"]
    if is_mapping(old) and new is None and (text(old.get("apiGroup")), old.get("kind")) not in _SOURCES:
        del spec["dataSource"]


def copy_source(spec: dict[str, object]) -> None:
    """Copy ``dataSource`` and ``dataSourceRef`` to each other if one of them is missing."""
    for name, other in (("dataSource", "dataSourceRef"), ("dataSourceRef", "dataSource")):
        source = spec.get(other)
        if spec.get(name) is None and is_mapping(source):
            spec[name] = {"apiGroup": None, **source}


def claimed_storage_errors(place: Place) -> Iterator[SchemaError]:
    storage, path = at(place.fields, "resources", "requests", "storage"), place.below("resources[storage]")
    if storage is None:
        yield required(path)
    elif amount(storage) <= 0:
        yield invalid_value(path, storage, "must be greater than zero")


def access_mode_errors(place: Place) -> Iterator[SchemaError]:
    modes = {*texts(place.fields.get("accessModes"))}
    if "ReadWriteOncePod" in modes and modes & {"ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce"}:
        yield forbidden_field(place.below("accessModes"), "may not use ReadWriteOncePod with other access modes")


def claim_source_errors(place: Place) -> Iterator[SchemaError]:
    spec = place.fields
    yield from access_mode_errors(place)
    for name in ("volumeAttributesClassName", "storageClassName"):
        if spec.get(name):
            yield from subdomain_errors(text(spec[name]), place.below(name))
    own = at(place.whole, "kind") == "PersistentVolumeClaim"
    for name, other in (("dataSource", "dataSourceRef"), ("dataSourceRef", "dataSource")):
        wanted = spec.get(name) or (spec.get(other) if own else None)
        if is_mapping(wanted):
            yield from _source_errors(mapping(wanted), place.below(name))
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    if is_mapping(source) and is_mapping(reference):
        if reference.get("namespace"):
            yield invalid_value(place.path, "", "may not be specified when dataSourceRef.namespace is specified")
        elif any(source.get(name) != reference.get(name) for name in ("apiGroup", "kind", "name")):
            yield invalid_value(place.path, "", "must match dataSourceRef")


def _source_errors(source: Mapping[str, object], path: str) -> Iterator[SchemaError]:
    for name in ("name", "kind"):
        if not source.get(name):
            yield required(f"{path}.{name}")
    group = text(source.get("apiGroup"))
    if not group and source.get("kind") != "PersistentVolumeClaim":
        text_ = "must be 'PersistentVolumeClaim' when referencing the default apiGroup"
        yield invalid_value(path, source.get("kind"), text_)
    elif group:
        yield from subdomain_errors(group, f"{path}.apiGroup")
    if source.get("namespace"):
        yield from label_name_errors(text(source["namespace"]), f"{path}.namespace")


def claim_spec_warnings(spec: object, path: str) -> Iterator[str]:
    for group in ("requests", "limits"):
        yield from fraction_warnings(mapping(at(spec, "resources", group)), f"{path}.resources.{group}", "storage")


def fraction_warnings(amounts: Mapping[str, object], path: str, *names: str) -> Iterator[str]:
    for name in names:
        if name in amounts and amount(amounts[name]).denominator != 1:
            yield f'{path}[{name}]: fractional byte value "{amounts[name]}" is invalid, must be an integer'


def storage_class(obj: Mapping[str, object]) -> str:
    annotated = at(obj, "metadata", "annotations", CLASS_ANNOTATION)
    return text(at(obj, "spec", "storageClassName") if annotated is None else annotated)


def phase(obj: Mapping[str, object]) -> str:
    return "Terminating" if at(obj, "metadata", "deletionTimestamp") else text(at(obj, "status", "phase"))


def shown_storage(amounts: object) -> str:
    storage = at(amounts, "storage")
    return "0" if storage is None else str(storage)
