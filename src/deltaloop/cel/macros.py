"""Macros: calls that the parser replaces, because their arguments are names and conditions instead of values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias, final

import msgspec

from deltaloop.cel.syntax import Comprehension, Name, Node, Select


class MacroError(ValueError):
    """The arguments of a macro are invalid. ``offset`` is the position of the invalid argument."""

    def __init__(self, offset: int, message: str) -> None:
        super().__init__(message)
        self.offset = offset
        self.message = message


@final
class MacroCall(msgspec.Struct, frozen=True):
    name: str
    target: Node | None
    arguments: tuple[Node, ...]
    offset: int


Expansion: TypeAlias = Callable[[MacroCall], Node | None]


@final
@dataclass(frozen=True, slots=True)
class Macro:
    """Macro with its name, its number of arguments, and its expansion.

    ``expand`` returns None for an ordinary call, and raises ``MacroError`` for an invalid call.
    """

    name: str
    arguments: int
    expand: Expansion
    has_target: bool = True


def comprehension(
    name: str, *, variables: int = 1, bodies: int = 1, wrong_name: str = "argument must be a simple name"
) -> Macro:
    """Return a macro over its target, whose arguments are variables and then bodies."""

    def expand(call: MacroCall) -> Node | None:
        names = tuple(_simple_name(argument, wrong_name) for argument in call.arguments[:variables])
        if len(set(names)) < variables:
            raise MacroError(call.arguments[1].offset, f"duplicate variable name: {names[0]}")
        assert call.target is not None
        return Comprehension(name, call.target, names, call.arguments[variables:], call.offset)

    return Macro(name, variables + bodies, expand)


def expand_has(call: MacroCall) -> Node | None:
    """Expand ``has(a.b)`` to a test of the field."""
    (argument,) = call.arguments
    if isinstance(argument, Select) and not argument.test_only and not argument.optional:
        return Select(argument.operand, argument.field, test_only=True, offset=call.offset)
    raise MacroError(argument.offset, "invalid argument to has() macro")


def expand_bind(call: MacroCall) -> Node | None:
    """Expand ``cel.bind(x, value, body)`` to the body with an additional name."""
    if not (isinstance(call.target, Name) and call.target.name == "cel"):
        return None
    variable, value, body = call.arguments
    if not isinstance(variable, Name) or variable.name.startswith("."):
        raise MacroError(variable.offset, "cel.bind() variable names must be simple identifiers")
    return Comprehension("bind", value, (variable.name,), (body,), call.offset)


def expand_optional(call: MacroCall) -> Node | None:
    """Expand ``target.optMap(x, body)`` or ``optFlatMap`` to the body for a present value."""
    variable, body = call.arguments
    if not isinstance(variable, Name) or variable.name.startswith("."):
        raise MacroError(variable.offset, f"{call.name}() variable name must be a simple identifier")
    assert call.target is not None
    return Comprehension(call.name, call.target, (variable.name,), (body,), call.offset)


def _simple_name(argument: Node, wrong_name: str) -> str:
    if isinstance(argument, Name) and not argument.name.startswith("."):
        if argument.name == "__result__":
            raise MacroError(argument.offset, "iteration variable overwrites accumulator variable")
        return argument.name
    raise MacroError(argument.offset, wrong_name)
