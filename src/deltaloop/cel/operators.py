"""Equality, order, membership and indexes of plain values, for which Python's operators are wrong (``True == 1``).

Source: cel-spec doc/langdef.md, "Equality", "Ordering"; cel-go common/types.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from functools import cmp_to_key
from typing import Any, Final, cast

from deltaloop.cel.errors import EvaluationError, FailedValue, no_such_overload
from deltaloop.cel.types import Type, runtime_type, type_name
from deltaloop.cel.values import (
    LIST_KINDS,
    NO_VALUE,
    Duration,
    KeyedList,
    LazyObject,
    ObjectValue,
    OptionalValue,
    SetList,
    Timestamp,
    Uint,
    by_keys,
    kind_of,
)
from deltaloop.schemas.work import charge

# Types whose values compare like in Python. ``Uint`` inherits the operators of int.
SIMPLE: Final = frozenset({int, str, float, Uint, bytes, bool, Timestamp, Duration})
# The same for order, where NaN is an exception.
ORDERED: Final = SIMPLE - {float}
_PLAIN: Final = SIMPLE | {list, dict, OptionalValue, Type, type(None)}
NUMBERS: Final = frozenset({int, Uint, float})
# Characters that one step compares, and the limit above which a list of strings is not searched in one call.
_COMPARED_IN_A_STEP: Final = 512
_MANY_CHARACTERS: Final = 1 << 20
_AT_ONCE: Final = 1 << 16
_MISSING: Final = object()
# Types whose equal values have equal hashes.
_HASHED: Final = frozenset({int, str, bool})


def equal(left: Any, right: Any) -> bool:
    """Return whether two values are equal. Different types are unequal, except for numbers."""
    kind, other = kind_of(left), kind_of(right)
    if kind is other and kind in SIMPLE:
        return bool(left == right)
    if kind not in _PLAIN and hasattr(kind, "cel_equals"):
        return bool(left.cel_equals(right))
    if kind is not other:
        if kind is FailedValue or other is FailedValue:
            raise no_such_overload(left, right)
        if kind in LIST_KINDS and other in LIST_KINDS:
            return _equal_lists(left, right)
        return kind in NUMBERS and other in NUMBERS and compare_numbers(operator.eq, left, right)
    if kind in LIST_KINDS:
        return _equal_lists(left, right)
    if kind is dict:
        charge(8 * len(left))
        return len(left) == len(right) and all(
            (found := find(right, key)) is not _MISSING and _equal_within(value, found) for key, value in left.items()
        )
    if kind is OptionalValue:
        return left.present == right.present and equal(left.value, right.value)
    if kind is Type:
        return type_name(left) == type_name(right)
    if kind is FailedValue:
        raise left.error
    return bool(left == right)


def _equal_lists(left: list[Any], right: list[Any]) -> bool:
    """Return whether lists are equal. The first list decides whether the order matters."""
    if len(left) != len(right):
        return False
    charge(3 + 5 * len(left))
    if isinstance(left, KeyedList):
        charge(20 * len(left))
        before, after = by_keys(left, left.keys), by_keys(right, left.keys)
        keyed = ((by_keys([item], left.keys), item) for item in right)
        return before.keys() == after.keys() and all(equal(before[key], item) for found, item in keyed for key in found)
    if isinstance(left, SetList):
        kinds = {*map(kind_of, left), *map(kind_of, right)}
        if len(kinds) == 1 and kinds <= _HASHED:
            return set(left) == set(right)
        return all(contains(item, left) for item in right) and all(contains(item, right) for item in left)
    return all(map(_equal_within, left, right))


def _equal_within(left: Any, right: Any) -> bool:
    """Compare parts of two values. A list or an object of a schema cannot be compared with null."""
    if right is None and (kind_of(left) is dict or kind_of(left) in LIST_KINDS):
        raise no_such_overload()
    return equal(left, right)


def compare_numbers(compare: Callable[[Any, Any], bool], left: float, right: float) -> bool:
    """Compare numbers of different types, as doubles if one is a double. 2^53 + 1 then equals 2^53."""
    if kind_of(left) is float or kind_of(right) is float:
        return compare(float(left), float(right))
    return compare(left, right)


def unequal(left: Any, right: Any) -> bool:
    """Return whether two values differ. Library values that cannot be compared differ."""
    try:
        return not equal(left, right)
    except EvaluationError:
        if FailedValue in (kind_of(left), kind_of(right)):
            raise
        return True


def ordering(compare: Callable[[Any, Any], bool], name: str) -> Callable[[Any, Any], bool]:
    """Return a comparison of two values of the same type, or of two numbers. ``name`` is for errors."""

    def compared(left: Any, right: Any) -> bool:
        kind, other = kind_of(left), kind_of(right)
        if kind is other and kind in ORDERED:
            return compare(left, right)
        if kind in NUMBERS and other in NUMBERS:
            if math.isnan(left) or math.isnan(right):
                raise EvaluationError("NaN values cannot be ordered")
            return compare_numbers(compare, left, right)
        raise no_such_overload(left, right, named="" if kind in SIMPLE else f": {name}")

    return compared


less: Final = ordering(operator.lt, "_<_")
less_or_equal: Final = ordering(operator.le, "_<=_")
greater: Final = ordering(operator.gt, "_>_")
greater_or_equal: Final = ordering(operator.ge, "_>=_")


def find(mapping: dict[Any, Any], key: Any) -> Any:
    """Return the value of a key, which may be an equal number of a different type, or a marker for ``is_missing``."""
    kind = kind_of(key)
    if kind is str:
        return mapping.get(key, _MISSING)
    if kind is bool:
        if key not in mapping:
            return _MISSING
        charge(len(mapping))
        return next((value for found, value in mapping.items() if found is key), _MISSING)
    if kind not in NUMBERS or key not in mapping:
        return _MISSING
    if key in (0, 1):
        charge(len(mapping))
        return next(
            (value for found, value in mapping.items() if found == key and kind_of(found) is not bool), _MISSING
        )
    return mapping[key]


def is_missing(found: Any) -> bool:
    return found is _MISSING


def shown_key(key: Any) -> str:
    return ("true" if key else "false") if kind_of(key) is bool else str(key)


def contains(element: Any, collection: Any) -> bool:
    """Return whether a list or map contains a value; raises EvaluationError if a failed value may decide."""
    if kind_of(collection) is dict:
        found = find(cast("dict[Any, Any]", collection), element)
        if kind_of(found) is FailedValue:
            raise found.error
        return found is not _MISSING
    if kind_of(collection) not in LIST_KINDS:
        raise no_such_overload(collection)
    items = cast("list[Any]", collection)
    if FailedValue in map(kind_of, items):
        if contains(element, [item for item in items if kind_of(item) is not FailedValue]):
            return True
        raise next(item.error for item in items if kind_of(item) is FailedValue)
    charge(len(items) // 4 if kind_of(element) is str else 4 * len(items))
    if kind_of(element) is not str:
        return any(equal(element, item) for item in items)
    size = len(cast("str", element))
    if size * len(items) < _MANY_CHARACTERS:
        return element in items
    for item in items:
        if kind_of(item) is str and len(item) == size:
            charge(size // _COMPARED_IN_A_STEP)
            if item == element:
                return True
    return False


def index(operand: Any, key: Any) -> Any:
    kind = kind_of(operand)
    if kind is dict:
        found = find(operand, key)
        if found is _MISSING:
            raise EvaluationError(f"no such key: {shown_key(key)}")
        return found
    if kind in LIST_KINDS:
        return operand[position(key, len(operand))]
    if kind is OptionalValue:
        return optional_index(operand, key)
    if kind is FailedValue:
        raise operand.error
    raise EvaluationError(f"no such key: {shown_key(key)}")


def position(key: Any, length: int) -> int:
    """Return the list index for any whole number in range."""
    if kind_of(key) not in NUMBERS:
        raise EvaluationError(f"unsupported index type '{type_name(runtime_type(key))}' in list")
    if key != key or key in (float("inf"), float("-inf")) or int(key) != key:  # noqa: PLR0124  # NaN
        raise EvaluationError(f"unsupported index value {key} in list")
    if 0 <= key < length:
        return int(key)
    raise EvaluationError(f"index out of bounds: {int(key)}")


def optional_index(operand: Any, key: Any) -> OptionalValue:
    kind = kind_of(operand)
    if kind is OptionalValue:
        return optional_index(operand.value, key) if operand.present else NO_VALUE
    if kind is dict:
        found = find(operand, key)
        if kind_of(found) is FailedValue:
            raise found.error
        return NO_VALUE if found is _MISSING else OptionalValue(found)
    if kind is LazyObject:
        return OptionalValue(operand.field(key)) if operand.has(key) else NO_VALUE
    if kind is FailedValue:
        raise operand.error
    if kind in LIST_KINDS:
        if kind_of(key) in NUMBERS and not (0 <= key < len(operand)):
            return NO_VALUE
        return OptionalValue(operand[position(key, len(operand))])
    raise EvaluationError(f"no such key: {shown_key(key)}")


def select(operand: Any, name: str) -> Any:
    kind = kind_of(operand)
    if kind is dict:
        if name in operand:
            return operand[name]
    elif kind is OptionalValue or kind in LIST_KINDS:
        return index(operand, name)
    elif kind is FailedValue:
        raise operand.error
    elif kind is LazyObject:
        return operand.field(name)
    elif kind is ObjectValue and name in operand:
        return operand[name]
    raise EvaluationError(f"no such key: {name}")


def has_field(operand: Any, name: str) -> bool:
    kind = kind_of(operand)
    if kind is dict:
        if name in operand and kind_of(operand[name]) is FailedValue:
            raise operand[name].error
        return name in operand
    if kind is FailedValue:
        raise operand.error
    if kind is LazyObject:
        return bool(operand.has(name))
    if kind is ObjectValue:
        return name in operand
    return kind is OptionalValue and operand.present and has_field(operand.value, name)


def is_zero_value(value: Any) -> bool:
    """Return whether a value is its type's zero value: 0, "", empty, false or null."""
    kind = kind_of(value)
    if kind is OptionalValue:
        return not value.present
    if kind is Duration:
        return bool(value == Duration(0))
    if kind is Timestamp:
        return False
    return kind is not Type and not value


def in_parts(*lists: Sequence[Any]) -> list[Any]:
    """Concatenate long lists in parts, because a single call would block other threads."""
    joined: list[Any] = []
    for each in lists:
        for start in range(0, len(each), _AT_ONCE):
            joined += each[start : start + _AT_ONCE]
    return joined


def in_order(values: list[Any], items: list[Any] | None = None) -> list[Any]:
    """Sort values, or items by their values. Comparisons of long strings are charged."""
    charge(len(values) * max(len(values).bit_length(), 1) // 2)

    def order(one: int, other: int) -> int:
        return _charged_order(values[one], values[other])

    is_long = values and kind_of(values[0]) in (str, bytes) and sum(map(len, values)) > _MANY_CHARACTERS
    places = sorted(range(len(values)), key=cmp_to_key(order) if is_long else values.__getitem__)
    return [(values if items is None else items)[place] for place in places]


def _charged_order(one: Any, other: Any) -> int:
    charge(1 + min(len(one), len(other)) // _COMPARED_IN_A_STEP)
    return int(one > other) - int(one < other)


def sorting_key(values: list[Any]) -> list[Any]:
    kinds = {kind_of(value) for value in values}
    if values and kind_of(values[0]) not in SIMPLE:
        raise EvaluationError("list elements must be comparable")
    if len(kinds) > 1:
        raise EvaluationError("list elements must have the same type")
    return values
