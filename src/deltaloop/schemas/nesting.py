"""How deep what is sent may nest, so that every walk over it comes to its end.

The real server takes 10 000 levels. Python's own stack has room for some 1 000 calls, and the longest walk here takes
five of them for a level; a deeper stack in a program's own process would be a danger to it.

Source: sigs.k8s.io/json and go.yaml.in/yaml (their limits).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, cast

import msgspec

from deltaloop.root_error import DeltaloopError

MAX_DEPTH: Final = 128
# Of an object that is stored: its managedFields are a few levels deeper than the fields that they are about.
MAX_STORED_DEPTH: Final = MAX_DEPTH + 8
_CONTAINERS: Final = (dict, list)


class TooDeepError(DeltaloopError, msgspec.DecodeError):
    """Something nests deeper than this server reads."""

    def __init__(self) -> None:
        """Say how deep it may be."""
        super().__init__(f"exceeded max depth of {MAX_DEPTH}")


def decode_json(content: bytes | str) -> Any:
    """Return JSON decoded.

    Raises:
        TooDeepError: If it nests deeper than may be.
        DecodeError: If it is none; the message has the place, not the data.
    """
    try:
        value = msgspec.json.decode(content)
    except RecursionError:
        raise TooDeepError from None
    check_depth(value)
    return value


def check_depth(value: object, *, most: int = MAX_DEPTH) -> None:
    """Refuse a value that nests deeper than ``most`` levels.

    Raises:
        TooDeepError: If it does.
    """
    level: list[object] = [value]
    for _ in range(most):
        level = [inner for outer in level for inner in _inside(outer) if isinstance(inner, _CONTAINERS)]
        if not level:
            return
    raise TooDeepError


def _inside(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return cast("dict[str, object]", value).values()
    return cast("list[object]", value) if isinstance(value, list) else ()
