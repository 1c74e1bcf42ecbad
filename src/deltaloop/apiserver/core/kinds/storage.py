"""Strategies of storage classes, CSI drivers, and their companions.

Source: Kubernetes pkg/apis/storage/validation/validation.go, pkg/api/storage/util.go;
pkg/printers/internalversion/printers.go; pkg/controller/volume/vacprotection; Kubernetes
pkg/registry/storage/csidriver/strategy.go; pkg/printers/internalversion/printers.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from deltaloop.api import kinds
from deltaloop.api.dns_names import label_key_problems
from deltaloop.api.json_values import at, integer, items, mapping, string_map, text, texts
from deltaloop.api.resource import Resource
from deltaloop.apiserver.core.kinds.cells import UNSET
from deltaloop.apiserver.core.kinds.cluster import DEPRECATED_LABELS, node_term_warnings
from deltaloop.apiserver.core.kinds.field_checks import each
from deltaloop.apiserver.core.metadata.rules import qualified_name_errors
from deltaloop.apiserver.core.strategy import Protection, Stored, Strategy
from deltaloop.schemas.checking import IMMUTABLE, Place
from deltaloop.schemas.field_errors import SchemaError, duplicate, forbidden_field, invalid_value, required, too_long

_MOST_PARAMETERS: Final = 512
_LONGEST_PARAMETERS: Final = 256 * 1024

_DEFAULT: Final = ("storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class")


def _warnings(storage_class: Mapping[str, object]) -> Iterator[str]:
    for path, term in each(storage_class, "allowedTopologies"):
        for where, expression in each(term, "matchLabelExpressions", path):
            key = text(expression.get("key"))
            if key in DEPRECATED_LABELS:
                yield f"{where}.key: {DEPRECATED_LABELS[key]}"


def _default_of(listed: Sequence[Mapping[str, object]]) -> str:
    """Return the name of the newest class that is marked as default."""
    chosen = [each for each in listed if any(at(each, "metadata", "annotations", name) == "true" for name in _DEFAULT)]
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
            for index, value in enumerate(values):
                if value in values[:index]:
                    yield duplicate(f"{path}.values[{index}]", value)
            for problem in label_key_problems(key):
                yield invalid_value(f"{path}.key", key, problem)
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
    default_of=_default_of,
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
