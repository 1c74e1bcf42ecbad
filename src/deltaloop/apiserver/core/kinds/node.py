"""Node: the ranges of addresses that it gives to its pods agree.

Source: Kubernetes pkg/registry/core/node/strategy.go, pkg/apis/core/v1/conversion.go,
pkg/apis/core/validation/validation.go; pkg/printers/internalversion/printers.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from deltaloop.api import kinds
from deltaloop.apiserver.core.kinds.addresses import network_errors, network_family, one_of_each_errors
from deltaloop.apiserver.core.kinds.agreeing_fields import agree_on_first
from deltaloop.apiserver.core.kinds.cells import NONE, UNKNOWN, condition
from deltaloop.apiserver.core.kinds.kubelet_verbs import proxy_of
from deltaloop.apiserver.core.strategy import Cell, Strategy
from deltaloop.schemas.checking import Place
from deltaloop.schemas.faults import FieldError
from deltaloop.schemas.json_values import at, items, mapping, text, texts


def _status_defaults(status: dict[str, object]) -> None:
    if status.get("allocatable") is None and status.get("capacity"):
        status["allocatable"] = dict(mapping(status["capacity"]))


def _network_errors(place: Place) -> Iterator[FieldError]:
    ranges = texts(place.value)
    for number, network in enumerate(ranges):
        yield from network_errors(network, f"{place.path}[{number}]")
    yield from one_of_each_errors([*map(network_family, ranges)], place.path, ranges, "CIDR")


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
    checks={"networks": _network_errors},
    warn=_warnings,
    subresources=(proxy_of(kinds.NODE),),
    cells={
        "Status": _status,
        "Roles": _roles,
        "Internal-IP": _address("InternalIP"),
        "External-IP": _address("ExternalIP"),
        "Kernel-Version": _kernel,
    },
    status_when_new=True,  # kubelets register nodes together with what they have
)
