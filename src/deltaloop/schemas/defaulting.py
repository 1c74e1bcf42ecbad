"""Missing fields get their defaults; a null that may not be null is dropped, or replaced by the default.

Defaults apply when an object is decoded, from a request or from the store, so a default that a CRD gains later shows
in objects that are already there.

Source: apiextensions-apiserver pkg/apiserver/schema/defaulting.
"""

from __future__ import annotations

import copy
from typing import Final, cast, final

from deltaloop.schemas.types import NO_DEFAULT, TypeNode
from deltaloop.schemas.work import CURRENT, GrowthError, build

_CONTAINERS: Final = (dict, list)


def apply_defaults(node: TypeNode, value: object, *, keep_nulls: bool = False) -> bool:
    """Fill in defaults in place and tell whether anything changed; ``keep_nulls`` leaves nulls without a default.

    Raises:
        GrowthError: If the defaults are larger than the account of the work allows.
    """
    changed = False if keep_nulls else _drop_nulls(node, value)
    if node.has_defaults:
        changed = _fill(node, value, _Room()) or changed
    return changed


@final
class _Room:
    """The bytes that defaults may still add to one object."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = CURRENT.account.growth

    def default(self, node: TypeNode, name: str = "") -> object:
        """Return a copy of a default, if there is room for it."""
        self.left -= node.default_size + len(name)
        if self.left < 0:
            raise GrowthError(CURRENT.account.growth - self.left)
        build(node.default_size)
        return copy.deepcopy(node.default)


def _fill(node: TypeNode, value: object, room: _Room) -> bool:
    changed = False
    if isinstance(value, dict):
        fields = cast("dict[str, object]", value)
        for name, child in node.fields.items():
            if not child.has_defaults:
                continue
            if child.default is not NO_DEFAULT and (
                name not in fields or (fields[name] is None and not child.nullable)
            ):
                fields[name] = room.default(child, name)
                changed = True
            if name in fields:
                changed = _fill(child, fields[name], room) or changed
        other = node.other
        if other is not None and other.has_defaults:
            for name in fields:
                if name not in node.fields:
                    changed = _fill_item(other, fields, name, room) or changed
    elif isinstance(value, list) and node.items is not None and node.items.has_defaults:
        entries = cast("list[object]", value)
        for position in range(len(entries)):
            changed = _fill_item(node.items, entries, position, room) or changed
    return changed


def _fill_item(node: TypeNode, holder: dict[str, object] | list[object], key: str | int, room: _Room) -> bool:
    container, changed = cast("dict[str | int, object]", holder), False
    if container[key] is None and not node.nullable and node.default is not NO_DEFAULT:
        container[key] = room.default(node)
        changed = True
    return _fill(node, container[key], room) or changed


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
