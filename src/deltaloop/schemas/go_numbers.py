"""Numbers as the real server has them: 64 bits, whole or with a point as they were sent, and written the shortest way.

A number that was sent without a point and fits 64 bits is an integer, every other one a float. Which of both it is
decides how it is held against bounds. It is lost when the object is stored, and where an apply reads it: 1.0 is 1.

Source: go-openapi/swag conv; encoding/json, strconv.
"""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Final, TypeAlias

Number: TypeAlias = int | float

_INT64: Final = 2**63
_EXACT: Final = 2**53 - 1
_NEAR: Final = 1e-9


def as_sent(value: int) -> Number:
    """Return a number that was sent without a point: an integer, or a float if it does not fit 64 bits."""
    if -_INT64 <= value < _INT64:
        return value
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def is_whole(value: float) -> bool:
    """Tell whether a float counts as an integer: it is one that a float can tell from others, or nearly one."""
    if not -_EXACT <= value <= _EXACT:
        return False
    nearest = math.floor(abs(value) + 0.5)
    return abs(value) == nearest or abs(abs(value) - nearest) < _NEAR * nearest


def shown_number(value: float) -> str:
    """Write a float as Go's messages have it."""
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
    """Return the type that a decoded value has in Go."""
    return _GO_TYPES.get(type(value), "<nil>")
