"""Tells whether two values are the same JSON, without writing either.

Python's ``==`` is no help: to it ``1``, ``1.0`` and ``True`` are equal, and a server sees three values.
"""

from __future__ import annotations

from typing import Any, Final

_PLAIN: Final = frozenset({dict, list, str, int, float, bool, type(None)})


def is_same_json(value: object, other: object) -> bool | None:
    """Compare two values of decoded JSON; the order of fields says nothing.

    Returns:
        None if that cannot be told, because something else than dicts, lists and scalars stands in one of them, such as
        a view of an object or a typed one: what it is as JSON shows when it is written.
    """
    kind = type(value)
    if kind is str and type(other) is str:
        return value == other
    if kind not in _PLAIN or type(other) not in _PLAIN:
        return None
    if kind is not type(other):
        return False
    this: Any = value  # a cast is a call, and this is where a reconcile without work spends its time
    that: Any = other
    if kind is dict:
        return _is_same_mapping(this, that)
    if kind is list:
        return _is_same_list(this, that)
    return bool(this == that)


def _is_same_list(items: list[object], others: list[object]) -> bool | None:
    if len(items) != len(others):
        return False
    told: bool | None = True
    for item, other in zip(items, others, strict=True):
        same = is_same_json(item, other)
        if same is False:
            return False
        if same is None:
            told = None
    return told


def _is_same_mapping(fields: dict[Any, object], others: dict[Any, object]) -> bool | None:
    if fields.keys() != others.keys():
        return False if all(type(name) is str for name in fields) else None
    told: bool | None = True
    for name, item in fields.items():
        other = others[name]
        if type(item) is str and type(other) is str:
            if item != other:
                return False
            continue
        same = is_same_json(item, other)
        if same is False:
            return False
        if same is None:
            told = None
    return told
