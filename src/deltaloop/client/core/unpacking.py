"""Unpacks an answer bit by bit, within bounds: a few megabytes from a server must not fill this process's memory.

An answer is refused as soon as it is over its limit, or when it unpacks to far more than data does. Only what was asked
for is unpacked (gzip). What comes in one slice of the network can be a thousand times as much unpacked, so it is given
out in pieces.

Source: RFC 1952; Apache's mod_deflate, for the bound of the ratio (``DeflateInflateRatioLimit``, 200).
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Final, final

PIECE: Final = 1024 * 1024
MOST_RATIO: Final = 200
_RATIO_COUNTS_FROM: Final = 64 * 1024 * 1024
_MOST_MEMBERS: Final = 16
_GZIP: Final = 16 + zlib.MAX_WBITS
_PLAIN: Final = frozenset({"", "identity"})
_PACKED: Final = frozenset({"gzip", "x-gzip"})


class UnpackingError(Exception):
    """An answer cannot be unpacked; the message says why, without data."""


class TooLargeError(UnpackingError):
    """An answer is over its limit."""


@final
class Unpacker:
    """The body of one answer, on its way in."""

    __slots__ = ("_left", "_limit", "_members", "_packed", "_stream", "_unpacked")

    def __init__(self, encoding: str, *, limit: int | None) -> None:
        """Begin an answer.

        Args:
            encoding: Its ``Content-Encoding``.
            limit: Most bytes that it may have unpacked; None for a stream, which has no end.

        Raises:
            UnpackingError: If it is in an encoding that is not asked for here.
        """
        encoding = encoding.strip().lower()
        if encoding not in _PLAIN and encoding not in _PACKED:
            raise UnpackingError("the answer is packed in a way that was not asked for")
        self._stream = zlib.decompressobj(_GZIP) if encoding in _PACKED else None
        self._limit = limit
        self._packed = 0
        self._unpacked = 0
        self._members = 1
        self._left = b""

    @property
    def is_packed(self) -> bool:
        """Whether what comes is packed, so that a slice of it may become far more."""
        return self._stream is not None

    def count_plain(self, size: int) -> None:
        """Count bytes that came as they are, in place of ``feed``.

        Raises:
            TooLargeError: If the answer is over its limit.
        """
        self._packed += size
        self._count(size)

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Take the next slice, and give what it unpacks to in pieces of at most 1 MiB; go through all of them.

        Raises:
            TooLargeError: If the answer is over its limit.
            UnpackingError: If it cannot be unpacked.
        """
        self._packed += len(chunk)
        if self._stream is None:
            self._count(len(chunk))
            if chunk:
                yield chunk
            return
        data = chunk
        while data:
            stream = self._next_member() if self._stream.eof else self._stream
            try:
                piece = stream.decompress(data, PIECE)
            except zlib.error as error:
                raise UnpackingError(f"the answer cannot be unpacked: {error}") from None
            data = stream.unused_data if stream.eof else stream.unconsumed_tail
            self._count(len(piece))
            if piece:
                yield piece

    def finish(self) -> None:
        """End the answer.

        Raises:
            UnpackingError: If the end is missing.
        """
        if self._stream is not None and self._packed and not self._stream.eof:
            raise UnpackingError("the answer ended before all of it could be unpacked")

    def _next_member(self) -> zlib._Decompress:
        # Each costs a copy of what follows it; no server sends more than one.
        self._members += 1
        if self._members > _MOST_MEMBERS:
            raise UnpackingError(f"the answer consists of more than {_MOST_MEMBERS} packed parts")
        self._stream = zlib.decompressobj(_GZIP)
        return self._stream

    def _count(self, size: int) -> None:
        self._unpacked += size
        if self._limit is not None and self._unpacked > self._limit:
            raise TooLargeError(f"the answer has more than {self._limit} bytes")
        if self._unpacked > _RATIO_COUNTS_FROM and self._unpacked > MOST_RATIO * self._packed:
            raise TooLargeError(f"the answer unpacks to more than {MOST_RATIO} times its size")
