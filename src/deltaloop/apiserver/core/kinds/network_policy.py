"""NetworkPolicy: its peers, ports and blocks of addresses.

Source: Kubernetes pkg/apis/networking/validation/validation.go.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from typing import Final, TypeAlias

from deltaloop.apiserver.core.kinds.addresses import network_errors, network_family
from deltaloop.apiserver.core.kinds.field_checks import one_of, port_errors
from deltaloop.apiserver.core.strategy import Strategy
from deltaloop.schemas.checking import Place, shown
from deltaloop.schemas.faults import FieldError, forbidden_field, invalid_value, required
from deltaloop.schemas.json_values import integer, is_mapping, items, text, texts

_TYPES: Final = ("Ingress", "Egress")


def _spec_defaults(spec: dict[str, object]) -> None:
    if not texts(spec.get("policyTypes")):
        spec["policyTypes"] = ["Ingress", "Egress"] if items(spec.get("egress")) else ["Ingress"]


def _end_port_errors(place: Place) -> Iterator[FieldError]:
    start = place.beside("port")
    if start is None:
        yield invalid_value(place.path, shown(place.value), "may not be specified when `port` is not specified")
    elif isinstance(start, str):
        yield invalid_value(place.path, shown(place.value), "may not be specified when `port` is non-numeric")
    else:
        if integer(place.value) < integer(start):
            yield invalid_value(place.path, shown(place.value), "must be greater than or equal to `port`")
        yield from port_errors(place.value, place.path)


def _peer_errors(place: Place) -> Iterator[FieldError]:
    found = [name for name in ("podSelector", "namespaceSelector", "ipBlock") if is_mapping(place.fields.get(name))]
    if not found:
        yield required(place.path, "must specify a peer")
    elif len(found) > 1 and "ipBlock" in found:
        yield forbidden_field(place.path, "may not specify both ipBlock and another peer")


def _except_errors(place: Place) -> Iterator[FieldError]:
    whole = _network(text(place.beside("cidr")))
    if whole is None:
        return
    for number, network in enumerate(texts(place.value)):
        where, part = f"{place.path}[{number}]", _network(network)
        if part is None:
            yield from network_errors(network, where)
        elif part.version != whole.version or part.prefixlen <= whole.prefixlen or part.network_address not in whole:
            yield invalid_value(where, shown(network), "must be a strict subset of `cidr`")


_Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network


def _network(value: str) -> _Network | None:
    return ipaddress.ip_network(value, strict=False) if network_family(value) else None


def _types_errors(place: Place) -> Iterator[FieldError]:
    kinds = texts(place.value)
    if len(kinds) > len(_TYPES):
        yield invalid_value(place.path, shown(list(kinds)), "may not specify more than two policyTypes")
        return
    for number, kind in enumerate(kinds):
        yield from one_of(kind, f"{place.path}[{number}]", _TYPES)


STRATEGY: Final = Strategy(
    defaults={"networking.v1.NetworkPolicySpec": _spec_defaults},
    checks={
        "end_port": _end_port_errors,
        "excepted_networks": _except_errors,
        "peer": _peer_errors,
        "policy_types": _types_errors,
    },
)
