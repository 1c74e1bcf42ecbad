"""Stream of a container's log."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import final

from deltaloop.client.core.framing import LONGEST_LINE, LineFramer, LineTooLongError
from deltaloop.client.errors import ResponseTooLargeError


@final
class LogStream:
    """Log stream that yields lines without their line feed, or chunks of bytes with ``chunks``.

    Use only one of both. Lines are bytes in the encoding of the program. The last line does not need a line feed.
    Canceling a read loses no data.
    """

    def __init__(self, chunks: AsyncIterator[bytes], *, path: str = "", max_line_bytes: int = LONGEST_LINE) -> None:
        """Create a stream of ``chunks``. ``path`` is used in error messages."""
        self._chunks = chunks
        self._path = path
        self._max_line_bytes = max_line_bytes
        self._framer = LineFramer(longest=max_line_bytes)
        self._ended = False

    @property
    def chunks(self) -> AsyncIterator[bytes]:
        """Log in chunks of any size."""
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
            why = f"a line has more than {self._max_line_bytes} bytes. Read chunks instead."
            raise ResponseTooLargeError(f"GET {self._path}: {why}", method="GET", path=self._path) from None
