"""A value as expressions see it: texts with a format are instants, spans or bytes, and names are identifiers.

What expressions cannot name stays in an object, so that two objects are only equal if they are equal there, too: it is
kept under a name that is no identifier. A null in an object is as if it were not there.

Source: apiserver pkg/cel/common/valuesunstructured.go.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Final, TypeAlias, cast

from deltaloop.apiserver.core.crds.rules.declarations import is_whole, with_identity
from deltaloop.apiserver.core.crds.rules.names import RESERVED, escaped
from deltaloop.cel import Duration
from deltaloop.cel.faults import EvaluationError
from deltaloop.cel.libraries.instants import parse_timestamp
from deltaloop.schemas.formats import duration_nanoseconds
from deltaloop.schemas.json_values import is_mapping, mapping, text
from deltaloop.schemas.structural import INT_OR_STRING, OPEN

Reader: TypeAlias = Callable[[object], object]
# What begins no identifier.
_HIDDEN: Final = "\0"


def reader(schema: dict[str, object], *, is_root: bool = False) -> Reader | None:
    """Return what makes a value of a schema what expressions see; None if that is the value itself.

    Args:
        schema: A structural schema.
        is_root: Whether it is that of a whole object.
    """
    if schema.get(INT_OR_STRING) is True:
        return None
    if is_root:
        schema = with_identity(schema)
    kind = text(schema.get("type"))
    if kind == "object":
        additional = schema.get("additionalProperties")
        return _map_reader(additional) if is_mapping(additional) else _object_reader(schema, is_root=is_root)
    if kind == "array":
        return _list_reader(mapping(schema.get("items")))
    if kind == "number":
        return _number
    return _TEXTS.get(text(schema.get("format"))) if kind == "string" else None


def _number(value: object) -> object:
    return float(value) if type(value) is int else value


def _instant(value: object) -> object:
    return parse_timestamp(cast("str", value))


def _date(value: object) -> object:
    return parse_timestamp(f"{value}T00:00:00Z")


def _span(value: object) -> object:
    return Duration(duration_nanoseconds(cast("str", value)))


def _bytes(value: object) -> object:
    # The letters of the form for URLs, although the format's own are others.
    encoded = cast("str", value)
    if "+" in encoded or "/" in encoded:
        raise ValueError(encoded[:0])
    return base64.b64decode(encoded, altchars=b"-_", validate=True)


_TEXTS: Final[dict[str, Reader]] = {"date-time": _instant, "date": _date, "duration": _span, "byte": _bytes}


def _list_reader(item: dict[str, object]) -> Reader | None:
    read = reader(item, is_root=is_whole(item))
    if read is None:
        return None
    return lambda value: [read_value(read, inner) for inner in cast("list[object]", value)]


def _map_reader(additional: dict[str, object]) -> Reader | None:
    read = reader(additional, is_root=is_whole(additional))
    if read is None:
        return None
    return lambda value: {name: read_value(read, inner) for name, inner in cast("dict[str, object]", value).items()}


def read_value(read: Reader, value: object) -> object:
    """Return what expressions see of a value; a null is one."""
    if value is None:
        return None
    try:
        return read(value)
    except (EvaluationError, TypeError, ValueError, AttributeError):
        return value  # it broke its schema before there was one, or before the schema said so


def _object_reader(schema: dict[str, object], *, is_root: bool) -> Reader | None:
    children = {name: mapping(child) for name, child in mapping(schema.get("properties")).items()}
    readers = {name: reader(child, is_root=is_whole(child)) for name, child in children.items()}
    names = {name: escaped(name) for name in children}
    is_plain = all(read is None for read in readers.values()) and all(name == names[name] for name in names)
    may_hide = is_root or schema.get(OPEN) is True or any(child.get("nullable") is True for child in children.values())
    if is_plain and not may_hide:
        return None

    def read_object(value: object) -> object:
        seen: dict[str, object] = {}
        for name, inner in cast("dict[str, object]", value).items():
            identifier = names.get(name)
            if inner is None or identifier is None:
                seen[_HIDDEN + name] = inner
                continue
            read = readers[name]
            seen[identifier] = inner if read is None else read_value(read, inner)
            if name in RESERVED:
                seen[name] = seen[identifier]
        return seen

    return read_object
