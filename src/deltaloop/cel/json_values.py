"""Convert values of expressions to JSON."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any, TypeAlias, cast

from deltaloop.cel.libraries.instants import duration_text, timestamp_text
from deltaloop.cel.values import LIST_KINDS, Duration, ObjectValue, OptionalValue, Timestamp, Uint, kind_of

# Function from a value that is not a list, map or optional, and its path, to its replacement.
Leaf: TypeAlias = Callable[[object, str], object]


def plain_json(value: object) -> object | None:
    """Return a scalar as protobuf's JSON (base64 for bytes), or None for null and values without a form."""
    kind = kind_of(value)
    if kind is Timestamp:
        return timestamp_text(cast("Timestamp", value))
    if kind is Duration:
        return duration_text(cast("Duration", value))
    if kind is bytes:
        return base64.b64encode(cast("bytes", value)).decode()
    if kind is Uint:
        return int(cast("Uint", value))
    return value if kind in (bool, int, float, str) else None


def as_json(value: object, leaf: Leaf, key: Callable[[object], str], path: str = "") -> object:
    """Return a value as JSON; ``leaf`` converts values without parts and empty optionals, ``key`` keys of maps."""
    kind = kind_of(value)
    if kind is dict or kind is ObjectValue:
        entries = [(key(name), inner) for name, inner in cast("dict[Any, object]", value).items()]
        return {name: as_json(inner, leaf, key, f"{path}.{name}") for name, inner in entries}
    if kind in LIST_KINDS:
        items = enumerate(cast("list[object]", value))
        return [as_json(inner, leaf, key, f"{path}[{place}]") for place, inner in items]
    if isinstance(value, OptionalValue) and value.present:
        return as_json(value.value, leaf, key, path)
    return leaf(value, path)
