"""Endpoints and EndpointSlice: where a Service leads to.

Source: Kubernetes pkg/printers/internalversion/printers.go; pkg/registry/discovery/endpointslice/strategy.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from deltaloop.apiserver.core.kinds.addresses import address_warnings
from deltaloop.apiserver.core.kinds.cells import NONE, UNSET, first_three
from deltaloop.apiserver.core.kinds.field_checks import each
from deltaloop.apiserver.core.strategy import Strategy
from deltaloop.schemas.json_values import at, integer, items, text, texts

_CONTROLLER: Final = "endpoint-controller"
_SLICE_CONTROLLERS: Final = ("endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io")


def _endpoints(endpoints: Mapping[str, object]) -> str:
    found: list[str] = []
    for subset in items(at(endpoints, "subsets")):
        addresses = [text(at(address, "ip")) for address in items(at(subset, "addresses"))]
        ports = items(at(subset, "ports"))
        found += addresses if not ports else []
        found += [_joined(address, integer(at(port, "port"))) for port in ports for address in addresses]
    return first_three(found, empty="" if items(at(endpoints, "subsets")) else NONE)


def _joined(address: str, port: int) -> str:
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def _slice_ports(endpoint_slice: Mapping[str, object]) -> str:
    return first_three([_slice_port(port) for port in items(endpoint_slice.get("ports"))], empty=UNSET) or UNSET


def _slice_port(port: object) -> str:
    number, name = at(port, "port"), at(port, "name")
    if number is not None:
        return str(integer(number))
    return "*" if name is None else text(name)


def _slice_addresses(endpoint_slice: Mapping[str, object]) -> str:
    endpoints = items(endpoint_slice.get("endpoints"))
    return first_three([address for item in endpoints for address in texts(at(item, "addresses"))], empty=UNSET)


def _new_slice_warnings(endpoint_slice: Mapping[str, object]) -> Iterator[str]:
    if endpoint_slice.get("addressType") == "FQDN":
        yield "spec.addressType: FQDN endpoints are deprecated"


def _slice_warnings(endpoint_slice: Mapping[str, object]) -> Iterator[str]:
    if _manager(endpoint_slice, "endpointslice.kubernetes.io/managed-by") in _SLICE_CONTROLLERS:
        return
    for field, endpoint in each(endpoint_slice, "endpoints"):
        for place, address in enumerate(texts(endpoint.get("addresses"))):
            yield from address_warnings(address, f"{field}.addresses[{place}]")


def _warnings(endpoints: Mapping[str, object]) -> Iterator[str]:
    if _manager(endpoints, "endpoints.kubernetes.io/managed-by") == _CONTROLLER:
        return
    for path, subset in each(endpoints, "subsets"):
        for group in ("addresses", "notReadyAddresses"):
            for field, address in each(subset, group, path):
                yield from address_warnings(text(address.get("ip")), f"{field}.ip")


def _manager(owner: Mapping[str, object], label: str) -> object:
    """Return the controller that manages an object; those of Kubernetes write canonical addresses."""
    return at(owner, "metadata", "labels", label)


STRATEGY: Final = Strategy(warn=_warnings, cells={"Endpoints": _endpoints})
SLICE: Final = Strategy(
    warn_new=_new_slice_warnings,
    warn=_slice_warnings,
    cells={"Ports": _slice_ports, "Endpoints": _slice_addresses},
)
