"""Endpoints and EndpointSlice: where a Service leads to.

Source: Kubernetes pkg/printers/internalversion/printers.go; pkg/registry/discovery/endpointslice/strategy.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from deltaloop.apiserver.core.kinds.cells import NONE, UNSET, first_three
from deltaloop.apiserver.core.strategy import Strategy
from deltaloop.schemas.json_values import at, integer, items, text, texts


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


STRATEGY: Final = Strategy(cells={"Endpoints": _endpoints})
SLICE: Final = Strategy(
    warn_new=_new_slice_warnings,
    cells={"Ports": _slice_ports, "Endpoints": _slice_addresses},
)
