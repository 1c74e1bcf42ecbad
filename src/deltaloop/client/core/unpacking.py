"""Decompress response bodies in pieces and within limits.

A response is rejected when it exceeds its limit, or when its compression ratio is implausible for data.

Source: RFC 1952; Apache's mod_deflate, for the bound of the ratio (``DeflateInflateRatioLimit``, 200).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, final

if TYPE_CHECKING:
    import zlib

PIECE: Final = 1024 * 1024
MOST_RATIO: Final = 200
_RATIO_COUNTS_FROM: Final = 64 * 1024 * 1024
_MOST_MEMBERS: Final = 16
_PLAIN: Final = frozenset({"", "identity"})
_PACKED: Final = frozenset({"gzip", "x-gzip"})


class UnpackingError(Exception):
    """A response cannot be decompressed. The message contains no data."""


class TooLargeError(UnpackingError):
    """A response exceeds its limit."""


def _member() -> zlib._Decompress:
    import zlib

    return zlib.decompressobj(16 + zlib.MAX_WBITS)


@final
class Unpacker:
    __slots__ = ("_left", "_limit", "_members", "_packed", "_stream", "_unpacked")

    def __init__(self, encoding: str, *, limit: int | None) -> None:
        """Start a response with a maximum size in bytes, or None for streams."""
        encoding = encoding.strip().lower()
        if encoding not in _PLAIN and encoding not in _PACKED:
            raise UnpackingError("the response has an unexpected encoding")
        self._stream = None if encoding in _PLAIN else _member()
        self._limit = limit
        self._packed = 0
        self._unpacked = 0
        self._members = 1
        self._left = b""

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Decompress the next chunk in pieces of at most 1 MiB; raises TooLargeError or UnpackingError."""
        self._packed += len(chunk)
        if self._stream is None:
            self._count(len(chunk))
            if chunk:
                yield chunk
            return
        import zlib

        data = chunk
        while data:
            stream = self._next_member() if self._stream.eof else self._stream
            try:
                piece = stream.decompress(data, PIECE)
            except zlib.error as error:
                raise UnpackingError(f"cannot decompress the response: {error}") from None
            data = stream.unused_data if stream.eof else stream.unconsumed_tail
            self._count(len(piece))
            if piece:
                yield piece

    def finish(self) -> None:
        """Check the end of the response, or raise UnpackingError if the data is incomplete."""
        if self._stream is not None and self._packed and not self._stream.eof:
            raise UnpackingError("the compressed response is incomplete")

    def _next_member(self) -> zlib._Decompress:
        # Each member copies the data that follows it, and servers send only one member.
        self._members += 1
        if self._members > _MOST_MEMBERS:
            raise UnpackingError(f"the response has more than {_MOST_MEMBERS} compressed parts")
        self._stream = _member()
        return self._stream

    def _count(self, size: int) -> None:
        self._unpacked += size
        if self._limit is not None and self._unpacked > self._limit:
            raise TooLargeError(f"the response has more than {self._limit} bytes")
        if self._unpacked > _RATIO_COUNTS_FROM and self._unpacked > MOST_RATIO * self._packed:
            raise TooLargeError(f"the response decompresses to more than {MOST_RATIO} times its size")
