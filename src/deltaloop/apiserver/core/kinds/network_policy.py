"""NetworkPolicy: its ports and blocks of addresses; its selectors are not looked at.

Source: Kubernetes pkg/apis/networking/validation/validation.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from deltaloop.apiserver.core.kinds.addresses import network_errors
from deltaloop.apiserver.core.kinds.cells import selector_at
from deltaloop.apiserver.core.kinds.field_checks import each, one_of, port_errors, port_or_name_errors, set_to_one_of
from deltaloop.apiserver.core.strategy import Strategy
from deltaloop.schemas.faults import FieldError, invalid_value
from deltaloop.schemas.json_values import at, integer, items, mapping, text, texts

_PROTOCOLS: Final = ("TCP", "UDP", "SCTP")


def _spec_defaults(spec: dict[str, object]) -> None:
    if not texts(spec.get("policyTypes")):
        spec["policyTypes"] = ["Ingress", "Egress"] if items(spec.get("egress")) else ["Ingress"]


def _errors(policy: Mapping[str, object]) -> Iterator[FieldError]:
    spec = mapping(policy.get("spec"))
    for direction, peers in (("ingress", "from"), ("egress", "to")):
        for where, rule in each(spec, direction, "spec"):
            for field, port in each(rule, "ports", where):
                yield from _port_errors(port, field)
            for field, peer in each(rule, peers, where):
                network = at(peer, "ipBlock", "cidr")
                if network is not None:
                    yield from network_errors(text(network), f"{field}.ipBlock.cidr")
    for place, name in enumerate(texts(spec.get("policyTypes"))):
        yield from one_of(name, f"spec.policyTypes[{place}]", ("Ingress", "Egress"))


def _port_errors(port: Mapping[str, object], where: str) -> Iterator[FieldError]:
    value, end = port.get("port"), port.get("endPort")
    yield from set_to_one_of(port, "protocol", _PROTOCOLS, where)
    if value is not None:
        yield from port_or_name_errors(value, f"{where}.port")
    if end is None:
        return
    if value is None:
        yield invalid_value(f"{where}.endPort", str(end), "may not be specified when `port` is not specified")
    elif isinstance(value, str):
        yield invalid_value(f"{where}.endPort", str(end), "may not be specified when `port` is non-numeric")
    else:
        if integer(end) < integer(value):
            yield invalid_value(f"{where}.endPort", str(value), "must be greater than or equal to `port`")
        yield from port_errors(end, f"{where}.endPort")


STRATEGY: Final = Strategy(
    defaults={"networking.v1.NetworkPolicySpec": _spec_defaults},
    validate=_errors,
    cells={"Pod-Selector": selector_at("spec.podSelector")},
)
