"""Decode and encode JSON in several calls, because a single call blocks all other threads."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, Final, cast, final

import msgspec

from deltaloop.api.json_values import is_list, is_mapping, type_of

PART: Final = 8_000
_RUN: Final = 16_000
_MOST_LEVELS: Final = 1000
_DECODED_AT_ONCE: Final = 128 * 1024  # bytes
_UNIT: Final = 64  # characters
_COUNTED: Final = frozenset({dict, list, str})

_encode: Final = msgspec.json.Encoder(order="deterministic").encode
_decode: Final = msgspec.json.Decoder().decode

_W: Final = rb"[ \t\n\r]*+"
_TEXT: Final = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_SCALAR: Final = rb'(?:[^ \t\n\r"\[\]{},:]++|' + _TEXT + b")"


def _with_containers(value: bytes) -> bytes:
    """Return an expression for a value or a container of such values. Decoding checks the order of the tokens."""
    return rb"(?:" + value + rb"|[\[{](?:[ \t\n\r,:]++|" + value + rb")*+[\]}])"


_VALUE: Final = _with_containers(_with_containers(_with_containers(_SCALAR)))
_MEMBERS: Final = re.compile(b"(?:" + _W + _TEXT + _W + b":" + _W + _VALUE + _W + rb"(?:,|(?=\})))++", re.DOTALL)
_ITEMS: Final = re.compile(b"(?:" + _W + _VALUE + _W + rb"(?:,|(?=\])))++", re.DOTALL)
_INSIDE: Final = re.compile(rb'[^"\\]*+(?:\\(?:[^u]|u[0-9A-Fa-f]{4})[^"\\]*+)*+', re.DOTALL)
_REST_OF_CHARACTER: Final = re.compile(rb"[\x80-\xbf]*+(?:\\u[Dd][C-Fc-f][0-9A-Fa-f]{2})?+")
_BLANK: Final = re.compile(_W)
_BYTE: Final = re.compile(r"\(byte (\d+)\)")


def decode_in_parts(content: bytes | str) -> Any:
    """Decode JSON, members of a large object and items of a large list in groups."""
    if len(content) <= _DECODED_AT_ONCE:
        return _decode(content)
    parts = _Parts(content.encode() if isinstance(content, str) else content)
    try:
        if parts.read():
            return parts.value
    except (msgspec.MsgspecError, UnicodeError):
        pass
    parts.fail()
    return _decode(content)


@final
class _Parts:
    """Decoder of a large object or list, which groups its values as a regular expression finds them."""

    def __init__(self, content: bytes) -> None:
        self.value: Any = None
        self._content = content
        self._at = 0
        self._open: list[Any] = []
        self._before = b""
        """What precedes the position in the current container: nothing, a value, or a value and a comma."""

    def read(self) -> bool:
        """Decode, and return False if the text is malformed or has no container."""
        while self._run() or self._step():
            if not self._open:
                return _BLANK.fullmatch(self._content, self._at) is not None
        return False

    def fail(self) -> None:
        """Raise the error at the current position, without decoding what precedes it."""
        start = b"".join(b'{"":' if type(each) is dict else b"[" for each in self._open)
        if self._open and type(self._open[-1]) is dict:
            start = start[:-3] + (b'"":' if self._before else b"")
        start += self._before
        try:
            _decode(start + self._content[self._at :])
        except msgspec.DecodeError as error:
            moved = self._at - len(start)
            text = _BYTE.sub(lambda found: f"(byte {int(found[1]) + moved})", str(error))
            raise msgspec.DecodeError(text) from None

    def _run(self) -> bool:
        """Decode the next values that are scalars or have few levels."""
        if not self._open or self._before == b"0":
            return False
        current, end = self._open[-1], self._at + _DECODED_AT_ONCE
        run = (_MEMBERS if is_mapping(current) else _ITEMS).match(self._content, self._at, end)
        if run is None:
            return False
        values = run[0].removesuffix(b",")
        if is_mapping(current):
            current.update(_decode(b"{" + values + b"}"))
        else:
            cast("list[object]", current).extend(_decode(b"[" + values + b"]"))
        self._at = run.end()
        self._before = b"0," if run[0].endswith(b",") else b"0"
        return True

    def _step(self) -> bool:
        """Begin or end a container, or decode a long text."""
        current = self._open[-1] if self._open else None
        at = self._token(self._at)
        if self._content[at : at + 1] in (b"]", b"}"):
            if self._before == b"0," or self._content[at : at + 1] != (b"}" if is_mapping(current) else b"]"):
                return False
            self._open.pop()
            self._ended(at + 1)
            return True
        if self._before == b"0":
            return False
        key = ""
        if is_mapping(current):
            key, at = self._text(at)
            at = self._token(at)
            if self._content[at : at + 1] != b":":
                return False
            at = self._token(at + 1)
        what = self._content[at : at + 1]
        value: Any = {} if what == b"{" else []
        if what not in (b"{", b"["):
            value, at = self._text(at)
        if is_mapping(current):
            current[key] = value
        elif current is not None:
            cast("list[object]", current).append(value)
        else:
            self.value = value
        if type(value) is str:
            self._ended(at)
        else:
            self._open.append(value)
            if len(self._open) > _MOST_LEVELS:
                raise RecursionError  # like the decoder for shorter texts
            self._before, self._at = b"", at + 1
        return True

    def _token(self, at: int) -> int:
        return cast("re.Match[bytes]", _BLANK.match(self._content, at)).end()

    def _ended(self, at: int) -> None:
        """Go on after a value, and after its comma."""
        comma = self._token(at)
        has_comma = bool(self._open) and self._content[comma : comma + 1] == b","
        self._before, self._at = (b"0,", comma + 1) if has_comma else (b"0", at)

    def _text(self, at: int) -> tuple[str, int]:
        content, texts = self._content, list[str]()
        if content[at : at + 1] != b'"':
            raise msgspec.DecodeError
        at += 1
        while content[at : at + 1] != b'"':
            end = cast("re.Match[bytes]", _INSIDE.match(content, at, at + max(_DECODED_AT_ONCE, 12))).end()
            end = cast("re.Match[bytes]", _REST_OF_CHARACTER.match(content, end)).end()
            if end == at:
                raise msgspec.DecodeError
            texts.append(_decode(b'"' + content[at:end] + b'"'))
            at = end
        return "".join(texts), at + 1


def encode_sorted(value: object, *, size: int | None = None) -> bytes:
    """Encode a value as JSON with sorted keys, in groups if it is large. ``size`` is an upper bound of its size."""
    return _encode(value) if (size_of(value) if size is None else size) <= PART else b"".join(_encoded(value))


def size_of(value: object) -> int:
    """Count the values inside a value, and long strings several times. The count stops soon after ``PART``."""
    size, texts = 1, list[str]()
    level: list[Any] = [value]
    while level and size <= PART:
        inner: list[Any] = []
        for each in level:
            kind = type_of(each)
            if kind is str:
                texts += (each,)
            elif kind is dict:
                inner += each.values()
            elif kind is list:
                inner += each
        size += len(inner)
        level = inner
    return size + len("".join(texts)) // _UNIT


def _encoded(value: object) -> Iterator[bytes]:
    if is_mapping(value):
        keys = _sorted(value)
        yield from _joined(b"{", ((key, value[key]) for key in keys), dict, b"}")
    elif is_list(value):
        yield from _joined(b"[", ((None, each) for each in value), list, b"]")
    else:
        yield _encode(value)


def _joined(start: bytes, members: Iterable[tuple[Any, Any]], kind: type[Any], end: bytes) -> Iterator[bytes]:
    group: list[tuple[Any, Any]] = []
    size = 0
    comma = start
    for key, value in members:
        many = size_of(value) if type(value) in _COUNTED else 1
        if group and size + many > PART:
            yield comma + _encode_group(group, kind)
            group, size, comma = [], 0, b","
        if many > PART:
            yield comma + (b"" if kind is list else _encode(key) + b":")
            yield from _encoded(value)
            comma = b","
        else:
            group.append((key, value))
            size += many
    if group:
        yield comma + _encode_group(group, kind)
    elif comma == start:
        yield start
    yield end


def _encode_group(group: list[tuple[Any, Any]], kind: type[Any]) -> bytes:
    values = dict(group) if kind is dict else [value for _, value in group]
    return _encode(values)[1:-1]


def _sorted(keys: Iterable[str]) -> list[str]:
    """Sort keys in runs, because merging sorted runs takes half the time of one sort."""
    left, merged = iter(keys), list[str]()
    while run := sorted(islice(left, _RUN)):
        merged += run
    merged.sort()
    return merged
