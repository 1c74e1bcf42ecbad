"""The tree of an expression.

Operators are calls of functions with cel-go's names (``_+_``, ``_?_:_``, ``_[_]``). What a macro such as ``all`` stands
for is one node, ``Comprehension``, with the macro's name: cel-go expands it into a loop with an accumulator, but then
neither a checker nor a compiler can tell what was meant, and no tree can be written as text again.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Final, TypeAlias, final

Scalar: TypeAlias = bool | int | float | str | bytes | None


@final
@dataclass(frozen=True, slots=True)
class Literal:
    """A constant."""

    value: Scalar
    offset: int = dataclasses.field(default=0, compare=False)


@final
@dataclass(frozen=True, slots=True)
class Name:
    """A variable, or a part of a longer name; it begins with a point if it is meant from the root."""

    name: str
    offset: int = dataclasses.field(default=0, compare=False)


@final
@dataclass(frozen=True, slots=True)
class Select:
    """A field of an operand: ``a.b``, ``a.?b``, ``has(a.b)``."""

    operand: Node
    field: str
    optional: bool = False
    test_only: bool = False
    offset: int = dataclasses.field(default=0, compare=False)


@final
@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A function, an operator, or a method of ``target``; ``_&&_`` and ``_||_`` have two arguments or more."""

    function: str
    arguments: tuple[Node, ...]
    target: Node | None = None
    offset: int = dataclasses.field(default=0, compare=False)


@final
@dataclass(frozen=True, slots=True)
class ListLiteral:
    """``[a, ?b]``; ``optional`` has the indices of those with a question mark."""

    items: tuple[Node, ...]
    optional: frozenset[int] = frozenset()
    offset: int = dataclasses.field(default=0, compare=False)


@final
@dataclass(frozen=True, slots=True)
class MapEntry:
    """One entry of a map, or one field of an object: then the key is a constant."""

    key: Node
    value: Node
    optional: bool = False
    offset: int = dataclasses.field(default=0, compare=False)


@final
@dataclass(frozen=True, slots=True)
class MapLiteral:
    """``{a: b, ?c: d}``."""

    entries: tuple[MapEntry, ...]
    offset: int = dataclasses.field(default=0, compare=False)


@final
@dataclass(frozen=True, slots=True)
class ObjectLiteral:
    """``Name{field: value}``."""

    name: str
    entries: tuple[MapEntry, ...]
    offset: int = dataclasses.field(default=0, compare=False)


@final
@dataclass(frozen=True, slots=True)
class Comprehension:
    """A macro with variables of its own: ``operand.all(x, x > 0)``, ``cel.bind(x, operand, x + x)``.

    Attributes:
        macro: Which, such as ``all`` or ``transformMap``.
        operand: What it goes over, or what is bound.
        variables: One name or two.
        bodies: What is evaluated for each: one expression, or a condition and one.
    """

    macro: str
    operand: Node
    variables: tuple[str, ...]
    bodies: tuple[Node, ...]
    offset: int = dataclasses.field(default=0, compare=False)


# Macros that cel-go writes out with their operand twice: what is wrong with it is told twice.
USED_TWICE: Final = frozenset({"optMap", "optFlatMap"})

Node: TypeAlias = Literal | Name | Select | FunctionCall | ListLiteral | MapLiteral | ObjectLiteral | Comprehension

# Operators between two operands, with how strongly they bind; all are left-associative.
BINARY: Final = {
    "||": ("_||_", 1),
    "&&": ("_&&_", 2),
    "<": ("_<_", 3),
    "<=": ("_<=_", 3),
    ">": ("_>_", 3),
    ">=": ("_>=_", 3),
    "==": ("_==_", 3),
    "!=": ("_!=_", 3),
    "in": ("@in", 3),
    "+": ("_+_", 4),
    "-": ("_-_", 4),
    "*": ("_*_", 5),
    "/": ("_/_", 5),
    "%": ("_%_", 5),
}


def dotted_name(node: Node) -> str:
    """Return the name ``a.b.c`` that a chain of fields is written as, or ""."""
    parts: list[str] = []
    while isinstance(node, Select):
        if node.optional or node.test_only:
            return ""
        parts.append(node.field)
        node = node.operand
    return ".".join([node.name, *reversed(parts)]) if isinstance(node, Name) else ""
