"""Wire format of Protocol Buffers: numbered fields without names and types.

    0 varint    an int            1 fixed64, 5 fixed32    a span of 8 or 4 bytes
    2 length    a span            3 group                 a span up to its end, 4

A span is the position of a value in the data, so no data is copied.

Source: protobuf.dev, "Encoding"; the generated ``Unmarshal`` and ``skipGenerated`` of k8s.io/api.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeAlias

from deltaloop.api.errors import InvalidArgumentError

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
