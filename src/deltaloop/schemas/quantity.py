"""Parse and write quantities like Go: ``0.5`` becomes ``500m``, ``1024Mi`` becomes ``1Gi``, ``1e3`` stays ``1e3``.

The canonical form keeps the format (powers of 1024, of 1000, or an exponent) and uses the largest suffix without a
fraction. Amounts are rounded away from zero to billionths, and amounts of resources (``limits``, ``capacity``) to
thousandths.

Source: apimachinery pkg/api/resource/quantity.go, ``ParseQuantity`` and ``CanonicalizeBytes``.
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache
from typing import Final, Literal, TypeAlias

import msgspec

QuantityFormat: TypeAlias = Literal["decimal", "exponent", "binary"]

_QUANTITY: Final = re.compile(
    r"(?P<sign>[+-]?)0*+(?P<whole>[0-9]*+)(?:\.(?P<rest>[0-9]*+))?(?P<suffix>[eEinumkKMGTP]*+[-+]?[0-9]*+)"
)
_EXPONENT: Final = re.compile(r"[eE](?P<power>[-+]?[0-9]+)")
_WRONG_FORMAT: Final = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_WRONG_SUFFIX: Final = "unable to parse quantity's suffix"
_BINARY: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_DECIMAL: Final = ("n", "u", "m", "", "k", "M", "G", "T", "P", "E")
_NANO: Final = 9
_BILLION: Final = 10**_NANO
_KIBI: Final = 1024
_KEPT_DIGITS: Final = 18
_KEPT_BINARY_DIGITS: Final = 14
_MOST_BINARY: Final = 2**63 - 1
# The real server needs minutes for exponents of ten digits, which have no practical use.
_LONGEST: Final = 999


class MalformedQuantityError(ValueError):
    """A value is not a quantity. The message is the real server's and does not contain the value."""


class ParsedQuantity(msgspec.Struct, frozen=True):
    """Parsed quantity in billionths.

    Attributes:
        scale: Smallest power of ten in the text.
        units: Amount in units of ``scale``, if Go stores it as a 64-bit integer.
    """

    nanos: int
    format: QuantityFormat
    scale: int = -_NANO
    kept: str | None = None
    units: int | None = None


def decimal_quantity(sent: str) -> tuple[int, int, bool]:
    """Return a quantity as a number, its power of ten, and whether Go stores it as a 64-bit integer."""
    found = parsed_quantity(sent)
    if found.units is None:
        return found.nanos, -_NANO, False
    return found.units, found.scale, True


def amount(sent: object) -> Fraction:
    """Return a quantity as a number, or 0 if it is invalid."""
    try:
        return Fraction(_parse(str(sent)).nanos, _BILLION)
    except MalformedQuantityError:
        return Fraction(0)


def added(first: str, second: str, *, times: int = 1) -> str:
    """Return ``first + times * second`` in the format of the first quantity, unless that is 0."""
    one, other = _parse(first), _parse(second)
    return _written(one.nanos + times * other.nanos, one.format if one.nanos else other.format)


def parsed_quantity(sent: str) -> ParsedQuantity:
    """Parse a quantity without whitespace around it."""
    if sent != sent.strip():
        raise MalformedQuantityError(_WRONG_FORMAT)
    return _parse(sent)


def written_quantity(found: ParsedQuantity) -> str:
    return _written(found.nanos, found.format) if found.kept is None else found.kept


@lru_cache(maxsize=1024)
def canonical_quantity(sent: str, *, of_resource: bool = False) -> str:
    """Return a quantity in canonical form. ``of_resource`` rounds up to thousandths."""
    found = _parse(sent)
    nanos, kept = found.nanos, found.kept
    if of_resource and found.scale < -3:
        nanos, kept = _away_from_zero(nanos, 10**6) * 10**6, None
    return _written(nanos, found.format) if kept is None else kept


def _written(nanos: int, form: QuantityFormat) -> str:
    if form == "exponent":
        return _with_exponent(nanos)
    return _binary(nanos) if form == "binary" else _decimal(nanos)


def _parse(sent: str) -> ParsedQuantity:
    sent = sent.strip()
    match = _QUANTITY.fullmatch(sent) if 0 < len(sent) <= _LONGEST else None
    if match is None:
        raise MalformedQuantityError(_WRONG_FORMAT)
    whole, rest, suffix = match["whole"] or "0", match["rest"] or "", match["suffix"]
    kind, power = _read_suffix(suffix)
    digits = whole + rest
    scale = (power if kind != "binary" else 0) - len(rest)
    factor = 2**power if kind == "binary" else 1
    number = int(digits) * factor
    nanos = number * 10 ** (scale + _NANO) if scale >= -_NANO else _away_from_zero(number, 10 ** (-scale - _NANO))
    if kind == "binary":
        # Go estimates 3 digits for each 10 bits.
        short = not rest and len(whole) + power * 3 // 10 <= _KEPT_BINARY_DIGITS
        kept = short and bool(int(digits) & 7)
        nanos = min(nanos, _MOST_BINARY * _BILLION)
    else:
        short = len(digits) <= _KEPT_DIGITS and scale >= -_NANO
        kept = short and scale % 3 == 0 and not digits.endswith("000") and digits[0] != "0"
    sign = -1 if match["sign"] == "-" else 1
    return ParsedQuantity(sign * nanos, kind, scale, sent if kept else None, sign * number if short else None)


def _read_suffix(suffix: str) -> tuple[QuantityFormat, int]:
    if suffix in _DECIMAL:
        return "decimal", 3 * (_DECIMAL.index(suffix) - 3)
    if suffix in _BINARY:
        return "binary", 10 * _BINARY.index(suffix)
    match = _EXPONENT.fullmatch(suffix)
    if match is None or abs(int(match["power"])) > _LONGEST:
        raise MalformedQuantityError(_WRONG_SUFFIX)
    return "exponent", int(match["power"])


def _away_from_zero(number: int, divisor: int) -> int:
    return -(-number // divisor) if number >= 0 else number // divisor


def _decimal(nanos: int) -> str:
    whole, power = _thousands(nanos, last=len(_DECIMAL) - 4)
    return f"{whole}{_DECIMAL[power + 3]}" if whole else "0"


def _with_exponent(nanos: int) -> str:
    whole, power = _thousands(nanos, last=_LONGEST)
    return f"{whole}e{3 * power}" if whole and power else str(whole)


def _thousands(nanos: int, *, last: int) -> tuple[int, int]:
    power = -3
    while nanos and nanos % 1000 == 0 and power < last:
        nanos, power = nanos // 1000, power + 1
    return nanos, power


def _binary(nanos: int) -> str:
    whole, fraction = divmod(nanos, _BILLION)
    if fraction or abs(whole) < _KIBI:
        # Fractions of a byte are written in thousandths.
        return _decimal(nanos)
    power = 0
    while whole % _KIBI == 0 and power < len(_BINARY) - 1:
        whole, power = whole // _KIBI, power + 1
    return f"{whole}{_BINARY[power]}"
