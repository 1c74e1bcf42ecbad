"""Objects of built-in kinds as Go reads them: wrong types are refused, what is empty is left out.

The real server decodes a body into Go structs and writes it back with ``omitempty``: a null, an empty list and an empty
map are gone afterwards, a struct without fields stays. Custom resources have schemas for this (``schema``).

Source: sigs.k8s.io/json; the words of the errors are those of Go's encoding/json.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

from deltaloop.apiserver.core import failures
from deltaloop.apiserver.core.builtin_tables import FieldType, StructType, builtin_tables, kind_types
from deltaloop.apiserver.core.json_values import json_type
from deltaloop.apiserver.core.quantity import MalformedQuantityError, canonical_quantity
from deltaloop.apiserver.core.served_resource import ServedResource

_SCALARS: Final[dict[str, tuple[type, ...]]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "intstr": (int, str),
}
_ZEROS: Final[dict[str, Any]] = {"string": "", "integer": 0, "boolean": False, "quantity": "0"}
_GO_NAMES: Final = {"integer": "int32", "number": "float64", "boolean": "bool"}


def decode_builtin(served: ServedResource, fields: dict[str, Any]) -> None:
    """Check the types of an object's fields and drop what is empty, in place; metadata is checked elsewhere.

    Raises:
        BadRequestError: Naming the field and both types, never the data.
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
    except _WrongTypeError as error:
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
        _value(types, shape, value, go, path)
        if isinstance(value, dict | list) and not value and _is_collection(shape):
            del fields[field]


def _is_collection(shape: FieldType) -> bool:
    while not isinstance(shape, str):
        if shape.of is None:
            return True
        shape = shape.of
    return False


def _value(types: Mapping[str, StructType], shape: FieldType, value: Any, go: str, path: str) -> None:
    if isinstance(shape, str):
        _word(types, shape, value, go, path)
    elif shape.of is not None:
        _value(types, shape.of, value, go, path)
    elif shape.item is not None:
        if not isinstance(value, list):
            raise _wrong(value, go, path, f"[]{_go_type(shape.item)}")
        values = cast("list[Any]", value)
        _fill(shape.item, values, [place for place, item in enumerate(values) if item is None])
        _items(types, shape.item, values, go, path)
    elif shape.value is not None:
        if not isinstance(value, dict):
            raise _wrong(value, go, path, f"map[string]{_go_type(shape.value)}")
        fields = cast("dict[str, Any]", value)
        _fill(shape.value, fields, [key for key, item in fields.items() if item is None])
        _items(types, shape.value, fields.values(), go, path)


def _fill(shape: FieldType, holder: Any, nulls: Iterable[Any]) -> None:
    """Put what Go has in the place of nulls: it cannot leave an item out."""
    zero = _ZEROS.get(shape) if isinstance(shape, str) else None
    if zero is not None:
        for place in nulls:
            holder[place] = zero


def _items(types: Mapping[str, StructType], shape: FieldType, values: Iterable[Any], go: str, path: str) -> None:
    for value in values:
        if value is not None:
            _value(types, shape, value, go, path)


def _word(types: Mapping[str, StructType], shape: str, value: Any, go: str, path: str) -> None:
    if shape.startswith("#"):
        if not isinstance(value, dict):
            raise _wrong(value, go, path, _go_type(shape))
        _struct(types, shape[1:], cast("dict[str, Any]", value), path)
    elif shape == "quantity":
        try:
            canonical_quantity("" if isinstance(value, bool | dict | list) else str(value))
        except MalformedQuantityError as error:
            raise _WrongTypeError(str(error)) from None
    elif shape not in ("any", "atomic"):
        wanted = _SCALARS[shape]
        if not isinstance(value, wanted) or (isinstance(value, bool) and shape != "boolean"):
            # Go reads what is no text as a number.
            raise _wrong(value, go, path, "int32" if shape == "intstr" else _GO_NAMES.get(shape, "string"))


def _go_type(shape: FieldType) -> str:
    if not isinstance(shape, str):
        return "string"
    return shape[1:].split(".", 1)[-1] if shape.startswith("#") else _GO_NAMES.get(shape, "string")


def _wrong(value: object, go: str, path: str, wanted: str) -> _WrongTypeError:
    found = json_type(value)
    return _WrongTypeError(f"json: cannot unmarshal {found} into Go struct field {go}.{path} of type {wanted}")
