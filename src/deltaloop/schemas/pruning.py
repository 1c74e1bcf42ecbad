"""Drop or report unknown fields when an object is decoded.

Source: sigs.k8s.io/json, strict decoding; apiextensions-apiserver pkg/apiserver/schema/pruning.
"""

from __future__ import annotations

from typing import Final

from deltaloop.api.json_values import is_list, is_mapping
from deltaloop.schemas.types import NOTHING, TypeNode

_IDENTITY: Final = ("apiVersion", "kind", "metadata")
_CONTAINERS: Final = (dict, list)


def prune(node: TypeNode, fields: dict[str, object], path: str = "") -> list[str]:
    """Drop unknown fields from an object in place, and return their sorted paths below ``path``."""
    whole = not node.name
    if not _has_unknown(node, fields, whole=whole):
        return []
    return sorted(_unknown(node, fields, path, remove=True, whole=whole))


def unknown_fields(node: TypeNode, fields: dict[str, object]) -> list[str]:
    """Return the sorted paths of the fields that ``prune`` would drop."""
    return sorted(_unknown(node, fields, "", remove=False, whole=not node.name))


def prune_value(node: TypeNode, value: object) -> list[str]:
    """Drop unknown fields from a part of an object in place, such as a default, and return their paths."""
    return _unknown(node, value, "", remove=True, whole=False)


def _has_unknown(node: TypeNode, value: object, *, whole: bool = False, kept: bool = False) -> bool:
    """Return quickly whether a field must be dropped. ``kept`` applies to items of a list that keeps unknown fields."""
    kept = kept or node.open
    if is_mapping(value):
        fields, other = node.fields, node.other
        if kept and not fields and other is None:
            return False
        whole = whole or node.embedded
        for name, inner in value.items():
            child = fields.get(name) or other
            if child is None:
                if not (kept or (whole and name in _IDENTITY)):
                    return True
            elif type(inner) not in _CONTAINERS or not inner or (whole and name in _IDENTITY):
                continue
            elif _has_unknown(child, inner):
                return True
    elif is_list(value) and not (node.items is None and kept):
        below = node.items or NOTHING
        for item in value:
            if type(item) in _CONTAINERS and item and _has_unknown(below, item, kept=kept):
                return True
    return False


def _unknown(node: TypeNode, value: object, path: str, *, remove: bool, whole: bool, kept: bool = False) -> list[str]:
    found: list[str] = []
    kept = kept or node.open
    if is_mapping(value):
        fields = value
        whole = whole or node.embedded
        for name in list(fields):
            if whole and name in _IDENTITY:
                continue
            child = node.fields.get(name) or node.other
            if child is not None:
                if type(fields[name]) in _CONTAINERS:
                    below = f"{path}.{name}" if path else name
                    found += _unknown(child, fields[name], below, remove=remove, whole=False)
            elif not kept:
                found.append(f"{path}.{name}" if path else name)
                if remove:
                    del fields[name]
    elif is_list(value) and not (node.items is None and kept):
        item_node = node.items or NOTHING
        for position, item in enumerate(value):
            if type(item) in _CONTAINERS:
                found += _unknown(item_node, item, f"{path}[{position}]", remove=remove, whole=False, kept=kept)
    return found
