r"""Split a byte stream into lines, of a bounded length, because a line without end would fill the memory.

The lines do not depend on the chunks: all lines, followed by ``finish()``, are ``data.split(b"\n")``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, final

LONGEST_LINE: Final = 64 * 1024 * 1024


class LineTooLongError(Exception):
    """A line exceeds the maximum length."""


@final
class LineFramer:
    """Framer of one stream. ``unread`` is False if no complete line can be left."""

    __slots__ = ("_longest", "_partial", "_size", "_slice", "_start", "unread")

    def __init__(self, *, longest: int = LONGEST_LINE) -> None:
        """Create a framer that limits incomplete lines to ``longest`` bytes."""
        self._longest = longest
        self._partial = bytearray()  # beginning of the line that continues in the chunk
        self._slice = b""
        self._size = 0  # of the chunk
        self._start = 0  # start of the unread part of the chunk
        self.unread: bool = False

    @property
    def pending(self) -> int:
        if not self.unread:
            return len(self._partial)
        last = self._slice.rfind(b"\n", self._start)
        return len(self._partial) + len(self._slice) - self._start if last < 0 else len(self._slice) - last - 1

    def push(self, chunk: bytes) -> None:
        """Add the next chunk of the stream. Read its lines with ``take``."""
        self._slice = self._slice[self._start :] + chunk if self._start < self._size else chunk
        self._start, self._size, self.unread = 0, len(self._slice), True

    def take(self) -> bytes | None:
        """Return the next complete line, or None if more data must be pushed.

        On demand, because 50 lines of 5 KB at once would evict other data from the processor's cache.
        """
        for data, start, end in self.lines():
            return data[start:end]
        return None

    def lines(self) -> Iterator[tuple[bytes, int, int]]:
        """Yield the next lines like ``take``, but without a copy; raises LineTooLongError."""
        data, start, size = self._slice, self._start, self._size
        try:
            while start < size and (end := data.find(b"\n", start)) >= 0:
                begin, start = start, end + 1
                if not self._partial:
                    yield data, begin, end
                    continue
                self._partial += data[begin:end]
                line = bytes(self._partial)
                # bytearray.clear() would keep the memory of the largest line.
                self._partial = bytearray()
                yield line, 0, len(line)
            if start < size:
                self._partial += data[start:]
                start = size
                if len(self._partial) > self._longest:
                    raise LineTooLongError(f"a line has more than {self._longest} bytes")
        finally:  # also if the caller stops
            if start < size:
                self._start = start
            else:
                self._slice, self._start, self._size, self.unread = b"", 0, 0, False

    def feed(self, chunk: bytes) -> list[bytes]:
        """Add the next chunk of the stream, and return all lines that it completes."""
        self.push(chunk)
        return list(iter(self.take, None))

    def finish(self) -> bytes:
        """Return the incomplete last line at the end of the stream, or empty bytes."""
        rest = bytes(self._partial) + self._slice[self._start :]
        self._partial, self._slice, self._start, self._size = bytearray(), b"", 0, 0
        self.unread = False
        return rest
