"""Quantities in the form that Go writes them: ``0.5`` is ``500m``, ``1024Mi`` is ``1Gi``, ``1e3`` stays ``1e3``.

The suffix says which of three formats a quantity has: powers of 1024, powers of 1000, or an exponent. The canonical
form keeps the format, has no fraction, and takes the largest suffix that allows for that.

Source: apimachinery pkg/api/resource/quantity.go, ``CanonicalizeBytes``.
"""

from __future__ import annotations

import re
from decimal import ROUND_UP, Decimal
from functools import lru_cache
from typing import Final

_QUANTITY: Final = re.compile(
    r"(?P<number>[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))(?:(?P<suffix>[KMGTPE]i|[numkMGTPE])|[eE](?P<exponent>[+-]?[0-9]+))?"
)
_BINARY: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_DECIMAL: Final = ("n", "u", "m", "", "k", "M", "G", "T", "P", "E")
_SMALLEST: Final = Decimal("1e-9")
_LONGEST: Final = 64
_KIBI: Final = 1024


@lru_cache(maxsize=1024)
def canonical_quantity(sent: str) -> str:
    """Return a quantity in its canonical form; what is none comes back as it is."""
    match = _QUANTITY.fullmatch(sent) if len(sent) <= _LONGEST else None
    if match is None:
        return sent
    number, suffix, exponent = Decimal(match["number"]), match["suffix"] or "", match["exponent"]
    if exponent is not None:
        power = int(exponent)
        return _with_exponent(number.scaleb(power)) if abs(power) <= _LONGEST else sent
    if suffix.endswith("i"):
        return _binary(number * _KIBI ** _BINARY.index(suffix))
    return _decimal(number.scaleb(3 * (_DECIMAL.index(suffix) - 3)))


def _decimal(value: Decimal) -> str:
    whole, power = _thousands(value)
    return f"{whole}{_DECIMAL[power + 3]}" if whole else "0"


def _with_exponent(value: Decimal) -> str:
    whole, power = _thousands(value)
    return f"{whole}e{3 * power}" if whole and power else str(whole)


def _thousands(value: Decimal) -> tuple[int, int]:
    """Return a whole number and the power of 1000 that it is multiplied with; at most nine digits behind the point."""
    nanos, power = int(value.quantize(_SMALLEST, rounding=ROUND_UP).scaleb(9)), -3
    if not nanos:
        return 0, 0
    while nanos % 1000 == 0 and power < len(_DECIMAL) - 4:
        nanos, power = nanos // 1000, power + 1
    return nanos, power


def _binary(value: Decimal) -> str:
    if value != value.to_integral_value():
        # A fraction of a byte is written in thousandths.
        return _decimal(value)
    whole, power = int(value), 0
    if not whole:
        return "0"
    if abs(whole) < _KIBI:
        return str(whole)
    while whole % _KIBI == 0 and power < len(_BINARY) - 1:
        whole, power = whole // _KIBI, power + 1
    return f"{whole}{_BINARY[power]}"
