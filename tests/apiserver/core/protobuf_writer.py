"""Writes protobuf by hand: what tests send, made without the table that reads it."""

from __future__ import annotations

import struct


def varint(value: int) -> bytes:
    value &= 2**64 - 1
    written = bytearray()
    while value > 0x7F:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*written, value))


def number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def double(field: int, value: float) -> bytes:
    return varint(field << 3 | 1) + struct.pack("<d", value)


def text(field: int, value: str) -> bytes:
    return message(field, value.encode())


def message(field: int, *parts: bytes) -> bytes:
    content = b"".join(parts)
    return varint(field << 3 | 2) + varint(len(content)) + content


def entry(field: int, key: str, value: bytes) -> bytes:
    """Write one entry of a map; ``value`` is a whole field 2."""
    return message(field, text(1, key), value)


def body(api_version: str, kind: str, *parts: bytes) -> bytes:
    """Write a body as client-go does: it sends the last two fields of the envelope, too, though empty."""
    type_meta = message(1, text(1, api_version), text(2, kind))
    return b"k8s\x00" + type_meta + message(2, *parts) + text(3, "") + text(4, "")


def named(name: str) -> bytes:
    """Write the metadata of an object as client-go does: with all its scalars, empty or not."""
    empty = b"".join(text(field, "") for field in (2, 3, 4, 5, 6))
    return message(1, text(1, name), empty, number(7, 0), message(8))
