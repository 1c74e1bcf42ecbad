"""Extensions that Kubernetes enables: optional values, sets, lists, macros with two variables. Also ``cel.bind``.

Source: cel-go cel/library.go (optional types), ext/sets.go, ext/lists.go, ext/comprehensions.go, ext/bindings.go.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, cast

from deltaloop.cel.costs import FLATTEN_COST, RANGE_COST, REVERSE_COST, SLICE_COST, compared_sets, paired
from deltaloop.cel.errors import EvaluationError
from deltaloop.cel.library import Library, function, method
from deltaloop.cel.macros import Macro, comprehension, expand_bind, expand_optional
from deltaloop.cel.operators import contains, in_order, in_parts, is_zero_value, optional_index, sorting_key
from deltaloop.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    NAMED,
    STRING,
    TIMESTAMP,
    UINT,
    A,
    B,
    list_of,
    map_of,
    optional_of,
)
from deltaloop.cel.values import LIST_KINDS, NO_VALUE, OptionalValue, kind_of
from deltaloop.schemas.work import build, charge

_LIST: Final = list_of(A)
_OPTIONAL: Final = optional_of(A)
_COMPARABLE: Final = (INT, UINT, DOUBLE, BOOL, DURATION, TIMESTAMP, STRING, BYTES)


def _value(optional: OptionalValue) -> Any:
    if optional.present:
        return optional.value
    raise EvaluationError("optional.none() dereference")


def _of_non_zero(value: Any) -> OptionalValue:
    return NO_VALUE if is_zero_value(value) else OptionalValue(value)


def _first(items: list[Any]) -> OptionalValue:
    return OptionalValue(items[0]) if items else NO_VALUE


def _last(items: list[Any]) -> OptionalValue:
    return OptionalValue(items[-1]) if items else NO_VALUE


def _unwrapping(name: str) -> Callable[[list[Any]], list[Any]]:
    def unwrapped(items: list[Any]) -> list[Any]:
        for place, item in enumerate(items):
            if kind_of(item) is not OptionalValue:
                why = f"value {item} is not optional" if place else f"no such overload: {name}(list)"
                raise EvaluationError(why, wrong_types=not place)
        return [item.value for item in items if item.present]

    return unwrapped


OPTIONALS: Final = Library(
    "optional types",
    {
        "optional.of": (function("optional_of", (A,), _OPTIONAL, OptionalValue),),
        "optional.ofNonZeroValue": (function("optional_ofNonZeroValue", (A,), _OPTIONAL, _of_non_zero),),
        "optional.none": (function("optional_none", (), _OPTIONAL, lambda: NO_VALUE),),
        "optional.unwrap": (function("optional_unwrap", (list_of(_OPTIONAL),), _LIST, _unwrapping("optional.unwrap")),),
        "unwrapOpt": (method("optional_unwrapOpt", (list_of(_OPTIONAL),), _LIST, _unwrapping("unwrapOpt")),),
        "value": (method("optional_value", (_OPTIONAL,), A, _value),),
        "hasValue": (method("optional_hasValue", (_OPTIONAL,), BOOL, lambda optional: optional.present),),
        "or": (
            method(
                "optional_or_optional",
                (_OPTIONAL, _OPTIONAL),
                _OPTIONAL,
                lambda one, other: one if one.present else other,
            ),
        ),
        "orValue": (
            method("optional_orValue_value", (_OPTIONAL, A), A, lambda one, other: one.value if one.present else other),
        ),
        "_[?_]": (
            function("list_optindex_optional_int", (_LIST, INT), _OPTIONAL, optional_index),
            function("optional_list_optindex_optional_int", (optional_of(_LIST), INT), _OPTIONAL, optional_index),
            function("map_optindex_optional_value", (map_of(A, B), A), optional_of(B), optional_index),
            function(
                "optional_map_optindex_optional_value", (optional_of(map_of(A, B)), A), optional_of(B), optional_index
            ),
        ),
        "_[_]": (
            function("optional_list_index_int", (optional_of(_LIST), INT), _OPTIONAL, optional_index),
            function("optional_map_index_value", (optional_of(map_of(A, B)), A), optional_of(B), optional_index),
        ),
        "first": (method("list_first", (_LIST,), _OPTIONAL, _first),),
        "last": (method("list_last", (_LIST,), _OPTIONAL, _last),),
    },
    macros=(Macro("optMap", 2, expand_optional), Macro("optFlatMap", 2, expand_optional)),
    types={"optional_type": NAMED["optional_type"]},
)


def _contains_all(items: list[Any], others: list[Any]) -> bool:
    return all(contains(other, items) for other in others)


def _equivalent(items: list[Any], others: list[Any]) -> bool:
    return _contains_all(items, others) and _contains_all(others, items)


def _intersects(items: list[Any], others: list[Any]) -> bool:
    return any(_is_in(item, others) for item in items)


def _is_in(item: Any, others: list[Any]) -> bool:
    """Return whether a list contains an item. Values that could not be read equal no item."""
    try:
        return contains(item, others)
    except EvaluationError:
        return False


SETS: Final = Library(
    "sets",
    {
        "sets.contains": (function("list_sets_contains_list", (_LIST, _LIST), BOOL, _contains_all, compared_sets(1)),),
        "sets.equivalent": (
            function("list_sets_equivalent_list", (_LIST, _LIST), BOOL, _equivalent, compared_sets(2)),
        ),
        "sets.intersects": (
            function("list_sets_intersects_list", (_LIST, _LIST), BOOL, _intersects, compared_sets(1)),
        ),
    },
)


def _slice(items: list[Any], start: int, end: int) -> list[Any]:
    called = f"cannot slice({start}, {end})"
    if start < 0 or end < 0:
        raise EvaluationError(f"{called}, negative indexes not supported")
    if start > end:
        raise EvaluationError(f"{called}, start index must be less than or equal to end index")
    if len(items) < end:
        raise EvaluationError(f"{called}, list is length {len(items)}")
    build(8 * (end - start))
    return items[start:end]


def _reversed(items: list[Any]) -> list[Any]:
    build(8 * len(items))
    return items[::-1]


def _flatten(items: list[Any], depth: int = 1) -> list[Any]:
    if depth < 0:
        raise EvaluationError("level must be non-negative")
    flat: list[Any] = []
    charge(2 * len(items))
    for item in items:
        if kind_of(item) in LIST_KINDS and depth > 0:
            build(8 * len(cast("list[Any]", item)))
            flat.extend(_flatten(item, depth - 1))  # pyright: ignore[reportUnknownArgumentType]  # any list
        else:
            flat.append(item)
    return flat


def _range(size: int) -> list[int]:
    if size < 0:
        raise EvaluationError(f"lists.range: size must be non-negative, got {size}")
    if size > _LONGEST_RANGE:
        raise EvaluationError(f"lists.range: size {size} exceeds maximum allowed ({_LONGEST_RANGE})")
    build(40 * size)
    return in_parts(range(size))


def _distinct(items: list[Any]) -> list[Any]:
    found: list[Any] = []
    for item in items:
        if not _is_in(item, found):
            found.append(item)
    return found


# cel-go has no limit here, but Kubernetes' cost limit prevents longer lists.
_LONGEST_RANGE: Final = 10_000_000

LISTS: Final = Library(
    "lists",
    {
        "slice": (method("list_slice", (_LIST, INT, INT), _LIST, _slice, SLICE_COST),),
        "flatten": (
            method("list_flatten", (list_of(_LIST),), _LIST, _flatten, FLATTEN_COST),
            method("list_flatten_int", (list_of(DYN), INT), list_of(DYN), _flatten, FLATTEN_COST),
        ),
        "sort": tuple(
            method(
                f"list_{kind.kind}_sort",
                (list_of(kind),),
                list_of(kind),
                lambda items: in_order(sorting_key(items)),
                paired(0, is_text=kind in (STRING, BYTES)),
            )
            for kind in _COMPARABLE
        ),
        "lists.range": (function("lists_range", (INT,), list_of(INT), _range, RANGE_COST),),
        "reverse": (method("list_reverse", (_LIST,), _LIST, _reversed, REVERSE_COST),),
        "distinct": (method("list_distinct", (_LIST,), _LIST, _distinct, paired(0)),),
    },
    macros=(comprehension("sortBy"),),
)

TWO_VARIABLES: Final = Library(
    "two-variable comprehensions",
    macros=(
        comprehension("all", variables=2),
        comprehension("exists", variables=2),
        comprehension("exists_one", variables=2),
        comprehension("existsOne", variables=2),
        comprehension("transformList", variables=2),
        comprehension("transformList", variables=2, bodies=2),
        comprehension("transformMap", variables=2),
        comprehension("transformMap", variables=2, bodies=2),
        comprehension("transformMapEntry", variables=2),
        comprehension("transformMapEntry", variables=2, bodies=2),
    ),
)

BINDINGS: Final = Library("bindings", macros=(Macro("bind", 3, expand_bind),))
