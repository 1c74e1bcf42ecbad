"""Compressed JSON of an object; its reference is replaced atomically, so readers see one of both forms."""

from __future__ import annotations

from typing import Protocol

import msgspec


class Compressor(Protocol):
    """Compression codec. ``decompress`` must be thread-safe."""

    def compress(self, raw: bytes) -> bytes | None:
        """Return the compressed form, or None if it is not smaller. Called by one thread at a time."""
        ...

    def decompress(self, data: bytes) -> bytes:
        """Return the original bytes, or raise MalformedObjectError."""
        ...


class Compressed(msgspec.Struct, frozen=True, eq=False, gc=False):
    data: bytes
    codec: Compressor

    def decompress(self) -> bytes:
        """Return the original bytes, or raise MalformedObjectError."""
        return self.codec.decompress(self.data)
