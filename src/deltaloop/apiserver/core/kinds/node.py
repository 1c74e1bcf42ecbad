"""Node: defaults, validation and table cells.

Source: Kubernetes pkg/registry/core/node/strategy.go, pkg/apis/core/v1/conversion.go,
pkg/apis/core/validation/validation.go; pkg/printers/internalversion/printers.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from deltaloop.api import kinds
from deltaloop.api.json_values import at, items, mapping, text, texts
from deltaloop.apiserver.core.kinds.addresses import network_errors, network_family, one_of_each_errors
from deltaloop.apiserver.core.kinds.cells import NONE, UNKNOWN, condition
from deltaloop.apiserver.core.kinds.field_checks import agree_on_first
from deltaloop.apiserver.core.kinds.kubelet_verbs import proxy_of
from deltaloop.apiserver.core.kinds.pod_placement import taint_errors
from deltaloop.apiserver.core.kinds.resource_amounts import amount_errors
from deltaloop.apiserver.core.strategy import Cell, Strategy
from deltaloop.schemas.checking import Place
from deltaloop.schemas.field_errors import SchemaError, duplicate, forbidden_field, invalid_value


def _status_defaults(status: dict[str, object]) -> None:
    if status.get("allocatable") is None and status.get("capacity"):
        status["allocatable"] = dict(mapping(status["capacity"]))


def _network_errors(place: Place) -> Iterator[SchemaError]:
    ranges = texts(place.value)
    for number, network in enumerate(ranges):
        yield from network_errors(network, f"{place.path}[{number}]")
    yield from one_of_each_errors([*map(network_family, ranges)], place.path, ranges, "CIDR")


def _update_errors(before: Mapping[str, object], after: Mapping[str, object]) -> Iterator[SchemaError]:
    old, new = mapping(before.get("spec")), mapping(after.get("spec"))
    if texts(old.get("podCIDRs")) and texts(old.get("podCIDRs")) != texts(new.get("podCIDRs")):
        yield forbidden_field("spec.podCIDRs", 'node updates may not change podCIDR except from "" to valid')
    if old.get("providerID") and old["providerID"] != new.get("providerID"):
        yield invalid_value("spec.providerID", None, "field cannot be modified once set")
    if (old.get("externalID") or "") != (new.get("externalID") or ""):
        yield forbidden_field("spec.externalID", "may not be updated")


def _amount_errors(node: Mapping[str, object]) -> Iterator[SchemaError]:
    for group in ("capacity", "allocatable"):
        for name, value in mapping(at(node, "status", group)).items():
            yield from amount_errors(name, value, f"status.{group}.{name}")


def _status_errors(_before: Mapping[str, object], node: Mapping[str, object]) -> Iterator[SchemaError]:
    yield from _amount_errors(node)
    addresses = items(at(node, "status", "addresses"))
    for number, address in enumerate(addresses):
        if address in addresses[:number]:
            yield duplicate(f"status.addresses[{number}]", address)


def _warnings(node: Mapping[str, object]) -> Iterator[str]:
    if at(node, "spec", "externalID"):
        yield "spec.externalID: this field is deprecated, and is unused by Kubernetes"


def _status(node: Mapping[str, object]) -> str:
    ready = condition(node, "Ready")
    status = "Unknown" if ready is None else "Ready" if ready == "True" else "NotReady"
    return f"{status},SchedulingDisabled" if at(node, "spec", "unschedulable") is True else status


def _roles(node: Mapping[str, object]) -> str:
    labels, prefix = mapping(at(node, "metadata", "labels")), "node-role.kubernetes.io/"
    roles = {label.removeprefix(prefix) for label in labels if label.startswith(prefix)}
    return ",".join(sorted((roles | {text(labels.get("kubernetes.io/role"))}) - {""})) or NONE


def _kernel(node: Mapping[str, object]) -> str:
    info = at(node, "status", "nodeInfo")
    kernel, architecture = text(at(info, "kernelVersion")) or UNKNOWN, text(at(info, "architecture"))
    return f"{kernel} ({architecture})" if architecture else kernel


def _address(kind: str) -> Cell:
    def cell(node: Mapping[str, object]) -> str:
        addresses = items(at(node, "status", "addresses"))
        return next((text(at(item, "address")) for item in addresses if at(item, "type") == kind), NONE)

    return cell


STRATEGY: Final = Strategy(
    defaults={
        "core.v1.NodeSpec": lambda spec: agree_on_first(spec, "podCIDR", "podCIDRs"),
        "core.v1.NodeStatus": _status_defaults,
    },
    checks={"networks": _network_errors, "node_taints": taint_errors},
    validate=_amount_errors,
    validate_update=_update_errors,
    validate_status=_status_errors,
    warn=_warnings,
    subresources=(proxy_of(kinds.NODE),),
    cells={
        "Status": _status,
        "Roles": _roles,
        "Internal-IP": _address("InternalIP"),
        "External-IP": _address("ExternalIP"),
        "Kernel-Version": _kernel,
    },
    status_when_new=True,  # kubelets register nodes together with their status
)
