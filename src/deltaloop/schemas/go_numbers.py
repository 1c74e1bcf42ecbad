"""Go's handling of numbers, quoting, times and type names in messages.

Source: go-openapi/swag conv; encoding/json, strconv; Go time/format.go, ``parse``, ``getnum``, ``skip``, ``quote`` and
``ParseError``.
"""

from __future__ import annotations

import math
import re
from calendar import isleap
from decimal import Decimal
from typing import Final, TypeAlias

SHORT_ESCAPES: Final = {
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
    "\\": "\\\\",
    '"': '\\"',
}


def quoted(text: str) -> str:
    signs = (SHORT_ESCAPES.get(sign) or (sign if sign.isprintable() else _escaped(ord(sign))) for sign in text)
    return f'"{"".join(signs)}"'


def _escaped(code: int) -> str:
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


_DAYS: Final = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
DATE_LAYOUT: Final = "2006-01-02"
LOCAL_LAYOUT: Final = "2006-01-02T15:04:05"
_PART: Final = re.compile(r"([^0-9]*)(2006|01|02|15|04|05)")
_NUMBERS: Final = {
    "2006": re.compile(r"[0-9]{4}"),
    "15": re.compile(r"[0-9]{1,2}"),
    # Go accepts a fraction even if the layout has none.
    "05": re.compile(r"([0-9]{2})(?:[.,][0-9]+)?"),
}
_TWO_DIGITS: Final = re.compile(r"[0-9]{2}")
_RANGES: Final = {
    "01": ("month", 1, 12),
    "15": ("hour", 0, 23),
    "04": ("minute", 0, 59),
    "05": ("second", 0, 59),
}


def why_no_time(layout: str, text: str) -> str:
    """Return Go's error for a string that does not match ``DATE_LAYOUT`` or ``LOCAL_LAYOUT``, or "" if it does."""
    rest = text.encode("utf-8", "surrogatepass").decode("latin-1")  # Go counts bytes and escapes non-ASCII bytes
    told = f"parsing time {_quoted(rest)}"
    found: dict[str, int] = {}
    for before, part in _PART.findall(layout):
        if not rest.startswith(before):
            same = next(place for place in range(len(before)) if rest[place : place + 1] != before[place])
            return f"{told} as {_quoted(layout)}: cannot parse {_quoted(rest[same:])} as {_quoted(before)}"
        rest = rest.removeprefix(before)
        match = _NUMBERS.get(part, _TWO_DIGITS).match(rest)
        if match is None:
            return f"{told} as {_quoted(layout)}: cannot parse {_quoted(rest)} as {_quoted(part)}"
        found[part] = int(match[match.re.groups])
        name, least, most = _RANGES.get(part, ("", 0, 9999))
        if not least <= found[part] <= most:
            return f"{told}: {name} out of range"
        rest = rest[match.end() :]
    if rest:
        return f"{told}: extra text: {_quoted(rest)}"
    return "" if 1 <= found["02"] <= days_of_month(found["2006"], found["01"]) else f"{told}: day out of range"


def days_of_month(year: int, month: int) -> int:
    return _DAYS[month - 1] + (month == 2 and isleap(year))


def _quoted(text: str) -> str:
    return f'"{"".join(map(_sign, text))}"'


def _sign(sign: str) -> str:
    if not " " <= sign < "\x80":
        return f"\\x{ord(sign):02x}"
    return f"\\{sign}" if sign in '"\\' else sign


Number: TypeAlias = int | float

_INT64: Final = 2**63
_EXACT: Final = 2**53 - 1
_NEAR: Final = 1e-9


def as_sent(value: int) -> Number:
    """Return an integer as Go decodes it: unchanged, or as a float if it does not fit 64 bits."""
    if -_INT64 <= value < _INT64:
        return value
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def is_whole(value: float) -> bool:
    """Return whether a float counts as an integer: it is nearly one, and small enough to be exact."""
    if not -_EXACT <= value <= _EXACT:
        return False
    nearest = math.floor(abs(value) + 0.5)
    return abs(value) == nearest or abs(abs(value) - nearest) < _NEAR * nearest


def shown_number(value: float) -> str:
    if value == 0:
        return "-0" if math.copysign(1, value) < 0 else "0"
    decimal = Decimal(repr(value)).normalize()
    power = decimal.adjusted()
    if -5 < power < 6 or not math.isfinite(value):
        return format(decimal, "f")
    return f"{decimal.scaleb(-power):f}e{power:+03d}"


_GO_TYPES: Final[dict[type, str]] = {
    str: "string",
    int: "int64",
    float: "float64",
    bool: "bool",
    list: "[]interface {}",
    dict: "map[string]interface {}",
}


def go_type(value: object) -> str:
    return _GO_TYPES.get(type(value), "<nil>")
