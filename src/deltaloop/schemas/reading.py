"""Decode objects of built-in kinds like Go: find wrong types, drop empty fields, and normalize bytes and times.

Source: sigs.k8s.io/json, encoding/json; Go encoding/base64, time; apimachinery pkg/apis/meta/v1/time.go, micro_time.go.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from deltaloop._internal.root_error import DeltaloopError
from deltaloop.api.json_values import type_of, value_type
from deltaloop.schemas.field_errors import DecodingFault, DecodingFaultError
from deltaloop.schemas.go_numbers import days_of_month
from deltaloop.schemas.quantity import MalformedQuantityError, canonical_quantity
from deltaloop.schemas.types import TypeNode

_LAYOUT: Final = "2006-01-02T15:04:05Z07:00"
_MICRO_LAYOUT: Final = "2006-01-02T15:04:05.000000Z07:00"
_TIME: Final = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})(\.[0-9]+)?(Z|[-+][0-9]{2}:[0-9]{2})"
)
_DIGITS: Final = 7  # point and six digits
_BASE64: Final = re.compile(rb"[A-Za-z0-9+/]*={0,2}")
_LAST_YEAR: Final = 9999


class MalformedValueError(DeltaloopError, ValueError):
    """A value does not have the format of its field."""


def read_bytes(value: str) -> str:
    sent = re.sub(r"[\r\n]", "", value).encode()
    if len(sent) % 4 or not _BASE64.fullmatch(sent):
        raise MalformedValueError("illegal base64 data")
    return base64.b64encode(base64.b64decode(sent)).decode()


def read_time(value: str) -> str:
    """Convert an RFC 3339 time to whole seconds in UTC."""
    found = _TIME.fullmatch(value)
    seconds = _in_utc(found) if found is not None else ""
    if not seconds:
        raise MalformedValueError(f'parsing time as "{_LAYOUT}": it is not of this form')
    return f"{seconds}Z"


def read_micro_time(value: str) -> str:
    """Convert an RFC 3339 time with six decimal digits to UTC."""
    found = _TIME.fullmatch(value)
    seconds = _in_utc(found) if found is not None else ""
    if found is None or not seconds or len(found[7] or "") != _DIGITS:
        raise MalformedValueError(f'parsing time as "{_MICRO_LAYOUT}": it is not of this form')
    return f"{seconds}{found[7]}Z"


def _in_utc(found: re.Match[str]) -> str:
    """Return a time in UTC without its fraction, or "" if it does not exist."""
    year, month, day, hour, minute, second = map(int, found.groups()[:6])
    if not (
        year and 1 <= month <= 12 and 1 <= day <= days_of_month(year, month) and hour < 24 and max(minute, second) < 60
    ):
        return ""
    zone = found[8]
    if zone == "Z":
        return found[0][: found.end(6)]
    hours, minutes = int(zone[1:3]), int(zone[4:])
    if hours >= 24 or minutes >= 60:
        return ""
    offset = hours * 60 + minutes
    days, minute = divmod(hour * 60 + minute + (offset if zone[0] == "-" else -offset), 24 * 60)
    day += days
    if day < 1:
        month -= 1
    elif day > days_of_month(year, month):
        day -= days_of_month(year, month)
        month += 1
    year, month = (year - 1, 12) if month < 1 else (year + 1, 1) if month > 12 else (year, month)
    if not 1 <= year <= _LAST_YEAR:
        return ""
    day = day if day >= 1 else days_of_month(year, month)
    return f"{year:04}-{month:02}-{day:02}T{minute // 60:02}:{minute % 60:02}:{second:02}"


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
_UNCHANGED: Final = {("string", str), ("boolean", bool)}
"""Forms with types of values that are always right."""
_MAYBE_SCHEMAS: Final = ("additionalProperties", "additionalItems")


def read_object(node: TypeNode, fields: dict[str, object]) -> DecodingFault | None:
    """Decode an object of a built-in kind in place, except for kind and version, and return the first wrong value."""
    try:
        _Reading().struct(node, fields, "", but=("kind", "apiVersion"))
    except DecodingFaultError as error:
        return error.fault
    return None


def has_empty(node: TypeNode, value: object) -> bool:
    """Return whether a built-in value is or contains an empty list or map, which is lost when it is stored."""
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
    """Return the first value that cannot be decoded; ``whole`` allows 2.0 for 2, and replaces it in place."""
    try:
        if value is not None:
            _Reading(writes=False, whole=whole).value(node, value, node, "")
    except DecodingFaultError as error:
        return error.fault
    return None


# Defaults that an empty list replaces. Other defaults are also written instead of empty lists.
_NO_DEFAULT_IF_EMPTY: Final = frozenset({("autoscaling.v2.HPAScalingRules", "policies")})


@dataclass(frozen=True, slots=True)
class _Reading:
    writes: bool = True
    whole: bool = False

    def struct(self, node: TypeNode, fields: dict[str, Any], path: str, *, but: tuple[str, ...] = ()) -> None:
        types = node.fields
        for name in list(fields):
            value = fields[name]
            if name in but:
                continue
            if value is None:
                if self.writes:
                    del fields[name]
                continue
            if name not in types or (types[name].form, type_of(value)) in _UNCHANGED:
                continue
            below = types[name]
            read = self.value(below, value, node, f"{path}.{name}" if path else name)
            if read is not value and (self.writes or type_of(value) is float):
                fields[name] = read
            empty = (
                self.writes and not read and below.form in ("list", "object") and not below.name and read in ([], {})
            )
            if empty and (node.name, name) not in _NO_DEFAULT_IF_EMPTY:
                del fields[name]

    def value(self, node: TypeNode, value: Any, struct: TypeNode, path: str) -> object:
        """Return a value as Go writes it. Containers are changed in place."""
        match node.form:
            case "object":
                if type_of(value) is not dict:
                    raise _wrong(node, value, struct, path)
                if node.other is not None:
                    self._items(node.other, value, value.items(), struct, path)
                else:
                    self.struct(node, value, path)
                return value
            case "list":
                if type_of(value) is not list:
                    raise _wrong(node, value, struct, path)
                if node.items is not None:
                    items: list[object] = value
                    self._items(node.items, items, enumerate(items), struct, path)
                return value
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
        held: Any,
        found: Iterable[tuple[str | int, object]],
        struct: TypeNode,
        path: str,
    ) -> None:
        for place, item in found:
            if (node.form, type(item)) in _UNCHANGED:
                continue
            if item is not None:
                read = self.value(node, item, struct, path)
                if read is not item and self.writes:
                    held[place] = read
            elif self.writes:
                # Go cannot omit an item, so a null becomes a zero value.
                zero: object = dict[str, object]() if node.name and node.form == "object" else _ZEROS.get(node.form)
                if zero is not None:
                    held[place] = zero

    def _schema(self, node: TypeNode, value: object, struct: TypeNode, path: str) -> None:
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
        if form not in _READ:
            return found
        try:
            return _READ[form](cast("str", found))
        except MalformedValueError as error:
            raise _wrong(node, value, struct, path, str(error)) from None


def _check_quantity(node: TypeNode, value: object, struct: TypeNode, path: str) -> None:
    try:
        canonical_quantity(str(value) if value_type(value) in ("string", "integer", "number") else "")
    except MalformedQuantityError as error:
        raise _wrong(node, value, struct, path, str(error)) from None


def _wrong(node: TypeNode, value: object, struct: TypeNode, path: str, why: str = "") -> DecodingFaultError:
    found = value_type(value)
    wants_number = found in ("integer", "number") and node.form in ("int32", "int64", "intstr")
    number = cast("float", value) if wants_number else None
    return DecodingFaultError(DecodingFault(path, struct.name, node, found, number=number, why=why))
