"""Limits for the depth and the number of containers in decoded input.

The real server accepts 10 000 levels, but Python only about 1 000 nested calls, of which a walk needs five per level.

Source: sigs.k8s.io/json and go.yaml.in/yaml (their limits).
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from deltaloop._internal.root_error import DeltaloopError
from deltaloop.api.json_values import is_list, is_mapping
from deltaloop.schemas.json_in_parts import decode_in_parts

MAX_DEPTH: Final = 128
MAX_PARTS: Final = 150_000
"""Most objects and lists. A decoder creates them in one step, which blocks all other threads."""
# Stored objects are deeper, because managedFields has a few levels more than the fields that it describes.
MAX_STORED_DEPTH: Final = MAX_DEPTH + 8
_CONTAINERS: Final = (dict, list)
_TEXT: Final = re.compile(rb'"(?:[^"\\]|\\.)*+"', re.DOTALL)


class TooDeepError(DeltaloopError, msgspec.DecodeError):
    def __init__(self) -> None:
        super().__init__(f"exceeded max depth of {MAX_DEPTH}")


class TooManyPartsError(DeltaloopError, msgspec.DecodeError):
    def __init__(self) -> None:
        super().__init__(f"more than {MAX_PARTS} objects and lists")


def decode_json(content: bytes | str) -> Any:
    """Decode JSON, or raise TooDeepError or DecodeError without data."""
    opened = _opened(content)
    if opened > MAX_PARTS:
        raise TooManyPartsError
    try:
        value = decode_in_parts(content)
    except RecursionError:
        raise TooDeepError from None
    if opened > MAX_DEPTH:
        check_depth(value)
    return value


def _opened(content: bytes | str) -> int:
    """Return the number of opening brackets, without those in strings if there are many."""
    data = content.encode(errors="replace") if isinstance(content, str) else content
    opened = data.count(b"{") + data.count(b"[")
    if opened > MAX_PARTS:
        for text in _TEXT.finditer(data):
            opened -= data.count(b"{", *text.span()) + data.count(b"[", *text.span())
    return opened


def check_depth(value: object, *, most: int = MAX_DEPTH) -> None:
    """Reject a value with more than ``most`` levels by TooDeepError."""
    level: list[object] = [value]
    for _ in range(most):
        below: list[object] = []
        for outer in level:
            for inner in outer.values() if is_mapping(outer) else outer if is_list(outer) else ():
                if type(inner) in _CONTAINERS:
                    below.append(inner)  # noqa: PERF401 - a comprehension is a call for each of many small values
        if not below:
            return
        level = below
    raise TooDeepError
