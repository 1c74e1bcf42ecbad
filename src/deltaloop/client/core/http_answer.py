"""Reads one HTTP/1.1 answer from the bytes of a connection, in slices of any size, and believes only what is exact.

| what begins it                     | what its body is                                                       |
| ---------------------------------- | ---------------------------------------------------------------------- |
| HEAD, 204, 304, CONNECT (success)  | empty                                                                  |
| ``Transfer-Encoding: chunked``     | chunks, up to the empty one and its trailers, which are dropped        |
| ``Content-Length``                 | so many bytes                                                          |
| neither                            | all that comes until the connection is closed                          |

Interim answers (1xx) are skipped. Whatever two readers could take for two things is refused, since one of them may be
a proxy on the way: both ways to say the length, two lengths, a length or a chunk that is no plain number, an encoding
beside ``chunked``, lines that end in a bare line feed, folded lines, names with blanks. What comes after the end of an
answer belongs to no request: the connection is of no more use then.

Sources: RFC 9112, sections 2.2, 4, 5, 6 and 7; RFC 9110, section 15.2.
"""

from __future__ import annotations

import re
from enum import Enum, auto
from functools import cache, lru_cache
from typing import Final, final

MOST_HEAD: Final = 64 * 1024
"""Most bytes of a status line with its headers, and of trailers. Go's client takes 1 MiB, aiohttp 8 190 a line."""

_MOST_INTERIM: Final = 16
_MOST_CHUNK_LINE: Final = 4096
_KNOWN_LINE: Final = 128
_STATUS_LINE: Final = cache(lambda: re.compile(rb"HTTP/1\.([01]) ([1-9][0-9][0-9])(?: [^\x00-\x08\x0a-\x1f\x7f]*)?"))
_FIELD: Final = cache(lambda: re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([^\x00-\x08\x0a-\x1f\x7f]*)"))
_LENGTH: Final = cache(lambda: re.compile(r"[0-9]{1,18}"))
_CHUNK: Final = cache(lambda: re.compile(rb"([0-9A-Fa-f]{1,15})(?:[ \t]*;[^\x00-\x08\x0a-\x1f\x7f]*)?"))
_BODYLESS: Final = frozenset({204, 304})


class MalformedAnswerError(Exception):
    """What came is no HTTP answer, or could be taken for two; the message says why, without data."""


class _At(Enum):
    """What comes next."""

    HEAD = auto()
    LENGTH = auto()
    CHUNK = auto()
    CHUNK_DATA = auto()
    CHUNK_END = auto()
    TRAILER = auto()
    CLOSE = auto()
    END = auto()


@final
class AnswerReader:
    """One answer on its way in.

    Attributes:
        status: HTTP status code; 0 until the head is there.
        headers: Names in lower case, with their values, in order.
        pieces: What has come of the body and was not taken; whoever takes it clears the list.
        waiting: How many bytes these are.
        keeps_alive: Whether the connection can serve another request once the answer is complete.
    """

    __slots__ = (
        "_at",
        "_buffer",
        "_connects",
        "_interim",
        "_left",
        "_trailers",
        "_without_body",
        "headers",
        "keeps_alive",
        "pieces",
        "status",
        "waiting",
    )

    def __init__(self, method: str) -> None:
        """Begin an answer.

        Args:
            method: What was asked; HEAD has no body, and neither has a CONNECT that succeeds.
        """
        self.status: int = 0
        self.headers: tuple[tuple[str, str], ...] = ()
        self.pieces: list[bytes] = []
        self.waiting: int = 0
        self.keeps_alive: bool = True
        self._without_body = method == "HEAD"
        self._connects = method == "CONNECT"
        self._at = _At.HEAD
        self._buffer = b""
        self._left = 0
        self._interim = 0
        self._trailers = 0

    @property
    def complete(self) -> bool:
        """Whether all of it has come."""
        return self._at is _At.END

    def get(self, name: str) -> str:
        """Return the first value of a header, or the empty text."""
        for known, value in self.headers:
            if known == name:
                return value
        return ""

    def feed(self, data: bytes) -> None:
        """Take the next slice.

        Raises:
            MalformedAnswerError: If it cannot be read; nothing more can be taken then.
        """
        if self._buffer:
            data = self._buffer + data
            self._buffer = b""
        start, end = 0, len(data)
        while start < end:
            at = self._at
            if at is _At.LENGTH or at is _At.CHUNK_DATA:
                start = self._take(data, start)
            elif at is _At.HEAD:
                start = self._take_head(data, start)
            elif at is _At.CLOSE:
                self._add(data[start:])
                return
            elif at is _At.END:
                self.keeps_alive = False  # nobody asked for what comes now
                return
            else:
                start = self._take_line(data, start)
            if start < 0:
                return

    def end(self) -> bool:
        """The connection was closed; return whether the answer is complete with that."""
        self.keeps_alive = False
        if self._at is _At.CLOSE:
            self._at = _At.END
        return self.complete

    # -- head

    def _take_head(self, data: bytes, start: int) -> int:
        found = data.find(b"\r\n\r\n", start)
        if found < 0 or found - start > MOST_HEAD:
            if len(data) - start > MOST_HEAD:
                raise MalformedAnswerError(f"its headers have more than {MOST_HEAD} bytes")
            self._refuse_what_is_no_http(data, start)
            self._buffer = data[start:]
            return -1
        lines = data[start:found].split(b"\r\n")
        begins = _STATUS_LINE().fullmatch(lines[0])
        if begins is None:
            raise MalformedAnswerError("it does not begin with a status line of HTTP/1")
        status = int(begins[2])
        self.headers = tuple([_known_field(line) if len(line) <= _KNOWN_LINE else _field(line) for line in lines[1:]])
        if status < 200:
            self._interim += 1
            if status == 101 or self._interim > _MOST_INTERIM:
                raise MalformedAnswerError("it has too many interim answers, or changes the protocol")
            self.headers = ()
            return found + 4
        self.status = status
        self._begin_body(status, is_old=begins[1] == b"0")
        return found + 4

    def _refuse_what_is_no_http(self, data: bytes, start: int) -> None:
        """Refuse at once what cannot become a status line: who sends it may wait for us to speak its language."""
        beginning = data[start : start + 5]
        if not b"HTTP/".startswith(beginning):
            raise MalformedAnswerError("it does not begin with a status line of HTTP/1")

    def _begin_body(self, status: int, *, is_old: bool) -> None:
        length, encoding, connection = None, None, ""
        for name, value in self.headers:
            if name == "content-length":
                if length is not None or _LENGTH().fullmatch(value) is None:
                    raise MalformedAnswerError("its Content-Length is given twice, or is no number")
                length = int(value)
            elif name == "transfer-encoding":
                if encoding is not None or value.lower() != "chunked" or is_old:
                    raise MalformedAnswerError("its Transfer-Encoding is not `chunked` alone")
                encoding = value
            elif name == "connection":
                connection = f"{connection},{value.lower()}"
        if encoding is not None and length is not None:
            raise MalformedAnswerError("it has both a Content-Length and a Transfer-Encoding")
        wishes = {wish.strip() for wish in connection.split(",")} if connection else frozenset[str]()
        self.keeps_alive = "close" not in wishes and (not is_old or "keep-alive" in wishes)
        if self._connects and status < 300:
            self.keeps_alive = True  # it is a tunnel now, whatever is said of the connection
            self._at = _At.END
        elif self._without_body or status in _BODYLESS:
            self._at = _At.END
        elif encoding is not None:
            self._at = _At.CHUNK
        elif length is None:
            self._at = _At.CLOSE
        else:
            self._left = length
            self._at = _At.LENGTH if length else _At.END

    # -- body

    def _add(self, piece: bytes) -> None:
        self.pieces.append(piece)
        self.waiting += len(piece)

    def _take(self, data: bytes, start: int) -> int:
        """Take what there is of a body of known length, or of a chunk."""
        end = start + self._left
        piece = data[start:end]
        self._add(piece)
        self._left -= len(piece)
        if not self._left:
            self._at = _At.END if self._at is _At.LENGTH else _At.CHUNK_END
        return start + len(piece)

    def _take_line(self, data: bytes, start: int) -> int:
        """Take a line between the chunks, or after them."""
        found = data.find(b"\r\n", start)
        if found < 0:
            if len(data) - start > _MOST_CHUNK_LINE:
                raise MalformedAnswerError("a line between its chunks is too long")
            self._buffer = data[start:]
            return -1
        line = data[start:found]
        if self._at is _At.CHUNK:
            size = _CHUNK().fullmatch(line)
            if size is None:
                raise MalformedAnswerError("a chunk begins with what is no length")
            self._left = int(size[1], 16)
            self._at = _At.CHUNK_DATA if self._left else _At.TRAILER
        elif self._at is _At.CHUNK_END:
            if line:
                raise MalformedAnswerError("a chunk is longer than it says")
            self._at = _At.CHUNK
        elif line:
            _field(line)
            self._trailers += len(line)
            if self._trailers > MOST_HEAD:
                raise MalformedAnswerError(f"its trailers have more than {MOST_HEAD} bytes")
        else:
            self._at = _At.END
        return found + 2


@lru_cache(maxsize=512)
def _known_field(line: bytes) -> tuple[str, str]:
    """Read a short line; most lines of an answer's headers are those of the answer before."""
    return _field(line)


def _field(line: bytes) -> tuple[str, str]:
    found = _FIELD().fullmatch(line)
    if found is None:
        raise MalformedAnswerError("a line of its headers is no name with a value")
    name, value = found.groups()
    return name.decode("ascii").lower(), value.rstrip(b" \t").decode("utf-8", "surrogateescape")
