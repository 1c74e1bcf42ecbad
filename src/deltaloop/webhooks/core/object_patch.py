"""Compute a JSON patch (RFC 6902) between two objects.

In lists, equal items at the start and the end are skipped, and items in between are compared by index. ``1``, ``1.0``
and ``true`` are different values.

Source: https://www.rfc-editor.org/rfc/rfc6902, https://www.rfc-editor.org/rfc/rfc6901 (pointers).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeGuard

from deltaloop.api.json_comparing import same_json

PatchOperation = dict[str, Any]
_MISSING: Final = object()


def patch_between(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[PatchOperation]:
    """Return the operations that change ``before`` into ``after``, both decoded JSON."""
    return list(_fields(before, after, ""))


def _fields(before: Mapping[str, Any], after: Mapping[str, Any], path: str) -> Iterator[PatchOperation]:
    for name in before:
        if name not in after:
            yield {"op": "remove", "path": f"{path}/{_escaped(name)}"}
    for name, now in after.items():
        yield from _value(before.get(name, _MISSING), now, f"{path}/{_escaped(name)}")


def _value(was: Any, now: Any, path: str) -> Iterator[PatchOperation]:
    if was is _MISSING:
        yield {"op": "add", "path": path, "value": now}
    elif _is_object(was) and _is_object(now):
        yield from _fields(was, now, path)
    elif _is_list(was) and _is_list(now):
        yield from _items(was, now, path)
    elif not same_json(was, now):
        yield {"op": "replace", "path": path, "value": now}


def _items(was: Sequence[Any], now: Sequence[Any], path: str) -> Iterator[PatchOperation]:
    shorter = min(len(was), len(now))
    begin = 0
    while begin < shorter and same_json(was[begin], now[begin]):
        begin += 1
    end = 0
    while end < shorter - begin and same_json(was[-1 - end], now[-1 - end]):
        end += 1
    both = shorter - begin - end
    for place in range(begin, begin + both):
        yield from _value(was[place], now[place], f"{path}/{place}")
    for place in range(len(was) - end - 1, begin + both - 1, -1):  # from the end, so that the other indexes stay valid
        yield {"op": "remove", "path": f"{path}/{place}"}
    for place in range(begin + both, len(now) - end):
        yield {"op": "add", "path": f"{path}/{place}", "value": now[place]}


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")


def _is_object(value: Any) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)


def _is_list(value: Any) -> TypeGuard[list[Any]]:
    return isinstance(value, list)
