"""Look up a field in a schema by a simple path, for example ``.spec.replicas`` or ``.labels['app']``.

Source: apiextensions-apiserver pkg/apiserver/schema/cel/validation.go (``ValidFieldPath``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from deltaloop.api.json_values import is_mapping, mapping

_TOKEN: Final = re.compile(r"'.*?(?<!\\)'|'.*|[.\[\]]|[^.\[\]]+", re.DOTALL)
_ESCAPE: Final = re.compile(r"\\.")
_ESCAPED: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "'": "'", "\\": "\\"}
_LEAST_QUOTED: Final = 2


class DescribedField(NamedTuple):
    """Field of a schema; ``why`` is the error if it does not exist, otherwise ""."""

    steps: tuple[str, ...]
    schema: dict[str, object]
    why: str
    shown: str


def _none(why: str) -> DescribedField:
    return DescribedField((), {}, why, "")


def described_field(path: str, schema: dict[str, object], *, brackets: bool = True) -> DescribedField:
    """Look up the field at a path. ``brackets`` allows names in brackets."""
    steps: list[str] = []
    shown = ""
    tokens = iter(_TOKEN.findall(path))
    for token in tokens:
        if token not in (".", "["):
            return _none(f"expected [ or . but got: {token}")
        if token == "[" and not brackets:
            return _none("array notation is not allowed")
        name, why = _quoted(tokens) if token == "[" else (next(tokens, ""), "")
        if why or not name:
            return _none(why or "unexpected end of JSON path")
        properties, additional = mapping(schema.get("properties")), schema.get("additionalProperties")
        if name in properties:
            schema = mapping(properties[name])
            shown += f".{name}" if shown else name
        elif not properties and is_mapping(additional):
            schema = additional
            shown += f"[{name}]"
        else:
            return _none("does not refer to a valid field")
        steps.append(name)
    return DescribedField(tuple(steps), schema, "", shown)


def _quoted(tokens: Iterator[str]) -> tuple[str, str]:
    token = next(tokens, "")
    if not token:
        return "", "unexpected end of JSON path"
    if len(token) < _LEAST_QUOTED or token[0] != "'" or token[-1] != "'":
        return "", f"expected single quoted string but got {token}"
    wrong = [match[0] for match in _ESCAPE.finditer(token[1:-1]) if match[0][1] not in _ESCAPED]
    if wrong:
        return "", f"invalid string literal: invalid escape char {wrong[-1]}"
    name = _ESCAPE.sub(lambda match: _ESCAPED[match[0][1]], token[1:-1])
    end = next(tokens, "")
    return (name, "") if end == "]" else ("", f"expected ] but got {end}" if end else "unexpected end of JSON path")
