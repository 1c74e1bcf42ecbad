"""Tells whether two values are the same JSON, without writing either.

Python's ``==`` is no help: to it ``1``, ``1.0`` and ``True`` are equal, and a server sees three values.
"""

from __future__ import annotations

from typing import Any, Final, cast

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
    if kind is dict:
        return _is_same_mapping(cast("dict[Any, object]", value), cast("dict[Any, object]", other))
    if kind is list:
        items, others = cast("list[object]", value), cast("list[object]", other)
        if len(items) != len(others):
            return False
        return _all(map(is_same_json, items, others))
    return value == other


def _is_same_mapping(fields: dict[Any, object], others: dict[Any, object]) -> bool | None:
    if fields.keys() != others.keys():
        return False if all(type(name) is str for name in fields) else None
    return _all(is_same_json(item, others[name]) for name, item in fields.items())


def _all(answers: Any) -> bool | None:
    told: bool | None = True
    for answer in answers:
        if answer is False:
            return False
        if answer is None:
            told = None
    return told
