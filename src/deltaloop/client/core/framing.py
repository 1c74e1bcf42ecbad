r"""Cuts a byte stream into lines, however the bytes arrive.

A watch stream is one JSON object per line. The network hands over slices of any size: several lines at once, or one
line of 20 MB in a thousand pieces. The framer searches each byte once (``bytes.find``) and copies each byte of a line
that spans slices twice, whatever the number of slices. There is no longest line: the largest object a server may store
is the server's affair.

What the lines of a stream are does not depend on where the slices fall: for every way to cut ``data``, the lines fed
out, and then ``finish()``, are ``data.split(b"\n")``.
"""

from __future__ import annotations

from typing import final


@final
class LineFramer:
    """Collects bytes and gives out complete lines, without their line feed."""

    __slots__ = ("_partial",)

    def __init__(self) -> None:
        """Begin with nothing."""
        self._partial = bytearray()

    @property
    def pending(self) -> int:
        """Bytes of the line that is not complete yet."""
        return len(self._partial)

    def feed(self, chunk: bytes) -> list[bytes]:
        """Take the next slice of the stream and return the lines that it completes, in order."""
        end = chunk.find(b"\n")
        if end < 0:
            self._partial += chunk
            return []
        lines: list[bytes] = []
        start = 0
        if self._partial:
            self._partial += chunk[:end]
            lines.append(bytes(self._partial))
            # A new one: clearing keeps the memory of the largest line ever seen.
            self._partial = bytearray()
            start = end + 1
            end = chunk.find(b"\n", start)
        while end >= 0:
            lines.append(chunk[start:end])
            start = end + 1
            end = chunk.find(b"\n", start)
        self._partial += chunk[start:]
        return lines

    def finish(self) -> bytes:
        """Return what is left at the end of the stream: empty if the last line was complete."""
        rest = bytes(self._partial)
        self._partial = bytearray()
        return rest
