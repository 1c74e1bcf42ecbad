"""Calls of functions and comparisons as closures."""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple, TypeAlias

from deltaloop.cel.costs import Cost
from deltaloop.cel.errors import (
    CostLimitError,
    EvaluationError,
    FailedValue,
    InternalError,
    first_error,
    no_such_overload,
    sound,
)
from deltaloop.cel.library import Implementation, Overload
from deltaloop.cel.loops import BUDGET, SPENT, Closure, Frame, charge
from deltaloop.cel.operators import (
    ORDERED,
    SIMPLE,
    equal,
    greater,
    greater_or_equal,
    less,
    less_or_equal,
    unequal,
)
from deltaloop.cel.types import REPRESENTED, runtime_type, type_name
from deltaloop.cel.values import LIST_KINDS, Duration, Timestamp, Uint, kind_of

Chooser: TypeAlias = Callable[[Sequence[Any]], Implementation]


# Function from the values of the arguments and the result to the cost of the call.
Price: TypeAlias = Callable[[Sequence[Any], Any], int]


class VariableCall(NamedTuple):
    """Call with a loop variable of certain types, whose result has a single type."""

    slot: int
    kinds: frozenset[type[object]]
    implementation: Implementation
    result: type[object] | None


OPERATOR_SIGNS: Final = ("_", "@", "-", "!")


def price_of(costs: Sequence[Cost]) -> Price:
    """Return a function for the cost of a call: the first known cost, or one unit."""
    actual = [cost.actual for cost in costs]
    if not actual:
        return lambda _values, _result: 1
    if len(actual) == 1:
        (only,) = actual

        def price(values: Sequence[Any], result: Any) -> int:
            cost = only(values, result)
            return 1 if cost is None else cost

        return price

    def first_price(values: Sequence[Any], result: Any) -> int:
        for each in actual:
            cost = each(values, result)
            if cost is not None:
                return cost
        return 1

    return first_price


def priced_call(
    compute: Callable[[Sequence[Any]], Any], operands: Sequence[Closure], price: Price, *, both: bool
) -> Closure:
    """Return a call that counts its cost, with ``both`` even if an argument is an error. An error has the size 1."""

    def counted(frame: Frame) -> Any:
        values: list[Any] = []
        error: EvaluationError | None = None
        for operand in operands:
            try:
                value = operand(frame)
                if kind_of(value) is FailedValue:
                    raise value.error
                values.append(value)
            except CostLimitError:
                raise
            except EvaluationError as raised:
                error = error or raised
                if not both and operand is not operands[-1]:
                    raise
                values.append(None)
        result = None
        if error is None:
            try:
                result = compute(values)
            except CostLimitError:
                raise
            except EvaluationError as raised:
                error = raised
        charge(frame, price(values, result))
        if error is not None:
            raise error
        return result

    return counted


_UNKNOWN: Final = object()


def priced_call_of_two(
    compute: Implementation | None, choose: Chooser, operands: Sequence[Closure], price: Price
) -> Closure:
    """Return a call with two arguments that counts its cost; evaluating them twice would double the work per level."""
    left, right = operands
    known: dict[tuple[type[object], type[object]], Implementation] = {}

    def failed(frame: Frame, one: Any, other: Any) -> None:
        """Count a failed call. Arguments that are not known yet have failed as well."""
        if one is _UNKNOWN:
            with suppress(EvaluationError):
                other = right(frame)
        values = [None if each is _UNKNOWN or kind_of(each) is FailedValue else each for each in (one, other)]
        charge(frame, price(values, None))

    def counted(frame: Frame) -> Any:
        one = other = _UNKNOWN
        try:
            one = left(frame)
            other = right(frame)
            kinds = (kind_of(one), kind_of(other))
            if FailedValue in kinds:
                raise no_such_overload(one, other)
            implementation = compute or known.get(kinds)
            if implementation is None:
                implementation = known[kinds] = choose((one, other))
            result = implementation(one, other)
            frame[SPENT] += price((one, other), result)
        except CostLimitError:
            raise
        except EvaluationError as error:
            failed(frame, one, other)
            raise first_error(one, error) from None
        if frame[SPENT] > frame[BUDGET]:
            raise CostLimitError
        return result

    return counted


def plain_call(overloads: Sequence[Overload], operands: Sequence[Closure], name: str) -> Closure:
    """Return a call of the first overload that accepts the values' types, which is cached for these types."""
    choose = chooser(overloads, name)
    if len(operands) == 1:
        return _call_of_one(choose, operands[0])
    if len(operands) == 2:
        return _call_of_two(choose, operands)
    compute = call_by_values(name, overloads)
    return lambda frame: compute(tuple([sound(operand(frame)) for operand in operands]))


def _call_of_one(choose: Chooser, operand: Closure) -> Closure:
    known: dict[type[object], Implementation] = {}

    def called(frame: Frame) -> Any:
        value = operand(frame)
        implementation = known.get(kind_of(value))
        if implementation is None:
            implementation = known[kind_of(value)] = choose((value,))
        return implementation(value)

    return called


UNGUARDED: Final = frozenset({"sort", "distinct"})
"""Functions that cel-go calls with any value, even an error, if only one overload is possible."""


def unguarded(operand: Closure, *, is_list: bool = False) -> Closure:
    """Return the argument of such a function. cel-go itself fails without a value, or without a list (``is_list``)."""

    def given(frame: Frame) -> Any:
        try:
            value = operand(frame)
        except CostLimitError:
            raise
        except EvaluationError:
            raise InternalError(_NO_LIST.format("*types.Err", "Add")) from None
        kind = kind_of(value)
        if kind is FailedValue:
            raise InternalError(_NO_LIST.format("*types.Err", "Add"))
        if is_list and kind not in LIST_KINDS:
            raise InternalError(_NO_LIST.format(*_GO_TYPES.get(kind, ("the value", "Add"))))
        return value

    return given


_NO_LIST: Final = "interface conversion: {} is not traits.Lister: missing method {}"
# Go's names for values that are not lists, and the first missing method.
_GO_TYPES: Final[Mapping[type[object], tuple[str, str]]] = {
    type(None): ("types.Null", "Add"),
    bool: ("types.Bool", "Add"),
    int: ("types.Int", "Contains"),
    Uint: ("types.Uint", "Contains"),
    float: ("types.Double", "Contains"),
    str: ("types.String", "Contains"),
    bytes: ("types.Bytes", "Contains"),
    Duration: ("types.Duration", "Contains"),
    Timestamp: ("types.Timestamp", "Contains"),
}


def variable_call_shape(overloads: Sequence[Overload], slot: int) -> VariableCall | None:
    """Return a call with a loop variable, if all its overloads share one implementation, like those of ``size``."""
    implementations = {overload.implementation for overload in overloads}
    kinds = [REPRESENTED.get(overload.parameters[0].kind) for overload in overloads]
    results = {overload.result for overload in overloads}
    only = next(iter(implementations))
    if len(implementations) > 1 or len(results) > 1 or only is None:
        return None
    known = frozenset(kind for kind in kinds if kind is not None)
    return (
        VariableCall(slot, known, only, REPRESENTED.get(next(iter(results)).kind)) if len(known) == len(kinds) else None
    )


def variable_call(overloads: Sequence[Overload], call: VariableCall, name: str) -> Closure:
    """Return a call with as few Python calls as possible."""
    choose = chooser(overloads, name)
    slot, kinds, implementation, _ = call

    def called(frame: Frame) -> Any:
        value = frame[slot]
        if kind_of(value) in kinds:
            return implementation(value)
        return choose((value,))(value)

    return called


def _call_of_two(choose: Chooser, operands: Sequence[Closure]) -> Closure:
    left, right = operands
    known: dict[tuple[type[object], type[object]], Implementation] = {}

    def called(frame: Frame) -> Any:
        one = left(frame)
        try:
            other = right(frame)
        except EvaluationError as error:
            raise first_error(one, error) from None
        kinds = (kind_of(one), kind_of(other))
        implementation = known.get(kinds)
        if implementation is None:
            implementation = known[kinds] = choose((one, other))
        return implementation(one, other)

    return called


def call_by_values(name: str, overloads: Sequence[Overload]) -> Callable[[Sequence[Any]], Any]:
    """Return a function that computes a call from the values of its arguments."""
    choose = chooser(overloads, name)
    known: dict[tuple[type[object], ...], Implementation] = {}

    def compute(values: Sequence[Any]) -> Any:
        kinds = tuple(map(kind_of, values))
        implementation = known.get(kinds)
        if implementation is None:
            implementation = known[kinds] = choose(values)
        return implementation(*values)

    return compute


def chooser(overloads: Sequence[Overload], name: str) -> Chooser:
    def choose(values: Sequence[Any]) -> Implementation:
        kinds = tuple(map(kind_of, values))
        if FailedValue in kinds:
            raise no_such_overload(*values)
        for overload in overloads:
            if overload.implementation is not None and overload.accepts(kinds):
                return overload.implementation
        if name in _UNNAMED or (name.startswith(OPERATOR_SIGNS) and kinds[0] in _OPERATING.get(name, kinds)):
            raise no_such_overload(*values)
        if name in _OF_ALL_TYPES or name.startswith(OPERATOR_SIGNS):
            raise no_such_overload(*values, named=f": {name}")
        types = [type_name(runtime_type(value)) for value in values]
        shown = f"{types[0]}.{name}({', '.join(types[1:])})" if name == "flatten" else f"{name}({', '.join(types)})"
        raise no_such_overload(*values, named=f": {shown}")

    return choose


_NUMBERS: Final = frozenset({int, Uint, float})
# Types with methods, on which Go looks up a missing operator.
_ASKED: Final = frozenset({str, Timestamp, Duration})
# Functions with one implementation. The messages of other functions also name the types of the values.
_OF_ALL_TYPES: Final = frozenset({"size", "type", "dyn", "sort"})
_UNNAMED: Final = frozenset({"contains", "startsWith", "endsWith", "matches", "find", "findAll"})
# Types with an operator, or on which Go looks it up. Messages for other types name the operator.
_OPERATING: Final[Mapping[str, Collection[type[object]]]] = {
    "_+_": _NUMBERS | LIST_KINDS | _ASKED | {bytes},
    "_-_": _NUMBERS | _ASKED,
    "_*_": _NUMBERS | _ASKED,
    "_/_": _NUMBERS | _ASKED,
    "_%_": frozenset({int, Uint}) | _ASKED,
    "-_": frozenset({int, float}) | _ASKED,
    **dict.fromkeys(("_<_", "_<=_", "_>_", "_>=_"), SIMPLE),
}


_Test: TypeAlias = Callable[[Any, Any], bool]

# Python's comparison, CEL's comparison, and the types for which Python's is correct.
COMPARISONS: Final[Mapping[str, tuple[_Test, _Test, frozenset[type[object]]]]] = {
    "_<_": (operator.lt, less, ORDERED),
    "_<=_": (operator.le, less_or_equal, ORDERED),
    "_>_": (operator.gt, greater, ORDERED),
    "_>=_": (operator.ge, greater_or_equal, ORDERED),
    "_==_": (operator.eq, equal, SIMPLE),
    "_!=_": (operator.ne, unequal, SIMPLE),
}


# Written out, because a call of ``operator.lt`` per turn of a loop would double its time. The first table compares a
# closure with a constant, the second a call of a loop variable with a constant of the result's type.
_WITH_CONSTANT: Final[Mapping[Any, Callable[[Closure, Any, type[object], Callable[[Any, Any], bool]], Closure]]] = {
    operator.lt: lambda left, constant, kind, thorough: (
        lambda frame: value < constant if kind_of(value := left(frame)) is kind else thorough(value, constant)
    ),
    operator.le: lambda left, constant, kind, thorough: (
        lambda frame: value <= constant if kind_of(value := left(frame)) is kind else thorough(value, constant)
    ),
    operator.gt: lambda left, constant, kind, thorough: (
        lambda frame: value > constant if kind_of(value := left(frame)) is kind else thorough(value, constant)
    ),
    operator.ge: lambda left, constant, kind, thorough: (
        lambda frame: value >= constant if kind_of(value := left(frame)) is kind else thorough(value, constant)
    ),
    operator.eq: lambda left, constant, kind, thorough: (
        lambda frame: value == constant if kind_of(value := left(frame)) is kind else thorough(value, constant)
    ),
    operator.ne: lambda left, constant, kind, thorough: (
        lambda frame: value != constant if kind_of(value := left(frame)) is kind else thorough(value, constant)
    ),
}


CALL_WITH_CONSTANT: Final[Mapping[Any, Callable[[VariableCall, Any, Closure], Closure]]] = {
    operator.lt: lambda call, constant, slow: _inlined(
        lambda slot, kinds, f: (
            lambda frame: f(frame[slot]) < constant if kind_of(frame[slot]) in kinds else slow(frame)
        ),
        call,
    ),
    operator.le: lambda call, constant, slow: _inlined(
        lambda slot, kinds, f: (
            lambda frame: f(frame[slot]) <= constant if kind_of(frame[slot]) in kinds else slow(frame)
        ),
        call,
    ),
    operator.gt: lambda call, constant, slow: _inlined(
        lambda slot, kinds, f: (
            lambda frame: f(frame[slot]) > constant if kind_of(frame[slot]) in kinds else slow(frame)
        ),
        call,
    ),
    operator.ge: lambda call, constant, slow: _inlined(
        lambda slot, kinds, f: (
            lambda frame: f(frame[slot]) >= constant if kind_of(frame[slot]) in kinds else slow(frame)
        ),
        call,
    ),
    operator.eq: lambda call, constant, slow: _inlined(
        lambda slot, kinds, f: (
            lambda frame: f(frame[slot]) == constant if kind_of(frame[slot]) in kinds else slow(frame)
        ),
        call,
    ),
    operator.ne: lambda call, constant, slow: _inlined(
        lambda slot, kinds, f: (
            lambda frame: f(frame[slot]) != constant if kind_of(frame[slot]) in kinds else slow(frame)
        ),
        call,
    ),
}


def _inlined(make: Callable[[int, frozenset[type[object]], Implementation], Closure], call: VariableCall) -> Closure:
    return make(call.slot, call.kinds, call.implementation)


def text_comparison(name: str, operands: Sequence[Closure], constants: Mapping[Closure, Any]) -> Closure:
    """Return a comparison with a short string, which has no cost if the other string is empty."""
    quick, thorough, _ = COMPARISONS[name]
    left, right = operands
    if left in constants:
        left, right = right, left
    text = constants[right]

    def compared(frame: Frame) -> Any:
        value = left(frame)
        if kind_of(value) is not str:
            return thorough(value, text)
        if not value:
            frame[SPENT] -= 1
        return quick(value, text)

    return compared


def comparison(
    quick: Callable[[Any, Any], bool],
    thorough: Callable[[Any, Any], bool],
    simple: frozenset[type[object]],
    operands: Sequence[Closure],
    constants: Mapping[Closure, Any],
) -> Closure:
    """Return a comparison, with Python's operator for two values of the same simple type."""
    left, right = operands
    if right in constants and kind_of(constants[right]) in simple:
        return _WITH_CONSTANT[quick](left, constants[right], kind_of(constants[right]), thorough)

    def compared(frame: Frame) -> bool:
        one = left(frame)
        try:
            other = right(frame)
        except EvaluationError as error:
            raise first_error(one, error) from None
        if kind_of(one) is kind_of(other) and kind_of(one) in simple:
            return quick(one, other)
        return thorough(one, other)

    return compared
