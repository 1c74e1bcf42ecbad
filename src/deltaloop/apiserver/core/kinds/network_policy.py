"""NetworkPolicy: its ports and blocks of addresses; its selectors are not looked at.

Source: Kubernetes pkg/apis/networking/validation/validation.go.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from typing import Final

from deltaloop.apiserver.core.kinds.field_checks import each, port_errors
from deltaloop.apiserver.core.strategy import Strategy
from deltaloop.schemas.checking import Place, shown
from deltaloop.schemas.faults import FieldError, invalid_value
from deltaloop.schemas.json_values import at, integer, items, text, texts

IPV6: Final = 6


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


def _warnings(policy: Mapping[str, object]) -> Iterator[str]:
    for direction, peers in (("ingress", "from"), ("egress", "to")):
        for rule_path, rule in each(policy.get("spec"), direction, "spec"):
            for path, peer in each(rule, peers, rule_path):
                block, where = peer.get("ipBlock"), f"{path}.ipBlock"
                yield from network_warnings(text(at(block, "cidr")), f"{where}.cidr")
                for place, network in enumerate(texts(at(block, "except"))):
                    yield from network_warnings(network, f"{where}.except[{place}]")


def network_warnings(value: str, field: str) -> Iterator[str]:
    """Yield a warning for a network that is ambiguous or not in canonical form."""
    try:
        address, network = ipaddress.ip_interface(value), ipaddress.ip_network(value, strict=False)
    except ValueError:
        return
    if address.ip != network.network_address:
        single = f"{address.ip}/{network.max_prefixlen}"
        words = f'is ambiguous in this context (should be "{network}" or "{single}"?)'
        yield f'{field}: CIDR value "{value}" {words}'
    elif network.version == IPV6 and str(network) != value:
        yield f'{field}: IPv6 CIDR value "{value}" should be in RFC 5952 canonical format ("{network}")'


STRATEGY: Final = Strategy(
    warn=_warnings,
    counts_empty="spec",
    defaults={"networking.v1.NetworkPolicySpec": _spec_defaults},
    checks={"end_port": _end_port_errors},
)
