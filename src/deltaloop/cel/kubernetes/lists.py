"""Functions of lists: sorted order, sum, minimum and maximum, and positions of elements.

Source: k8s.io/apiserver pkg/cel/library/lists.go.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from deltaloop.cel.errors import EvaluationError, no_such_overload
from deltaloop.cel.libraries.arithmetic import ARITHMETIC
from deltaloop.cel.library import Library, Overload, method
from deltaloop.cel.operators import SIMPLE, equal, greater, less
from deltaloop.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    STRING,
    TIMESTAMP,
    UINT,
    A,
    Type,
    list_of,
)
from deltaloop.cel.values import LIST_KINDS, Duration, Uint, kind_of
from deltaloop.schemas.work import charge

_COMPARABLE: Final = (INT, UINT, DOUBLE, BOOL, DURATION, TIMESTAMP, STRING, BYTES)
_ZEROS: Final[tuple[tuple[Type, Any], ...]] = ((INT, 0), (UINT, Uint(0)), (DOUBLE, 0.0), (DURATION, Duration(0)))
_ZERO_OF: Final[Mapping[type[object], Any]] = {kind_of(zero): zero for _, zero in _ZEROS}


def _says(compare: Callable[[Any, Any], bool], one: Any, other: Any) -> bool:
    """Compare two values. Values that cannot be compared count as equal."""
    try:
        return compare(one, other)
    except EvaluationError:
        return False


def _is_comparable(item: Any) -> Any:
    if kind_of(item) not in SIMPLE:
        raise no_such_overload(item)
    return item


def _is_sorted(items: list[Any]) -> bool:
    charge(5 * len(items))
    before: list[Any] = []
    for item in items:
        if before and _says(greater, before[0], _is_comparable(item)):
            return False
        before = [_is_comparable(item)]
    return True


def _extreme(name: str, compare: Callable[[Any, Any], bool]) -> Callable[[list[Any]], Any]:
    def extreme(items: list[Any]) -> Any:
        if not items:
            raise EvaluationError(f"{name} called on empty list")
        charge(5 * len(items))
        found = _is_comparable(items[0])
        for item in items[1:]:
            if _says(compare, _is_comparable(item), found):
                found = item
        return found

    return extreme


def _added(one: Any, other: Any) -> Any:
    kinds = kind_of(one), kind_of(other)
    for overload in ARITHMETIC.functions["_+_"]:
        if overload.accepts(kinds):
            assert overload.implementation is not None
            return overload.implementation(one, other)
    raise no_such_overload(one, other)


def _sum_from(zero: Any) -> Callable[[list[Any]], Any]:
    def summed(items: list[Any]) -> Any:
        charge(20 * len(items))
        total = _ZERO_OF[kind_of(items[0])] if items else zero
        for item in items:
            total = _added(total, item)
        return total

    return summed


def _equals(one: Any, other: Any) -> bool:
    return _says(equal, one, other)


def _place(items: list[Any], wanted: Any, places: Iterable[int]) -> int:
    charge(5 * len(items))
    return next((place for place in places if _equals(items[place], wanted)), -1)


def _includes(target: Any, wanted: Any) -> bool:
    if kind_of(target) in LIST_KINDS:
        charge(5 * len(target))
        return any(_equals(item, wanted) for item in target)
    return _equals(target, wanted)


def _each(
    suffix: str, kinds: Iterable[Type], implementation: Callable[[list[Any]], Any], result: Type | None = None
) -> tuple[Overload, ...]:
    return tuple(
        method(f"list_{kind.kind}_{suffix.format(kind.kind)}", (list_of(kind),), result or kind, implementation)
        for kind in kinds
    )


def _by_the_first(name: str, kinds: Collection[type[object]], overloads: tuple[Overload, ...]) -> tuple[Overload, ...]:
    """Return overloads that require the first element to have one of these types, like cel-go."""

    def guarded(implementation: Callable[[list[Any]], Any]) -> Callable[[list[Any]], Any]:
        def called(items: list[Any]) -> Any:
            if items and kind_of(items[0]) not in kinds:
                raise EvaluationError(f"no such overload: {name}(list)", wrong_types=True)
            return implementation(items)

        return called

    return tuple(
        replace(each, implementation=guarded(each.implementation)) for each in overloads if each.implementation
    )


LISTS: Final = Library(
    "kubernetes.lists",
    {
        "isSorted": _by_the_first("isSorted", SIMPLE, _each("is_sorted_bool", _COMPARABLE, _is_sorted, BOOL)),
        "sum": _by_the_first(
            "sum",
            _ZERO_OF,
            tuple(overload for kind, zero in _ZEROS for overload in _each("sum_{}", (kind,), _sum_from(zero))),
        ),
        "max": _by_the_first("max", SIMPLE, _each("max_{}", _COMPARABLE, _extreme("max", greater))),
        "min": _by_the_first("min", SIMPLE, _each("min_{}", _COMPARABLE, _extreme("min", less))),
        "indexOf": (method("list_a_index_of_int", (list_of(A), A), INT, lambda a, b: _place(a, b, range(len(a)))),),
        "lastIndexOf": (
            method("list_a_last_index_of_int", (list_of(A), A), INT, lambda a, b: _place(a, b, range(len(a))[::-1])),
        ),
    },
)
INCLUDES: Final = Library(
    "kubernetes.lists",
    {"includes": (method("list_includes_dyn_dyn", (DYN, DYN), BOOL, _includes),)},
)
