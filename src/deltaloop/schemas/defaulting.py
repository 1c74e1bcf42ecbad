"""Missing fields get their defaults; a null that may not be null is dropped, or replaced by the default.

Defaults apply when an object is decoded, from a request or from the store, so a default that a CRD gains later shows
in objects that are already there.

Source: apiextensions-apiserver pkg/apiserver/schema/defaulting.
"""

from __future__ import annotations

import copy
from typing import Final, cast

from deltaloop.schemas.types import NO_DEFAULT, TypeNode
from deltaloop.schemas.work import build, charge

_CONTAINERS: Final = (dict, list)
_PART_BYTES: Final = 100
_STEPS_OF_A_PART: Final = 20


def apply_defaults(node: TypeNode, value: object, *, keep_nulls: bool = False) -> bool:
    """Fill in defaults in place and tell whether anything changed; ``keep_nulls`` leaves nulls without a default."""
    changed = False if keep_nulls else _drop_nulls(node, value)
    if node.has_defaults:
        changed = _fill(node, value) or changed
    return changed


def _fill(node: TypeNode, value: object) -> bool:
    changed = False
    if isinstance(value, dict):
        fields = cast("dict[str, object]", value)
        charge(len(node.fields))
        for name, child in node.fields.items():
            if not child.has_defaults:
                continue
            if child.default is not NO_DEFAULT and (
                name not in fields or (fields[name] is None and not child.nullable)
            ):
                fields[name] = _copied(child.default)
                changed = True
            if name in fields:
                changed = _fill(child, fields[name]) or changed
        other = node.other
        if other is not None and other.has_defaults:
            for name in fields:
                if name not in node.fields:
                    changed = _fill_item(other, fields, name) or changed
    elif isinstance(value, list) and node.items is not None and node.items.has_defaults:
        entries = cast("list[object]", value)
        for position in range(len(entries)):
            changed = _fill_item(node.items, entries, position) or changed
    return changed


def _copied(default: object) -> object:
    """Return a copy of a default; the account is charged for its parts first."""
    if not isinstance(default, _CONTAINERS):
        build(_PART_BYTES)
        return default
    waiting: list[object] = [default]
    while waiting:
        part = waiting.pop()
        build(_PART_BYTES)
        charge(_STEPS_OF_A_PART)
        if isinstance(part, dict):
            waiting.extend(cast("dict[str, object]", part).values())
        elif isinstance(part, list):
            waiting.extend(cast("list[object]", part))
    return copy.deepcopy(cast("object", default))


def _fill_item(node: TypeNode, holder: dict[str, object] | list[object], key: str | int) -> bool:
    container, changed = cast("dict[str | int, object]", holder), False
    if container[key] is None and not node.nullable and node.default is not NO_DEFAULT:
        container[key] = _copied(node.default)
        changed = True
    return _fill(node, container[key]) or changed


def _drop_nulls(node: TypeNode, value: object) -> bool:
    changed = False
    if isinstance(value, dict):
        fields = cast("dict[str, object]", value)
        for name in list(fields):
            child = node.fields.get(name) or node.other
            if child is None:
                continue
            inner = fields[name]
            if type(inner) is str:
                continue
            if inner is None:
                if not child.nullable and child.default is NO_DEFAULT:
                    del fields[name]
                    changed = True
            elif isinstance(inner, _CONTAINERS):
                changed = _drop_nulls(child, cast("object", inner)) or changed
    elif isinstance(value, list) and node.items is not None:
        for item in cast("list[object]", value):
            changed = _drop_nulls(node.items, item) or changed
    return changed
