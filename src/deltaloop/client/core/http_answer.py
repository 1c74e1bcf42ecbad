"""Read HTTP responses with llhttp and enforce the limits that llhttp leaves to its user.

| beginning of the response            | body                                                             |
| ------------------------------------ | ---------------------------------------------------------------- |
| HEAD, 204, 304, CONNECT (success)    | empty                                                            |
| ``Transfer-Encoding: chunked``       | chunks up to the empty chunk, without trailers                   |
| ``Content-Length``                   | that many bytes                                                  |
| neither                              | all bytes until the connection is closed                         |

This reader also rejects encodings other than ``chunked``, protocol changes, and endless heads, trailers and interim
responses. A connection cannot be kept if bytes follow the end of a response.

Sources: RFC 9112, sections 4, 5, 6 and 7; RFC 9110, section 15.2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, final

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

MOST_HEAD: Final = 64 * 1024
"""Maximum size in bytes of a head, of trailers, and of a line between chunks."""

_MOST_INTERIM: Final = 16
_ORDINARY: Final = frozenset(
    {
        b"Audit-Id",
        b"Cache-Control",
        b"Content-Length",
        b"Content-Type",
        b"Date",
        b"Server",
        b"X-Kubernetes-Pf-Flowschema-Uid",
        b"X-Kubernetes-Pf-Prioritylevel-Uid",
    }
)


class MalformedAnswerError(Exception):
    """The response is invalid or ambiguous HTTP. The message contains no data."""


@final
class AnswerReader:
    """Reader of the responses of one connection."""

    __slots__ = (
        "_expected",
        "_fault",
        "_idle",
        "_interim",
        "_method",
        "_parse",
        "_parser",
        "complete",
        "encoding",
        "headers",
        "is_special",
        "keeps_alive",
        "on_body",
        "on_message_begin",
        "pieces",
        "status",
        "warns",
    )

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.status: int = 0
        # llhttp calls these directly. An unexpected response raises an IndexError, which stops llhttp.
        self._expected: list[None] = []
        self.on_body: Callable[[bytes], None] = self.pieces.append
        self.on_message_begin: Callable[[], None] = self._expected.pop
        self.encoding: str = ""
        self.warns: bool = False
        self.is_special: bool = False
        self._interim, self._fault = 0, ""
        self._parser = HttpResponseParser(self)
        self._parse = self._parser.feed_data
        self.complete: bool = True
        self.keeps_alive: bool = True

    def begin(self, method: str) -> None:
        """Expect the response to a request. The previous response must be complete."""
        self._method = method
        self._expected.append(None)
        self.status = 0
        self.headers: list[tuple[bytes, bytes]] = []
        self.complete = False
        self._idle = 0
        if self.is_special:
            self.encoding, self.warns, self.is_special, self._interim = "", False, False, 0

    def feed(self, data: bytes | memoryview) -> None:
        """Read the next chunk, or raise MalformedAnswerError, after which the connection must be closed."""
        before = len(self.pieces) if self.pieces else 0
        try:
            self._parse(data)
        except HttpParserUpgrade:
            raise MalformedAnswerError("the response switches the protocol") from None
        except HttpParserError as error:
            if self.complete:
                self.keeps_alive = False
                return
            raise MalformedAnswerError(self._fault or _reason(error)) from None
        if self.complete or (len(self.pieces) > before if before else self.pieces):
            self._idle = 0
            return
        self._idle += len(data)
        if self._idle > MOST_HEAD:
            raise MalformedAnswerError(f"the head or the text between chunks has more than {MOST_HEAD} bytes")

    def end(self) -> bool:
        """Record that the connection was closed, and return whether the response is complete."""
        self.keeps_alive = False
        if self.status and not self.complete:
            self.complete = not any(
                name.lower() in (b"content-length", b"transfer-encoding") for name, _ in self.headers
            )
        return self.complete

    def taken(self) -> bytes:
        """Return and remove the received part of the body."""
        pieces = self.pieces
        body = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        pieces.clear()
        return body

    # -- callbacks of llhttp

    def on_header(self, name: bytes, value: bytes) -> None:
        """Record a header. Trailers are dropped."""
        if not self.status:
            self.headers.append((name, value))
            if name not in _ORDINARY:
                self.is_special = True

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if status < 200:
            self.is_special, self._interim = True, self._interim + 1
            if status < 100 or self._interim > _MOST_INTERIM:
                self._reject("it has too many interim responses, or an invalid status")
            self.headers.clear()
            self._expected.append(None)
            return
        if self.is_special:
            self._look_at_headers()
        elif status == 401:
            self.is_special = True
        self.status = status
        if self._method == "HEAD" or (self._method == "CONNECT" and status < 300):
            self.complete = True
            # llhttp does not know that the body is missing.
            self.keeps_alive = self._method == "CONNECT"

    def on_message_complete(self) -> None:
        if self.status and not self.complete:
            self.complete = True
            self.keeps_alive = self._parser.should_keep_alive()

    def _look_at_headers(self) -> None:
        chunked = False
        for name, value in self._lower_headers():
            if name == b"transfer-encoding":
                if chunked or value.strip().lower() != b"chunked" or self._parser.get_http_version() != "1.1":
                    self._reject("its Transfer-Encoding is not `chunked` alone")
                chunked = True
            elif name == b"content-encoding":
                encoding = value.strip().lower()
                self.encoding = "" if encoding == b"identity" else encoding.decode("latin-1")
            elif name == b"warning":
                self.warns = True

    def _lower_headers(self) -> Iterator[tuple[bytes, bytes]]:
        return ((name.lower(), value) for name, value in self.headers)

    def _reject(self, fault: str) -> None:
        self._fault = fault
        raise MalformedAnswerError(fault)


def _reason(error: HttpParserError) -> str:
    return str(error) or type(error).__name__
