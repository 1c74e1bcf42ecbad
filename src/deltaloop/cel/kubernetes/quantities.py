"""Quantities: ``quantity("500m").isLessThan(quantity("1"))``.

Source: k8s.io/apiserver pkg/cel/library/quantity.go; apimachinery pkg/api/resource.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Final, final

from deltaloop.cel.errors import EvaluationError, no_such_overload, succeeds
from deltaloop.cel.library import Library, function, method
from deltaloop.cel.types import BOOL, DOUBLE, INT, STRING, Type, object_of
from deltaloop.cel.values import INT_LEAST, INT_MOST
from deltaloop.schemas.quantity import MalformedQuantityError, canonical_quantity, decimal_quantity

QUANTITY: Final = object_of("kubernetes.Quantity")


@final
@dataclass(frozen=True, slots=True, eq=False)
class Quantity:
    """Quantity as a number and a power of ten."""

    cel_type: ClassVar[Type] = QUANTITY

    units: int
    scale: int
    short: bool
    computed: bool = False
    text: str = ""

    def __str__(self) -> str:
        if self.text:
            return canonical_quantity(self.text)
        billionths = self.units * 10 ** (self.scale + 9)
        return canonical_quantity(f"{billionths}n")

    def cel_equals(self, other: object) -> bool:
        if isinstance(other, Quantity) and not other.computed:
            return _compared(self, other) == 0
        raise no_such_overload()


def _parsed(text: str) -> Quantity:
    try:
        return Quantity(*decimal_quantity(text), text=text)
    except MalformedQuantityError as error:
        raise EvaluationError(str(error)) from None


def _aligned(one: Quantity, other: Quantity) -> tuple[int, int, int]:
    scale = min(one.scale, other.scale)
    return one.units * 10 ** (one.scale - scale), other.units * 10 ** (other.scale - scale), scale


def _compared(one: Quantity, other: Quantity) -> int:
    left, right, _ = _aligned(one, other)
    return (left > right) - (left < right)


def _sum(one: Quantity, other: Quantity) -> Quantity:
    short = one.short and other.short
    if short and 0 in (one.units, other.units):
        found = other if other.units else one
        return Quantity(found.units, found.scale, short=True, computed=True)
    left, right, scale = _aligned(one, other)
    fits = all(INT_LEAST <= each <= INT_MOST for each in (left, right, left + right))
    return Quantity(left + right, scale, short=short and fits, computed=True)


def _difference(one: Quantity, other: Quantity) -> Quantity:
    if other.units == INT_LEAST:
        # In 64 bits, this number is its own negation, and Go only checks the sum.
        found = _sum(one, other)
        if found.short:
            return found
    return _sum(one, Quantity(-other.units, other.scale, other.short))


def _whole(number: int) -> Quantity:
    return Quantity(number, 0, short=True)


def _integer(quantity: Quantity) -> int | None:
    if not quantity.short or quantity.scale < 0:
        return None
    number = quantity.units * 10**quantity.scale
    return number if INT_LEAST <= number <= INT_MOST else None


def _as_integer(quantity: Quantity) -> int:
    number = _integer(quantity)
    if number is None:
        raise EvaluationError("cannot convert value to integer")
    return number


def _as_float(quantity: Quantity) -> float:
    try:
        return float(quantity.units) * 10.0**quantity.scale
    except OverflowError:
        return float("inf") if quantity.units > 0 else float("-inf")


QUANTITIES: Final = Library(
    "kubernetes.quantity",
    {
        "quantity": (function("string_to_quantity", (STRING,), QUANTITY, _parsed),),
        "isQuantity": (function("is_quantity_string", (STRING,), BOOL, partial(succeeds, _parsed)),),
        "sign": (function("quantity_sign", (QUANTITY,), INT, lambda a: (a.units > 0) - (a.units < 0)),),
        "isGreaterThan": (
            method("quantity_is_greater_than", (QUANTITY, QUANTITY), BOOL, lambda a, b: _compared(a, b) > 0),
        ),
        "isLessThan": (method("quantity_is_less_than", (QUANTITY, QUANTITY), BOOL, lambda a, b: _compared(a, b) < 0),),
        "compareTo": (method("quantity_compare_to", (QUANTITY, QUANTITY), INT, _compared),),
        "asApproximateFloat": (method("quantity_get_float", (QUANTITY,), DOUBLE, _as_float),),
        "asInteger": (method("quantity_get_int", (QUANTITY,), INT, _as_integer),),
        "isInteger": (method("quantity_is_integer", (QUANTITY,), BOOL, lambda a: _integer(a) is not None),),
        "add": (
            method("quantity_add", (QUANTITY, QUANTITY), QUANTITY, _sum),
            method("quantity_add_int", (QUANTITY, INT), QUANTITY, lambda a, b: _sum(a, _whole(b))),
        ),
        "sub": (
            method("quantity_sub", (QUANTITY, QUANTITY), QUANTITY, _difference),
            method("quantity_sub_int", (QUANTITY, INT), QUANTITY, lambda a, b: _difference(a, _whole(b))),
        ),
    },
)
