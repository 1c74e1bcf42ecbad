"""Comparisons as closures: Python's for two values of the same simple type, otherwise CEL's."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from deltaloop.cel.calls import VariableCall
from deltaloop.cel.library import Implementation
from deltaloop.cel.loops import SPENT, Closure, Frame
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
from deltaloop.cel.values import kind_of

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
        one, other = left(frame), right(frame)
        if kind_of(one) is kind_of(other) and kind_of(one) in simple:
            return quick(one, other)
        return thorough(one, other)

    return compared
