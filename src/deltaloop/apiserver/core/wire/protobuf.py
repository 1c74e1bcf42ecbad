r"""Bodies in Kubernetes' protobuf, read as the JSON that a Go client would have sent.

A body is four bytes, ``k8s\0``, and a ``runtime.Unknown``: API version, kind, and the message as bytes. The message
is read by the table of fields, and what is left out follows from Go's struct tags alone:

    a pointer, a list, a map     left out when not sent (null where Go has no ``omitempty``)
    a scalar                     left out when empty, sent or not; Go's protobuf always sends it
    a struct                     never left out: the empty one is ``{}``, with what is always written in it

So ``{"status": {}}`` comes from a client that knows nothing of status, as it does in JSON. A message that is sent twice
is one message in two pieces; unknown fields are skipped.

A body is at most 3 MiB, but two bytes can stand for an object with ten fields: so the values made of one body are
counted, and messages nest to a bounded depth.

Source: apimachinery pkg/runtime/serializer/protobuf; apiserver pkg/endpoints/handlers (``transformDecodeError``).
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias, final

from deltaloop.apiserver.core import failures
from deltaloop.apiserver.core.wire.protobuf_table import Field, FieldTable
from deltaloop.apiserver.core.wire.protobuf_values import (
    EMPTY_SCALARS,
    NUMBERS,
    SPECIAL,
    check_wire_type,
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

CONTENT_TYPE: Final = "application/vnd.kubernetes.protobuf"
MAX_DEPTH: Final = 100
MAX_VALUES: Final = 1_000_000
_PREFIX: Final = b"k8s\x00"

Json: TypeAlias = Any


def decode_body(
    body: bytes, table: FieldTable, *, api_version: str, kind: str, max_values: int = MAX_VALUES
) -> dict[str, Json]:
    """Read a body.

    Args:
        body: All of it.
        table: The fields of all kinds.
        api_version: What the object is if it does not say so.
        kind: Likewise; messages of errors have it, too.
        max_values: How many fields and structs one body may stand for.

    Raises:
        BadRequestError: If it cannot be read; the message has the real server's words, and not the data.
    """
    try:
        own_version, own_kind, spans = _read_envelope(body)
    except MalformedMessageError as error:
        raise failures.unrecognized(kind, str(error)) from None
    shown = (own_version or api_version)[:253], (own_kind or kind)[:63]
    try:
        message_name = table.message_of(*shown)
        if message_name is None:
            raise MalformedMessageError(f'no kind "{shown[1]}" is registered for version "{shown[0]}"')
        fields = _Reading(body, table, max_values).message(message_name, spans, depth=1)
    except MalformedMessageError as error:
        version = shown[0].rpartition("/")[2]
        raise failures.unreadable(kind, str(error), said=shown[1], version=version) from None
    return {"kind": shown[1], "apiVersion": shown[0], **fields}


def _read_envelope(body: bytes) -> tuple[str, str, list[Span]]:
    """Return API version, kind, and where the message lies."""
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
                    names[inner[0]] = read_scalar(body, "string", "apiVersion" if inner[0] == 1 else "kind", inner)
        elif number == 2:
            check_wire_type(wire_type, LENGTH, "raw")
            raw = span
    return names[1], names[2], [raw]


@final
class _Reading:
    """One body while it is read: what was sent for each field is gathered, then written in Go's order."""

    def __init__(self, data: bytes, table: FieldTable, max_values: int) -> None:
        self._data = data
        self._messages = table.messages
        self._max_values = max_values
        self._left = max_values

    def message(self, name: str, spans: list[Span], *, depth: int) -> dict[str, Json]:
        """Return a message as JSON has it; without spans, the zero message."""
        if depth > MAX_DEPTH:
            raise MalformedMessageError(f"messages are nested more than {MAX_DEPTH} deep")
        self._spend()
        fields = self._messages[name]
        gathered: dict[int, Json] = {}
        for span in spans:
            for sent in read_fields(self._data, span, message=name):
                self._spend()
                field = fields.get(sent[0])
                if field is not None:
                    self._gather(gathered, field, sent, depth)
        written: dict[str, Json] = {}
        for number, field in fields.items():
            self._write(written, field, gathered.get(number), depth)
        return written

    def _struct(self, name: str, spans: list[Span], depth: int) -> Json:
        fields = self.message(name, spans, depth=depth + 1)
        special = SPECIAL.get(name)
        return fields if special is None else special(fields)

    def _spend(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise MalformedMessageError(f"the body has more than {self._max_values} values")

    def _gather(self, gathered: dict[int, Json], field: Field, sent: WireField, depth: int) -> None:
        """Keep what was sent: a scalar's value, a struct's spans, the items of a list or a map."""
        number, wire_type, _, span = sent
        if field.map:
            check_wire_type(wire_type, LENGTH, field.name)
            key, value = self._entry(field, span, depth)
            gathered.setdefault(number, {})[key] = value
        elif field.repeated and field.type in NUMBERS and wire_type == LENGTH:
            items = gathered.setdefault(number, [])
            for packed in read_varints(self._data, span):
                self._spend()
                items.append(read_number(field.type, packed))
        elif field.repeated:
            gathered.setdefault(number, []).append(self._item(field, sent, depth))
        elif field.type in EMPTY_SCALARS:
            gathered[number] = read_scalar(self._data, field.type, field.name, sent)
        else:
            check_wire_type(wire_type, LENGTH, field.name)
            gathered.setdefault(number, []).append(span)

    def _item(self, field: Field, sent: WireField, depth: int) -> Json:
        if field.type in EMPTY_SCALARS:
            return read_scalar(self._data, field.type, field.name, sent)
        check_wire_type(sent[1], LENGTH, field.name)
        return self._struct(field.type, [sent[3]], depth)

    def _entry(self, field: Field, span: Span, depth: int) -> tuple[str, Json]:
        """Return a key and a value; what was not sent of them is empty."""
        key, sent_value = "", None
        for sent in read_fields(self._data, span, message=field.name):
            self._spend()
            if sent[0] == 1:
                key = read_scalar(self._data, "string", field.name, sent)
            elif sent[0] == 2:
                sent_value = sent
        if sent_value is not None:
            return key, self._item(field, sent_value, depth)
        if field.type == "bytes":
            return key, ""
        return key, EMPTY_SCALARS[field.type] if field.type in EMPTY_SCALARS else self._struct(field.type, [], depth)

    def _write(self, written: dict[str, Json], field: Field, gathered: Json, depth: int) -> None:
        """Write a field as Go's JSON does, or leave it out."""
        if field.repeated or field.map:
            value, empty = gathered or None, not gathered
        elif field.type in EMPTY_SCALARS and not field.pointer:
            value = EMPTY_SCALARS[field.type] if gathered is None else gathered
            empty = not value
        elif field.pointer and gathered is None:
            value, empty = None, True
        elif field.type in EMPTY_SCALARS:
            value, empty = gathered, False
        else:
            value = self._struct(field.type, gathered or [], depth)
            if field.inline:
                written.update(value)
                return
            empty = field.omit_zero and not field.pointer and value == self._struct(field.type, [], depth)
        if field.always or not empty:
            written[field.name] = value
