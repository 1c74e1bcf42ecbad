"""Compare decoded JSON values without encoding them, because in Python ``1``, ``1.0`` and ``True`` are equal."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

_PLAIN: Final = frozenset({dict, list, str, int, float, bool, type(None)})


def is_same_json(value: object, other: object) -> bool | None:
    """Compare two decoded JSON values, or return None if they contain views or typed objects."""
    kind = type(value)
    if kind not in _PLAIN or type(other) not in _PLAIN:
        return None
    if kind is not type(other):
        return False
    this: Any = value
    that: Any = other
    if kind is dict:
        if this.keys() != that.keys():
            return False if all(type(name) is str for name in this) else None
        pairs: Iterable[tuple[Any, Any]] = ((item, that[name]) for name, item in this.items())
    elif kind is list:
        if len(this) != len(that):
            return False
        pairs = zip(this, that, strict=True)
    else:
        return bool(this == that)
    told: bool | None = True
    for item, its_other in pairs:
        same = item == its_other if type(item) is str is type(its_other) else is_same_json(item, its_other)
        if same is False:
            return False
        if same is None:
            told = None
    return told


def same_json(one: object, other: object) -> bool:
    """Return whether two values are certainly the same JSON."""
    return one is other or (type(one) is type(other) and is_same_json(one, other) is True)
