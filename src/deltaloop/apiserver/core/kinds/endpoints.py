"""Endpoints and EndpointSlice: the backends of a Service.

Source: Kubernetes pkg/printers/internalversion/printers.go; pkg/registry/discovery/endpointslice/strategy.go.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from typing import Final

from deltaloop.api.json_values import at, integer, items, text, texts
from deltaloop.apiserver.core.kinds.addresses import address_family, address_warnings, why_no_address
from deltaloop.apiserver.core.kinds.cells import NONE, UNSET, first_three
from deltaloop.apiserver.core.kinds.field_checks import each
from deltaloop.apiserver.core.kinds.text_forms import endpoint_address_problems
from deltaloop.apiserver.core.metadata.rules import label_name_errors, subdomain_errors
from deltaloop.apiserver.core.strategy import Strategy
from deltaloop.schemas.checking import Place
from deltaloop.schemas.field_errors import SchemaError, duplicate, invalid_value, required

_CONTROLLER: Final = "endpoint-controller"
_SLICE_CONTROLLERS: Final = ("endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io")
_FAMILIES: Final = {"IPv4": 4, "IPv6": 6}


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
    """Return the managing controller of an object. Kubernetes' controllers write canonical addresses."""
    return at(owner, "metadata", "labels", label)


def _subset_errors(place: Place) -> Iterator[SchemaError]:
    if not items(place.fields.get("addresses")) and not items(place.fields.get("notReadyAddresses")):
        yield required(place.path, "must specify `addresses` or `notReadyAddresses`")
    ports = items(place.fields.get("ports"))
    for number, port in enumerate(ports):
        name, where = text(at(port, "name")), f"{place.below('ports')}[{number}].name"
        if name:
            yield from label_name_errors(name, where)
        elif len(ports) > 1:
            yield required(where)


def _slice_address_errors(place: Place) -> Iterator[SchemaError]:
    """Yield the errors in the addresses of an endpoint, which must have the address type of their slice."""
    kind = text(at(place.whole, "addressType"))
    for number, address in enumerate(texts(place.value)):
        where = f"{place.path}[{number}]"
        if kind in _FAMILIES:
            why = why_no_address(address)
            if why:
                yield invalid_value(where, address, why)
                continue
            if address_family(address) != _FAMILIES[kind]:
                yield invalid_value(place.path, address, f"must be an {kind} address")
            elif kind == "IPv6" and str(ipaddress.ip_address(address)) != address:
                yield invalid_value(where, address, "must be in canonical form")
                continue
            yield from _reached_errors(address, where, place.whole)
        elif kind == "FQDN":
            yield from _domain_errors(address, where)


def _address_errors(place: Place) -> Iterator[SchemaError]:
    return _reached_errors(place.text, place.path, place.whole)


def _reached_errors(address: str, field: str, whole: object) -> Iterator[SchemaError]:
    """Yield an error for an address that other machines cannot reach, except in the server's own endpoints."""
    named = at(whole, "metadata", "namespace"), at(whole, "metadata", "name")
    if named != ("default", "kubernetes"):
        for problem in endpoint_address_problems(address):
            yield invalid_value(field, address, problem)


def _domain_errors(name: str, field: str) -> Iterator[SchemaError]:
    if not name:
        yield required(field)
        return
    name = name.removesuffix(".")
    wrong = [*subdomain_errors(name, field)]
    yield from wrong
    if not wrong and len(name.split(".")) < 2:
        yield invalid_value(field, name, "should be a domain with at least two segments separated by dots")
    for label in name.split("."):
        if not wrong and len(label) > 63:
            yield invalid_value(field, label, "must be no more than 63 bytes")


def _unique_names(place: Place) -> Iterator[SchemaError]:
    names = [text(at(item, "name")) for item in items(place.value)]
    for number, name in enumerate(names):
        if name in names[:number]:
            yield duplicate(f"{place.path}[{number}].name", name)


STRATEGY: Final = Strategy(
    warn=_warnings,
    checks={"endpoint_address": _address_errors, "subset": _subset_errors},
    cells={"Endpoints": _endpoints},
)
SLICE: Final = Strategy(
    checks={"slice_addresses": _slice_address_errors, "unique_names": _unique_names},
    warn_new=_new_slice_warnings,
    warn=_slice_warnings,
    cells={"Ports": _slice_ports, "Endpoints": _slice_addresses},
)
