r"""Cuts a byte stream into lines, however the bytes arrive.

A watch stream is one JSON object per line. The network hands over slices of any size: several lines at once, or one
line of 20 MB in a thousand pieces. The framer searches each byte once (``bytes.find``) and copies each byte of a line
that spans slices twice, whatever the number of slices. A line is bounded: a server that never ends one must not fill
the memory. How long the largest object is that a server may store is the server's affair, so the bound is generous.

What the lines of a stream are does not depend on where the slices fall: for every way to cut ``data``, the lines fed
out, and then ``finish()``, are ``data.split(b"\n")``.
"""

from __future__ import annotations

from typing import Final, final

LONGEST_LINE: Final = 64 * 1024 * 1024


class LineTooLongError(Exception):
    """A line is longer than it may be."""


@final
class LineFramer:
    """Collects bytes and gives out complete lines, without their line feed."""

    __slots__ = ("_longest", "_partial", "_slice", "_start")

    def __init__(self, *, longest: int = LONGEST_LINE) -> None:
        """Begin with nothing; ``longest`` is the most bytes that a line may have before its end is there."""
        self._longest = longest
        self._partial = bytearray()  # of the line that the slice goes on with
        self._slice = b""
        self._start = 0  # of what was not taken from the slice

    @property
    def pending(self) -> int:
        """Bytes of the line that is not complete yet."""
        last = self._slice.rfind(b"\n", self._start)
        return len(self._partial) + len(self._slice) - self._start if last < 0 else len(self._slice) - last - 1

    def push(self, chunk: bytes) -> None:
        """Take the next slice of the stream; ``take`` gives the lines that it completes."""
        self._slice = self._slice[self._start :] + chunk if self._start < len(self._slice) else chunk
        self._start = 0

    def take(self) -> bytes | None:
        """Return the next complete line; None if there is none, and then more has to be pushed.

        A line is cut out when it is asked for: 50 lines of 5 KB at once would push everything else out of the
        processor's cache.
        """
        found = self.find()
        return None if found is None else found[0][found[1] : found[2]]

    def find(self) -> tuple[bytes, int, int] | None:
        """Do what ``take`` does without copying: return bytes, and from where to where in them the line goes.

        Raises:
            LineTooLongError: If the line that is coming is too long already.
        """
        start = self._start
        end = self._slice.find(b"\n", start)
        if end < 0:
            self._partial += self._slice[start:]
            self._slice, self._start = b"", 0
            if len(self._partial) > self._longest:
                raise LineTooLongError(f"a line has more than {self._longest} bytes")
            return None
        self._start = end + 1
        if not self._partial:
            return self._slice, start, end
        self._partial += self._slice[start:end]
        line = bytes(self._partial)
        # A new one: clearing keeps the memory of the largest line ever seen.
        self._partial = bytearray()
        return line, 0, len(line)

    def feed(self, chunk: bytes) -> list[bytes]:
        """Take the next slice of the stream and return all lines that it completes, in order."""
        self.push(chunk)
        return list(iter(self.take, None))

    def finish(self) -> bytes:
        """Return what is left at the end of the stream: empty if the last line was complete."""
        rest = bytes(self._partial) + self._slice[self._start :]
        self._partial, self._slice, self._start = bytearray(), b"", 0
        return rest
