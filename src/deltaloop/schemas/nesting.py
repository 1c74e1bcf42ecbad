"""How deep what is sent may nest, so that every walk over it comes to its end, and how many parts it may have.

The real server takes 10 000 levels. Python's own stack has room for some 1 000 calls, and the longest walk here takes
five of them for a level; a deeper stack in a program's own process would be a danger to it.

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
"""Objects and lists. A decoder makes them in one step, in which no other thread can run."""
# Of an object that is stored: its managedFields are a few levels deeper than the fields that they are about.
MAX_STORED_DEPTH: Final = MAX_DEPTH + 8
_CONTAINERS: Final = (dict, list)
_TEXT: Final = re.compile(rb'"(?:[^"\\]|\\.)*+"', re.DOTALL)


class TooDeepError(DeltaloopError, msgspec.DecodeError):
    """Something nests deeper than this server reads."""

    def __init__(self) -> None:
        """Say how deep it may be."""
        super().__init__(f"exceeded max depth of {MAX_DEPTH}")


class TooManyPartsError(DeltaloopError, msgspec.DecodeError):
    """Something has more objects and lists than this server reads."""

    def __init__(self) -> None:
        """Say how many it may have."""
        super().__init__(f"more than {MAX_PARTS} objects and lists")


def decode_json(content: bytes | str) -> Any:
    """Return JSON decoded.

    Raises:
        TooDeepError: If it nests deeper than may be.
        DecodeError: If it is none, or has too many parts; the message has the place, not the data.
    """
    _check_parts(content)
    try:
        value = decode_in_parts(content)
    except RecursionError:
        raise TooDeepError from None
    check_depth(value)
    return value


def _check_parts(content: bytes | str) -> None:
    data = content.encode(errors="replace") if isinstance(content, str) else content
    if len(data) <= MAX_PARTS or data.count(b"{") + data.count(b"[") <= MAX_PARTS:
        return
    # Few texts have so many brackets, so they are left out only here.
    outside = b"".join(_TEXT.split(data))
    if outside.count(b"{") + outside.count(b"[") > MAX_PARTS:
        raise TooManyPartsError


def check_depth(value: object, *, most: int = MAX_DEPTH) -> None:
    """Refuse a value that nests deeper than ``most`` levels.

    Raises:
        TooDeepError: If it does.
    """
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
