"""JSON objects where YAML is accepted, read without importing YAML."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from math import inf
from typing import Any, Final, cast

import msgspec

MAX_DEPTH: Final = 500


def json_documents(text: str | bytes) -> list[Any]:
    """Return the JSON object in the text, or an empty list if the YAML reader must read it or report its fault."""
    start = text.lstrip()[:1]
    if start not in ("{", b"{"):
        return []
    try:
        raw = text.encode() if isinstance(text, str) else text
        # Unlike json, msgspec rejects lone surrogates, NaN and infinite numbers.
        value = _decode(raw)
        if not _is_written_as(value, msgspec.json.format(raw, indent=-1)):  # a field can be repeated
            from json import loads

            value = loads(raw, object_pairs_hook=_without_repeats, parse_float=_number)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return []
    return [] if _is_too_deep(value) else [value]


def _number(text: str) -> int | float:
    if abs(number := float(text)) == inf:
        raise ValueError
    return as_go_writes(number)


_decode: Final = msgspec.json.Decoder(dict[str, Any], float_hook=_number).decode


def _is_written_as(value: object, text: bytes) -> bool:
    try:
        return msgspec.json.encode(value) == text
    except OverflowError:  # a whole number above 64 bits
        return False


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise ValueError
    return fields


def _is_too_deep(value: object) -> bool:
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [item for each in level for item in _items(each)]
        if not level:
            return False
    return any(isinstance(each, dict | list) for each in level)


def _items(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return cast("dict[str, object]", value).values()
    return cast("list[object]", value) if isinstance(value, list) else ()


def as_go_writes(value: float) -> int | float:
    """Return a finite number as read from Go's JSON, in which whole numbers below 1e21 are integers."""
    return int(Decimal(repr(value))) if value.is_integer() and abs(value) < 1e21 else value
