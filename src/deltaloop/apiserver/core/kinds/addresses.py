"""Validation of IP addresses and networks.

Source: Kubernetes pkg/apis/core/validation/validation.go (``validatePodIPs``, ``validateHostIPs``, ``ValidateNode``).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator
from typing import Final

from deltaloop.schemas.field_errors import SchemaError, invalid_value

_NO_ADDRESS: Final = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
_NO_NETWORK: Final = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"


def address_family(value: str) -> int:
    try:
        return ipaddress.ip_address(value).version
    except ValueError:
        return 0


def network_family(value: str) -> int:
    """Return 4 or 6, or 0 for an invalid network in CIDR notation."""
    try:
        return ipaddress.ip_network(value, strict=False).version if "/" in value else 0
    except ValueError:
        return 0


def address_errors(values: Iterable[str], path: str, *, but: str = "") -> Iterator[SchemaError]:
    """Yield an error for each invalid address, except for the word ``but``."""
    for place, value in enumerate(values):
        why = "" if but and value == but else why_no_address(value)
        if why:
            yield invalid_value(f"{path}[{place}]", value, why)


def why_no_address(value: str) -> str:
    """Return the reason why a text is not an address, or an empty string."""
    try:
        address = ipaddress.ip_address(value)
    except ValueError:
        shorter = ".".join(part.lstrip("0") or "0" for part in value.split(".")) if value else value
        return "must not have leading 0s" if address_family(shorter) == 4 else _NO_ADDRESS
    mapped = address.version == 6 and address.ipv4_mapped is not None
    return "must not be an IPv4-mapped IPv6 address" if mapped else ""


def network_errors(value: str, path: str) -> Iterator[SchemaError]:
    if not network_family(value):
        yield invalid_value(path, value, _NO_NETWORK)


def one_of_each_errors(families: list[int], path: str, listed: object, what: str) -> Iterator[SchemaError]:
    if len({*families}) < len(families):
        yield invalid_value(path, listed, f"may specify no more than one {what} for each IP family")


def address_warnings(address: str, field: str) -> Iterator[str]:
    if address_family(address) == 6 and str(ipaddress.ip_address(address)) != address:
        right = ipaddress.ip_address(address)
        yield f'{field}: IPv6 address "{address}" should be in RFC 5952 canonical format ("{right}")'
