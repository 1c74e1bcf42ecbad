"""Assignability of types, and the values of type variables.

Source: cel-spec doc/langdef.md, "Gradual Type Checking"; cel-go checker/types.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from deltaloop.cel.types import DYN, Type

_ANYTHING: Final = ("dyn", "error")
_OPEN: Final = frozenset({*_ANYTHING, "param", "null", "wrapper"})
_NULLABLE: Final = ("opaque", "object", "timestamp", "duration", "wrapper", "null")


def _is_same_scalar(given: Type, wanted: Type) -> bool:
    return given is wanted and not given.parameters and given.kind != "param"


def differ(given: Type, wanted: Type) -> bool:
    """Return quickly whether one type certainly does not fit another."""
    return given.kind != wanted.kind and given.kind not in _OPEN and wanted.kind not in _OPEN


class Substitution:
    """Values of type variables. A failed attempt does not change them."""

    def __init__(self) -> None:
        self._bound: dict[Type, Type] = {}
        self._fresh = 0

    def fresh(self) -> Type:
        self._fresh += 1
        return Type("param", f"_var{self._fresh}")

    def assignable(self, given: Sequence[Type], wanted: Sequence[Type]) -> bool:
        if len(given) == len(wanted) and all(map(_is_same_scalar, given, wanted)):
            return True
        before = self._bound
        self._bound = dict(before)
        if self._all_fit(given, wanted):
            return True
        self._bound = before
        return False

    def applied(self, declared: Type, *, unbound: Type | None = None) -> Type:
        """Replace the variables in a type, and unbound variables with ``unbound``."""
        if declared.kind == "param":
            found = self._bound.get(declared)
            if found is not None:
                return self.applied(found, unbound=unbound)
            return declared if unbound is None else unbound
        if not declared.parameters:
            return declared
        parameters = tuple(self.applied(parameter, unbound=unbound) for parameter in declared.parameters)
        return Type(declared.kind, declared.name, parameters)

    def instance(self, result: Type, parameters: tuple[Type, ...]) -> tuple[Type, tuple[Type, ...]]:
        """Return the types of a function with fresh variables."""
        for each in (result, *parameters):
            if each.parameters or each.kind == "param":
                names: dict[Type, Type] = {}
                return self._renamed(result, names), tuple([self._renamed(each, names) for each in parameters])
        return result, parameters

    def _renamed(self, declared: Type, names: dict[Type, Type]) -> Type:
        if declared.kind == "param":
            if declared not in names:
                names[declared] = self.fresh()
            return names[declared]
        if not declared.parameters:
            return declared
        parameters = tuple(self._renamed(parameter, names) for parameter in declared.parameters)
        return Type(declared.kind, declared.name, parameters)

    def _all_fit(self, given: Sequence[Type], wanted: Sequence[Type]) -> bool:
        return len(given) == len(wanted) and all(self._fits(a, b) for a, b in zip(given, wanted, strict=True))

    def _fits(self, given: Type, wanted: Type) -> bool:  # one rule per line
        if wanted.kind == "param":
            verdict = self._bind(given, wanted)
            if verdict is not None:
                return verdict
        if given.kind == "param":
            return bool(self._bind(wanted, given))
        if given.kind in _ANYTHING or wanted.kind in _ANYTHING:
            return True
        if given.kind == "null":
            return wanted.kind in _NULLABLE
        if wanted.kind == "null":
            return given.kind in _NULLABLE
        if given.kind == "wrapper" or wanted.kind == "wrapper":
            return _unwrapped(given) == _unwrapped(wanted)
        if given.kind != wanted.kind:
            return False
        if given.kind == "type":
            return True
        return given.name == wanted.name and self._all_fit(given.parameters, wanted.parameters)

    def _bind(self, other: Type, variable: Type) -> bool | None:
        if other == variable:
            return True
        bound = self._bound.get(variable)
        if bound is None:
            if self._occurs(variable, other):
                return None
            self._bound[variable] = other
            return True
        if other == bound:
            return True
        if not self._fits(other, bound):
            return False
        general = most_general(other, bound)
        if not self._occurs(variable, general):
            self._bound[variable] = general
        return True

    def _occurs(self, variable: Type, within: Type) -> bool:
        if variable == within:
            return True
        if within.kind == "param":
            bound = self._bound.get(within)
            return bound is not None and self._occurs(variable, bound)
        return any(self._occurs(variable, parameter) for parameter in within.parameters)


def most_general(one: Type, other: Type) -> Type:
    """Return the more general of two types that fit each other."""
    return one if _says_less(one, other) else other


def optional_parameter(declared: Type) -> Type | None:
    return declared.parameters[0] if declared.name == "optional_type" and declared.kind == "opaque" else None


def is_dyn(declared: Type) -> bool:
    return declared == DYN


def _unwrapped(declared: Type) -> Type:
    return declared.parameters[0] if declared.kind == "wrapper" else declared


def _says_less(one: Type, other: Type) -> bool:
    if one.kind in {"dyn", "param"}:
        return True
    if other.kind in {"dyn", "param"} or one.kind != other.kind:
        return False
    if one.kind == "type":
        return True
    return (
        one.name == other.name
        and len(one.parameters) == len(other.parameters)
        and all(_says_less(a, b) for a, b in zip(one.parameters, other.parameters, strict=True))
    )
