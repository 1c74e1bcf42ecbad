"""Parsing of the CEL text of the query parameter ``shardSelector``.

Source: apiserver pkg/sharding/parser.go.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from deltaloop.api.shard_selector import ShardField, ShardSelector
from deltaloop.apiserver.core import status_errors
from deltaloop.cel.errors import InvalidExpressionError
from deltaloop.cel.parser import parse
from deltaloop.cel.syntax import FunctionCall, ListLiteral, Literal, MapLiteral, Name, Node, Select, dotted_name

_FIELDS: Final[dict[str, ShardField]] = {"object.metadata.uid": "uid", "object.metadata.namespace": "namespace"}
_WHOLE: Final = "0x10000000000000000"
# cel-go's numbers of the kinds of nodes. Objects with fields have 8.
_KINDS: Final[dict[type[Node], int]] = {FunctionCall: 1, Name: 3, ListLiteral: 4, Literal: 5, MapLiteral: 6, Select: 7}
_GO_TYPES: Final = {bool: "bool", int: "int64", float: "float64", bytes: "[]uint8", type(None): "structpb.NullValue"}


class _InvalidSelectorError(Exception):
    pass


def parse_shard_selector(text: str) -> ShardSelector:
    """Parse a selector."""
    try:
        return _parse(text)
    except _InvalidSelectorError as error:
        raise status_errors.unexplained(f"invalid shard selector: {error}") from None


@lru_cache(64)  # a member sends the same selector for each of its kinds, to list and to watch
def _parse(text: str) -> ShardSelector:
    if not text.strip():
        raise _InvalidSelectorError("empty shard selector is not allowed; omit the parameter for unfiltered lists")
    try:
        tree = parse(text)
    except InvalidExpressionError as error:
        raise _InvalidSelectorError(f"CEL parse error: {error.faults[0].message}") from None
    ranges = _ranges(tree)
    field = ranges[0][0]
    for other, _, _ in ranges:
        if other != field:
            raise _InvalidSelectorError(f'all shard ranges must use the same field, got "{field}" and "{other}"')
    return ShardSelector(_FIELDS[field], [(start, end) for _, start, end in ranges])


def _ranges(node: Node) -> list[tuple[str, int, int]]:
    if not isinstance(node, FunctionCall):
        raise _InvalidSelectorError(
            f"unexpected expression kind {_kind(node)}; expected shardRange() call or || operator"
        )
    if node.function == "_||_":
        return [found for part in node.arguments for found in _ranges(part)]
    if node.function != "shardRange":
        raise _InvalidSelectorError(f'unsupported function "{node.function}"; only shardRange() and || are allowed')
    if len(node.arguments) != 3:
        raise _InvalidSelectorError(f"shardRange() requires exactly 3 arguments, got {len(node.arguments)}")
    path, start, end = node.arguments
    field = dotted_name(path)
    if not field:
        while isinstance(path, Select):
            if path.optional:
                raise _InvalidSelectorError("CEL parse error: unsupported syntax '.?'")
            path = path.operand
        raise _InvalidSelectorError(
            "shardRange() first argument: expected field path (e.g. object.metadata.uid), got expression kind "
            f"{_kind(path)}"
        )
    if field not in _FIELDS:
        raise _InvalidSelectorError(f'unsupported field path "{field}"; supported: {", ".join(_FIELDS)}')
    low, high = _bound(start, "hexStart"), _bound(end, "hexEnd")
    if low >= high:
        raise _InvalidSelectorError(f"shard range start {low:#018x} must be less than end {high:#018x}")
    return [(field, low, high)]


def _kind(node: Node) -> int:
    return _KINDS.get(type(node), 8)


def _bound(node: Node, name: str) -> int:
    if not isinstance(node, Literal):
        raise _InvalidSelectorError(f"{name} must be a string literal (e.g. '0xff'), got expression kind {_kind(node)}")
    value = node.value
    if not isinstance(value, str):
        raise _InvalidSelectorError(f"{name} must be a string literal, got {_GO_TYPES.get(type(value), 'uint64')}")
    if not value.startswith("0x"):
        raise _InvalidSelectorError(f"{name} must have '0x' prefix, got \"{value}\"")
    digits = value[2:]
    if not digits:
        raise _InvalidSelectorError(f"{name}: hex value is required after '0x'")
    size = len(digits.encode())
    if size > 17:
        raise _InvalidSelectorError(f'{name}: hex value too long ({size} chars, max 17): "{digits}"')
    wrong = re.search("[^0-9a-f]", digits)
    if wrong is not None:
        raise _InvalidSelectorError(f'{name}: invalid hex character "{wrong[0]}" in "{value}"')
    if size == 17 and value != _WHOLE:
        raise _InvalidSelectorError(f"{name}: 17-digit hex value must be '{_WHOLE}' (2^64), got \"{value}\"")
    if size < 16:
        hint = f'did you mean "0x{digits:0>16}"?'
        raise _InvalidSelectorError(f'{name} must be a 0x-prefixed 16-digit hex value, got "{value}" ({hint})')
    return int(digits, 16)
