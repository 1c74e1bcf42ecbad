"""Function libraries as data; at run time, the types of the values select the overload, because they can differ."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, final

from deltaloop.cel.costs import Cost
from deltaloop.cel.macros import Macro
from deltaloop.cel.types import Type, represents

# Function from the values of the arguments to the value of the call. Raises EvaluationError.
Implementation: TypeAlias = Callable[..., Any]


@final
@dataclass(frozen=True, slots=True)
class Overload:
    """Signature and implementation of a function.

    Attributes:
        name: Unique name, for example ``add_int64``. cel-go's name if it exists.
        parameters: Parameter types, for a method the target first.
        result: Result type.
        implementation: Function that computes the call. None if the compiler implements it (``_&&_``).
        is_method: Whether it is called as ``target.name(arguments)``.
        pattern: Index of the argument that is a pattern. Invalid constant patterns are errors at compile time.
        cost: Cost of a call. None means one unit.
    """

    name: str
    parameters: tuple[Type, ...]
    result: Type
    implementation: Implementation | None = None
    is_method: bool = False
    pattern: int | None = None
    cost: Cost | None = None

    def accepts(self, kinds: Sequence[type]) -> bool:
        """Return whether values of these Python types fit the parameters."""
        return all(map(represents, kinds, self.parameters))


# Implementation for type checkers, which infer the parameter types of a lambda from their number.
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
    return Overload(name, parameters, result, implementation, cost=cost)


def method(
    name: str, parameters: tuple[Type, ...], result: Type, implementation: _Written, cost: Cost | None = None
) -> Overload:
    return Overload(name, parameters, result, implementation, is_method=True, cost=cost)


@final
@dataclass(frozen=True, slots=True)
class Library:
    """Functions, macros and types that belong together.

    Attributes:
        name: Name of the library.
        functions: Overloads of each function, which are added to those of other libraries.
        macros: Macros, which replace those of the same shape from other libraries.
        types: Types that an expression can name.
    """

    name: str
    functions: Mapping[str, tuple[Overload, ...]] = field(default_factory=dict[str, tuple[Overload, ...]])
    macros: tuple[Macro, ...] = ()
    types: Mapping[str, Type] = field(default_factory=dict[str, Type])
