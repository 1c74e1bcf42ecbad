"""CSIDriver, CSINode and VolumeAttachment.

Source: Kubernetes pkg/registry/storage/csidriver/strategy.go; pkg/printers/internalversion/printers.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from deltaloop.api.json_values import at, integer, items, mapping, text, texts
from deltaloop.apiserver.core.kinds.cells import UNSET
from deltaloop.apiserver.core.metadata.rules import qualified_name_errors
from deltaloop.apiserver.core.strategy import Strategy
from deltaloop.schemas.checking import IMMUTABLE, Place
from deltaloop.schemas.field_errors import SchemaError, duplicate, forbidden_field, invalid_value, required


def _warnings(driver: Mapping[str, object]) -> Iterator[str]:
    if items(at(driver, "spec", "tokenRequests")) and at(driver, "spec", "serviceAccountTokenInSecrets") is None:
        yield (
            "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent "
            "possible logging of tokens in volume attributes"
        )


def _update_warnings(before: Mapping[str, object], after: Mapping[str, object]) -> Iterator[str]:
    if at(before, "spec", "tokenRequests") != at(after, "spec", "tokenRequests"):
        yield from _warnings(after)


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


def _update_errors(before: Mapping[str, object], after: Mapping[str, object]) -> Iterator[SchemaError]:
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
    """Yield an error for each changed driver of a node, except for changes of ``allocatable``."""
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
STRATEGY: Final = Strategy(
    prepare_update=_prepare_update,
    checks={"csi_driver": _spec_errors},
    validate_update=_update_errors,
    warn_new=_warnings,
    warn_update=_update_warnings,
    cells={
        "AttachRequired": lambda driver: at(driver, "spec", "attachRequired") is not False,
        "TokenRequests": _token_requests,
    },
)
