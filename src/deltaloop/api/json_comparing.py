"""Tells whether two values are the same JSON, without writing either.

Python's ``==`` is no help: to it ``1``, ``1.0`` and ``True`` are equal, and a server sees three values.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

_PLAIN: Final = frozenset({dict, list, str, int, float, bool, type(None)})


def is_same_json(value: object, other: object) -> bool | None:
    """Compare two values of decoded JSON; the order of fields says nothing.

    Returns:
        None if that cannot be told, because something else than dicts, lists and scalars stands in one of them, such as
        a view of an object or a typed one: what it is as JSON shows when it is written.
    """
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
