"""Function libraries: what an environment is made of. A library is data; the language's own functions are some, too.

A function has overloads: what types it takes, what type it gives, and what computes it from plain values. The checker
finds the overloads that fit; the compiler calls the implementation, after a look at the values' own types, for a value
may be something else than its variable was declared to be.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, final

from deltaloop.cel.costs import Cost
from deltaloop.cel.macros import Macro
from deltaloop.cel.types import Type, represents

# From the values of the arguments to the value of the call. Raises EvaluationError.
Implementation: TypeAlias = Callable[..., Any]


@final
@dataclass(frozen=True, slots=True)
class Overload:
    """One way to call a function.

    Attributes:
        name: Its name among all overloads, such as ``add_int64``; cel-go's, where it has one.
        parameters: The types that it takes; of a method, the target's first.
        result: The type that it gives.
        implementation: What computes it. None: the compiler knows how (``_&&_``).
        is_method: Whether it is called as ``target.name(arguments)``.
        pattern: Which argument is a pattern, if one is; a wrong one that is a constant is found before anything runs.
        cost: What a call costs; one unit if nobody says it.
    """

    name: str
    parameters: tuple[Type, ...]
    result: Type
    implementation: Implementation | None = None
    is_method: bool = False
    pattern: int | None = None
    cost: Cost | None = None

    def accepts(self, kinds: Sequence[type]) -> bool:
        """Tell whether values of these Python types fit the parameters."""
        return all(map(represents, kinds, self.parameters))


# The same, for Python's type checkers: they find the parameters' types of a lambda by their number.
_Written: TypeAlias = (
    Callable[[], Any]
    | Callable[[Any], Any]
    | Callable[[Any, Any], Any]
    | Callable[[Any, Any, Any], Any]
    | Callable[[Any, Any, Any, Any], Any]
)


def function(
    name: str, parameters: tuple[Type, ...], result: Type, implementation: _Written, cost: Cost | None = None
) -> Overload:
    """Return an overload that is called as ``f(a)``."""
    return Overload(name, parameters, result, implementation, cost=cost)


def method(
    name: str, parameters: tuple[Type, ...], result: Type, implementation: _Written, cost: Cost | None = None
) -> Overload:
    """Return an overload that is called as ``a.f()``."""
    return Overload(name, parameters, result, implementation, is_method=True, cost=cost)


@final
@dataclass(frozen=True, slots=True)
class Library:
    """Functions, macros and types that belong together.

    Attributes:
        name: What it is called.
        functions: The overloads of each function; of a function that another library has, too, they are added.
        macros: The macros; one of the same shape as another library's replaces it.
        types: The types that an expression may name.
    """

    name: str
    functions: Mapping[str, tuple[Overload, ...]] = field(default_factory=dict[str, tuple[Overload, ...]])
    macros: tuple[Macro, ...] = ()
    types: Mapping[str, Type] = field(default_factory=dict[str, Type])
