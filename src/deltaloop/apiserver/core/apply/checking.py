"""Whether an applied object fits its type, as far as merging needs it.

Source: structured-merge-diff typed/validate.go, typed/helpers.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, cast

from deltaloop.apiserver.core.apply.field_set import shown
from deltaloop.apiserver.core.apply.walking import item_step, settled
from deltaloop.schemas.faults import MergingFault
from deltaloop.schemas.json_values import mapping, value_type
from deltaloop.schemas.types import FREE, TypeNode

_NUMBERS: Final = ("integer", "number")
_FITTING: Final[Mapping[str, tuple[str, ...]]] = {
    "string": ("string",),
    "integer": _NUMBERS,
    "number": _NUMBERS,
    "boolean": ("boolean",),
    "scalar": ("string", "boolean", *_NUMBERS),
    "list": ("array",),
    "map": ("object",),
    "": ("string", "boolean", *_NUMBERS, "array", "object"),
}


def merging_faults(
    kind: TypeNode, value: object, path: tuple[str, ...] = (), *, unlike: bool = True
) -> Iterator[MergingFault]:
    """Yield what is wrong with an object.

    Args:
        kind: The compiled type of the object.
        value: The object that is merged.
        path: Where it is, if it is a part of another one.
        unlike: Whether the items of keyed lists and of sets must be unlike each other, as they are in what is applied.
    """
    kind = settled(kind, value)
    if value is None:
        return
    found = value_type(value)
    wanted = {"scalar": kind.accepts, "map": "map"}.get(kind.merging, "list")
    if found not in _FITTING[wanted]:
        yield MergingFault(shown(path), "type", wanted, found)
    elif wanted == "map" and (kind.merging == "map" or kind.merge_fields or kind.element):
        for name, inner in mapping(value).items():
            below = kind.merge_fields.get(name, kind.element)
            where = (*path, f"f:{name}")
            if below is None:
                yield MergingFault(shown(where), "undeclared")
            else:
                yield from merging_faults(below, inner, where, unlike=unlike)
    elif wanted == "list" and kind.merging != "scalar":
        yield from _item_faults(kind, cast("list[object]", value), path, unlike=unlike)
    elif wanted == "list" and kind.element:
        for position, item in enumerate(cast("list[object]", value)):
            yield from merging_faults(kind.element, item, (*path, f"i:{position}"), unlike=unlike)


def _item_faults(kind: TypeNode, value: list[object], path: tuple[str, ...], *, unlike: bool) -> Iterator[MergingFault]:
    seen: set[str] = set()
    for position, item in enumerate(value):
        why = _why_not_told_apart(kind, item)
        if why:
            yield MergingFault(shown(path), why, " ".join(f'"{key}"' for key in kind.keys), position=position)
            continue
        step = item_step(kind, item)
        if unlike and step in seen:
            yield MergingFault(shown(path), "repeated", shown((step,)))
        seen.add(step)
        yield from merging_faults(kind.element or FREE, item, (*path, step), unlike=unlike)


def _why_not_told_apart(kind: TypeNode, item: object) -> str:
    if item is None:
        return f"null in {kind.merging}"
    if kind.merging == "set":
        return ""
    if not isinstance(item, dict):
        return "no object"
    return "" if any(key in item or key in kind.key_defaults for key in kind.keys) else "no key"
