"""Strategies of volumes and their claims, storage classes, and CSI drivers.

Source: Kubernetes pkg/apis/storage/validation/validation.go, pkg/api/storage/util.go;
pkg/printers/internalversion/printers.go; pkg/controller/volume/vacprotection; Kubernetes
pkg/registry/storage/csidriver/strategy.go; pkg/printers/internalversion/printers.go; Kubernetes
pkg/registry/core/persistentvolume/strategy.go; pkg/apis/core/validation/validation.go; pkg/api/persistentvolume;
pkg/printers/internalversion/printers.go; pkg/controller/volume/{pvprotection,pvcprotection}.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from deltaloop.api import kinds
from deltaloop.api.json_values import at, integer, is_mapping, items, mapping, string_map, text, texts
from deltaloop.api.resource import Resource
from deltaloop.apiserver.core.kinds import claim_spec
from deltaloop.apiserver.core.kinds.cells import UNSET, access_modes
from deltaloop.apiserver.core.kinds.cluster import DEPRECATED_LABELS, node_term_warnings
from deltaloop.apiserver.core.kinds.field_checks import duplicate_errors, each
from deltaloop.apiserver.core.kinds.pod_warnings import volume_source_warnings
from deltaloop.apiserver.core.metadata.rules import qualified_name_errors
from deltaloop.apiserver.core.strategy import Cell, Moment, Protection, Stored, Strategy
from deltaloop.schemas.checking import IMMUTABLE, Place
from deltaloop.schemas.field_errors import (
    SchemaError,
    duplicate,
    forbidden_field,
    invalid_value,
    required,
    shown,
    too_long,
)
from deltaloop.schemas.quantity import amount

_MOST_PARAMETERS: Final = 512
_LONGEST_PARAMETERS: Final = 256 * 1024

DEFAULT_CLASS_MARKS: Final = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)


def _warnings(storage_class: Mapping[str, object]) -> Iterator[str]:
    for path, term in each(storage_class, "allowedTopologies"):
        for where, expression in each(term, "matchLabelExpressions", path):
            key = text(expression.get("key"))
            if key in DEPRECATED_LABELS:
                yield f"{where}.key: {DEPRECATED_LABELS[key]}"


def newest_default(listed: Sequence[Mapping[str, object]], marks: tuple[str, ...] = DEFAULT_CLASS_MARKS) -> str:
    """Return the name of the newest class that is marked as default."""
    chosen = [each for each in listed if any(at(each, "metadata", "annotations", name) == "true" for name in marks)]
    by_name = sorted(chosen, key=lambda each: text(at(each, "metadata", "name")))
    newest = max(by_name, key=lambda each: text(at(each, "metadata", "creationTimestamp")), default=None)
    return text(at(newest, "metadata", "name"))


def _topology_errors(place: Place) -> Iterator[SchemaError]:
    """Yield the errors in the topologies of a class. Keys, values and terms must be unique."""
    seen: list[dict[str, frozenset[str]]] = [{}]  # makes an empty term a duplicate
    for number, term in enumerate(items(place.value)):
        found: dict[str, frozenset[str]] = {}
        where = f"{place.path}[{number}].matchLabelExpressions"
        for at_, expression in enumerate(items(at(term, "matchLabelExpressions"))):
            key, values = text(at(expression, "key")), texts(at(expression, "values"))
            path = f"{where}[{at_}]"
            if not values:
                yield required(f"{path}.values")
            yield from duplicate_errors(values, f"{path}.values")
            yield from qualified_name_errors(key, f"{path}.key")
            if key in found:
                yield duplicate(f"{path}.key", key)
            found[key] = frozenset(values)
        if found in seen:
            yield duplicate(where, "")
        seen.append(found)


def parameter_errors(place: Place) -> Iterator[SchemaError]:
    parameters = string_map(place.value)
    if len(parameters) > _MOST_PARAMETERS:
        yield too_long(place.path, _MOST_PARAMETERS)
    elif "" in parameters:
        yield invalid_value(place.path, "", "field can not be empty.")
    if sum(len(name) + len(value) for name, value in parameters.items()) > _LONGEST_PARAMETERS:
        yield too_long(place.path, _LONGEST_PARAMETERS)


STORAGE_CLASS: Final = Strategy(
    checks={"parameters": parameter_errors, "topologies": _topology_errors},
    default_of=newest_default,
    warn=_warnings,
)


def _capacity_warnings(capacity: Mapping[str, object]) -> Iterator[str]:
    topology = capacity.get("nodeTopology")
    yield from node_term_warnings(topology, "nodeTopology")
    for label in sorted(DEPRECATED_LABELS.keys() & mapping(at(topology, "matchLabels"))):
        yield f"nodeTopology.matchLabels.{label}: {DEPRECATED_LABELS[label]}"


CAPACITY: Final = Strategy(warn=_capacity_warnings)


def _resource(migration: Mapping[str, object]) -> str:
    group = text(at(migration, "spec", "resource", "group"))
    return text(at(migration, "spec", "resource", "resource")) + (group and f".{group}")


VERSION_MIGRATION: Final = Strategy(cells={"Resource": _resource})


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


def _update_errors(before: Mapping[str, object], after: Mapping[str, object]) -> Iterator[SchemaError]:
    for name in ("driverName", "parameters"):
        if before.get(name) != after.get(name):
            yield forbidden_field(name, f"updates to {name} are forbidden.")


VOLUME_ATTRIBUTES: Final = Strategy(
    validate_update=_update_errors,
    protection=Protection("kubernetes.io/vac-protection", _is_in_use),
)


def _csi_driver_warnings(driver: Mapping[str, object]) -> Iterator[str]:
    if items(at(driver, "spec", "tokenRequests")) and at(driver, "spec", "serviceAccountTokenInSecrets") is None:
        yield (
            "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent "
            "possible logging of tokens in volume attributes"
        )


def _update_warnings(before: Mapping[str, object], after: Mapping[str, object]) -> Iterator[str]:
    if at(before, "spec", "tokenRequests") != at(after, "spec", "tokenRequests"):
        yield from _csi_driver_warnings(after)


def _prepare_update(before: dict[str, object], after: dict[str, object]) -> None:
    # A new driver has no generation.
    if before.get("spec") != after.get("spec"):
        metadata = mapping(after["metadata"])
        metadata["generation"] = integer(metadata.get("generation")) + 1


def _token_requests(driver: Mapping[str, object]) -> str:
    requests = at(driver, "spec", "tokenRequests")
    return UNSET if requests is None else ",".join(text(at(item, "audience")) for item in items(requests))


def _spec_errors(place: Place) -> Iterator[SchemaError]:
    if place.fields.get("serviceAccountTokenInSecrets") is not None and not items(place.fields.get("tokenRequests")):
        text_ = "serviceAccountTokenInSecrets is set but no tokenRequests are specified"
        yield invalid_value(place.below("serviceAccountTokenInSecrets"), None, text_)


def _csi_driver_update_errors(before: Mapping[str, object], after: Mapping[str, object]) -> Iterator[SchemaError]:
    if at(before, "spec", "attachRequired") != at(after, "spec", "attachRequired"):
        yield invalid_value("spec.attachedRequired", at(after, "spec", "attachRequired"), IMMUTABLE)


def _node_driver_errors(place: Place) -> Iterator[SchemaError]:
    names = [text(at(driver, "name")) for driver in items(place.value)]
    for number, driver in enumerate(items(place.value)):
        where, keys = f"{place.path}[{number}]", texts(at(driver, "topologyKeys"))
        if names[number] in names[:number]:
            yield duplicate(f"{where}.name", names[number])
        for index, key in enumerate(keys):
            if key in keys[:index]:
                yield duplicate(where, key)
            yield from qualified_name_errors(key, where)


def _node_update_errors(before: Mapping[str, object], after: Mapping[str, object]) -> Iterator[SchemaError]:
    old = {text(at(driver, "name")): mapping(driver) for driver in items(at(before, "spec", "drivers"))}
    for driver in map(mapping, items(at(after, "spec", "drivers"))):
        was = old.get(text(driver.get("name")), driver)
        if {**was, "allocatable": None} != {**driver, "allocatable": None}:
            yield invalid_value("spec.drivers", driver, IMMUTABLE)


def _attachment_errors(place: Place) -> Iterator[SchemaError]:
    inline, named = place.fields.get("inlineVolumeSpec"), place.fields.get("persistentVolumeName")
    text_ = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
    if inline is None and named is None:
        yield required(place.path, text_)
    elif inline is not None and named is not None:
        yield forbidden_field(place.path, text_)


ATTACHMENT: Final = Strategy(checks={"attachment_source": _attachment_errors})
NODE: Final = Strategy(checks={"node_drivers": _node_driver_errors}, validate_update=_node_update_errors)
CSI_DRIVER: Final = Strategy(
    prepare_update=_prepare_update,
    checks={"csi_driver": _spec_errors},
    validate_update=_csi_driver_update_errors,
    warn_new=_csi_driver_warnings,
    warn_update=_update_warnings,
    cells={
        "AttachRequired": lambda driver: at(driver, "spec", "attachRequired") is not False,
        "TokenRequests": _token_requests,
    },
)


_SOURCES: Final = (
    "awsElasticBlockStore", "azureDisk", "azureFile", "cephfs", "cinder", "csi", "fc", "flexVolume", "flocker",
    "gcePersistentDisk", "glusterfs", "hostPath", "iscsi", "local", "nfs", "photonPersistentDisk", "portworxVolume",
    "quobyte", "rbd", "scaleIO", "storageos", "vsphereVolume",
)  # fmt: skip
_DEPRECATED: Final = ("cephfs", "photonPersistentDisk", "scaleIO", "storageos", "glusterfs", "rbd")
_ANNOTATIONS: Final = {
    claim_spec.CLASS_ANNOTATION: claim_spec.CLASS_WARNING,
    "volume.beta.kubernetes.io/mount-options": 'deprecated since v1.31; use "mountOptions" attribute instead',
}


def _finish_new(volume: dict[str, object], _store: Stored, moment: Moment) -> tuple[()]:
    volume["status"] = {"phase": "Pending", "lastPhaseTransitionTime": moment.time}
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


def _volume_spec_errors(place: Place) -> Iterator[SchemaError]:
    spec, inline = place.fields, place.name == "inlineVolumeSpec"
    yield from claim_spec.access_mode_errors(place)
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


def _volume_update_errors(before: Mapping[str, object], after: Mapping[str, object]) -> Iterator[SchemaError]:
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


def _volume_warnings(volume: Mapping[str, object]) -> Iterator[str]:
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


def _is_volume_in_use(volume: Resource, _store: Stored) -> bool:
    return at(volume.to_dict(), "status", "phase") == "Bound"


PERSISTENT_VOLUME: Final = Strategy(
    protection=Protection("kubernetes.io/pv-protection", _is_volume_in_use),
    defaults={"core.v1.PersistentVolume": _defaults},
    checks={"capacity": _capacity_errors, "volume_spec": _volume_spec_errors},
    validate_update=_volume_update_errors,
    warn=_volume_warnings,
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


def _finish_new_claim(claim: dict[str, object], _store: Stored, _moment: Moment) -> tuple[()]:
    claim_spec.copy_source(mapping(claim.get("spec")))
    return ()


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
    finish_update=lambda _before, after, store, moment: _finish_new_claim(after, store, moment),
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
