"""Fields of built-in kinds that do not exist: dropped, as decoding into Go's types does, and named where asked for.

Source: sigs.k8s.io/json, strict decoding; the paths in messages are its.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

from deltaloop.apiserver.core.builtin.tables import FieldShape, FieldType, StructType, builtin_tables, kind_types
from deltaloop.schemas.json_values import mapping


def drop_unknown_fields(api_version: str, kind: str, fields: dict[str, Any]) -> list[str]:
    """Drop what the kind does not have from an object in place, and return the paths; [] for a kind that is not known.

    Args:
        api_version: As the tables have it.
        kind: The kind.
        fields: The object.
    """
    name = kind_types().get((api_version, kind))
    if name is None:
        return []
    types = builtin_tables().types
    if not _has_unknown(types, types[name], fields):
        return []
    return sorted(_drop(types, types[name], fields, ""))


def drop_unknown_metadata(fields: dict[str, Any]) -> list[str]:
    """Drop what metadata does not have from an object of any kind in place, and return the paths."""
    types = builtin_tables().types
    struct, metadata = types[_METADATA], mapping(fields.get("metadata"))
    return sorted(_drop(types, struct, metadata, "metadata")) if _has_unknown(types, struct, metadata) else []


_METADATA: Final = "meta.v1.ObjectMeta"


def _has_unknown(types: Mapping[str, StructType], struct: StructType, fields: dict[str, Any]) -> bool:
    """Tell quickly whether there is anything to drop, without making paths."""
    known = struct.fields
    for name, value in fields.items():
        shape = known.get(name)
        if shape is None:
            return True
        if type(value) in _CONTAINERS and value and _has_unknown_below(types, shape, value):
            return True
    return False


_CONTAINERS: Final = (dict, list)


def _struct(shape: str) -> str:
    """Return the name of the struct that a word means; "" for other words."""
    return shape[1:] if shape[0] == "#" else "apiextensions.v1.JSONSchemaProps" if shape == "schema" else ""


def _has_unknown_below(types: Mapping[str, StructType], shape: FieldType, value: Any) -> bool:
    if isinstance(shape, str):
        struct = _struct(shape)
        if not struct or not isinstance(value, dict):
            return False
        return _has_unknown(types, types[struct], cast("dict[str, Any]", value))
    inner = shape.item or shape.value or shape.of
    if inner is None or (isinstance(inner, str) and not _struct(inner)):
        return False
    if shape.of is not None:
        return _has_unknown_below(types, inner, value)
    for item in cast("dict[str, Any]", value).values() if isinstance(value, dict) else cast("list[Any]", value):
        if type(item) in _CONTAINERS and item and _has_unknown_below(types, inner, item):
            return True
    return False


def _inner(shape: FieldShape) -> FieldType | None:
    return shape.item or shape.value or shape.of


def _drop(types: Mapping[str, StructType], struct: StructType, fields: dict[str, Any], path: str) -> list[str]:
    dropped: list[str] = []
    for name in list(fields):
        where = f"{path}.{name}" if path else name
        shape = struct.fields.get(name)
        if shape is None:
            del fields[name]
            dropped.append(where)
        else:
            dropped += _drop_below(types, shape, fields[name], where)
    return dropped


def _drop_below(types: Mapping[str, StructType], shape: FieldType, value: Any, path: str) -> list[str]:
    if isinstance(shape, str):
        struct = _struct(shape)
        if not struct or not isinstance(value, dict):
            return []
        return _drop(types, types[struct], cast("dict[str, Any]", value), path)
    inner = _inner(shape)
    dropped: list[str] = []
    if inner is None:
        return dropped
    if shape.of is not None:
        return _drop_below(types, inner, value, path)
    if shape.item is not None and isinstance(value, list):
        for position, item in enumerate(cast("list[Any]", value)):
            dropped += _drop_below(types, inner, item, f"{path}[{position}]")
    elif shape.value is not None and isinstance(value, dict):
        for name, item in cast("dict[str, Any]", value).items():
            dropped += _drop_below(types, inner, item, f"{path}.{name}")
    return dropped
