"""A value as expressions see it: texts with a format are instants, spans or bytes, and names are identifiers.

What expressions cannot name stays in an object, so that two objects are only equal if they are equal there, too: it is
kept under a name that is no identifier. A null in an object is as if it were not there. A value that is not of its
schema's type, because there was another schema when it was stored, is an error where it is used.

Source: apiserver pkg/cel/common/valuesunstructured.go.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from typing import Final, TypeAlias, cast

from deltaloop.apiserver.core.crds.rules.declarations import is_whole, with_identity
from deltaloop.apiserver.core.crds.rules.names import RESERVED, escaped
from deltaloop.cel import Duration
from deltaloop.cel.faults import EvaluationError, FailedValue
from deltaloop.cel.libraries.instants import parse_timestamp
from deltaloop.cel.values import KeyedList, SetList
from deltaloop.schemas.formats import duration_nanoseconds
from deltaloop.schemas.go_numbers import go_type
from deltaloop.schemas.json_values import is_mapping, items, mapping, text, texts
from deltaloop.schemas.structural import INT_OR_STRING

Reader: TypeAlias = Callable[[object], object]
# What begins no identifier.
_HIDDEN: Final = "\0"


def reader(schema: dict[str, object], *, is_root: bool = False) -> Reader:
    """Return what makes a value of a schema what expressions see.

    Args:
        schema: A structural schema.
        is_root: Whether it is that of a whole object.
    """
    if schema.get(INT_OR_STRING) is True:
        return _either
    if is_root:
        schema = with_identity(schema)
    kind = text(schema.get("type"))
    if kind == "object":
        additional = schema.get("additionalProperties")
        return _map_reader(additional) if is_mapping(additional) else _object_reader(schema)
    if kind == "array":
        return _list_reader(mapping(schema.get("items")), _list_of(schema))
    if kind == "string":
        return _TEXTS.get(text(schema.get("format")), _text)
    return _SCALARS.get(kind, _as_it_is)


def _failed(words: str) -> FailedValue:
    return FailedValue(EvaluationError(words))


def _as_it_is(value: object) -> object:
    return value


def _either(value: object) -> object:
    if type(value) in (str, int):
        return value
    return _failed("invalid data, expected XIntOrString value to be either a string or integer")


def _number(value: object) -> object:
    if type(value) is int:
        return float(value)
    return value if type(value) is float else _failed(f"invalid data, expected float, got {go_type(value)}")


def _integer(value: object) -> object:
    return value if type(value) is int else _failed(f"invalid data, expected int, got {go_type(value)}")


def _boolean(value: object) -> object:
    return value if type(value) is bool else _failed(f"invalid data, expected bool, got {go_type(value)}")


def _text(value: object) -> object:
    return value if type(value) is str else _failed(f"invalid data, expected string, got {go_type(value)}")


def _date(value: str) -> object:
    return parse_timestamp(f"{value}T00:00:00Z")


def _span(value: str) -> object:
    return Duration(duration_nanoseconds(value))


_BASE64: Final = "Invalid byte formatted string %s: illegal base64 data at input byte %d"


def _bytes(value: str) -> object:
    # The letters are those of the form for URLs, although the format's own are others.
    wrong = next((place for place, sign in enumerate(value) if sign in "+/"), None)
    try:
        return (
            base64.b64decode(value, altchars=b"-_", validate=True)
            if wrong is None
            else _failed(_BASE64 % (value, wrong))
        )
    except binascii.Error:
        return _failed(_BASE64 % (value, len(value) // 4 * 4))


def _formatted(name: str, read: Callable[[str], object]) -> Reader:
    def read_text(value: object) -> object:
        if not isinstance(value, str):
            return _text(value)
        try:
            return read(value)
        except EvaluationError:
            return _failed(f"Invalid {name} {value}")

    return read_text


_SCALARS: Final[dict[str, Reader]] = {"number": _number, "integer": _integer, "boolean": _boolean}
_TEXTS: Final[dict[str, Reader]] = {
    "date-time": _formatted("date-time formatted string", parse_timestamp),
    "date": _formatted("date formatted string", _date),
    "duration": _formatted("duration", _span),
    "byte": lambda value: _bytes(value) if isinstance(value, str) else _text(value),
}


def _list_of(schema: dict[str, object]) -> Callable[[list[object]], object]:
    kind = schema.get("x-kubernetes-list-type")
    if kind == "map":
        keys = tuple(escaped(key) or key for key in texts(schema.get("x-kubernetes-list-map-keys")))
        return lambda elements: KeyedList(elements, keys)
    return SetList if kind == "set" else _as_it_is


def _list_reader(item: dict[str, object], make: Callable[[list[object]], object]) -> Reader:
    read = _element_reader(item)

    def read_list(value: object) -> object:
        if not isinstance(value, list):
            return _failed("invalid data, expected an array for the provided schema with type=array")
        return make([read(inner) for inner in items(cast("object", value))])

    return read_list


def _map_reader(additional: dict[str, object]) -> Reader:
    read = _element_reader(additional)
    return lambda value: (
        {name: read(inner) for name, inner in value.items()} if is_mapping(value) else _failed(_NO_OBJECT)
    )


_NO_OBJECT: Final = "invalid data, expected a map for the provided schema with type=object"


def _element_reader(schema: dict[str, object]) -> Reader:
    """Return what reads a value in a list or a map; there, a null is one."""
    read = reader(schema, is_root=is_whole(schema))
    null = None if schema.get("nullable") is True else _failed("invalid data, got null for schema with nullable=false")
    return lambda value: null if value is None else read(value)


def _object_reader(schema: dict[str, object]) -> Reader:
    children = {name: mapping(child) for name, child in mapping(schema.get("properties")).items()}
    readers = {name: reader(child, is_root=is_whole(child)) for name, child in children.items()}
    names = {name: escaped(name) for name in children}

    def read_object(value: object) -> object:
        if not is_mapping(value):
            return _failed(_NO_OBJECT)
        seen: dict[str, object] = {}
        for name, inner in value.items():
            identifier = names.get(name)
            if inner is None or identifier is None:
                seen[_HIDDEN + name] = inner
                continue
            seen[identifier] = readers[name](inner)
            if name in RESERVED:
                seen[name] = seen[identifier]
        return seen

    return read_object
