"""Operators for numbers, comparisons and logic. Integers that do not fit 64 bits are errors.

Source: cel-spec doc/langdef.md, "Arithmetic"; cel-go common/types/int.go, uint.go, double.go.
"""

from __future__ import annotations

import math
from typing import Any, Final

from deltaloop.cel import types
from deltaloop.cel.errors import EvaluationError
from deltaloop.cel.library import Library, Overload, function
from deltaloop.cel.operators import equal, greater, greater_or_equal, in_parts, less, less_or_equal, unequal
from deltaloop.cel.types import BOOL, BYTES, DOUBLE, DURATION, INT, STRING, TIMESTAMP, UINT, A, Type, list_of
from deltaloop.cel.values import (
    LIST_KINDS,
    Duration,
    Timestamp,
    Uint,
    as_duration,
    as_int,
    as_timestamp,
    as_uint,
    kind_of,
)
from deltaloop.schemas.work import build

_SHORT: Final = 64
_LONG: Final = 1 << 16


def _divided(left: int, right: int) -> int:
    """Divide and round toward zero, like Go."""
    if right == 0:
        raise EvaluationError("division by zero")
    quotient = abs(int(left)) // abs(int(right))
    return quotient if (left < 0) == (right < 0) else -quotient


def _remainder(left: int, right: int) -> int:
    """Return the remainder with the sign of the left number, like Go."""
    if right == 0:
        raise EvaluationError("modulus by zero")
    rest = abs(int(left)) % abs(int(right))
    return -rest if left < 0 else rest


def _divided_doubles(left: float, right: float) -> float:
    if right == 0:
        if left == 0 or math.isnan(left):
            return math.nan
        return math.inf if math.copysign(1, left) == math.copysign(1, right) else -math.inf
    return left / right


def _product(left: float, right: float) -> float:
    return left * right


def _sum(left: float, right: float) -> float:
    return left + right


def _difference(left: float, right: float) -> float:
    return left - right


def _joined(left: Any, right: Any) -> Any:
    """Concatenate two strings, byte strings or lists. A character can need four bytes."""
    size = len(left) + len(right)
    if size > _SHORT:
        wide = 4 if kind_of(left) is str and not (left.isascii() and right.isascii()) else 1
        build(size * (8 if kind_of(left) in LIST_KINDS else wide))
    if size > _LONG and kind_of(left) is list:
        return in_parts(left, right)
    return left + right


def _add_ints(left: int, right: int) -> int:
    return as_int(left + right)


def _shifted(instant: Timestamp, span: Duration) -> Timestamp:
    return as_timestamp(instant.nanoseconds + span.nanoseconds, instant.ahead)


_ADD: Final = (
    function("add_bytes", (BYTES, BYTES), BYTES, _joined),
    function("add_double", (DOUBLE, DOUBLE), DOUBLE, _sum),
    function(
        "add_duration_duration",
        (DURATION, DURATION),
        DURATION,
        lambda a, b: as_duration(a.nanoseconds + b.nanoseconds),
    ),
    function("add_duration_timestamp", (DURATION, TIMESTAMP), TIMESTAMP, lambda a, b: _shifted(b, a)),
    function("add_timestamp_duration", (TIMESTAMP, DURATION), TIMESTAMP, _shifted),
    function("add_int64", (INT, INT), INT, _add_ints),
    function("add_list", (list_of(A), list_of(A)), list_of(A), _joined),
    function("add_string", (STRING, STRING), STRING, _joined),
    function("add_uint64", (UINT, UINT), UINT, lambda a, b: as_uint(int(a) + int(b))),
)
_SUBTRACT: Final = (
    function("subtract_double", (DOUBLE, DOUBLE), DOUBLE, _difference),
    function(
        "subtract_duration_duration",
        (DURATION, DURATION),
        DURATION,
        lambda a, b: as_duration(a.nanoseconds - b.nanoseconds),
    ),
    function("subtract_int64", (INT, INT), INT, lambda a, b: as_int(a - b)),
    function(
        "subtract_timestamp_duration",
        (TIMESTAMP, DURATION),
        TIMESTAMP,
        lambda a, b: as_timestamp(a.nanoseconds - b.nanoseconds, a.ahead),
    ),
    function(
        "subtract_timestamp_timestamp",
        (TIMESTAMP, TIMESTAMP),
        DURATION,
        lambda a, b: Duration(as_int(a.nanoseconds - b.nanoseconds)),
    ),
    function("subtract_uint64", (UINT, UINT), UINT, lambda a, b: as_uint(int(a) - int(b))),
)
_MULTIPLY: Final = (
    function("multiply_double", (DOUBLE, DOUBLE), DOUBLE, _product),
    function("multiply_int64", (INT, INT), INT, lambda a, b: as_int(a * b)),
    function("multiply_uint64", (UINT, UINT), UINT, lambda a, b: as_uint(int(a) * int(b))),
)
_DIVIDE: Final = (
    function("divide_double", (DOUBLE, DOUBLE), DOUBLE, _divided_doubles),
    function("divide_int64", (INT, INT), INT, lambda a, b: as_int(_divided(a, b))),
    function("divide_uint64", (UINT, UINT), UINT, lambda a, b: Uint(_divided(a, b))),
)
_MODULO: Final = (
    function("modulo_int64", (INT, INT), INT, _remainder),
    function("modulo_uint64", (UINT, UINT), UINT, lambda a, b: Uint(_remainder(a, b))),
)
_NEGATE: Final = (
    function("negate_double", (DOUBLE,), DOUBLE, lambda a: -a),
    function("negate_int64", (INT,), INT, lambda a: as_int(-a)),
)
_ORDERED: Final = (BOOL, INT, UINT, DOUBLE, STRING, BYTES, TIMESTAMP, DURATION)
_NUMBERS: Final = (INT, UINT, DOUBLE)


def _ordering(name: str, implementation: object) -> tuple[Overload, ...]:
    """Return the overloads of a comparison: each type with itself, and all pairs of number types."""
    pairs: list[tuple[Type, Type]] = [(kind, kind) for kind in _ORDERED]
    pairs += [(one, other) for one in _NUMBERS for other in _NUMBERS if one != other]
    assert callable(implementation)
    return tuple(
        Overload(f"{name}_{one.kind}_{other.kind}", (one, other), BOOL, implementation) for one, other in pairs
    )


LOGIC: Final = {
    "_?_:_": (Overload("conditional", (BOOL, A, A), A),),
    "_&&_": (Overload("logical_and", (BOOL, BOOL), BOOL),),
    "_||_": (Overload("logical_or", (BOOL, BOOL), BOOL),),
    "!_": (Overload("logical_not", (BOOL,), BOOL),),
    "_==_": (Overload("equals", (A, A), BOOL, equal),),
    "_!=_": (Overload("not_equals", (A, A), BOOL, unequal),),
}
ARITHMETIC: Final = Library(
    "arithmetic",
    {
        **LOGIC,
        "_+_": _ADD,
        "_-_": _SUBTRACT,
        "_*_": _MULTIPLY,
        "_/_": _DIVIDE,
        "_%_": _MODULO,
        "-_": _NEGATE,
        "_<_": _ordering("less", less),
        "_<=_": _ordering("less_equals", less_or_equal),
        "_>_": _ordering("greater", greater),
        "_>=_": _ordering("greater_equals", greater_or_equal),
    },
    types={name: types.NAMED[name] for name in types.NAMED if name not in {"dyn", "optional_type"}},
)
