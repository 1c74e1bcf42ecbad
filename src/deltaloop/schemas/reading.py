"""Objects as Go reads them: wrong types are found, what is empty is left out, bytes and times get their own form.

The real server decodes a body into Go structs and writes it back with ``omitempty``: a null, an empty list and an empty
map are gone afterwards, a struct without fields stays. Custom resources have schemas for this, but for their metadata.

Source: sigs.k8s.io/json, encoding/json.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from copy import copy
from dataclasses import dataclass
from typing import Final, cast

from deltaloop.api.json_values import value_type
from deltaloop.schemas.faults import DecodingFault
from deltaloop.schemas.quantity import MalformedQuantityError, canonical_quantity
from deltaloop.schemas.types import TypeNode
from deltaloop.schemas.values import MalformedValueError, read_bytes, read_micro_time, read_time

_TEXT: Final = (str,)
_SCALARS: Final[Mapping[str, tuple[type, ...]]] = {
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
_READ: Final[Mapping[str, Callable[[str], str]]] = {
    "bytes": read_bytes,
    "time": read_time,
    "micro_time": read_micro_time,
}
_ZEROS: Final[Mapping[str, object]] = {
    "string": "",
    "bytes": "",
    "int32": 0,
    "int64": 0,
    "boolean": False,
    "quantity": "0",
    "intstr": 0,
}
_MAYBE_SCHEMAS: Final = ("additionalProperties", "additionalItems")


def read_object(node: TypeNode, fields: dict[str, object]) -> DecodingFault | None:
    """Read an object of a built-in kind in place, but for its kind and version, and return the first wrong value."""
    reading = _Reading()
    try:
        for name in list(fields):
            if name not in ("kind", "apiVersion"):
                reading.field(node, fields, name, "")
    except _WrongValueError as error:
        return error.fault
    return None


def has_empty(node: TypeNode, value: object) -> bool:
    """Whether a value of a built-in kind has an empty list or map, or is one; these are lost when it is stored."""
    if isinstance(value, list):
        items = cast("list[object]", value)
        return not items or (node.items is not None and any(has_empty(node.items, item) for item in items))
    if not isinstance(value, dict):
        return False
    fields = cast("dict[str, object]", value)
    if not fields:
        return node.form == "object" and not node.name
    types = ((node.fields.get(name) or node.other, inner) for name, inner in fields.items())
    return any(below is not None and has_empty(below, inner) for below, inner in types)


def check_value(node: TypeNode, value: object, *, whole: bool = False) -> DecodingFault | None:
    """Return the first value that cannot be read in one that stays as it is.

    Args:
        node: The compiled type of the value.
        value: The value that was sent, decoded.
        whole: Whether 2.0 may stand for 2; it is written so then, in place.
    """
    try:
        if value is not None:
            _Reading(writes=False, whole=whole).value(node, value, node, "")
    except _WrongValueError as error:
        return error.fault
    return None


class _WrongValueError(Exception):
    """Inside this module only: the first value that cannot be read."""

    def __init__(self, fault: DecodingFault) -> None:
        super().__init__()
        self.fault = fault


@dataclass(frozen=True, slots=True)
class _Reading:
    """One object that is being read, up to the first value that is wrong."""

    writes: bool = True
    whole: bool = False

    def field(self, struct: TypeNode, fields: dict[str, object], name: str, path: str) -> None:
        """Read a field of a struct, and drop it if it is empty."""
        value = fields[name]
        if value is None:
            if self.writes:
                del fields[name]
            return
        node = struct.fields.get(name)
        if node is None or (type(value) is str and node.form == "string"):
            return
        read = self.value(node, value, struct, f"{path}.{name}" if path else name)
        if read is not value and (self.writes or type(value) is float):
            fields[name] = read
        if self.writes and not read and node.form in ("list", "object") and not node.name and read in ([], {}):
            del fields[name]

    def value(self, node: TypeNode, value: object, struct: TypeNode, path: str) -> object:
        """Return a value as Go writes it; containers are changed in place."""
        match node.form:
            case "object":
                if not isinstance(value, dict):
                    raise _wrong(node, value, struct, path)
                fields = cast("dict[str, object]", value)
                if node.other is not None:
                    self._items(node.other, fields, fields.items(), struct, path)
                else:
                    for name in list(fields):
                        self.field(node, fields, name, path)
                return fields
            case "list":
                if not isinstance(value, list):
                    raise _wrong(node, value, struct, path)
                values = cast("list[object]", value)
                if node.items is not None:
                    self._items(node.items, values, enumerate(values), struct, path)
                return values
            case "any":
                return value
            case "schema":
                self._schema(node, value, struct, path)
                return value
            case "quantity":
                _check_quantity(node, value, struct, path)
                return value
            case _:
                return self._scalar(node, value, struct, path)

    def _items(
        self,
        node: TypeNode,
        holder: dict[str, object] | list[object],
        found: Iterable[tuple[str | int, object]],
        struct: TypeNode,
        path: str,
    ) -> None:
        # Go cannot leave an item out: it has its zero in the place of a null.
        held = cast("dict[str | int, object]", holder)
        zero: object = dict[str, object]() if node.name and node.form == "object" else _ZEROS.get(node.form)
        for place, item in found:
            if item is not None:
                read = self.value(node, item, struct, path)
                if read is not item and self.writes:
                    held[place] = read
            elif zero is not None and self.writes:
                held[place] = copy(zero)

    def _schema(self, node: TypeNode, value: object, struct: TypeNode, path: str) -> None:
        """Read a schema, a list of them, or a boolean."""
        if path.endswith(_MAYBE_SCHEMAS) and value_type(value) not in ("object", "boolean"):
            raise _wrong(node, value, struct, path, "boolean or JSON schema expected")
        if isinstance(value, dict | list) and node.items is not None:
            for schema in cast("list[object]", value if isinstance(value, list) else [value]):
                self.value(node.items, schema, struct, path)

    def _scalar(self, node: TypeNode, value: object, struct: TypeNode, path: str) -> object:
        form, found = node.form, value
        if self.whole and form in ("int32", "int64") and type(found) is float and found.is_integer():
            found = int(found)
        limit = _SMALLEST_TOO_LARGE.get(form, 0)
        is_out = type(found) is int and bool(limit) and not -limit <= found < limit
        if type(found) not in _SCALARS[form] or is_out:
            raise _wrong(node, value, struct, path)
        read = _READ.get(form)
        if read is None:
            return found
        try:
            return read(cast("str", found))
        except MalformedValueError as error:
            raise _wrong(node, value, struct, path, str(error)) from None


def _check_quantity(node: TypeNode, value: object, struct: TypeNode, path: str) -> None:
    try:
        canonical_quantity(str(value) if value_type(value) in ("string", "integer", "number") else "")
    except MalformedQuantityError as error:
        raise _wrong(node, value, struct, path, str(error)) from None


def _wrong(node: TypeNode, value: object, struct: TypeNode, path: str, why: str = "") -> _WrongValueError:
    found = value_type(value)
    wants_number = found in ("integer", "number") and node.form in ("int32", "int64", "intstr")
    number = cast("float", value) if wants_number else None
    return _WrongValueError(DecodingFault(path, struct.name, node, found, number=number, why=why))
