"""Parse IP addresses and networks like Go's net/netip, with its error messages.

Source: Go net/netip/netip.go.
"""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv4Interface, IPv6Address, IPv6Interface, ip_interface
from typing import Final, TypeAlias

from deltaloop.schemas.go_numbers import quoted
from deltaloop.schemas.work import charge

Address: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = IPv4Interface | IPv6Interface
"""Address with the length of a prefix."""

_FIELD: Final = re.compile("[0-9a-fA-F]*")
_FIELDS: Final = 8
_LONGEST_FIELD: Final = 4


class AddressError(ValueError):
    """A string is not an address or a network. The message is Go's."""


def parse_network(text: str) -> Network:
    head, slash, tail = text.rpartition("/")
    if not slash:
        raise _no_network(text, "no '/'")
    try:
        address, zone = parse_address(head)
    except AddressError as error:
        raise _no_network(text, str(error)) from None
    if zone:
        raise _no_network(text, "IPv6 zones cannot be present in a prefix")
    if not re.fullmatch("[0-9]|[1-9][0-9]{1,17}", tail, re.ASCII):
        raise _no_network(text, f"bad bits after slash: {quoted(tail)}")
    if int(tail) > address.max_prefixlen:
        raise _no_network(text, "prefix length out of range")
    return ip_interface((address, int(tail)))


def _no_network(text: str, why: str) -> AddressError:
    return AddressError(f"netip.ParsePrefix({quoted(text)}): {why}")


def parse_address(text: str) -> tuple[Address, str]:
    """Return an address and its zone."""
    charge(20 + 8 * len(text))
    first = next((sign for sign in text if sign in ".:%"), "")
    if first == ".":
        return IPv4Address(_four_fields(text, text)), ""
    if first == ":":
        return _parse_six(text)
    raise _no_address(text, "missing IPv6 address" if first else "unable to parse IP")


def _no_address(text: str, why: str, at: str = "") -> AddressError:
    return AddressError(f"ParseAddr({quoted(text)}): {why}{f' (at {quoted(at)})' if at else ''}")


def _four_fields(text: str, part: str) -> int:
    value = digits = 0
    fields: list[int] = []
    for place, sign in enumerate(part):
        if sign.isascii() and sign.isdigit():
            if digits == 1 and value == 0:
                raise _no_address(text, "IPv4 field has octet with leading zero")
            value, digits = value * 10 + int(sign), digits + 1
            if value > 255:
                raise _no_address(text, "IPv4 field has value >255")
        elif sign == ".":
            if place in (0, len(part) - 1) or part[place - 1] == ".":
                raise _no_address(text, "IPv4 field must have at least one digit", part[place:])
            if len(fields) == 3:
                raise _no_address(text, "IPv4 address too long")
            fields.append(value)
            value = digits = 0
        else:
            raise _no_address(text, "unexpected character", part[place:])
    if len(fields) < 3:
        raise _no_address(text, "IPv4 address too short")
    return fields[0] << 24 | fields[1] << 16 | fields[2] << 8 | value


def _parse_six(text: str) -> tuple[Address, str]:
    rest, percent, zone = text.partition("%")
    if percent and not zone:
        raise _no_address(text, "zone must be a non-empty string")
    fields: list[int] = []
    gap: int | None = None
    if rest.startswith("::"):
        gap, rest = 0, rest[2:]
        if not rest:
            return IPv6Address(0), zone
    while len(fields) < _FIELDS:
        field = _hexadecimal_field(text, rest)
        if rest.startswith(".", len(field)):
            fields += _embedded(text, rest, len(fields), has_gap=gap is not None)
            rest = ""
            break
        fields.append(int(field, 16))
        rest = rest[len(field) :]
        if not rest:
            break
        rest, doubled = _after_colon(text, rest)
        if doubled:
            if gap is not None:
                raise _no_address(text, "multiple :: in address", rest)
            gap, rest = len(fields), rest[1:]
            if not rest:
                break
    if rest:
        raise _no_address(text, "trailing garbage after address", rest)
    return IPv6Address(_six_fields(text, fields, gap)), zone


def _six_fields(text: str, fields: list[int], gap: int | None) -> int:
    if len(fields) < _FIELDS:
        if gap is None:
            raise _no_address(text, "address string too short")
        fields[gap:gap] = [0] * (_FIELDS - len(fields))
    elif gap is not None:
        raise _no_address(text, "the :: must expand to at least one field of zeros")
    return sum(field << 16 * place for place, field in enumerate(reversed(fields)))


def _embedded(text: str, rest: str, before: int, *, has_gap: bool) -> list[int]:
    if not has_gap and before != _FIELDS - 2:
        raise _no_address(text, "embedded IPv4 address must replace the final 2 fields of the address", rest)
    if before + 2 > _FIELDS:
        raise _no_address(text, "too many hex fields to fit an embedded IPv4 at the end of the address", rest)
    number = _four_fields(text, rest)
    return [number >> 16, number & 0xFFFF]


def _hexadecimal_field(text: str, rest: str) -> str:
    match = _FIELD.match(rest)
    assert match is not None
    if len(match[0]) > _LONGEST_FIELD:
        raise _no_address(text, "each group must have 4 or less digits", rest)
    if not match[0]:
        raise _no_address(text, "each colon-separated field must have at least one digit", rest)
    return match[0]


def _after_colon(text: str, rest: str) -> tuple[str, bool]:
    if rest[0] != ":":
        raise _no_address(text, "unexpected character, want colon", rest)
    if len(rest) == 1:
        raise _no_address(text, "colon must be followed by more characters", rest)
    return rest[1:], rest[1] == ":"
