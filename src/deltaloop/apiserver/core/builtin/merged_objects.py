"""What a strategic merge or an apply makes of an object of a built-in kind, read as that kind.

The real server does not decode it from JSON, as it does with whatever else is sent, but converts the merged values one
by one. So a whole number may be written as 2.0 here, and what is of a wrong type is refused in other words.

Source: apimachinery pkg/runtime/converter.go (``FromUnstructured``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.apiserver.core.builtin.tables import FieldType, StructType, builtin_tables, kind_types
from deltaloop.schemas.json_values import json_type

_GO_KINDS: Final[dict[type, str]] = {
    str: "string",
    int: "int64",
    float: "float64",
    bool: "bool",
    dict: "map",
    list: "slice",
}


class _WrongTypeError(Exception):
    """Inside this module only."""


def convert_merged(kind: ResourceType[Resource], fields: dict[str, Any]) -> str:
    """Write the whole numbers of a merged object as such, in place, and return why it cannot be read.

    Returns:
        Both types of the first value, metadata included, that is of a wrong one, never the value; "" if none is.
    """
    name = kind_types().get((kind.api_version, kind.kind))
    if name is None:
        return ""
    try:
        _struct(builtin_tables().types, name, fields)
    except _WrongTypeError as error:
        return str(error)
    return ""


def _struct(types: Mapping[str, StructType], name: str, fields: dict[str, Any]) -> None:
    known = types[name].fields
    for field, value in fields.items():
        shape = known.get(field)
        if shape is not None and value is not None:
            fields[field] = _value(types, shape, value)


def _value(types: Mapping[str, StructType], shape: FieldType, value: Any) -> Any:
    if isinstance(shape, str):
        return _word(types, shape, value)
    if shape.of is not None:
        return _value(types, shape.of, value)
    if shape.item is not None:
        if not isinstance(value, list):
            raise _WrongTypeError(f"cannot restore slice from {_go_kind(value)}")
        values = cast("list[Any]", value)
        values[:] = [_value(types, shape.item, item) if item is not None else None for item in values]
        return values
    if shape.value is not None:
        if not isinstance(value, dict):
            raise _WrongTypeError(f"cannot restore map from {_go_kind(value)}")
        fields = cast("dict[str, Any]", value)
        for key, item in fields.items():
            if item is not None:
                fields[key] = _value(types, shape.value, item)
        return fields
    return value


def _word(types: Mapping[str, StructType], shape: str, value: Any) -> Any:
    if shape[0] == "#":
        if not isinstance(value, dict):
            raise _WrongTypeError(f"cannot restore struct from: {_go_kind(value)}")
        fields = cast("dict[str, Any]", value)
        _struct(types, shape[1:], fields)
        return fields
    found: object = value
    kind = type(found)
    match shape:
        case "string" if kind is not str:
            # Go could make a letter of a whole number, and does not.
            raise _WrongTypeError("cannot convert int64 to string" if kind is int else "unrecognized type: string")
        case "int32" | "int64":
            return _whole(shape, value)
        case "boolean" if kind is not bool:
            raise _WrongTypeError("unrecognized type: bool")
        case "number" if kind not in (int, float):
            raise _WrongTypeError("unrecognized type: float64")
        case "bytes" if kind is not str:
            raise _WrongTypeError(f"cannot restore slice from {_go_kind(value)}")
        case "time" | "micro_time" if kind is not str:
            raise _WrongTypeError(f"json: cannot unmarshal {json_type(value)} into Go value of type string")
        case "intstr" if kind is not str:
            return _whole_or_text(value)
        case _:
            return value


def _whole(shape: str, value: Any) -> Any:
    if type(value) is int:
        return value
    if type(value) is not float:
        raise _WrongTypeError(f"unrecognized type: {shape}")
    if not value.is_integer():
        raise _WrongTypeError(f"cannot convert float64 to {shape}")
    return int(value)


def _whole_or_text(value: Any) -> Any:
    if type(value) is int:
        return value
    if type(value) is float and value.is_integer():
        return int(value)
    found = f"number {value}" if type(value) is float else json_type(value)
    raise _WrongTypeError(f"json: cannot unmarshal {found} into Go value of type int32")


def _go_kind(value: object) -> str:
    return _GO_KINDS.get(type(value), "invalid")
