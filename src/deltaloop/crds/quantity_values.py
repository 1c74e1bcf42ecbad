"""Quantities that programs can compare and add: ``quantity("1536Mi") < quantity("2Gi")``."""

from __future__ import annotations

from decimal import Decimal
from functools import total_ordering
from operator import index
from typing import final

from deltaloop._internal.root_error import DeltaloopError
from deltaloop.schemas.quantity import MalformedQuantityError, ParsedQuantity, parsed_quantity, written_quantity

_NANO = 10**9


@final
class InvalidQuantityError(DeltaloopError, ValueError):
    """A value is not a quantity.

    Attributes:
        value: The value.
    """

    def __init__(self, value: object) -> None:
        super().__init__(
            f"quantity must be a number with an optional suffix, got {value!r}. Use for example '500m', '1Gi' or 3."
        )
        self.value = value


@final
@total_ordering
class ComparableQuantity:
    """An amount of a resource, such as ``500m`` of CPU or ``1Gi`` of memory.

    Quantities compare, add and hash by amount, so ``quantity("1Gi") == quantity("1024Mi")``. ``str`` returns the
    canonical form. A sum has the suffix style of its first operand, unless that is zero.

    Source: apimachinery pkg/api/resource/quantity.go.
    """

    __slots__ = ("_parsed",)

    def __init__(self, parsed: ParsedQuantity) -> None:
        self._parsed = parsed

    def value(self) -> int:
        """Return the amount as an integer, rounded up, for example bytes of memory."""
        return -(-self._parsed.nanos // _NANO)

    def milli_value(self) -> int:
        """Return the amount in thousandths, rounded up, for example millicores of CPU."""
        return -(-self._parsed.nanos // 10**6)

    def as_decimal(self) -> Decimal:
        """Return the exact amount."""
        return Decimal(self._parsed.nanos).scaleb(-9)

    def __str__(self) -> str:
        return written_quantity(self._parsed)

    def __repr__(self) -> str:
        return f"quantity({str(self)!r})"

    def __bool__(self) -> bool:
        return self._parsed.nanos != 0

    def __hash__(self) -> int:
        return hash(self._parsed.nanos)

    def __eq__(self, other: object) -> bool:
        return self._parsed.nanos == other._parsed.nanos if isinstance(other, ComparableQuantity) else NotImplemented

    def __lt__(self, other: ComparableQuantity) -> bool:
        return self._parsed.nanos < other._parsed.nanos if _is_quantity(other) else NotImplemented

    def __add__(self, other: ComparableQuantity) -> ComparableQuantity:
        return self._plus(other._parsed, 1) if _is_quantity(other) else NotImplemented

    def __radd__(self, other: int) -> ComparableQuantity:
        return self if other == 0 else NotImplemented  # sum() starts with 0

    def __sub__(self, other: ComparableQuantity) -> ComparableQuantity:
        return self._plus(other._parsed, -1) if _is_quantity(other) else NotImplemented

    def __mul__(self, times: int) -> ComparableQuantity:
        return ComparableQuantity(ParsedQuantity(self._parsed.nanos * index(times), self._parsed.format))

    __rmul__ = __mul__

    def __neg__(self) -> ComparableQuantity:
        return self * -1

    def _plus(self, other: ParsedQuantity, sign: int) -> ComparableQuantity:
        form = self._parsed.format if self else other.format
        return ComparableQuantity(ParsedQuantity(self._parsed.nanos + sign * other.nanos, form))


def _is_quantity(value: object) -> bool:
    return isinstance(value, ComparableQuantity)


def quantity(value: str | float | Decimal | ComparableQuantity) -> ComparableQuantity:
    """Return a quantity that can be compared, added and written in canonical form.

    Args:
        value: Text such as ``500m``, ``1.5Gi`` or ``1e3``, or a number. Amounts finer than 1n are rounded away from 0.

    Raises:
        InvalidQuantityError: If the value is not a quantity.
    """
    if isinstance(value, ComparableQuantity):
        return value
    if isinstance(value, bool) or not isinstance(value, str | int | float | Decimal):
        raise InvalidQuantityError(value)
    try:
        return ComparableQuantity(parsed_quantity(value if isinstance(value, str) else f"{Decimal(str(value)):f}"))
    except (MalformedQuantityError, ArithmeticError, ValueError):
        raise InvalidQuantityError(value) from None
