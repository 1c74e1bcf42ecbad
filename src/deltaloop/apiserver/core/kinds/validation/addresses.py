"""Addresses, and who may have several: one of each family at most.

Source: Kubernetes pkg/apis/core/validation/validation.go (``validatePodIPs``, ``validateHostIPs``, ``ValidateNode``).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from typing import Any, Final

from deltaloop.apiserver.core.kinds.validation.checks import shown
from deltaloop.schemas.faults import FieldError, invalid_value
from deltaloop.schemas.json_values import at, items, mapping, text, texts

Fields = dict[str, Any]

NO_ADDRESS: Final = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
_NO_NETWORK: Final = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
_ONE_OF_EACH: Final = "may specify no more than one {} for each IP family"


def is_address(value: str) -> bool:
    """Tell whether a text is an address of either family."""
    return _family(value) != 0


def _family(value: str) -> int:
    """Return 4 or 6; 0 for what is no address."""
    try:
        return ipaddress.ip_address(value).version
    except ValueError:
        return 0


def _network_family(value: str) -> int:
    try:
        return ipaddress.ip_network(value, strict=False).version if "/" in value else 0
    except ValueError:
        return 0


def pod_status_errors(pod: Fields) -> Iterator[FieldError]:
    """Yield what is wrong with the addresses in a pod's status."""
    status = mapping(pod.get("status"))
    yield from _several_errors(status, "podIPs")
    hosts = items(status.get("hostIPs"))
    first = text(at(hosts[0], "ip")) if hosts else ""
    if first != text(status.get("hostIP")) and hosts:
        yield invalid_value("status.hostIPs[0].ip", shown(first), "must be equal to `hostIP`")
    yield from _several_errors(status, "hostIPs")


def _several_errors(status: Fields, name: str) -> Iterator[FieldError]:
    found = [text(at(item, "ip")) for item in items(status.get(name))]
    for place, address in enumerate(found):
        if not is_address(address):
            yield invalid_value(f"status.{name}[{place}]", shown(address), NO_ADDRESS)
    if len({_family(address) for address in found}) < len(found):
        listed = shown([{"IP": address} for address in found])
        yield invalid_value(f"status.{name}", listed, _ONE_OF_EACH.format("IP"))


def node_errors(node: Fields) -> Iterator[FieldError]:
    """Yield what is wrong with the ranges of addresses that a node gives to its pods."""
    ranges = texts(at(node, "spec", "podCIDRs"))
    for place, network in enumerate(ranges):
        if not _network_family(network):
            yield invalid_value(f"spec.podCIDRs[{place}]", shown(network), _NO_NETWORK)
    if len({_network_family(network) for network in ranges}) < len(ranges):
        yield invalid_value("spec.podCIDRs", shown([*ranges]), _ONE_OF_EACH.format("CIDR"))
