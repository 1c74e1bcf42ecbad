"""IP addresses and networks: ``cidr("10.0.0.0/8").containsIP(ip("10.1.2.3"))``.

Source: k8s.io/apiserver pkg/cel/library/urls.go; k8s.io/apiserver pkg/cel/library/ip.go, cidr.go.
"""

from __future__ import annotations

from functools import partial
from ipaddress import IPv6Address, ip_interface
from typing import ClassVar, Final, final

import msgspec

from deltaloop.cel.errors import EvaluationError, no_such_overload, succeeds
from deltaloop.cel.library import Library, function, method
from deltaloop.cel.types import BOOL, INT, STRING, Type, list_of, map_of, object_of
from deltaloop.schemas.formats import fits
from deltaloop.schemas.go_addresses import Address, AddressError, Network, parse_address, parse_network
from deltaloop.schemas.go_numbers import quoted
from deltaloop.schemas.go_urls import Url, UrlError, parse_request_url, parse_url

URL: Final = object_of("kubernetes.URL")


@final
class URLValue(msgspec.Struct, frozen=True, eq=False):
    cel_type: ClassVar[Type] = URL

    parts: Url

    def __str__(self) -> str:
        return str(self.parts)

    def cel_equals(self, other: object) -> bool:
        if isinstance(other, URLValue):
            return str(self.parts) == str(other.parts)
        raise no_such_overload()


def _parsed(text: str) -> URLValue:
    try:
        parse_request_url(text)
        return URLValue(parse_url(text))
    except UrlError as error:
        raise EvaluationError(f"URL parse error during conversion from string: {error}") from None


URLS: Final = Library(
    "kubernetes.urls",
    {
        "url": (function("string_to_url", (STRING,), URL, _parsed),),
        "isURL": (function("is_url_string", (STRING,), BOOL, lambda text: fits("uri", text)),),
        "getScheme": (method("url_get_scheme", (URL,), STRING, lambda url: url.parts.scheme),),
        "getHost": (method("url_get_host", (URL,), STRING, lambda url: url.parts.host),),
        "getHostname": (method("url_get_hostname", (URL,), STRING, lambda url: url.parts.hostname),),
        "getPort": (method("url_get_port", (URL,), STRING, lambda url: url.parts.port),),
        "getEscapedPath": (method("url_get_escaped_path", (URL,), STRING, lambda url: url.parts.escaped_path),),
        "getQuery": (method("url_get_query", (URL,), map_of(STRING, list_of(STRING)), lambda url: url.parts.query),),
    },
)


IP: Final = Type("opaque", "net.IP")
CIDR: Final = Type("opaque", "net.CIDR")
_FAILED: Final = "network address parse error during conversion from string: "


@final
class IPValue(msgspec.Struct, frozen=True, eq=False):
    cel_type: ClassVar[Type] = IP

    address: Address

    def __str__(self) -> str:
        return str(self.address)

    def __len__(self) -> int:
        return self.address.max_prefixlen // 8

    def cel_equals(self, other: object) -> bool:
        if isinstance(other, IPValue):
            return self.address == other.address
        raise no_such_overload()


@final
class CIDRValue(msgspec.Struct, frozen=True, eq=False):
    cel_type: ClassVar[Type] = CIDR

    network: Network

    def __str__(self) -> str:
        return str(self.network)

    def __len__(self) -> int:
        return (self.network.network.prefixlen + 7) // 8

    def cel_equals(self, other: object) -> bool:
        if isinstance(other, CIDRValue):
            return self.network == other.network
        raise no_such_overload()


def _ip(text: str) -> IPValue:
    try:
        address, zone = parse_address(text)
    except AddressError as error:
        message = f"IP Address {quoted(text)} parse error during conversion from string: {error}"
        raise EvaluationError(message) from None
    if zone:
        raise EvaluationError(f"IP address {quoted(text)} with zone value is not allowed")
    if _is_mapped(address):
        raise EvaluationError(f"IPv4-mapped IPv6 address {quoted(text)} is not allowed")
    return IPValue(address)


def _cidr(text: str) -> CIDRValue:
    try:
        network = parse_network(text)
    except AddressError as error:
        raise EvaluationError(f"{_FAILED}{_FAILED}{error}") from None
    if _is_mapped(network.ip):
        raise EvaluationError(f"{_FAILED}IPv4-mapped IPv6 address {quoted(text)} is not allowed")
    return CIDRValue(network)


def _is_mapped(address: Address) -> bool:
    return isinstance(address, IPv6Address) and address.ipv4_mapped is not None


def _contains_text(cidr: CIDRValue, text: str) -> bool:
    if not succeeds(_ip, text):
        raise no_such_overload()  # Go's error has no details
    return _ip(text).address in cidr.network.network


def _contains_network(cidr: CIDRValue, other: CIDRValue) -> bool:
    return (
        cidr.network.network.prefixlen <= other.network.network.prefixlen and other.network.ip in cidr.network.network
    )


def _is_link_local_multicast(ip: IPValue) -> bool:
    address = ip.address
    return int(address) >> 8 == 224 << 16 if address.version == 4 else int(address) >> 112 & 0xFF0F == 0xFF02


def _is_global_unicast(ip: IPValue) -> bool:
    address = ip.address
    broadcast = address.version == 4 and int(address) == 0xFFFFFFFF
    limited = address.is_unspecified or address.is_loopback or address.is_multicast or address.is_link_local
    return not (broadcast or limited)


ADDRESSES: Final = Library(
    "kubernetes.net.ip",
    {
        "ip": (function("string_to_ip", (STRING,), IP, _ip),),
        "isIP": (function("is_ip", (STRING,), BOOL, partial(succeeds, _ip)),),
        "ip.isCanonical": (function("ip_is_canonical", (STRING,), BOOL, lambda text: str(_ip(text).address) == text),),
        "family": (method("ip_family", (IP,), INT, lambda ip: ip.address.version),),
        "isUnspecified": (method("ip_is_unspecified", (IP,), BOOL, lambda ip: ip.address.is_unspecified),),
        "isLoopback": (method("ip_is_loopback", (IP,), BOOL, lambda ip: ip.address.is_loopback),),
        "isLinkLocalMulticast": (method("ip_is_link_local_multicast", (IP,), BOOL, _is_link_local_multicast),),
        "isLinkLocalUnicast": (method("ip_is_link_local_unicast", (IP,), BOOL, lambda ip: ip.address.is_link_local),),
        "isGlobalUnicast": (method("ip_is_global_unicast", (IP,), BOOL, _is_global_unicast),),
        "string": (function("ip_to_string", (IP,), STRING, lambda ip: str(ip.address)),),
    },
    types={IP.name: IP},
)
NETWORKS: Final = Library(
    "kubernetes.net.cidr",
    {
        "cidr": (function("string_to_cidr", (STRING,), CIDR, _cidr),),
        "isCIDR": (function("is_cidr", (STRING,), BOOL, partial(succeeds, _cidr)),),
        "containsIP": (
            method("cidr_contains_ip_string", (CIDR, STRING), BOOL, _contains_text),
            method("cidr_contains_ip_ip", (CIDR, IP), BOOL, lambda cidr, ip: ip.address in cidr.network.network),
        ),
        "containsCIDR": (
            method("cidr_contains_cidr_string", (CIDR, STRING), BOOL, lambda a, b: _contains_network(a, _cidr(b))),
            method("cidr_contains_cidr", (CIDR, CIDR), BOOL, _contains_network),
        ),
        "ip": (method("cidr_ip", (CIDR,), IP, lambda cidr: IPValue(cidr.network.ip)),),
        "prefixLength": (method("cidr_prefix_length", (CIDR,), INT, lambda cidr: cidr.network.network.prefixlen),),
        "masked": (method("cidr_masked", (CIDR,), CIDR, lambda cidr: CIDRValue(ip_interface(cidr.network.network))),),
        "string": (function("cidr_to_string", (CIDR,), STRING, lambda cidr: str(cidr.network)),),
    },
    types={CIDR.name: CIDR},
)
