"""Conversion of JSON to the real server's YAML: sorted keys, block style, and minimal quoting.

Ambiguous text (numbers, YAML 1.1 booleans, null, times) has double quotes. Keys sort letters after other characters and
digits as numbers.

Source: sigs.k8s.io/yaml v1.6.0 over go.yaml.in/yaml/v2 (``encode.go``, ``sorter.go``).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from functools import cmp_to_key
from typing import Any, Final, cast

import msgspec
import yaml

from deltaloop.api.yaml_reader import looks_like_text

_emit: Final = cast("Callable[..., str]", yaml.emit)  # pyright: ignore[reportUnknownMemberType] - has no types
_EMITTER: Final[Any] = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
_SEXAGESIMAL: Final = re.compile(r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?")
_WIDTH: Final = 80
_AT_ONCE: Final = 64 * 1024
_OBJECT: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_LIST: Final = msgspec.json.Decoder(list[msgspec.Raw])
_LARGEST_INTEGER: Final = 1e21
_EXPONENT_FROM: Final = 21
_TIME: Final = re.compile(
    r"(\d{4})-(\d{1,2})-(\d{1,2})"
    r"(?:[Tt ](\d{1,2}):(\d{1,2}):(\d{1,2})(?:[.,]\d+)?(?:Z|[+-]\d\d:\d\d)?)?"
)


def json_to_yaml(body: bytes) -> bytes:
    """Convert a JSON document to YAML, or raise msgspec.MsgspecError if it is not JSON."""
    events = _document(_decoded(body))
    text = _emit(events, Dumper=_EMITTER, width=_WIDTH, allow_unicode=True)
    # libyaml ends a document with dots if its last block keeps its line breaks, but Go's emitter does not.
    return (text.removesuffix("...\n") if text.endswith("\n...\n") else text).encode()


def _decoded(body: bytes | msgspec.Raw) -> object:
    """Decode JSON, but only one level of a large document, because decoding blocks all other threads."""
    raw = memoryview(body)
    if len(raw) > _AT_ONCE:
        opening = bytes(raw[:_AT_ONCE]).lstrip()[:1]
        if opening == b"{":
            return _OBJECT.decode(raw)
        if opening == b"[":
            return _LIST.decode(raw)
    return msgspec.json.decode(raw)


def _document(value: object) -> Iterator[Any]:
    yield yaml.StreamStartEvent()
    yield yaml.DocumentStartEvent(explicit=False)
    yield from _events(value)
    yield yaml.DocumentEndEvent(explicit=False)
    yield yaml.StreamEndEvent()


def _events(value: object) -> Iterator[Any]:
    if isinstance(value, msgspec.Raw):
        value = _decoded(value)
    if isinstance(value, dict):
        fields = cast("dict[str, object]", value)
        yield yaml.MappingStartEvent(None, None, True, flow_style=False)
        for name in sorted(fields, key=_ORDER):
            yield _text(name)
            yield from _events(fields[name])
        yield yaml.MappingEndEvent()
    elif isinstance(value, list):
        yield yaml.SequenceStartEvent(None, None, True, flow_style=False)
        for item in cast("list[object]", value):
            yield from _events(item)
        yield yaml.SequenceEndEvent()
    elif isinstance(value, str):
        yield _text(value)
    else:
        yield _scalar(_plain(value), "")


def _scalar(text: str, style: str) -> object:
    return yaml.ScalarEvent(None, None, (True, True), text, style=style or None)


def _text(text: str) -> object:
    if "\n" in text:
        return _scalar(text, "|")
    is_text = looks_like_text(text) and not _SEXAGESIMAL.fullmatch(text) and not _looks_like_time(text)
    return _scalar(text, "" if is_text else '"')


def _looks_like_time(text: str) -> bool:
    found = _TIME.fullmatch(text)
    if found is None:
        return False
    year, month, day, hour, minute, second = (int(part) for part in found.groups(default="0"))
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    days = (31, 28 + leap, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
    return 1 <= month <= 12 and 1 <= day <= days[month - 1] and hour < 24 and minute < 60 and second < 60


def _plain(value: object) -> str:
    """Format null, a boolean or a number like Go."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, float):
        return str(value)
    if value.is_integer() and abs(value) < _LARGEST_INTEGER:
        return str(int(value))
    digits, _, power = f"{value!r}".partition("e")
    exponent = math.floor(math.log10(abs(value))) if not power else int(power)
    if -5 < exponent < _EXPONENT_FROM:
        return digits if not power else format(Decimal(repr(value)), "f")
    mantissa = digits if power else str(Decimal(repr(value)).scaleb(-exponent).normalize())
    return f"{mantissa.removesuffix('.0')}e{'-' if exponent < 0 else '+'}{abs(exponent):02}"


def _compare(one: str, two: str) -> int:
    """Compare keys: letters sort after other characters, and digits are compared as numbers."""
    place = next((at for at, (left, right) in enumerate(zip(one, two, strict=False)) if left != right), None)
    if place is None:
        return len(one) - len(two)
    left, right = one[place], two[place]
    if left.isalpha() or right.isalpha():
        if left.isalpha() and right.isalpha():
            return ord(left) - ord(right)
        return -1 if right.isalpha() else 1
    numbers = [_number(text, place, zero="0" in (left, right)) for text in (one, two)]
    if numbers[0] != numbers[1]:
        return -1 if numbers[0] < numbers[1] else 1
    return ord(left) - ord(right)


def _number(text: str, place: int, *, zero: bool) -> tuple[int, str, int]:
    """Return the sort key of the number at a position of a key: length, digits and end."""
    end = place
    while end < len(text) and text[end].isdecimal():
        end += 1
    digits = text[place:end]
    if zero:
        # Include the preceding digits, because otherwise 100 would sort before 20.
        before = re.search(r"[0-9]*\Z", text[:place])
        if before is not None and before[0].strip("0"):
            digits = "1" + digits
    digits = digits.lstrip("0")
    return len(digits), digits, end


_ORDER: Final = cmp_to_key(_compare)
