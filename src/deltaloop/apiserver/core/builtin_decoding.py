"""Objects of built-in kinds as Go reads them: wrong types are refused, what is empty is left out.

The real server decodes a body into Go structs and writes it back with ``omitempty``: a null, an empty list and an empty
map are gone afterwards, a struct without fields stays. Custom resources have schemas for this (``schema``).

Source: sigs.k8s.io/json; the words of the errors are those of Go's encoding/json.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, cast

from deltaloop.apiserver.core import failures
from deltaloop.apiserver.core.builtin_tables import FieldType, StructType, builtin_tables, kind_types
from deltaloop.apiserver.core.builtin_values import read_bytes, read_micro_time, read_time
from deltaloop.apiserver.core.json_values import json_type
from deltaloop.apiserver.core.quantity import MalformedQuantityError, canonical_quantity
from deltaloop.apiserver.core.served_resource import ServedResource

_TEXT: Final = (str,)
_SCALARS: Final[dict[str, tuple[type, ...]]] = {
    "string": _TEXT,
    "int32": (int,),
    "int64": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "intstr": (int, str),
    "bytes": _TEXT,
    "time": _TEXT,
    "micro_time": _TEXT,
}
_SMALLEST_TOO_LARGE: Final = {"int32": 1 << 31, "int64": 1 << 63, "intstr": 1 << 31}
_READ: Final[dict[str, Callable[[str], str]]] = {
    "bytes": read_bytes,
    "time": read_time,
    "micro_time": read_micro_time,
}
_ZEROS: Final[dict[str, Any]] = {"string": "", "bytes": "", "int32": 0, "int64": 0, "boolean": False, "quantity": "0"}
# Go reads what is no text as a number.
_GO_NAMES: Final = {
    "int32": "int32",
    "int64": "int64",
    "intstr": "int32",
    "number": "float64",
    "boolean": "bool",
    "bytes": "[]uint8",
}


def decode_builtin(served: ServedResource, fields: dict[str, Any]) -> None:
    """Check the types of an object's fields, write bytes and times in their own form, and drop what is empty, in place.

    Metadata is checked elsewhere.

    Raises:
        BadRequestError: Naming the field and both types, or what is wrong with a value; never the data.
    """
    name = None if served.custom else kind_types().get((served.type.api_version, served.type.kind))
    if name is None:
        return
    types = builtin_tables().types
    struct = types[name]
    kind = served.type.kind
    try:
        for field in [field for field in fields if field not in ("metadata", "kind", "apiVersion")]:
            _field(types, struct, kind, fields, field, field)
    except (_WrongTypeError, ValueError) as error:
        raise failures.bad_request(
            f'{kind} in version "{served.type.version}" cannot be handled as a {kind}: {error}'
        ) from None


class _WrongTypeError(Exception):
    """Inside this module only."""


def _struct(types: Mapping[str, StructType], name: str, fields: dict[str, Any], path: str) -> None:
    struct = types[name]
    for field in list(fields):
        _field(types, struct, name.rpartition(".")[2], fields, field, f"{path}.{field}")


def _field(
    types: Mapping[str, StructType], struct: StructType, go: str, fields: dict[str, Any], field: str, path: str
) -> None:
    shape = struct.fields.get(field)
    value = fields[field]
    if value is None:
        del fields[field]
    elif shape is not None:
        fields[field] = _value(types, shape, value, go, path)
        if isinstance(value, dict | list) and not value and _is_collection(shape):
            del fields[field]


def _is_collection(shape: FieldType) -> bool:
    while not isinstance(shape, str):
        if shape.of is None:
            return True
        shape = shape.of
    return False


def _value(types: Mapping[str, StructType], shape: FieldType, value: Any, go: str, path: str) -> Any:
    """Return a value as Go writes it; containers are changed in place."""
    if isinstance(shape, str):
        return _word(types, shape, value, go, path)
    if shape.of is not None:
        return _value(types, shape.of, value, go, path)
    if shape.item is not None:
        if not isinstance(value, list):
            raise _wrong(value, go, path, f"[]{_go_type(shape.item)}")
        values = cast("list[Any]", value)
        _items(types, shape.item, values, enumerate(values), go, path)
        return values
    if shape.value is not None:
        if not isinstance(value, dict):
            raise _wrong(value, go, path, _go_map(shape.value))
        fields = cast("dict[str, Any]", value)
        _items(types, shape.value, fields, fields.items(), go, path)
        return fields
    return value


def _items(
    types: Mapping[str, StructType], shape: FieldType, holder: Any, found: Iterable[tuple[Any, Any]], go: str, path: str
) -> None:
    # Go cannot leave an item out: it has its zero in the place of a null.
    zero = _ZEROS.get(shape) if isinstance(shape, str) else None
    for place, item in found:
        if item is not None:
            holder[place] = _value(types, shape, item, go, path)
        elif zero is not None:
            holder[place] = zero


def _word(types: Mapping[str, StructType], shape: str, value: Any, go: str, path: str) -> Any:
    if shape[0] == "#":
        if not isinstance(value, dict):
            raise _wrong(value, go, path, _go_type(shape))
        fields = cast("dict[str, Any]", value)
        _struct(types, shape[1:], fields, path)
        return fields
    if shape == "quantity":
        _check_quantity(value)
        return value
    if shape in ("any", "atomic"):
        return value
    found: object = value
    kind = type(found)
    if kind not in _SCALARS[shape]:
        raise _wrong(value, go, path, _go_type(shape))
    if kind is int and shape in _SMALLEST_TOO_LARGE:
        limit = _SMALLEST_TOO_LARGE[shape]
        if not -limit <= value < limit:
            raise _wrong(value, go, path, _go_type(shape))
    read = _READ.get(shape)
    return read(value) if read is not None else value


def _check_quantity(value: object) -> None:
    try:
        canonical_quantity("" if isinstance(value, bool | dict | list) else str(value))
    except MalformedQuantityError as error:
        raise _WrongTypeError(str(error)) from None


def _go_type(shape: FieldType) -> str:
    if not isinstance(shape, str):
        return "string"
    return shape[1:].split(".", 1)[-1] if shape.startswith("#") else _GO_NAMES.get(shape, "string")


def _go_map(shape: FieldType) -> str:
    # The only map of quantities in the API has a name of its own.
    return "v1.ResourceList" if shape == "quantity" else f"map[string]{_go_type(shape)}"


def _wrong(value: object, go: str, path: str, wanted: str) -> _WrongTypeError:
    found = json_type(value)
    if isinstance(value, int | float) and not isinstance(value, bool) and wanted in ("int32", "int64"):
        found = f"number {value}"
    return _WrongTypeError(f"json: cannot unmarshal {found} into Go struct field {go}.{path} of type {wanted}")
