"""Fields that no schema names are dropped when an object is decoded, or named where the client asks for it.

Kept in any case: ``apiVersion``, ``kind`` and ``metadata`` of the object and of embedded objects; everything below a
schema that preserves unknown fields, except where a property there has a schema of its own.

Source: apiextensions-apiserver pkg/apiserver/schema/pruning.
"""

from __future__ import annotations

from typing import Any, Final, cast

from deltaloop.schemas.node import SchemaNode

_IDENTITY: Final = ("apiVersion", "kind", "metadata")
_CONTAINERS: Final = (dict, list)


def prune(node: SchemaNode, fields: dict[str, Any]) -> bool:
    """Drop unknown fields from an object in place and tell whether there were any."""
    return _remove(node, fields, root=True)


def unknown_fields(node: SchemaNode, fields: dict[str, Any]) -> list[str]:
    """Return the paths of the fields that ``prune`` would drop, sorted; the object stays as it is."""
    return sorted(_unknown(node, fields, "", remove=False, root=True))


def prune_value(node: SchemaNode, value: object) -> list[str]:
    """Drop unknown fields from a part of an object in place, such as a default, and return their paths."""
    return _unknown(node, value, "", remove=True, root=False)


def _remove(node: SchemaNode, value: object, *, root: bool = False) -> bool:
    """Do as ``_unknown`` on the way of every read and write, without making paths."""
    removed = False
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        properties, additional = node.properties, node.additional
        whole = root or node.embedded
        unknown: list[str] = []
        for name, inner in fields.items():
            if whole and name in _IDENTITY:
                continue
            child = properties.get(name) or additional
            if child is None:
                if not node.open:
                    unknown.append(name)
            elif isinstance(inner, _CONTAINERS):
                removed = _remove(child, cast("object", inner)) or removed
        for name in unknown:
            del fields[name]
        return removed or bool(unknown)
    if isinstance(value, list) and node.items is not None:
        for item in cast("list[Any]", value):
            removed = _remove(node.items, item) or removed
    return removed


def _unknown(node: SchemaNode, value: object, path: str, *, remove: bool, root: bool) -> list[str]:
    found: list[str] = []
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        whole = root or node.embedded
        for name in list(fields):
            if whole and name in _IDENTITY:
                continue
            child = node.properties.get(name)
            if child is None:
                child = node.additional
            if child is not None:
                inner = fields[name]
                if isinstance(inner, _CONTAINERS):
                    below = f"{path}.{name}" if path else name
                    found += _unknown(child, cast("object", inner), below, remove=remove, root=False)
            elif not node.open:
                found.append(f"{path}.{name}" if path else name)
                if remove:
                    del fields[name]
    elif isinstance(value, list) and node.items is not None:
        for position, item in enumerate(cast("list[Any]", value)):
            if isinstance(item, _CONTAINERS):
                found += _unknown(node.items, cast("object", item), f"{path}[{position}]", remove=remove, root=False)
    return found
