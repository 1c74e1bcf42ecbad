"""Decoding of protobuf scalars and of types with special JSON.

The value of a type with a carrier is the last field of the carrier that is set.

Source: the ``MarshalJSON`` and ``Unmarshal`` of apimachinery's ``Time``, ``MicroTime``, ``Quantity``, ``IntOrString``
and ``RawExtension``, of apiextensions' ``JSONSchemaPropsOr...``.
"""

from __future__ import annotations

import base64
import math
import re
import struct
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

import msgspec

from deltaloop.api.json_values import integer, text
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
from deltaloop.schemas.types import Form, TypeNode

Sent: TypeAlias = Mapping[str, object]

WIRE_TYPES: Final[Mapping[str, int]] = {
    "string": LENGTH, "bytes": LENGTH, "boolean": VARINT, "int32": VARINT, "int64": VARINT, "number": FIXED64,
}  # fmt: skip
NUMBERS: Final = frozenset({"boolean", "int32", "int64"})
ZEROS: Final[Mapping[str, object]] = {"string": "", "bytes": "", "boolean": False, "int32": 0, "int64": 0, "number": 0}
"""Values of map entries without a value, by form."""


def _message(name: str, **fields: Form) -> TypeNode:
    nodes = {field: TypeNode(form=form) for field, form in fields.items()}
    return TypeNode(form="object", name=name, fields=nodes, numbers=dict(enumerate(nodes.items(), 1)))


MESSAGES: Final[Mapping[str, TypeNode]] = {
    "time": _message("time", seconds="int64", nanos="int32"),
    "micro_time": _message("microtime", seconds="int64", nanos="int32"),
    "quantity": _message("quantity", string="string"),
    "intstr": _message("intorstring", type="int64", intVal="int32", strVal="string"),
    "any": _message("json", raw="string"),
}

_NO_TIME: Final = -62_135_596_800  # the first second of year 1, Go's zero time
_LARGEST_PLAIN_FLOAT: Final = 1e21  # Go writes larger floats with an exponent
_QUANTITY: Final = re.compile(
    r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?", re.ASCII
)


def check_wire_type(found: int, expected: int, field: str) -> None:
    """Raise MalformedMessageError if a field has the wrong wire type."""
    if found != expected:
        raise MalformedMessageError(f"proto: wrong wireType = {found} for field {field[:1].upper()}{field[1:]}")


def read_number(kind: str, value: int) -> int | bool:
    """Convert a varint to a boolean, ``int32`` or ``int64``."""
    if kind == "boolean":
        return value != 0
    return signed(value, 32 if kind == "int32" else 64)


def read_scalar(data: bytes, kind: str, name: str, sent: WireField) -> object:
    """Return a scalar; invalid UTF-8 becomes replacement characters, like in Go's JSON.

    Raises MalformedMessageError.
    """
    _, wire_type, value, (begin, end) = sent
    check_wire_type(wire_type, WIRE_TYPES[kind], name)
    if kind == "string":
        return data[begin:end].decode(errors="replace")
    if kind == "bytes":
        return base64.b64encode(data[begin:end]).decode()
    if kind != "number":
        return read_number(kind, value)
    (real,) = struct.unpack_from("<d", data, begin)
    if not math.isfinite(real):
        raise MalformedMessageError("json: unsupported value: a number that is not finite")
    return int(real) if real.is_integer() and abs(real) < _LARGEST_PLAIN_FLOAT else real


def from_message(node: TypeNode, carrier: TypeNode, sent: dict[str, object]) -> object:
    """Return the JSON of a special type or of a type with a carrier, or raise MalformedMessageError."""
    if node.carrier is None:
        return _SPECIAL[node.form](sent)
    if not carrier.numbers:
        return {}
    return list(sent.values())[-1] if sent else [] if node.form == "list" else None


def _time(sent: Sent) -> str | None:
    seconds = integer(sent.get("seconds", 0))
    if not sent or seconds == _NO_TIME:
        return None
    return _shown(format_time, seconds)


def _micro_time(sent: Sent) -> str | None:
    carried, microseconds = divmod(math.trunc(integer(sent.get("nanos", 0)) / 1000), 1_000_000)
    seconds = integer(sent.get("seconds", 0)) + carried
    if not sent or (seconds, microseconds) == (_NO_TIME, 0):
        return None
    return _shown(format_micro_time, seconds, microseconds)


def _shown(form: Callable[..., str], seconds: int, microseconds: int = 0) -> str:
    try:
        return form(from_epoch(seconds).replace(microsecond=microseconds))
    except (ValueError, OverflowError, OSError):
        raise MalformedMessageError("a time is outside of the years 1 to 9999") from None


def _quantity(sent: Sent) -> str:
    amount = text(sent.get("string", "0"))
    if not _QUANTITY.fullmatch(amount):
        expected = "^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$"
        raise MalformedMessageError(f"quantities must match the regular expression '{expected}'")
    return amount


def _int_or_string(sent: Sent) -> object:
    kind = sent.get("type", 0)
    if kind not in (0, 1):
        raise MalformedMessageError("impossible IntOrString.Type")
    return sent.get("strVal", "") if kind else sent.get("intVal", 0)


def _json(sent: Sent) -> object:
    raw = text(sent.get("raw"))
    if not raw:
        return None
    try:
        return decode_json(raw)
    except TooDeepError:
        raise MalformedMessageError("a field that holds JSON is nested too deeply") from None
    except msgspec.MsgspecError:
        raise MalformedMessageError("a field that holds JSON holds none") from None


_SPECIAL: Final[Mapping[str, Callable[[Sent], object]]] = {
    "time": _time, "micro_time": _micro_time, "quantity": _quantity, "intstr": _int_or_string, "any": _json,
}  # fmt: skip
