"""Convert values for expressions: formatted strings become timestamps, durations or bytes, names become identifiers.

Fields without an identifier stay under hidden names, so that they affect equality. A value that does not have the type
of its schema causes an error when it is used.

Source: apiserver pkg/cel/common/valuesunstructured.go.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from typing import Final, TypeAlias, cast

from deltaloop.api.json_values import is_mapping, items, mapping, text, texts
from deltaloop.cel import Duration, Timestamp
from deltaloop.cel.errors import EvaluationError, FailedValue
from deltaloop.cel.libraries.instants import parse_timestamp
from deltaloop.cel.values import SECOND, KeyedList, SetList
from deltaloop.crds.rules.declarations import RESERVED, escaped, is_whole, with_identity
from deltaloop.schemas.formats import duration_nanoseconds, fits
from deltaloop.schemas.go_numbers import DATE_LAYOUT, LOCAL_LAYOUT, go_type, why_no_time
from deltaloop.schemas.structural import INT_OR_STRING
from deltaloop.schemas.work import charge

Reader: TypeAlias = Callable[[object], object]
_STEPS_OF_A_PART: Final = 2
# Identifiers cannot begin with this character.
_HIDDEN: Final = "\0"


def reader(schema: dict[str, object], *, is_root: bool = False) -> Reader:
    """Return a function that converts values of a schema for expressions. ``is_root`` means a whole object."""
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
    why = why_no_time(DATE_LAYOUT, value)
    return _failed(f"Invalid date formatted string {value}: {why}") if why else _instant(f"{value}T00:00:00", "")


_FOUR_HUNDRED_YEARS: Final = 146_097 * 86_400
# Go accepts an instant without a zone, an hour with one digit, and zone offsets up to 24 hours and 60 minutes.
_DATE_TIME: Final = re.compile(r"(?s)(.*?)(?:Z|([+-])([01][0-9]|2[0-4]):([0-5][0-9]|60))?")


def _date_time(value: str) -> object:
    if not value:
        return Timestamp(0)
    match = _DATE_TIME.fullmatch(value)
    assert match is not None  # the pattern matches every string
    local, sign, hours, minutes = match.groups()
    if not why_no_time(LOCAL_LAYOUT, local):
        return _instant(local, sign or "", int(hours or "0") * 3600 + int(minutes or "0") * 60)
    # Go reports the last layout that it tries, which has no zone.
    return _failed(f"Invalid date-time formatted string {value}: {why_no_time(LOCAL_LAYOUT, value)}")


def _instant(local: str, sign: str, seconds: int = 0) -> object:
    date, _, time = local.partition("T")
    if date.startswith("0000"):  # year 0 has 366 days like the year 400, but expressions cannot write it
        date, seconds_before = f"0400{date[4:]}", _FOUR_HUNDRED_YEARS
    else:
        seconds_before = 0
    instant = parse_timestamp(f"{date}T{'0' if time[1] == ':' else ''}{time}Z")
    ahead = -seconds if sign == "-" else seconds
    return Timestamp(instant.nanoseconds - (ahead + seconds_before) * SECOND, ahead)


def _span(value: str) -> object:
    if not fits("duration", value):
        return _failed(f"Invalid duration {value}: unable to parse {value} as duration")
    return Duration(duration_nanoseconds(value))


_BASE64: Final = "Invalid byte formatted string %s: illegal base64 data at input byte %d"


def _bytes(value: str) -> object:
    # The decoder expects the URL alphabet, although the format uses the standard alphabet.
    wrong = next((place for place, sign in enumerate(value) if sign in "+/"), None)
    try:
        return (
            base64.b64decode(value, altchars=b"-_", validate=True)
            if wrong is None
            else _failed(_BASE64 % (value, wrong))
        )
    except binascii.Error:
        return _failed(_BASE64 % (value, len(value) // 4 * 4))


def _formatted(read: Callable[[str], object]) -> Reader:
    return lambda value: read(value) if isinstance(value, str) else _text(value)


_SCALARS: Final[dict[str, Reader]] = {"number": _number, "integer": _integer, "boolean": _boolean}
_TEXTS: Final[dict[str, Reader]] = {
    "date-time": _formatted(_date_time),
    "date": _formatted(_date),
    "duration": _formatted(_span),
    "byte": _formatted(_bytes),
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
        charge(_STEPS_OF_A_PART * len(items(cast("object", value))))
        return make([read(inner) for inner in items(cast("object", value))])

    return read_list


def _map_reader(additional: dict[str, object]) -> Reader:
    read = _element_reader(additional)

    def read_map(value: object) -> object:
        if not is_mapping(value):
            return _failed(_NO_OBJECT)
        charge(_STEPS_OF_A_PART * len(value))
        return {name: read(inner) for name, inner in value.items()}

    return read_map


_NO_OBJECT: Final = "invalid data, expected a map for the provided schema with type=object"


def _element_reader(schema: dict[str, object]) -> Reader:
    """Return the reader of values in a list or a map, in which a null is a value."""
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
