"""Kubernetes' protobuf around messages that are encoded already: lists, events, envelopes.

The messages themselves are made by client-go's own types (the Go peer, asked for ``protobuf``), because only they know
all fields. Source: apimachinery ``runtime/generated.proto``, ``meta/v1/generated.proto``, and the framer of
``serializer/protobuf``: each event of a watch is a length of four bytes, big endian, and a bare ``WatchEvent`` whose
object is in an envelope of its own.
"""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterable, Iterator
from typing import Final

CONTENT_TYPE: Final = "application/vnd.kubernetes.protobuf"
_PREFIX: Final = b"k8s\x00"


def varint(number: int) -> bytes:
    """Return a number as protobuf writes it."""
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def field(number: int, data: bytes) -> bytes:
    """Return a field of bytes, a string or a message."""
    return varint(number << 3 | 2) + varint(len(data)) + data


def envelope_head(api_version: str, kind: str, length: int) -> bytes:
    """Return what stands before a message of so many bytes."""
    type_meta = field(1, api_version.encode()) + field(2, kind.encode())
    return _PREFIX + field(1, type_meta) + varint(2 << 3 | 2) + varint(length)


def list_metadata(resource_version: str, continuation: str, remaining: int) -> bytes:
    """Return a list's ``metadata`` as its first field."""
    body = field(1, b"") + field(2, resource_version.encode()) + field(3, continuation.encode())
    return field(1, body + (varint(4 << 3) + varint(remaining) if continuation else b""))


def event(kind: str, message: bytes, *, event_type: str) -> bytes:
    """Return one event of a watch with its length before it."""
    wrapped = envelope_head("v1", kind, len(message)) + message
    body = field(1, event_type.encode()) + field(2, field(1, wrapped))
    return len(body).to_bytes(4, "big") + body


def convert(converter: str, objects: Iterable[bytes]) -> Iterator[bytes]:
    """Return objects as messages, made by the Go peer of their JSON, one line each.

    Raises:
        RuntimeError: It failed.
    """
    with subprocess.Popen([converter, "protobuf"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        sink, source = process.stdin, process.stdout
        assert sink is not None
        assert source is not None

        def write() -> None:
            for each in objects:
                sink.write(each + b"\n")
            sink.close()

        writing = threading.Thread(target=write)
        writing.start()
        while head := source.read(4):
            yield source.read(int.from_bytes(head, "big"))
        writing.join()
    if process.returncode:
        raise RuntimeError(f"the converter to protobuf ended with code {process.returncode}")
