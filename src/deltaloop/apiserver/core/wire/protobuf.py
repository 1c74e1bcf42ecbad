r"""Decoding of Kubernetes' protobuf bodies into the JSON that a Go client would have sent.

    0 varint    an int            1 fixed64, 5 fixed32    a span of 8 or 4 bytes
    2 length    a span            3 group                 a span up to its end, 4

A span is the position of a value in the data, so no data is copied.

The value of a type with a carrier is the last field of the carrier that is set.

A body is ``k8s\0`` and a ``runtime.Unknown`` with API version, kind and the message. Go's struct tags determine the
fields that are omitted:

    a pointer, a list, a map     omitted when not sent (null if Go has no ``omitempty``)
    a scalar                     omitted when empty, sent or not, because Go's protobuf always sends it
    a struct                     never omitted: an empty struct is ``{}`` with the fields that are always written

Parts of a message that is sent twice are merged, and unknown fields are skipped. The number of values and the depth are
limited, because two bytes can represent an object with ten fields.

Source: protobuf.dev, "Encoding"; the generated ``Unmarshal`` and ``skipGenerated`` of k8s.io/api; the ``MarshalJSON``
and ``Unmarshal`` of apimachinery's ``Time``, ``MicroTime``, ``Quantity``, ``IntOrString`` and ``RawExtension``, of
apiextensions' ``JSONSchemaPropsOr...``; apimachinery pkg/runtime/serializer/protobuf; apiserver
pkg/endpoints/handlers (``transformDecodeError``).
"""

from __future__ import annotations

import base64
import math
import re
import struct
from collections.abc import Callable, Iterator, Mapping
from typing import Final, TypeAlias, cast, final

import msgspec

from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.json_values import integer, text
from deltaloop.api.times import format_micro_time, format_time, from_epoch
from deltaloop.apiserver.core import status_errors
from deltaloop.schemas.nesting import TooDeepError, decode_json
from deltaloop.schemas.types import Completion, Form, TypeNode

VARINT: Final = 0
FIXED64: Final = 1
LENGTH: Final = 2
GROUP: Final = 3
END_GROUP: Final = 4
FIXED32: Final = 5

_64_BITS: Final = (1 << 64) - 1

Span: TypeAlias = tuple[int, int]
WireField: TypeAlias = tuple[int, int, int, Span]
"""Number, wire type, value of a varint, and span of other values."""


class MalformedMessageError(InvalidArgumentError):
    """Malformed message. The error does not contain the data."""


def signed(value: int, bits: int) -> int:
    """Convert the low bits of a varint to a signed number, like Go."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def read_varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    """Return a 64-bit varint and its end; raises MalformedMessageError if it is truncated or longer than 10 bytes."""
    value = shift = 0
    while shift < 64:
        if at >= end:
            raise MalformedMessageError("unexpected EOF")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & _64_BITS, at
        shift += 7
    raise MalformedMessageError("proto: integer overflow")


def read_varints(data: bytes, span: Span) -> Iterator[int]:
    at, end = span
    while at < end:
        value, at = read_varint(data, at, end)
        yield value


def read_fields(data: bytes, span: Span, *, message: str) -> Iterator[WireField]:
    """Yield the fields of a message in wire order, or raise MalformedMessageError during iteration."""
    at, end = span
    while at < end:
        tag, at = read_varint(data, at, end)
        number, wire_type = signed(tag >> 3, 32), tag & 7
        if wire_type == END_GROUP:
            raise MalformedMessageError(f"proto: {message}: wiretype end group for non-group")
        if number <= 0:
            raise MalformedMessageError(f"proto: {message}: illegal tag {number} (wire type {tag})")
        if wire_type == VARINT:
            value, at = read_varint(data, at, end)
            yield number, wire_type, value, (at, at)
        elif wire_type == GROUP:
            begin, at = at, _after_group(data, at, end)
            yield number, wire_type, 0, (begin, at)
        else:
            begin, at = _span(data, at, end, wire_type)
            yield number, wire_type, 0, (begin, at)


def _span(data: bytes, at: int, end: int, wire_type: int) -> Span:
    if wire_type == LENGTH:
        length, at = read_varint(data, at, end)
        if length >> 63:
            raise MalformedMessageError("proto: negative length found during unmarshaling")
    elif wire_type in (FIXED64, FIXED32):
        length = 8 if wire_type == FIXED64 else 4
    else:
        raise MalformedMessageError(f"proto: illegal wireType {wire_type}")
    if length > end - at:
        raise MalformedMessageError("unexpected EOF")
    return at, at + length


def _after_group(data: bytes, at: int, end: int) -> int:
    depth = 1
    while depth:
        tag, at = read_varint(data, at, end)
        wire_type = tag & 7
        if wire_type == VARINT:
            _, at = read_varint(data, at, end)
        elif wire_type == GROUP:
            depth += 1
        elif wire_type == END_GROUP:
            depth -= 1
        else:
            _, at = _span(data, at, end, wire_type)
    return at


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
    """Return a scalar; invalid UTF-8 becomes replacement characters, like in Go's JSON."""
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
        raise MalformedMessageError("a JSON field is nested too deeply") from None
    except msgspec.MsgspecError:
        raise MalformedMessageError("a JSON field must contain valid JSON") from None


_SPECIAL: Final[Mapping[str, Callable[[Sent], object]]] = {
    "time": _time, "micro_time": _micro_time, "quantity": _quantity, "intstr": _int_or_string, "any": _json,
}  # fmt: skip


CONTENT_TYPE: Final = "application/vnd.kubernetes.protobuf"
MAX_DEPTH: Final = 100
MAX_VALUES: Final = 1_000_000
_PREFIX: Final = b"k8s\x00"

TypeOf: TypeAlias = Callable[[str, str], TypeNode | None]
"""Function that returns the type of an API version and kind, or None."""
_UNMARKED: Final = Completion()


def decode_body(
    body: bytes, type_of: TypeOf, *, api_version: str, kind: str, max_values: int = MAX_VALUES
) -> dict[str, object]:
    """Decode a complete body, or raise BadRequestError in the real server's words, without the data."""
    try:
        own_version, own_kind, spans = _read_envelope(body)
    except MalformedMessageError as error:
        raise status_errors.unrecognized(kind, str(error)) from None
    shown = (own_version or api_version)[:253], (own_kind or kind)[:63]
    try:
        node = type_of(*shown)
        if node is None:
            raise MalformedMessageError(f'no kind "{shown[1]}" is registered for version "{shown[0]}"')
        fields = _Reading(body, max_values).message(node, spans, depth=1)
    except MalformedMessageError as error:
        version = shown[0].rpartition("/")[2]
        raise status_errors.unreadable(kind, str(error), said=shown[1], version=version) from None
    return {"kind": shown[1], "apiVersion": shown[0], **fields}


def _read_envelope(body: bytes) -> tuple[str, str, list[Span]]:
    """Return API version, kind and the span of the message."""
    if not body:
        raise MalformedMessageError("empty data")
    if not body.startswith(_PREFIX):
        expected = " ".join(str(byte) for byte in _PREFIX)
        text = f"provided data does not appear to be a protobuf message, expected prefix [{expected}]"
        raise MalformedMessageError(text)
    if len(body) == len(_PREFIX):
        raise MalformedMessageError("empty body")
    names = {1: "", 2: ""}
    raw: Span = (len(body), len(body))
    for sent in read_fields(body, (len(_PREFIX), len(body)), message="Unknown"):
        number, wire_type, _, span = sent
        if number == 1:
            check_wire_type(wire_type, LENGTH, "typeMeta")
            for inner in read_fields(body, span, message="TypeMeta"):
                if inner[0] in names:
                    name = "apiVersion" if inner[0] == 1 else "kind"
                    names[inner[0]] = cast("str", read_scalar(body, "string", name, inner))
        elif number == 2:
            check_wire_type(wire_type, LENGTH, "raw")
            raw = span
    return names[1], names[2], [raw]


@final
class _Reading:
    """State of decoding one body: fields are collected and then written in Go's order."""

    def __init__(self, data: bytes, max_values: int) -> None:
        self._data = data
        self._max_values = max_values
        self._left = max_values

    def message(self, node: TypeNode, spans: list[Span], *, depth: int) -> dict[str, object]:
        """Return a message as JSON. Without spans, it is the zero message."""
        if depth > MAX_DEPTH:
            raise MalformedMessageError(f"messages are nested more than {MAX_DEPTH} deep")
        self._spend()
        numbers, shown = node.numbers, node.name.rpartition(".")[2]
        gathered: dict[int, object] = {}
        for span in spans:
            for sent in read_fields(self._data, span, message=shown):
                self._spend()
                field = numbers.get(sent[0])
                if field is not None:
                    self._gather(gathered, field[0], field[1], sent, depth)
        marks = node.completion or _UNMARKED
        written: dict[str, object] = {}
        for number, (name, below) in numbers.items():
            value = gathered.get(number)
            if not name:
                written.update(self.message(below, cast("list[Span]", value or []), depth=depth + 1))
            elif value is None or (value == [] and below.form == "list"):
                if name in marks.zeros:
                    zero = marks.zeros[name]
                    written[name] = self._value(below, [], depth) if zero == {} else zero
            else:
                if below.form not in WIRE_TYPES and below.form != "list" and below.other is None:
                    value = self._value(below, cast("list[Span]", value), depth)
                if value or name not in marks.omitted:
                    written[name] = value
        return written

    def _value(self, node: TypeNode, spans: list[Span], depth: int) -> object:
        carrier = node.carrier or MESSAGES.get(node.form)
        if carrier is None:
            return self.message(node, spans, depth=depth + 1)
        return from_message(node, carrier, self.message(carrier, spans, depth=depth + 1))

    def _spend(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise MalformedMessageError(f"the body has more than {self._max_values} values")

    def _gather(self, gathered: dict[int, object], name: str, node: TypeNode, sent: WireField, depth: int) -> None:
        """Collect a sent field: the value of a scalar, the spans of a struct, or the items of a list or map."""
        number, wire_type, _, span = sent
        if name and node.form in WIRE_TYPES:
            gathered[number] = read_scalar(self._data, node.form, name, sent)
        elif name and node.form == "list" and node.items is not None:
            items = cast("list[object]", gathered.setdefault(number, []))
            if node.items.form in NUMBERS and wire_type == LENGTH:
                for packed in read_varints(self._data, span):
                    self._spend()
                    items.append(read_number(node.items.form, packed))
            else:
                items.append(self._item(node.items, name, sent, depth))
        else:
            check_wire_type(wire_type, LENGTH, name or node.name)
            if name and node.other is not None:
                key, value = self._entry(node.other, name, span, depth)
                cast("dict[str, object]", gathered.setdefault(number, {}))[key] = value
            else:
                cast("list[Span]", gathered.setdefault(number, [])).append(span)

    def _item(self, node: TypeNode, name: str, sent: WireField, depth: int) -> object:
        if node.form in WIRE_TYPES:
            return read_scalar(self._data, node.form, name, sent)
        check_wire_type(sent[1], LENGTH, name)
        return self._value(node, [sent[3]], depth)

    def _entry(self, node: TypeNode, name: str, span: Span, depth: int) -> tuple[str, object]:
        """Return key and value of a map entry; missing parts are empty."""
        key, sent_value = "", None
        for sent in read_fields(self._data, span, message=name):
            self._spend()
            if sent[0] == 1:
                key = cast("str", read_scalar(self._data, "string", name, sent))
            elif sent[0] == 2:
                sent_value = sent
        if sent_value is not None:
            return key, self._item(node, name, sent_value, depth)
        return key, ZEROS[node.form] if node.form in ZEROS else self._value(node, [], depth)
