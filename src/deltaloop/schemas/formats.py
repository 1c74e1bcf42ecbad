"""Formats of strings and numbers in schemas. Unknown formats are ignored.

Source: kube-openapi pkg/validation/strfmt, pkg/internal/third_party/govalidator; apiextensions-apiserver
pkg/apiserver/validation/formats.go; Go net, net/mail, net/url, time.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping
from typing import Final

from deltaloop.schemas.go_numbers import days_of_month
from deltaloop.schemas.go_urls import UrlError, parse_request_url
from deltaloop.schemas.patterns.matching import compile_pattern
from deltaloop.schemas.work import charge

_NUMBERS: Final = {"integer": ("int32", "int64"), "number": ("float", "double")}
_DATE: Final = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_TIME: Final = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})([^\n][0-9]+)?(z|[+-][0-9]{2}:[0-9]{2})")
_INT64: Final = 2**63
_STEPS_OF_A_CHARACTER: Final = 8
# Syntax of Go's time.ParseDuration, and of a part in the older format. The longest letter of a unit comes first.
_GO_DURATION: Final = re.compile(r"[-+]?(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)")
_GO_PART: Final = re.compile(r"([0-9]*)(\.[0-9]*)?(ns|us|µs|μs|ms|s|m|h)")
NANOSECONDS: Final = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "μs": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}
_DURATION_PART: Final = re.compile(r"(?<![0-9])([0-9]++)[\t\n\f\r ]*+([A-Za-zµ]+)")
_DAY: Final = 24 * 3600 * 10**9
_LONG_UNITS: Final = {
    "nano": 1,
    "micro": 10**3,
    "milli": 10**6,
    "sec": 10**9,
    "min": 60 * 10**9,
    "hour": 3600 * 10**9,
    "day": _DAY,
    "week": 7 * _DAY,
}
_OLD_UNITS: Final = {"hr": 3600 * 10**9, "d": _DAY, "w": 7 * _DAY, "wk": 7 * _DAY}
_HEX: Final = "[0-9a-f]"
_HOSTNAME: Final = (
    r"^([a-zA-Z0-9\p{S}\p{L}]((-?[a-zA-Z0-9\p{S}\p{L}]{0,62})?)|([a-zA-Z0-9\p{S}\p{L}]"
    r"(([a-zA-Z0-9-\p{S}\p{L}]{0,61}[a-zA-Z0-9\p{S}\p{L}])?)(\.)){1,}([a-zA-Z\p{L}]){2,63})$"
)
_CARD: Final = (
    r"^(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}"
    r"|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35\d{3})\d{11})$"
)
_COLOUR: Final = r"\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*"
_LONGEST_HOSTNAME: Final = 255
_LONGEST_LABEL: Final = 63
_LONGEST_NAME: Final = 253
_ATOM_SIGNS: Final = frozenset("!#$%&'*+-/=?^_`{|}~")


def format_of(types: tuple[str, ...], name: str) -> str:
    """Return the name of a format if it applies to these types, otherwise ""."""
    if len(types) != 1 or types[0] == "string":
        return name if name.replace("-", "") in FORMATS else ""
    return name if name in _NUMBERS.get(types[0], ()) else ""


def fits(name: str, value: str) -> bool:
    """Return whether a string matches a format. Every string matches an unknown format."""
    check = FORMATS.get(name.replace("-", ""))
    charge(_STEPS_OF_A_CHARACTER * len(value))
    return check is None or check(value)


def _matches(pattern: str) -> Callable[[str], bool]:
    return lambda value: compile_pattern(pattern).matches(value)


def _is_date(value: str) -> bool:
    match = _DATE.fullmatch(value)
    if match is None:
        return False
    year, month, day = (int(part) for part in match.groups())
    return 1 <= month <= 12 and 1 <= day <= days_of_month(year, month)


def _is_date_time(value: str) -> bool:
    parts = value.lower().split("t")
    if len(parts) < 2 or not _is_date(parts[0]):
        return False
    match = _TIME.fullmatch(parts[1])
    return match is not None and match[1] <= "23" and match[2] <= "59" and match[3] <= "59"


def duration_nanoseconds(value: str) -> int:
    if _GO_DURATION.fullmatch(value) and _nanoseconds(value) < _INT64:
        return -_nanoseconds(value) if value.startswith("-") else _nanoseconds(value)
    return sum(int(number) * _unit(unit.lower()) for number, unit in _DURATION_PART.findall(value))


def _unit(name: str) -> int:
    longest = next((nanoseconds for long, nanoseconds in _LONG_UNITS.items() if name.startswith(long)), 0)
    return NANOSECONDS.get(name) or _OLD_UNITS.get(name, longest)


def _is_duration(value: str) -> bool:
    if _GO_DURATION.fullmatch(value) and _nanoseconds(value) < _INT64:
        return True
    known = False
    for number, unit in _DURATION_PART.findall(value):
        if len(number) > 19 or int(number) >= _INT64:
            return False
        lower = unit.lower()
        known = known or _unit(lower) > 0
    return known


def _nanoseconds(value: str) -> int:
    total = 0
    for whole, fraction, unit in _GO_PART.findall(value):
        if len(whole) > 19:
            return _INT64
        total += int(whole or "0") * NANOSECONDS[unit]
        digits = fraction[1:19]
        total += int(digits or "0") * NANOSECONDS[unit] // 10 ** len(digits)
    return total


def _is_email(value: str) -> bool:
    """Return whether a string is an address, or a name with an address in angle brackets."""
    rest = value.strip(" \t\r\n")
    if rest.endswith(">"):
        name, _, address = rest[:-1].rpartition("<")
        return (not name.strip() or _is_phrase(name.strip())) and "<" in rest and _is_address(address)
    if rest.endswith(")"):
        rest = re.sub(r"(?<![ \t])[ \t]*+\([^()]*+\)$", "", rest)
    return _is_address(rest)


def _is_phrase(name: str) -> bool:
    words = re.findall(r'"(?:[^"\\]|\\.)*"|[^ \t"]+', name)
    return all(
        word.startswith('"') or _is_atom(word.replace(".", "a"), dots=False) for word in words
    ) and '"' not in re.sub(r'"(?:[^"\\]|\\.)*"', "", name)


def _is_address(address: str) -> bool:
    local, at_sign, domain = address.lstrip(" \t").rpartition("@")
    domain = domain.lstrip(" \t")
    if not at_sign or not domain:
        return False
    quoted = re.fullmatch(r'"(?:[^"\\\x00-\x08\x0a-\x1f]|\\.)+"', local)
    if not (quoted or _is_atom(local, dots=True)):
        return False
    if domain.startswith("[") and domain.endswith("]"):
        return _is_ip(domain[1:-1])
    return _is_atom(domain, dots=True)


def _is_atom(text: str, *, dots: bool) -> bool:
    parts = text.split(".") if dots else [text]
    return all(
        part and all(not sign.isascii() or sign.isalnum() or sign in _ATOM_SIGNS for sign in part) for part in parts
    )


def _is_hostname(value: str) -> bool:
    size = len(value.encode())
    if not compile_pattern(_HOSTNAME).matches(value) or size > _LONGEST_HOSTNAME:
        return False
    return all(len(part.encode()) <= _LONGEST_LABEL for part in value.split("."))


def _is_ip(value: str, *, sloppy: bool = False) -> bool:
    """Return whether a string is an IP address without a zone. ``sloppy`` allows leading zeros in decimal numbers."""
    if "%" in value:
        return False
    head, colon, tail = value.rpartition(":")
    if sloppy and "." in tail and re.fullmatch(r"[0-9]+(\.[0-9]+){3}", tail):
        tail = ".".join(number.lstrip("0") or "0" for number in tail.split("."))
    try:
        ipaddress.ip_address(head + colon + tail)
    except ValueError:
        return False
    return True


def _is_ipv4(value: str) -> bool:
    return "." in value and _is_ip(value, sloppy=True)


def _is_ipv6(value: str) -> bool:
    return ":" in value and _is_ip(value)


def _is_cidr(value: str) -> bool:
    address, slash, size = value.partition("/")
    if not slash or not _is_ip(address, sloppy=True) or not re.fullmatch("[0-9]{1,8}", size):
        return False
    return int(size) <= (128 if ":" in address else 32)


def _is_mac(value: str) -> bool:
    if re.fullmatch(r"([0-9a-fA-F]{2})+", value):
        return len(value) // 2 in (6, 8, 20)
    if re.fullmatch(r"[0-9a-fA-F]{4}(\.[0-9a-fA-F]{4})+", value):
        return value.count(".") + 1 in (3, 4, 10)
    match = re.fullmatch(r"[0-9a-fA-F]{2}(([:-])[0-9a-fA-F]{2}(\2[0-9a-fA-F]{2})*)", value)
    return match is not None and value.count(match[2]) + 1 in (6, 8, 20)


def _is_isbn10(value: str) -> bool:
    digits = re.sub(r"[\t\n\f\r -]+", "", value)
    if not re.fullmatch("[0-9]{9}X|[0-9]{10}", digits):
        return False
    return sum((place + 1) * (10 if digit == "X" else int(digit)) for place, digit in enumerate(digits)) % 11 == 0


def _is_isbn13(value: str) -> bool:
    digits = re.sub(r"[\t\n\f\r -]+", "", value)
    if not re.fullmatch("[0-9]{13}", digits):
        return False
    return sum((1, 3)[place % 2] * int(digit) for place, digit in enumerate(digits)) % 10 == 0


def _is_card(value: str) -> bool:
    digits = re.sub("[^0-9]+", "", value)
    if not compile_pattern(_CARD).matches(digits):
        return False
    doubled = (int(digit) * (1 + place % 2) for place, digit in enumerate(reversed(digits)))
    return sum(number - 9 if number > 9 else number for number in doubled) % 10 == 0


def _is_uri(value: str) -> bool:
    """Return whether a string is a URI with a scheme, or an absolute path."""
    try:
        parse_request_url(value)
    except UrlError:
        return False
    return True


def _is_short_name(value: str) -> bool:
    return len(value) <= _LONGEST_LABEL and re.fullmatch("[a-z0-9]([-a-z0-9]*[a-z0-9])?", value) is not None


def _is_long_name(value: str) -> bool:
    segment = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
    return len(value) <= _LONGEST_NAME and re.fullmatch(rf"{segment}(\.{segment})*", value) is not None


def _uuid(version: str, variant: str = _HEX) -> str:
    return f"(?i)^{_HEX}{{8}}-?{_HEX}{{4}}-?{version}{_HEX}{{3}}-?{variant}{_HEX}{{3}}-?{_HEX}{{12}}$"


FORMATS: Final[Mapping[str, Callable[[str], bool]]] = {
    "bsonobjectid": _matches("^[0-9a-fA-F]{24}$"),
    "byte": _matches("^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})$"),
    "cidr": _is_cidr,
    "creditcard": _is_card,
    "date": _is_date,
    "datetime": _is_date_time,
    "duration": _is_duration,
    "email": _is_email,
    "hexcolor": _matches("^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$"),
    "hostname": _is_hostname,
    "ipv4": _is_ipv4,
    "ipv6": _is_ipv6,
    "isbn": lambda value: _is_isbn10(value) or _is_isbn13(value),
    "isbn10": _is_isbn10,
    "isbn13": _is_isbn13,
    "k8slongname": _is_long_name,
    "k8sshortname": _is_short_name,
    "mac": _is_mac,
    "password": lambda _: True,
    "rgbcolor": _matches(rf"^rgb\({_COLOUR},{_COLOUR},{_COLOUR}\)$"),
    "ssn": lambda value: len(value) == 11 and compile_pattern(r"^\d{3}[- ]?\d{2}[- ]?\d{4}$").matches(value),
    "uri": _is_uri,
    "uuid": _matches(_uuid(_HEX)),
    "uuid3": _matches(_uuid("3")),
    "uuid4": _matches(_uuid("4", "[89ab]")),
    "uuid5": _matches(_uuid("5", "[89ab]")),
}
