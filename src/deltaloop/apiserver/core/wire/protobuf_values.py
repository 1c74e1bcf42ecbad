"""Types whose JSON is not that of their fields, and scalars.

Each special type is a message like any other on the wire; a function makes its JSON of what the message holds.

Source: the ``MarshalJSON`` and ``Unmarshal`` of apimachinery's ``Time``, ``MicroTime``, ``Quantity``, ``IntOrString``
and ``RawExtension``, of apiextensions' ``JSONSchemaPropsOr...``.
"""

from __future__ import annotations

import base64
import math
import re
import struct
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

import msgspec

from deltaloop.api.times import format_micro_time, format_time, from_epoch
from deltaloop.apiserver.core.wire.protobuf_wire import (
    FIXED64,
    LENGTH,
    VARINT,
    MalformedMessageError,
    WireField,
    signed,
)
from deltaloop.schemas.nesting import TooDeepError, decode_json

Json: TypeAlias = Any
Sent: TypeAlias = dict[str, Json]
"""The fields of a special message; one that was not sent is not there."""

NUMBERS: Final = frozenset({"bool", "int32", "int64"})
EMPTY_SCALARS: Final[Mapping[str, Json]] = {
    "string": "",
    "bytes": None,  # Go's nil slice; a slice without bytes is ""
    "bool": False,
    "int32": 0,
    "int64": 0,
    "double": 0,
}
SPECIAL_MESSAGES: Final = """
time seconds=1?int64 nanos=2?int32
microtime seconds=1?int64 nanos=2?int32
quantity string=1?string
intorstring type=1int64 intVal=2!int32 strVal=3!string
json raw=1string
strings items=1*string
schemaorbool allows=1!bool schema=2?JSONSchemaProps
schemaorarray schema=1?JSONSchemaProps jSONSchemas=2*JSONSchemaProps
schemaorstrings schema=1?JSONSchemaProps property=2*string
"""

_WIRE_TYPES: Final = {"bool": VARINT, "int32": VARINT, "int64": VARINT, "double": FIXED64}
_NO_TIME: Final = -62_135_596_800  # the first second of the year 1: how Go says that there is none
_LARGEST_PLAIN_FLOAT: Final = 1e21  # Go writes larger ones with an exponent
_QUANTITY: Final = re.compile(
    r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?", re.ASCII
)


def check_wire_type(found: int, expected: int, field: str) -> None:
    """Check how a field was sent.

    Raises:
        MalformedMessageError: If otherwise than its type is.
    """
    if found != expected:
        raise MalformedMessageError(f"proto: wrong wireType = {found} for field {field[:1].upper()}{field[1:]}")


def read_number(kind: str, value: int) -> int | bool:
    """Read a varint as a ``bool``, an ``int32`` or an ``int64``."""
    if kind == "bool":
        return value != 0
    return signed(value, 32 if kind == "int32" else 64)


def read_scalar(data: bytes, kind: str, name: str, sent: WireField) -> Json:
    """Return one scalar. Bytes that are no UTF-8 become replacement characters, as in Go's JSON.

    Raises:
        MalformedMessageError: If it was sent as another type, or JSON does not have it.
    """
    _, wire_type, value, (begin, end) = sent
    check_wire_type(wire_type, _WIRE_TYPES.get(kind, LENGTH), name)
    if kind == "string":
        return data[begin:end].decode(errors="replace")
    if kind == "bytes":
        return base64.b64encode(data[begin:end]).decode()
    if kind != "double":
        return read_number(kind, value)
    (real,) = struct.unpack_from("<d", data, begin)
    if not math.isfinite(real):
        raise MalformedMessageError("json: unsupported value: a number that is not finite")
    return int(real) if real.is_integer() and abs(real) < _LARGEST_PLAIN_FLOAT else real


def _time(sent: Sent) -> str | None:
    seconds = sent.get("seconds", 0)
    if not sent or seconds == _NO_TIME:
        return None
    return format_time(_instant(seconds, 0))


def _micro_time(sent: Sent) -> str | None:
    carried, microseconds = divmod(math.trunc(sent.get("nanos", 0) / 1000), 1_000_000)
    seconds = sent.get("seconds", 0) + carried
    if not sent or (seconds, microseconds) == (_NO_TIME, 0):
        return None
    return format_micro_time(_instant(seconds, microseconds))


def _instant(seconds: int, microseconds: int) -> Any:
    try:
        return from_epoch(seconds).replace(microsecond=microseconds)
    except (ValueError, OverflowError, OSError):
        raise MalformedMessageError("a time is outside of the years 1 to 9999") from None


def _quantity(sent: Sent) -> str:
    text: str = sent.get("string", "0")
    if not _QUANTITY.fullmatch(text):
        expected = "^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$"
        raise MalformedMessageError(f"quantities must match the regular expression '{expected}'")
    return text


def _int_or_string(sent: Sent) -> int | str:
    kind = sent.get("type", 0)
    if kind not in (0, 1):
        raise MalformedMessageError("impossible IntOrString.Type")
    chosen: int | str = sent["strVal" if kind else "intVal"]
    return chosen


def _json(sent: Sent) -> Json:
    if "raw" not in sent:
        return None
    try:
        return decode_json(sent["raw"])
    except TooDeepError:
        raise MalformedMessageError("a field that holds JSON is nested too deeply") from None
    except msgspec.MsgspecError:
        raise MalformedMessageError("a field that holds JSON holds none") from None


def _strings(sent: Sent) -> list[str]:
    items: list[str] = sent.get("items", [])
    return items


def _schema_or_bool(sent: Sent) -> Json:
    return sent.get("schema", sent["allows"])


def _schema_or_array(sent: Sent) -> Json:
    return sent.get("jSONSchemas", sent.get("schema"))


def _schema_or_strings(sent: Sent) -> Json:
    return sent.get("property", sent.get("schema"))


SPECIAL: Final[Mapping[str, Callable[[Sent], Json]]] = {
    "time": _time,
    "microtime": _micro_time,
    "quantity": _quantity,
    "intorstring": _int_or_string,
    "json": _json,
    "strings": _strings,
    "schemaorbool": _schema_or_bool,
    "schemaorarray": _schema_or_array,
    "schemaorstrings": _schema_or_strings,
}
