"""Checks of well-typed expressions: constants that can only fail, and literals with mixed types.

Source: cel-go cel/validator.go, ext/formatting.go (``stringFormatValidator``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, TypeAlias

from deltaloop.cel.checker import Checked
from deltaloop.cel.errors import succeeds
from deltaloop.cel.libraries.formatting import CLAUSE, unfit_argument
from deltaloop.cel.libraries.instants import parse_duration, parse_timestamp
from deltaloop.cel.syntax import (
    USED_TWICE,
    Comprehension,
    FunctionCall,
    ListLiteral,
    Literal,
    MapLiteral,
    Node,
    ObjectLiteral,
    Scalar,
    Select,
)
from deltaloop.cel.types import Type
from deltaloop.cel.unification import optional_parameter
from deltaloop.cel.values import SECOND, Uint, as_timestamp
from deltaloop.schemas.patterns.matching import pattern_error

Fault: TypeAlias = tuple[int, str]
Validator: TypeAlias = Callable[[Checked], Iterator[Fault]]


def children(node: Node) -> tuple[Node, ...]:
    match node:
        case Select():
            return (node.operand,)
        case FunctionCall():
            return (*((node.target,) if node.target is not None else ()), *node.arguments)
        case ListLiteral():
            return node.items
        case MapLiteral() | ObjectLiteral():
            return tuple(part for entry in node.entries for part in (entry.key, entry.value))
        case Comprehension():
            twice = (node.operand,) if node.macro in USED_TWICE else ()
            return (node.operand, *twice, *node.bodies)
        case _:
            return ()


def walk(node: Node) -> Iterator[Node]:
    waiting = [node]
    while waiting:
        found = waiting.pop()
        yield found
        waiting.extend(reversed(children(found)))


def validate_constants(checked: Checked) -> Iterator[Fault]:
    """Reject a constant as the last argument of a function that can only fail with it."""
    if not checked.functions & _CONSTANTS.keys():
        return
    for node in walk(checked.tree):
        if isinstance(node, FunctionCall) and node.function in _CONSTANTS and node.arguments:
            argument = node.arguments[-1]
            if isinstance(argument, Literal) and not _CONSTANTS[node.function](argument.value):
                yield argument.offset, f"invalid {node.function} argument"


def _is_duration(value: Scalar) -> bool:
    return value is not None if not isinstance(value, str) else succeeds(parse_duration, value)


def _is_timestamp(value: Scalar) -> bool:
    if isinstance(value, str):
        return succeeds(parse_timestamp, value)
    if value is None:
        return False
    return not isinstance(value, int) or isinstance(value, bool | Uint) or succeeds(as_timestamp, value * SECOND)


def _is_pattern(value: Scalar) -> bool:
    return not isinstance(value, str) or not pattern_error(value)


_CONSTANTS: Final[Mapping[str, Callable[[Scalar], bool]]] = {
    "duration": _is_duration,
    "timestamp": _is_timestamp,
    "matches": _is_pattern,
}


def validate_homogeneous_literals(checked: Checked) -> Iterator[Fault]:
    """Reject lists and maps with mixed types, except for the arguments of ``format``."""
    if not checked.has_collections:
        return
    waiting = [checked.tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, FunctionCall) and node.function == "format":
            continue
        if isinstance(node, ListLiteral):
            yield from _several_types(
                checked, ((item, place in node.optional) for place, item in enumerate(node.items))
            )
        if isinstance(node, MapLiteral):
            yield from _several_types(checked, ((entry.key, False) for entry in node.entries))
            yield from _several_types(checked, ((entry.value, entry.optional) for entry in node.entries))
        waiting.extend(reversed(children(node)))


def _several_types(checked: Checked, parts: Iterable[tuple[Node, bool]]) -> Iterator[Fault]:
    expected: Type | None = None
    for node, optional in parts:
        found = checked.types[id(node)]
        inside = optional_parameter(found) if optional else None
        found = inside or found
        if expected is None:
            expected = found
        elif found != expected:
            yield node.offset, f"expected type '{expected}' but found '{found}'"
            return


def validate_format_calls(checked: Checked) -> Iterator[Fault]:
    """Reject calls of ``format`` with a constant pattern and arguments that do not fit."""
    if "format" not in checked.functions:
        return
    for node in walk(checked.tree):
        if not (isinstance(node, FunctionCall) and node.function == "format" and isinstance(node.target, Literal)):
            continue
        arguments = node.arguments[0]
        if isinstance(arguments, ListLiteral) and isinstance(node.target.value, str):
            yield from _unfit_arguments(checked, node, node.target.value, arguments)


def _unfit_arguments(checked: Checked, node: FunctionCall, pattern: str, arguments: ListLiteral) -> Iterator[Fault]:
    clauses = [match for match in CLAUSE.finditer(pattern) if not match[1]]
    for place, match in enumerate(clauses):
        if place >= len(arguments.items):
            yield node.offset, f"index {place} out of range"
            return
        argument = arguments.items[place]
        why = unfit_argument(match, checked.types[id(argument)])
        if why:
            within = why.startswith("error during")
            yield (argument.offset if within else node.offset), why
            return
    if len(arguments.items) > len(clauses):
        expected = f"(expected {len(clauses)}, got {len(arguments.items)})"
        yield node.offset, f"too many arguments supplied to string.format {expected}"


KUBERNETES_VALIDATORS: Final[tuple[Validator, ...]] = (
    validate_constants,
    validate_homogeneous_literals,
    validate_format_calls,
)
