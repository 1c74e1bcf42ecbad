"""Find the objects of a large conversion review without decoding it.

A decoder in C blocks the program until it ends, and needs many times the memory of the body. The scan enforces the
limits for each object before any object is decoded.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from typing import Final, Self, final

import msgspec

from deltaloop.webhooks.core.admission_review import InvalidReviewError

MOST_OBJECT_BYTES: Final = 3 * 1024 * 1024
"""Largest object in bytes. API servers do not accept larger requests, and etcd's limit is half of this."""
MOST_VALUES: Final = 100_000
"""Most values per object, because memory depends more on their number than on the bytes."""
MOST_CONTAINERS: Final = 20_000
"""Most lists and objects per object, because each costs as much as ten other values."""
MOST_DEPTH: Final = 136
_MOST_ENVELOPE: Final = 64 * 1024
_CHEAP, _COSTLY = 16 * 1024, 64 * 1024
_CHEAP_VALUES: Final = 4096
# A string without escapes is one token. Other strings only match their quotation mark.
_TOKEN: Final = re.compile(rb'"[^"\\]*"|["{}\[\]]')
_WINDOW: Final = 256 * 1024
_TOKENS: Final = 2048
_REQUEST, _OBJECTS = b'"request"', b'"objects"'
_QUOTE, _OPENING = 0x22, (0x7B, 0x5B)
_BRACE: Final = 0x7B


@final
class ReviewTooLargeError(Exception):
    """A review exceeds a limit."""


@final
class SplitReview(msgspec.Struct, frozen=True):
    """Review without its objects, and the start and end of each object in the body."""

    envelope: bytes
    spans: list[tuple[int, int]]


@final
class ValueCount(msgspec.Struct):
    """Upper bound for the number of values, and of lists and objects, in a part of a body."""

    values: int = 0
    containers: int = 0

    def add(self, body: bytes | bytearray, begin: int, end: int) -> Self:
        containers = body.count(b"{", begin, end) + body.count(b"[", begin, end)
        self.containers += containers
        self.values += containers + body.count(b",", begin, end)
        return self

    def check(self, what: str, *, objects: int) -> None:
        if self.values > objects * MOST_VALUES:
            raise ReviewTooLargeError(f"{what} must have at most {objects * MOST_VALUES} values")
        if self.containers > objects * MOST_CONTAINERS:
            raise ReviewTooLargeError(f"{what} must have at most {objects * MOST_CONTAINERS} lists and objects")


def is_costly(content: bytes | bytearray) -> bool:
    """Return whether decoding and encoding JSON takes more than a few milliseconds."""
    size = len(content)
    return size > _CHEAP and (size > _COSTLY or ValueCount().add(content, 0, size).values > _CHEAP_VALUES)


def split_review(
    body: bytes | bytearray, *, max_objects: int, most_object_bytes: int = MOST_OBJECT_BYTES
) -> Generator[None, None, SplitReview]:
    """Find the objects of a review in steps of about a millisecond."""
    splitter = _Splitter(body, max_objects, most_object_bytes)
    while splitter.scan():
        yield
    return splitter.result()


class _Splitter:
    def __init__(self, body: bytes | bytearray, max_objects: int, most_object_bytes: int) -> None:
        self._body = body
        self._most_objects = max_objects
        self._most_object_bytes = most_object_bytes
        self._at = 0
        self._depth = 0
        self._string = -1  # where the current string begins
        self._last = (0, 0)  # the last string, with its quotes
        self._in_request = False
        self._list: tuple[int, int] = (-1, -1)
        self._object = -1
        self._gap = 0  # where the part between two objects begins
        self._spans: list[tuple[int, int]] = []

    def scan(self) -> bool:
        body, size = self._body, len(self._body)
        for _ in range(_TOKENS):
            if self._string >= 0:
                self._scan_string()
                continue
            until = min(self._at + _WINDOW, size)
            found = _TOKEN.search(body, self._at, until)
            if found is None:
                self._at = until
                return until != size
            at, self._at = found.span()
            mark = body[at]
            if mark != _QUOTE:
                if mark in _OPENING:
                    self._open(at, mark)
                else:
                    self._close(at)
            elif self._at - at == 1:
                self._string = at
            elif self._depth < 3:  # it may be a field name of the envelope
                self._last = at, self._at
        return True

    def result(self) -> SplitReview:
        if self._depth or self._string >= 0:
            raise InvalidReviewError("the body is not a ConversionReview: it ends too early")
        begin, end = self._list
        envelope = bytes(self._body) if begin < 0 else b"".join((self._body[:begin], b"[]", self._body[end:]))
        if len(envelope) > _MOST_ENVELOPE:
            raise ReviewTooLargeError(
                f"a ConversionReview without its objects must have at most {_MOST_ENVELOPE} bytes"
            )
        return SplitReview(envelope, self._spans)

    def _scan_string(self) -> None:
        """Scan to the next quotation mark, which ends the string unless it is escaped."""
        end = self._body.find(b'"', self._at)
        if end < 0:
            raise InvalidReviewError("the body is not a ConversionReview: it ends too early")
        before = self._body[self._at : end]
        self._at = end + 1
        self._check_object(end)
        if (len(before) - len(before.rstrip(b"\\"))) % 2 == 0:
            self._last, self._string = (self._string, end + 1), -1

    def _open(self, at: int, mark: int) -> None:
        self._depth = depth = self._depth + 1
        if depth > 4:
            if depth > MOST_DEPTH + 3:
                raise ReviewTooLargeError(f"an object must have at most {MOST_DEPTH} levels")
        elif depth == 2:
            self._in_request = mark == _BRACE and self._key(at) == _REQUEST
        elif depth == 3 and self._in_request and mark != _BRACE and self._key(at) == _OBJECTS:
            if self._list[0] >= 0:
                raise InvalidReviewError("the body is not a ConversionReview: it has two lists of objects")
            self._list, self._gap = (at, -1), at + 1
        elif depth == 4 and self._list[0] >= 0 and self._list[1] < 0:
            self._check_gap(at, b"," if self._spans else b"")
            if mark != _BRACE:
                raise InvalidReviewError("the body is not a ConversionReview: an item of objects is not an object")
            self._object = at

    def _close(self, at: int) -> None:
        self._depth -= 1
        if self._depth < 0:
            raise InvalidReviewError("the body is not a ConversionReview: it is not JSON")
        if self._depth == 3 and self._object >= 0:
            self._check_object(at)
            ValueCount().add(self._body, self._object, at).check("an object", objects=1)
            self._spans.append((self._object, at + 1))
            self._object, self._gap = -1, at + 1
            if len(self._spans) > self._most_objects:
                raise ReviewTooLargeError(f"a ConversionReview must have at most {self._most_objects} objects")
        elif self._depth == 2 and self._list[0] >= 0 and self._list[1] < 0:
            self._check_gap(at, b"")
            self._list = (self._list[0], at + 1)

    def _check_object(self, at: int) -> None:
        if self._object >= 0 and at - self._object > self._most_object_bytes:
            raise ReviewTooLargeError(f"an object must have at most {self._most_object_bytes} bytes")

    def _check_gap(self, at: int, expected: bytes) -> None:
        if self._body[self._gap : at].strip() != expected:
            raise InvalidReviewError("the body is not a ConversionReview: an item of objects is not an object")

    def _key(self, at: int) -> bytes:
        """Return the name of the field whose value begins here, or nothing for other values."""
        begin, end = self._last
        return bytes(self._body[begin:end]) if self._body[end:at].strip() == b":" else b""
