"""Syntax tree of an expression; operators are calls with cel-go's names (``_+_``), and a macro is a single node."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Final, TypeAlias, final

Scalar: TypeAlias = bool | int | float | str | bytes | None


@final
@dataclass(frozen=True, slots=True)
class Literal:
    value: Scalar
    offset: int = dataclasses.field(default=0, compare=False)


@final
@dataclass(frozen=True, slots=True)
class Name:
    """Variable, or first part of a longer name. A leading dot makes it absolute."""

    name: str
    offset: int = dataclasses.field(default=0, compare=False)


@final
@dataclass(frozen=True, slots=True)
class Select:
    """Field of an operand: ``a.b``, ``a.?b``, ``has(a.b)``."""

    operand: Node
    field: str
    optional: bool = False
    test_only: bool = False
    offset: int = dataclasses.field(default=0, compare=False)


@final
@dataclass(frozen=True, slots=True)
class FunctionCall:
    """Call of a function, an operator, or a method of ``target``. ``_&&_`` and ``_||_`` can have many arguments."""

    function: str
    arguments: tuple[Node, ...]
    target: Node | None = None
    offset: int = dataclasses.field(default=0, compare=False)


@final
@dataclass(frozen=True, slots=True)
class ListLiteral:
    items: tuple[Node, ...]
    optional: frozenset[int] = frozenset()
    offset: int = dataclasses.field(default=0, compare=False)


@final
@dataclass(frozen=True, slots=True)
class MapEntry:
    """Entry of a map, or field of an object, whose key is a constant."""

    key: Node
    value: Node
    optional: bool = False
    offset: int = dataclasses.field(default=0, compare=False)


@final
@dataclass(frozen=True, slots=True)
class MapLiteral:
    entries: tuple[MapEntry, ...]
    offset: int = dataclasses.field(default=0, compare=False)


@final
@dataclass(frozen=True, slots=True)
class ObjectLiteral:
    name: str
    entries: tuple[MapEntry, ...]
    offset: int = dataclasses.field(default=0, compare=False)


@final
@dataclass(frozen=True, slots=True)
class Comprehension:
    """Macro with its own variables: ``operand.all(x, x > 0)``, ``cel.bind(x, operand, x + x)``."""

    macro: str
    operand: Node
    variables: tuple[str, ...]
    bodies: tuple[Node, ...]
    offset: int = dataclasses.field(default=0, compare=False)


# Macros that cel-go expands with two copies of their operand, so errors in the operand are reported twice.
USED_TWICE: Final = frozenset({"optMap", "optFlatMap"})

Node: TypeAlias = Literal | Name | Select | FunctionCall | ListLiteral | MapLiteral | ObjectLiteral | Comprehension

# Binary operators with their precedence. All are left-associative.
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
    """Return the name ``a.b.c`` of a chain of fields, or ""."""
    parts: list[str] = []
    while isinstance(node, Select):
        if node.optional or node.test_only:
            return ""
        parts.append(node.field)
        node = node.operand
    return ".".join([node.name, *reversed(parts)]) if isinstance(node, Name) else ""
