"""Costs of calls in cel-go's units of about 50 ns: actual costs, and estimates before an evaluation.

Source: cel-go checker/cost.go, interpreter/runtimecost.go, common/cost.go.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias, cast, final

import msgspec

from deltaloop.cel.types import Type
from deltaloop.cel.values import LIST_KINDS, OptionalValue, kind_of

UNLIMITED: Final = 2**64 - 1
TEXT_FACTOR: Final = 0.1
PATTERN_FACTOR: Final = 0.25
LIST_COST: Final = 10
MAP_COST: Final = 30
OBJECT_COST: Final = 40


@final
class Estimate(NamedTuple):
    """Range of a cost or a size.

    Attributes:
        least: Lower bound.
        most: Upper bound, ``UNLIMITED`` if it is unknown.
    """

    least: int
    most: int

    def plus(self, other: Estimate) -> Estimate:
        """Return the sum of both."""
        least, most = self[0] + other[0], self[1] + other[1]
        return Estimate(least, most) if most <= UNLIMITED >= least else Estimate(min(UNLIMITED, least), UNLIMITED)

    def times(self, other: Estimate) -> Estimate:
        """Return the product of both."""
        return Estimate(min(self.least * other.least, UNLIMITED), min(self.most * other.most, UNLIMITED))

    def by(self, factor: float) -> Estimate:
        """Return the product with a factor, rounded up."""
        return Estimate(_scaled(self.least, factor), _scaled(self.most, factor))

    def joined(self, other: Estimate) -> Estimate:
        """Return the range that includes both."""
        return Estimate(min(self.least, other.least), max(self.most, other.most))


def _scaled(number: int, factor: float) -> int:
    if number and factor > 0 and float(number) > float(UNLIMITED) / factor:
        return UNLIMITED
    return min(math.ceil(float(number) * factor), UNLIMITED)


ANY_SIZE: Final = Estimate(0, UNLIMITED)
ONE: Final = Estimate(1, 1)

# Function from a path, for example ``("self", "spec", "names", "@items")``, to the size of the value, or None if it is
# unknown. The parts after the variable are fields, ``@items``, ``@indices``, ``@keys`` and ``@values``.
SizeHints: TypeAlias = Callable[[tuple[str, ...]], Estimate | None]


@final
class Operand(msgspec.Struct, frozen=True):
    """Argument before an evaluation; its path is () if it is computed, and its size None if it is unknown."""

    type: Type
    path: tuple[str, ...]
    size: Estimate | None
    literal: object = None

    @property
    def any_size(self) -> Estimate:
        return self.size or ANY_SIZE


@final
class CallShape(msgspec.Struct, frozen=True):
    """Known properties of a call before an evaluation. The target of a method is not among the arguments."""

    function: str
    overload: str
    target: Operand | None
    arguments: tuple[Operand, ...]
    hints: SizeHints

    @property
    def operands(self) -> tuple[Operand, ...]:
        return self.arguments if self.target is None else (self.target, *self.arguments)


# Cost of a call without its arguments, and the size of its value, or None if it is unknown.
CallEstimate: TypeAlias = tuple[Estimate, Estimate | None]
CallEstimator: TypeAlias = Callable[[CallShape], CallEstimate | None]
# Function from the values of the arguments and the result to the cost, or None if it is unknown.
CallCost: TypeAlias = Callable[[Sequence[Any], Any], int | None]


@final
class Cost(msgspec.Struct, frozen=True):
    """Cost of a call."""

    actual: CallCost
    estimated: CallEstimator
    reads: tuple[int, ...] | None = ()


_SIZED: Final[frozenset[type[object]]] = frozenset({str, list, dict, bytes})


def size_of(value: Any) -> int:
    """Return the size of a value in characters, bytes, elements or entries, or 1."""
    kind = kind_of(value)
    if kind in _SIZED:
        return len(value)
    if kind is OptionalValue and value.present:
        return size_of(value.value)
    return len(value) if hasattr(kind, "__len__") else 1


def through_text(size: int, factor: float = TEXT_FACTOR) -> int:
    return math.ceil(size * factor)


def _of_argument(place: int) -> Cost:

    def estimated(call: CallShape) -> CallEstimate:
        return call.operands[place].any_size.by(TEXT_FACTOR), None

    return Cost(lambda values, _: through_text(size_of(values[place])), estimated, (place,))


def _compared(values: Sequence[Any], result: Any) -> int:  # noqa: ARG001
    one, other = values
    if kind_of(one) is str is kind_of(other):  # the most frequent case
        return math.ceil(min(len(one), len(other)) * TEXT_FACTOR)
    return through_text(min(size_of(one), size_of(other)))


def _compared_estimate(call: CallShape) -> CallEstimate:
    most = min(operand.any_size.most for operand in call.operands)
    return Estimate(min(most, 1), most).by(TEXT_FACTOR), None


def _joined(values: Sequence[Any], result: Any) -> int:  # noqa: ARG001
    return through_text(size_of(values[0]) + size_of(values[1]))


def _joined_estimate(call: CallShape) -> CallEstimate:
    size = call.operands[0].any_size.plus(call.operands[1].any_size)
    return size.by(TEXT_FACTOR), size


def matched(values: Sequence[Any], result: Any) -> int:  # noqa: ARG001
    return through_text(1 + size_of(values[0])) * through_text(size_of(values[1]), PATTERN_FACTOR)


def matched_estimate(call: CallShape) -> CallEstimate:
    text, pattern = call.operands[:2]
    return text.any_size.plus(ONE).by(TEXT_FACTOR).times(pattern.any_size.by(PATTERN_FACTOR)), None


def _contained(values: Sequence[Any], result: Any) -> int:  # noqa: ARG001
    return through_text(size_of(values[0])) * through_text(size_of(values[1]))


def _contained_estimate(call: CallShape) -> CallEstimate:
    text, part = (operand.any_size.by(TEXT_FACTOR) for operand in call.operands)
    return text.times(part), None


def _to_bytes_estimate(call: CallShape) -> CallEstimate:
    size = call.operands[0].any_size
    return size.by(TEXT_FACTOR), Estimate(size.least, size.most * 4 & UNLIMITED)


def _to_text_estimate(call: CallShape) -> CallEstimate:
    size = call.operands[0].any_size
    return size.by(TEXT_FACTOR), Estimate(size.least // 4, size.most)


def _quoted_estimate(call: CallShape) -> CallEstimate:
    size = call.operands[0].any_size
    return size.by(TEXT_FACTOR), Estimate(size.least + 2, size.most * 2 + 2 & UNLIMITED)


def _lists_joined_estimate(call: CallShape) -> CallEstimate:
    return ONE, call.operands[0].any_size.plus(call.operands[1].any_size)


_COMPARED: Final = Cost(_compared, _compared_estimate, (0, 1))
_JOINED: Final = Cost(_joined, _joined_estimate, (0, 1))
_MATCHED: Final = Cost(matched, matched_estimate, (0, 1))
_SECOND: Final = _of_argument(1)
_FIRST: Final = _of_argument(0)

# By overload name. Other overloads cost one unit.
STANDARD_COSTS: Final[Mapping[str, Cost]] = {
    "starts_with_string": _SECOND,
    "ends_with_string": _SECOND,
    "string_to_bytes": Cost(_FIRST.actual, _to_bytes_estimate, (0,)),
    "bytes_to_string": Cost(_FIRST.actual, _to_text_estimate, (0,)),
    "strings_quote": Cost(_FIRST.actual, _quoted_estimate, (0,)),
    "string_format": _FIRST,
    "in_list": Cost(lambda values, _: size_of(values[1]), lambda call: (call.operands[1].any_size.by(1), None), (1,)),
    **{
        f"{comparison}_{kind}_{kind}": _COMPARED
        for comparison in ("less", "less_equals", "greater", "greater_equals")
        for kind in ("string", "bytes")
    },
    "equals": _COMPARED,
    "not_equals": _COMPARED,
    "add_string": _JOINED,
    "add_bytes": _JOINED,
    "add_list": Cost(lambda _values, _result: 1, _lists_joined_estimate),
    "matches": _MATCHED,
    "matches_string": _MATCHED,
    "contains_string": Cost(_contained, _contained_estimate, (0, 1)),
}


def _made(size: Estimate, factor: float = 1) -> CallEstimate:
    return size.by(factor).plus(Estimate(1 + LIST_COST, 1 + LIST_COST)), size


def made_list(factor: float, size: float) -> int:
    """Return the cost of building a list from ``size`` elements."""
    return int(size * (factor if factor >= 0 else 1.0)) + 1 + LIST_COST


_TEXTS: Final[frozenset[type[object]]] = frozenset({str, bytes})


def _paired(items: object) -> int:
    """Return the cost of comparing all pairs of elements. Values other than lists fail later."""
    is_text = kind_of(items) in LIST_KINDS and kind_of(next(iter(cast("list[object]", items)), None)) in _TEXTS
    return made_list(2 + TEXT_FACTOR * is_text, size_of(items) ** 2)


def paired(place: int, *, is_text: bool = False) -> Cost:
    """Return the cost of comparing all pairs of an argument's elements, and of building a list."""

    def estimated(call: CallShape) -> CallEstimate:
        size = call.operands[place].any_size
        return _made(size.times(size), 2 + TEXT_FACTOR * is_text)

    return Cost(lambda values, _: _paired(values[place]), estimated, (place,))


def _number(operand: Operand, otherwise: int) -> int:
    is_number = kind_of(operand.literal) is int
    return max(int(str(operand.literal)), 0) if is_number else otherwise


def _slice_estimate(call: CallShape) -> CallEstimate:
    items, start, end = call.operands
    size = _number(end, items.any_size.most) - _number(start, 0) & UNLIMITED
    return _made(Estimate(size, size))


def _range_estimate(call: CallShape) -> CallEstimate:
    size = _number(call.operands[0], UNLIMITED)
    return _made(Estimate(size, size))


def _flatten_estimate(call: CallShape) -> CallEstimate:
    depth = _number(call.arguments[0], UNLIMITED) if call.arguments else 1
    return _made(call.operands[0].any_size, float(depth))


def _flattened(values: Sequence[Any], result: Any) -> int:  # noqa: ARG001
    depth = values[1] if len(values) == 2 and kind_of(values[1]) is int else 1  # other types fail later
    return made_list(float(depth), size_of(values[0]))


def as_large_as_result(estimated: CallEstimator) -> Cost:
    """Return the cost of building a list whose size an estimator knows."""
    return Cost(lambda _, result: made_list(1, size_of(result)), estimated, None)


def compared_sets(factor: float) -> Cost:
    """Return the cost of searching each element of one list in another list."""

    def estimated(call: CallShape) -> CallEstimate:
        one, other = call.operands
        return one.any_size.times(other.any_size).by(factor).plus(ONE), None

    return Cost(lambda values, _: 1 + int(size_of(values[0]) * size_of(values[1]) * factor), estimated, (0, 1))


SLICE_COST: Final = as_large_as_result(_slice_estimate)
RANGE_COST: Final = as_large_as_result(_range_estimate)
REVERSE_COST: Final = as_large_as_result(lambda call: _made(call.operands[0].any_size))
FLATTEN_COST: Final = Cost(_flattened, _flatten_estimate, (0, 1))
