"""Convert the result of a strategic merge patch or an apply to its built-in kind.

Source: apimachinery pkg/runtime/converter.go (``FromUnstructured``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from deltaloop.api.json_values import is_list, is_mapping, value_type
from deltaloop.schemas.field_errors import DecodingFault, DecodingFaultError
from deltaloop.schemas.types import TypeNode

_TAKEN: Final[Mapping[str, tuple[str, ...]]] = {
    "string": ("string",),
    "bytes": ("string",),
    "time": ("string",),
    "micro_time": ("string",),
    "int32": ("integer",),
    "int64": ("integer",),
    "intstr": ("integer", "string"),
    "number": ("integer", "number"),
    "boolean": ("boolean",),
}
_WHOLE: Final = ("int32", "int64", "intstr")


def convert_object(node: TypeNode, fields: dict[str, object]) -> DecodingFault | None:
    """Convert floats with integer values to int in place, and return the first value of a wrong type."""
    try:
        _struct(node, fields)
    except DecodingFaultError as error:
        return error.fault
    return None


def _struct(node: TypeNode, fields: dict[str, object]) -> None:
    types = node.fields
    for name, value in fields.items():
        if value is not None and name in types and not (type(value) is str and types[name].form == "string"):
            fields[name] = _value(types[name], value)


def _value(node: TypeNode, value: object) -> object:
    if node.form == "list":
        if not is_list(value):
            raise _wrong(node, value)
        values, item = value, node.items or node
        values[:] = [_value(item, each) if each is not None else None for each in values]
        return values
    if node.form == "object":
        if not is_mapping(value):
            raise _wrong(node, value)
        fields = value
        if node.other is None:
            _struct(node, fields)
        else:
            fields.update({key: _value(node.other, each) for key, each in fields.items() if each is not None})
        return fields
    if node.form in _WHOLE and type(value) is float and value.is_integer():
        value = int(value)
    if node.form in ("int32", "int64") and type(value) is int:
        # Go ignores overflow here. A number beyond 64 bits was decoded as a float, which becomes the smallest integer.
        value = value if -(2**63) <= value < 2**63 else -(2**63)
        return (value + 2**31) % 2**32 - 2**31 if node.form == "int32" else value
    if node.form in _TAKEN and value_type(value) not in _TAKEN[node.form]:
        raise _wrong(node, value)
    return value


def _wrong(node: TypeNode, value: object) -> DecodingFaultError:
    number = value if isinstance(value, float) else None
    return DecodingFaultError(DecodingFault("", "", node, value_type(value), number=number))
