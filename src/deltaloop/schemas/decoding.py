"""Prune, default and validate custom resources by their schema.

Source: apiextensions-apiserver pkg/apiserver/customresource_handler.go, pkg/apiserver/schema/defaulting.
"""

from __future__ import annotations

import copy
import json
from collections import Counter
from collections.abc import Callable
from typing import Any, Final, cast, final

import msgspec

from deltaloop.api.json_values import is_list, is_mapping, type_of
from deltaloop.schemas import completing, validating
from deltaloop.schemas.field_errors import SchemaError
from deltaloop.schemas.json_in_parts import decode_in_parts, encode_sorted
from deltaloop.schemas.types import NO_DEFAULT, Schema, TypeNode
from deltaloop.schemas.work import CURRENT, GrowthError, build

_CONTAINERS: Final = (dict, list)


def apply_defaults(node: TypeNode, value: object) -> bool:
    """Fill in defaults in place, or raise GrowthError."""
    return node.has_defaults and _fill(node, value, _Room())


@final
class _Room:
    """Bytes that defaults may still add to one object."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = CURRENT.account.growth

    def default(self, node: TypeNode, name: str = "") -> object:
        self.left -= node.default_size + len(name)
        if self.left < 0:
            raise GrowthError(CURRENT.account.growth - self.left)
        build(node.default_size)
        return copy.deepcopy(node.default)


def _fill(node: TypeNode, value: Any, room: _Room) -> bool:
    changed = False
    if type_of(value) is dict:
        fields = node.fields
        for name in fields:
            child = fields[name]
            if not child.has_defaults:
                continue
            if child.default is not NO_DEFAULT and (name not in value or (value[name] is None and not child.nullable)):
                value[name] = room.default(child, name)
                changed = True
            if name in value and type(value[name]) in _CONTAINERS:
                changed = _fill(child, value[name], room) or changed
        other = node.other
        if other is not None and other.has_defaults:
            for name in value:
                if name not in node.fields:
                    changed = _fill_item(other, value, name, room) or changed
    elif type_of(value) is list and node.items is not None and node.items.has_defaults:
        for position in range(len(value)):
            changed = _fill_item(node.items, value, position, room) or changed
    return changed


def _fill_item(node: TypeNode, container: Any, key: str | int, room: _Room) -> bool:
    changed = False
    if container[key] is None and not node.nullable and node.default is not NO_DEFAULT:
        container[key] = room.default(node)
        changed = True
    return _fill(node, container[key], room) or changed


def _drop_nulls(node: TypeNode, value: object) -> bool:
    changed = False
    if is_mapping(value):
        for name in list(value):
            inner = value[name]
            if inner is not None and (type(inner) not in _CONTAINERS or not inner):
                continue
            child = node.fields.get(name) or node.other
            if child is None:
                continue
            if inner is None:
                if not child.nullable and child.default is NO_DEFAULT:
                    del value[name]
                    changed = True
            else:
                changed = _drop_nulls(child, inner) or changed
    elif is_list(value) and node.items is not None:
        for item in value:
            if type(item) in _CONTAINERS:
                changed = _drop_nulls(node.items, item) or changed
    return changed


def decode_by_schema(schema: Schema, fields: dict[str, object], *, applied: bool = False) -> bool:
    """Prune and default a custom resource in place.

    ``applied`` keeps nulls, because an apply with such nulls is rejected.
    """
    if not schema.source:
        return False
    tree, changed = schema.tree, False
    if not completing.is_tidy(tree, fields, whole=not tree.name, nulls=applied):
        changed = bool(completing.prune(tree, fields))
        changed = (not applied and _drop_nulls(tree, fields)) or changed
    return apply_defaults(tree, fields) or changed


def schema_errors(schema: Schema, fields: dict[str, object], old: dict[str, object] | None = None) -> list[SchemaError]:
    """Return the errors of a decoded object, without those that its old version already had."""
    return validating.validate(schema.tree, fields, old) if schema.source else []


def status_errors(schema: Schema, fields: dict[str, object], old: dict[str, object]) -> list[SchemaError]:
    """Return the errors of a status write. The real server validates the status alone, as if it were the object."""
    return validating.validate_part(schema.tree, "status", fields, old) if schema.source else []


_LARGE: Final = 128 * 1024


class _Object(dict[str, object]):
    twice: tuple[str, ...] = ()


def _may_have_duplicates(body: bytes) -> bool:
    """Return quickly whether a body may have duplicate fields. False is certain."""
    # Decoding drops duplicate fields, so that encoding writes fewer colons. An escaped colon in the body could
    # compensate for this.
    if b"\\u003" in body:
        return True
    try:
        again = encode_sorted(decode_in_parts(body), size=len(body))
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return True
    return again.count(b":") != body.count(b":")


def duplicate_field_texts(body: bytes) -> list[str]:
    """Return a message for each duplicate field in a JSON object, or nothing if the body is not JSON."""
    if not _may_have_duplicates(body):
        return []
    found = False

    def build(pairs: list[tuple[str, object]]) -> _Object:
        nonlocal found
        result = _Object(pairs)
        if len(result) < len(pairs):
            found = True
            counts = Counter(name for name, _ in pairs)
            result.twice = tuple(name for name, count in counts.items() if count > 1)
        return result

    try:
        value: object = _decoder(build, large=len(body) > _LARGE).decode(body.decode())
    except (ValueError, RecursionError):
        return []
    return [f'duplicate field "{path}"' for path in _twice(value, "")] if found else []


def _decoder(build: Callable[[list[tuple[str, object]]], object], *, large: bool) -> json.JSONDecoder:
    """Return a decoder, for large bodies the one in Python, because one call in C blocks all other threads."""
    decoder: Any = json.JSONDecoder(object_pairs_hook=build)
    if large:
        in_python: Any = json
        decoder.parse_object, decoder.parse_array = in_python.decoder.JSONObject, in_python.decoder.JSONArray
        decoder.scan_once = in_python.scanner.py_make_scanner(decoder)
    return cast("json.JSONDecoder", decoder)


def _twice(value: object, path: str) -> list[str]:
    paths: list[str] = []
    if isinstance(value, _Object):
        prefix = f"{path}." if path else ""
        paths += [prefix + name for name in value.twice]
        for name, inner in value.items():
            paths += _twice(inner, prefix + name)
    elif isinstance(value, list):
        for position, inner in enumerate(cast("list[object]", value)):
            paths += _twice(inner, f"{path}[{position}]")
    return paths
