"""NetworkPolicy: defaults and validation.

Source: Kubernetes pkg/apis/networking/validation/validation.go.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias

from deltaloop.api.json_values import at, integer, is_mapping, items, text, texts
from deltaloop.apiserver.core.kinds.addresses import network_errors, network_family
from deltaloop.apiserver.core.kinds.field_checks import each, one_of, port_errors
from deltaloop.apiserver.core.strategy import Strategy
from deltaloop.schemas.checking import Place
from deltaloop.schemas.field_errors import SchemaError, forbidden_field, invalid_value, required

IPV6: Final = 6
_TYPES: Final = "Ingress", "Egress"


def _spec_defaults(spec: dict[str, object]) -> None:
    if not texts(spec.get("policyTypes")):
        spec["policyTypes"] = ["Ingress", "Egress"] if items(spec.get("egress")) else ["Ingress"]


def _end_port_errors(place: Place) -> Iterator[SchemaError]:
    start = place.beside("port")
    if start is None:
        yield invalid_value(place.path, place.value, "may not be specified when `port` is not specified")
    elif isinstance(start, str):
        yield invalid_value(place.path, place.value, "may not be specified when `port` is non-numeric")
    else:
        if integer(place.value) < integer(start):
            yield invalid_value(place.path, place.value, "must be greater than or equal to `port`")
        yield from port_errors(place.value, place.path)


def _warnings(policy: Mapping[str, object]) -> Iterator[str]:
    for direction, peers in (("ingress", "from"), ("egress", "to")):
        for rule_path, rule in each(policy.get("spec"), direction, "spec"):
            for path, peer in each(rule, peers, rule_path):
                block, where = peer.get("ipBlock"), f"{path}.ipBlock"
                yield from network_warnings(text(at(block, "cidr")), f"{where}.cidr")
                for place, network in enumerate(texts(at(block, "except"))):
                    yield from network_warnings(network, f"{where}.except[{place}]")


def network_warnings(value: str, field: str) -> Iterator[str]:
    """Yield a warning for an ambiguous network or a network that is not in canonical form."""
    try:
        address, network = ipaddress.ip_interface(value), ipaddress.ip_network(value, strict=False)
    except ValueError:
        return
    if address.ip != network.network_address:
        single = f"{address.ip}/{network.max_prefixlen}"
        yield f'{field}: CIDR value "{value}" is ambiguous in this context (should be "{network}" or "{single}"?)'
    elif network.version == IPV6 and str(network) != value:
        yield f'{field}: IPv6 CIDR value "{value}" should be in RFC 5952 canonical format ("{network}")'


def _peer_errors(place: Place) -> Iterator[SchemaError]:
    found = [name for name in ("podSelector", "namespaceSelector", "ipBlock") if is_mapping(place.fields.get(name))]
    if not found:
        yield required(place.path, "must specify a peer")
    elif len(found) > 1 and "ipBlock" in found:
        yield forbidden_field(place.path, "may not specify both ipBlock and another peer")


def _except_errors(place: Place) -> Iterator[SchemaError]:
    whole = _network(text(place.beside("cidr")))
    if whole is None:
        return
    for number, network in enumerate(texts(place.value)):
        where, part = f"{place.path}[{number}]", _network(network)
        if part is None:
            yield from network_errors(network, where)
        elif part.version != whole.version or part.prefixlen <= whole.prefixlen or part.network_address not in whole:
            yield invalid_value(where, network, "must be a strict subset of `cidr`")


_Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network


def _network(value: str) -> _Network | None:
    return ipaddress.ip_network(value, strict=False) if network_family(value) else None


def _types_errors(place: Place) -> Iterator[SchemaError]:
    kinds = texts(place.value)
    if len(kinds) > len(_TYPES):
        yield invalid_value(place.path, list(kinds), "may not specify more than two policyTypes")
        return
    for number, kind in enumerate(kinds):
        yield from one_of(kind, f"{place.path}[{number}]", _TYPES)


STRATEGY: Final = Strategy(
    warn=_warnings,
    counts_empty="spec",
    defaults={"networking.v1.NetworkPolicySpec": _spec_defaults},
    checks={
        "end_port": _end_port_errors,
        "excepted_networks": _except_errors,
        "peer": _peer_errors,
        "policy_types": _types_errors,
    },
)
