"""Decode and encode JSON in several calls, because a single call blocks all other threads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, Final

import msgspec

from deltaloop.api.json_values import is_list, is_mapping, type_of

PART: Final = 8_000
_RUN: Final = 16_000
_DECODED_AT_ONCE: Final = 256 * 1024  # bytes
_UNIT: Final = 64  # characters
_COUNTED: Final = frozenset({dict, list, str})

_encode: Final = msgspec.json.Encoder(order="deterministic").encode
_decode: Final = msgspec.json.Decoder().decode
_decode_members: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode_items: Final = msgspec.json.Decoder(list[msgspec.Raw]).decode


def decode_in_parts(content: bytes | str) -> Any:
    """Decode JSON, members of a large object and items of a large list in groups; raises DecodeError."""
    if len(content) <= _DECODED_AT_ONCE:
        return _decode(content)
    try:
        return _decoded(content.encode() if isinstance(content, str) else content)
    except (msgspec.MsgspecError, UnicodeError):
        return _decode(content)  # this error has the position in the whole text


def _decoded(content: bytes | memoryview) -> Any:
    first = bytes(content[:64]).lstrip()[:1]
    if len(content) <= _DECODED_AT_ONCE or first not in (b"{", b"["):
        return _decode(content)
    if first == b"[":
        return [*_values(_decode_items(content))]
    members = _decode_members(content)
    return dict(zip(members, _values(members.values()), strict=True))


def _values(raws: Iterable[msgspec.Raw]) -> Iterator[Any]:
    group: list[memoryview] = []
    size = 0
    for raw in raws:
        view = memoryview(raw)
        if len(view) > _DECODED_AT_ONCE:
            yield from _decode(b"[" + b",".join(group) + b"]")
            group, size = [], 0
            yield _decoded(view)
            continue
        group.append(view)
        size += len(view)
        if size > _DECODED_AT_ONCE:
            yield from _decode(b"[" + b",".join(group) + b"]")
            group, size = [], 0
    yield from _decode(b"[" + b",".join(group) + b"]")


def encode_sorted(value: object) -> bytes:
    """Encode a value as JSON with sorted keys, in groups if it is large."""
    return _encode(value) if size_of(value) <= PART else b"".join(_encoded(value))


def size_of(value: object) -> int:
    """Count the values inside a value, and long strings several times. The count stops soon after ``PART``."""
    size = 1
    level: list[Any] = [value]
    while level:
        inner: list[Any] = []
        for each in level:
            kind = type_of(each)
            if kind is str:
                size += len(each) // _UNIT
            elif kind is dict:
                size += len(each)
                inner += each.values() if size <= PART else ()
            elif kind is list:
                size += len(each)
                inner += each if size <= PART else ()
        if size > PART:
            break
        level = inner
    return size


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
