"""Objects of built-in kinds as Go reads them: wrong types are refused, what is empty is left out.

The real server decodes a body into Go structs and writes it back with ``omitempty``: a null, an empty list and an empty
map are gone afterwards, a struct without fields stays. Custom resources have schemas for this (``schema``).

Source: sigs.k8s.io/json; the words of the errors are those of Go's encoding/json.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Never, cast

from deltaloop.api.resource import Resource
from deltaloop.api.resource_type import ResourceType
from deltaloop.apiserver.core import failures
from deltaloop.apiserver.core.builtin.tables import FieldType, StructType, builtin_tables, kind_types
from deltaloop.apiserver.core.metadata.types import metadata_problem
from deltaloop.apiserver.core.metadata.values import read_bytes, read_micro_time, read_time
from deltaloop.schemas.json_values import json_type
from deltaloop.schemas.quantity import MalformedQuantityError, canonical_quantity

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


def decode_builtin(kind: ResourceType[Resource], fields: dict[str, Any]) -> None:
    """Check the types of an object's fields, write bytes and times in their own form, and drop what is empty, in place.

    Args:
        kind: Its kind.
        fields: The object; its metadata is checked and left as it is.

    Raises:
        BadRequestError: Naming the field and both types, or what is wrong with a value; never the data.
    """
    name = kind_types().get((kind.api_version, kind.kind))
    if name is None:
        return
    reading = _Reading(builtin_tables().types)
    struct, go = reading.types[name], kind.kind
    try:
        for field in list(fields):
            if field == "metadata":
                _refuse(metadata_problem(go, fields, unstructured=False)[0])
            elif field not in ("kind", "apiVersion"):
                reading.field(struct, go, fields, field, field)
    except _WrongValueError as error:
        raise failures.unreadable(go, error.why, version=kind.version) from None


_SCHEMA: Final = "#apiextensions.v1.JSONSchemaProps"


class _WrongValueError(Exception):
    """Inside this module only: the first value that cannot be read."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


def _refuse(why: str) -> None:
    if why:
        raise _WrongValueError(why)


class _Reading:
    """One object that is being read, up to the first value that is wrong."""

    def __init__(self, types: Mapping[str, StructType]) -> None:
        self.types = types

    def field(self, struct: StructType, go: str, fields: dict[str, Any], field: str, path: str) -> None:
        """Read a field of a struct, and drop it if it is empty."""
        shape = struct.fields.get(field)
        value = fields[field]
        if value is None:
            del fields[field]
        elif shape is not None:
            fields[field] = self.value(shape, value, go, path)
            if isinstance(value, dict | list) and not value and _is_collection(shape):
                del fields[field]

    def value(self, shape: FieldType, value: Any, go: str, path: str) -> Any:
        """Return a value as Go writes it; containers are changed in place."""
        if isinstance(shape, str):
            return self._word(shape, value, go, path)
        if shape.of is not None:
            return self.value(shape.of, value, go, path)
        if shape.item is not None:
            if not isinstance(value, list):
                self._wrong(value, go, path, f"[]{_go_type(shape.item)}")
            values = cast("list[Any]", value)
            self._items(shape.item, values, enumerate(values), go, path)
        elif shape.value is not None:
            if not isinstance(value, dict):
                self._wrong(value, go, path, _go_map(shape.value))
            fields = cast("dict[str, Any]", value)
            self._items(shape.value, fields, fields.items(), go, path)
        return cast("Any", value)

    def _items(self, shape: FieldType, holder: Any, found: Iterable[tuple[Any, Any]], go: str, path: str) -> None:
        # Go cannot leave an item out: it has its zero in the place of a null.
        zero = _ZEROS.get(shape) if isinstance(shape, str) else None
        for place, item in found:
            if item is not None:
                holder[place] = self.value(shape, item, go, path)
            elif zero is not None:
                holder[place] = zero

    def _word(self, shape: str, value: Any, go: str, path: str) -> Any:
        if shape[0] == "#":
            if not isinstance(value, dict):
                self._wrong(value, go, path, _go_type(shape))
            fields = cast("dict[str, Any]", value)
            name = shape[1:]
            struct, below = self.types[name], name.rpartition(".")[2]
            for field in list(fields):
                self.field(struct, below, fields, field, f"{path}.{field}")
            return fields
        if shape in ("any", "atomic"):
            return value
        if shape == "schema":
            self._schema(value, go, path)
            return value
        if shape == "quantity":
            _refuse(_quantity_problem(value))
            return value
        return self._scalar(shape, value, go, path)

    def _schema(self, value: Any, go: str, path: str) -> None:
        """Read a schema, a list of them, or a boolean."""
        if path.endswith(("additionalProperties", "additionalItems")) and not isinstance(value, dict | bool):
            _refuse("boolean or JSON schema expected")
        if isinstance(value, list):
            for schema in cast("list[Any]", value):
                self._word(_SCHEMA, schema, go, path)
        elif isinstance(value, dict):
            self._word(_SCHEMA, value, go, path)

    def _scalar(self, shape: str, value: Any, go: str, path: str) -> Any:
        found: object = value
        kind = type(found)
        limit = _SMALLEST_TOO_LARGE.get(shape, 0)
        if kind not in _SCALARS[shape] or (kind is int and limit and not -limit <= value < limit):
            self._wrong(value, go, path, _go_type(shape))
        read = _READ.get(shape)
        if read is None:
            return value
        try:
            return read(value)
        except ValueError as error:
            raise _WrongValueError(str(error)) from None

    def _wrong(self, value: object, go: str, path: str, wanted: str) -> Never:
        found = json_type(value)
        if isinstance(value, int | float) and not isinstance(value, bool) and wanted in ("int32", "int64"):
            found = f"number {value}"
        raise _WrongValueError(f"json: cannot unmarshal {found} into Go struct field {go}.{path} of type {wanted}")


def _is_collection(shape: FieldType) -> bool:
    while not isinstance(shape, str):
        if shape.of is None:
            return True
        shape = shape.of
    return False


def _quantity_problem(value: object) -> str:
    try:
        canonical_quantity("" if isinstance(value, bool | dict | list) else str(value))
    except MalformedQuantityError as error:
        return str(error)
    return ""


def _go_type(shape: FieldType) -> str:
    if not isinstance(shape, str):
        return "string"
    return shape[1:].split(".", 1)[-1] if shape.startswith("#") else _GO_NAMES.get(shape, "string")


def _go_map(shape: FieldType) -> str:
    # The only map of quantities in the API has a name of its own.
    return "v1.ResourceList" if shape == "quantity" else f"map[string]{_go_type(shape)}"
