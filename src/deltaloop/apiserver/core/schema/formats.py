"""The formats that a schema can ask of text; one that is not known here is not checked.

Source: kube-openapi pkg/validation/strfmt; apiextensions-apiserver pkg/apiserver/validation/formats.go.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
import re
from collections.abc import Callable, Mapping
from typing import Final
from urllib.parse import urlsplit

_DATE: Final = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_DATE_TIME: Final = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[tT]([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]+)?([zZ]|[+-][0-9]{2}:[0-9]{2})"
)
_UUID: Final = re.compile(r"[0-9a-fA-F]{8}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{12}")
_HOST_PART: Final = re.compile(r"[a-zA-Z0-9]([-a-zA-Z0-9]{0,61}[a-zA-Z0-9])?")
_EMAIL: Final = re.compile(r"[^\s@<>]+@[^\s@<>]+")
_MAC: Final = re.compile(r"[0-9a-fA-F]{2}((:[0-9a-fA-F]{2}){5}|(-[0-9a-fA-F]{2}){5})")
_DURATION: Final = re.compile(r"[+-]?(0|([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|ms|s|m|h))+")
_DAYS: Final = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def _is_date(value: str) -> bool:
    match = _DATE.fullmatch(value)
    if match is None:
        return False
    year, month, day = (int(part) for part in match.groups())
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return 1 <= month <= 12 and 1 <= day <= _DAYS[month - 1] and (leap or (month, day) != (2, 29))


def _is_date_time(value: str) -> bool:
    match = _DATE_TIME.fullmatch(value)
    return match is not None and _is_date(match[1])


def _parses(parse: Callable[[str], object]) -> Callable[[str], bool]:
    def check(value: str) -> bool:
        try:
            parse(value)
        except ValueError:
            return False
        return True

    return check


def _is_cidr(value: str) -> bool:
    return "/" in value and _parses(ipaddress.ip_interface)(value)


def _is_uri(value: str) -> bool:
    try:
        parts = urlsplit(value)
    except ValueError:
        return False
    return " " not in value and (bool(parts.scheme) or value.startswith("/"))


def _is_hostname(value: str) -> bool:
    return len(value) <= 255 and all(_HOST_PART.fullmatch(part) for part in value.removesuffix(".").split("."))


def _is_base64(value: str) -> bool:
    try:
        base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


_NUMBERS: Final = {"integer": ("int32", "int64"), "number": ("float", "double")}


def format_of(types: tuple[str, ...], name: str) -> str:
    """Return the name of a format that counts for these types; "" if it does not."""
    if len(types) == 1 and types[0] in _NUMBERS:
        return name if name in _NUMBERS[types[0]] else ""
    return name if types in ((), ("string",)) and name.replace("-", "") in _KNOWN else ""


FORMATS: Final[Mapping[str, Callable[[str], bool]]] = {
    "byte": _is_base64,
    "cidr": _is_cidr,
    "date": _is_date,
    "date-time": _is_date_time,
    "datetime": _is_date_time,
    "duration": lambda value: _DURATION.fullmatch(value) is not None,
    "email": lambda value: _EMAIL.fullmatch(value) is not None,
    "hostname": _is_hostname,
    "ipv4": _parses(ipaddress.IPv4Address),
    "ipv6": _parses(ipaddress.IPv6Address),
    "mac": lambda value: _MAC.fullmatch(value) is not None,
    "uri": _is_uri,
    "uuid": lambda value: _UUID.fullmatch(value) is not None,
}
_KNOWN: Final = frozenset(name.replace("-", "") for name in FORMATS)
