"""Reads a container's log."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import final

from deltaloop.client.core.framing import LONGEST_LINE, LineFramer, LineTooLongError
from deltaloop.client.errors import ResponseTooLargeError


@final
class LogStream:
    """A log as it comes: iterating gives lines without their line feed, ``chunks`` bytes as they arrive.

    Use one of both. A log is bytes, in whatever encoding the program writes. A last line without a line feed is a line.
    Cancelling a read loses nothing: the next read goes on.
    """

    def __init__(self, chunks: AsyncIterator[bytes], *, path: str = "", max_line_bytes: int = LONGEST_LINE) -> None:
        """Read ``chunks``; ``path`` is named in errors. A line may have so many bytes."""
        self._chunks = chunks
        self._path = path
        self._max_line_bytes = max_line_bytes
        self._framer = LineFramer(longest=max_line_bytes)
        self._ended = False

    @property
    def chunks(self) -> AsyncIterator[bytes]:
        """The log in slices of any size."""
        return self._chunks

    def __aiter__(self) -> LogStream:
        return self

    async def __anext__(self) -> bytes:
        while (line := self._line()) is None:
            if self._ended:
                raise StopAsyncIteration
            chunk = await anext(self._chunks, None)
            if chunk is not None:
                self._framer.push(chunk)
                continue
            self._ended = True
            if tail := self._framer.finish():
                return tail
        return line

    def _line(self) -> bytes | None:
        try:
            return self._framer.take()
        except LineTooLongError:
            self._framer, self._ended = LineFramer(), True
            why = f"a line has more than {self._max_line_bytes} bytes; read its chunks instead"
            raise ResponseTooLargeError(f"GET {self._path}: {why}", method="GET", path=self._path) from None
