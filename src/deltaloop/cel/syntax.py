"""Syntax tree of an expression; operators are calls with cel-go's names (``_+_``), and a macro is a single node."""

from __future__ import annotations

import dataclasses
import math
import re
from dataclasses import dataclass
from typing import Final, TypeAlias, final

from deltaloop.cel.values import Uint

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


_SIGNS: Final = {function: (sign, strength) for sign, (function, strength) in BINARY.items()}
_UNARY: Final = {"!_": "!", "-_": "-"}
_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_NOT_NAMES: Final = frozenset({"in", "true", "false", "null"})
_TERNARY, _UNARY_STRENGTH, _MEMBER = 0, 6, 7


def unparse(node: Node, least: int = _TERNARY) -> str:
    """Return the text of a tree, in parentheses if it binds less strongly than ``least``."""
    text, strength = _text(node)
    return f"({text})" if strength < least else text


def _text(node: Node) -> tuple[str, int]:
    match node:
        case Literal():
            return _literal(node.value), _MEMBER if not _is_negative(node.value) else _UNARY_STRENGTH
        case Name():
            return node.name, _MEMBER
        case Select():
            chain = f"{unparse(node.operand, _MEMBER)}.{'?' if node.optional else ''}{_field(node.field)}"
            return (f"has({chain})" if node.test_only else chain), _MEMBER
        case FunctionCall():
            return _call(node)
        case ListLiteral():
            marked = (("?" if i in node.optional else "") + unparse(item) for i, item in enumerate(node.items))
            return f"[{', '.join(marked)}]", _MEMBER
        case MapLiteral():
            return f"{{{', '.join(_entry(entry, unparse(entry.key)) for entry in node.entries)}}}", _MEMBER
        case ObjectLiteral():
            fields = ", ".join(
                _entry(entry, _field(str(entry.key.value))) for entry in node.entries if isinstance(entry.key, Literal)
            )
            return f"{node.name}{{{fields}}}", _MEMBER
        case Comprehension():
            bodies = [unparse(body) for body in node.bodies]
            if node.macro == "bind":
                return f"cel.bind({node.variables[0]}, {unparse(node.operand)}, {bodies[0]})", _MEMBER
            inside = ", ".join([*node.variables, *bodies])
            return f"{unparse(node.operand, _MEMBER)}.{node.macro}({inside})", _MEMBER


def _call(node: FunctionCall) -> tuple[str, int]:
    arguments = node.arguments
    if node.function in _SIGNS:
        sign, strength = _SIGNS[node.function]
        rest = [unparse(argument, strength + 1) for argument in arguments[1:]]
        # Without parentheses, && is one call with many arguments, so a nested call needs parentheses.
        first = unparse(arguments[0], strength + (node.function in {"_&&_", "_||_"}))
        return f" {sign} ".join([first, *rest]), strength
    if node.function in _UNARY:
        inside = unparse(arguments[0], _MEMBER)
        # A minus before a number would become part of the number.
        number = isinstance(arguments[0], Literal) and isinstance(arguments[0].value, int | float)
        if node.function == "-_" and inside[0] in "0123456789.-" and (number or inside[0] != "-"):
            inside = f"({inside})"
        return _UNARY[node.function] + inside, _UNARY_STRENGTH
    if node.function == "_?_:_":
        asked, chosen, other = arguments
        return f"{unparse(asked, 1)} ? {unparse(chosen, 1)} : {unparse(other)}", _TERNARY
    if node.function in {"_[_]", "_[?_]"}:
        mark = "?" if node.function == "_[?_]" else ""
        return f"{unparse(arguments[0], _MEMBER)}[{mark}{unparse(arguments[1])}]", _MEMBER
    inside = ", ".join(unparse(argument) for argument in arguments)
    target = f"{unparse(node.target, _MEMBER)}." if node.target is not None else ""
    return f"{target}{node.function}({inside})", _MEMBER


def _entry(entry: MapEntry, key: str) -> str:
    return f"{'?' if entry.optional else ''}{key}: {unparse(entry.value)}"


def _field(name: str) -> str:
    return name if _PLAIN.match(name) and name not in _NOT_NAMES else f"`{name}`"


def _is_negative(value: Scalar) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.copysign(1, value) < 0


def _literal(value: Scalar) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case Uint():
            return f"{value}u"
        case bytes():
            return 'b"' + "".join(f"\\x{byte:02x}" for byte in value) + '"'
        case str():
            return '"' + "".join(_character(character) for character in value) + '"'
        case float():
            text = repr(value)
            return text if any(mark in text for mark in ".e") else f"{text}.0"
        case _:
            return str(value)


def _character(character: str) -> str:
    if character in '"\\':
        return "\\" + character
    code = ord(character)
    if code < 0x20 or 0x7F <= code <= 0xA0 or code in {0x2028, 0x2029}:
        return f"\\u{code:04x}"
    return character
