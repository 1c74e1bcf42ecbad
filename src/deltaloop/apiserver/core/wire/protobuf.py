r"""Decoding of Kubernetes' protobuf bodies into the JSON that a Go client would have sent.

A body is ``k8s\0`` and a ``runtime.Unknown`` with API version, kind and the message. Go's struct tags determine the
fields that are omitted:

    a pointer, a list, a map     omitted when not sent (null if Go has no ``omitempty``)
    a scalar                     omitted when empty, sent or not, because Go's protobuf always sends it
    a struct                     never omitted: an empty struct is ``{}`` with the fields that are always written

Parts of a message that is sent twice are merged, and unknown fields are skipped. The number of values and the depth are
limited, because two bytes can represent an object with ten fields.

Source: apimachinery pkg/runtime/serializer/protobuf; apiserver pkg/endpoints/handlers (``transformDecodeError``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias, cast, final

from deltaloop.apiserver.core import status_errors
from deltaloop.apiserver.core.wire.protobuf_values import (
    MESSAGES,
    NUMBERS,
    WIRE_TYPES,
    ZEROS,
    check_wire_type,
    from_message,
    read_number,
    read_scalar,
)
from deltaloop.apiserver.core.wire.protobuf_wire import (
    LENGTH,
    MalformedMessageError,
    Span,
    WireField,
    read_fields,
    read_varints,
)
from deltaloop.schemas.types import Completion, TypeNode

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
    """Decode a complete body, or raise BadRequestError in the real server's words, without the data.

    ``api_version`` and ``kind`` apply to an object without them; ``max_values`` limits fields and structs.
    """
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
