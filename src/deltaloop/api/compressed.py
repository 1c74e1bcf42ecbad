"""Bytes of an object in a smaller form, which whoever made it can read.

A ``Resource`` keeps its JSON as it is, or so. There is one reference to either in it, replaced in one step: a reader in
another thread sees the one or the other, and reads the same JSON from both.
"""

from __future__ import annotations

from typing import Protocol

import msgspec


class Compressor(Protocol):
    """Makes bytes smaller, and back; ``decompress`` may be called from any thread, from several at once."""

    def compress(self, raw: bytes) -> bytes | None:
        """Return the smaller form, or None if it would be no smaller. Called by one thread at a time."""
        ...

    def decompress(self, data: bytes) -> bytes:
        """Return the bytes.

        Raises:
            MalformedObjectError: If ``data`` is not what ``compress`` gave.
        """
        ...


class Compressed(msgspec.Struct, frozen=True, eq=False, gc=False):
    """Compressed bytes and who can read them."""

    data: bytes
    codec: Compressor

    def decompress(self) -> bytes:
        """Return the bytes as they were.

        Raises:
            MalformedObjectError: If they were damaged.
        """
        return self.codec.decompress(self.data)
