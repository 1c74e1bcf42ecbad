"""Whether an applied object fits its type, as far as merging needs it.

Source: structured-merge-diff typed/validate.go, typed/helpers.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast, final

from deltaloop.api.json_values import value_type
from deltaloop.apiserver.core.apply.field_set import shown
from deltaloop.apiserver.core.apply.walking import item_step, settled
from deltaloop.schemas.field_errors import MergingFault
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


def merging_faults(kind: TypeNode, value: object, *, unlike: bool = True) -> list[MergingFault]:
    """Return what is wrong with an object; empty if nothing is.

    Args:
        kind: The compiled type of the object.
        value: The object that is merged.
        unlike: Whether the items of keyed lists and of sets must be unlike each other, as they are in what is applied.
    """
    look = _Look(unlike)
    look.at(kind, value, ())
    return look.faults


@final
class _Look:
    """Looks through an object: every write does, so that what is right costs little."""

    def __init__(self, unlike: bool) -> None:
        self.faults: list[MergingFault] = []
        self._unlike = unlike

    def at(self, kind: TypeNode, value: object, path: tuple[str, ...]) -> None:
        if value is None:
            return
        kind = settled(kind, value)
        found, merging = value_type(value), kind.merging
        wanted = kind.accepts if merging == "scalar" else "map" if merging == "map" else "list"
        if found not in _FITTING[wanted]:
            self.faults.append(MergingFault(shown(path), "type", wanted, found))
        elif wanted == "map" and (merging == "map" or kind.merge_fields or kind.element):
            declared, element = kind.merge_fields, kind.element
            for name, inner in cast("dict[str, object]", value).items():
                below = declared.get(name, element)
                where = (*path, f"f:{name}")
                if below is None:
                    self.faults.append(MergingFault(shown(where), "undeclared"))
                else:
                    self.at(below, inner, where)
        elif wanted == "list" and merging != "scalar":
            self._at_items(kind, cast("list[object]", value), path)
        elif wanted == "list" and kind.element:
            for position, item in enumerate(cast("list[object]", value)):
                self.at(kind.element, item, (*path, f"i:{position}"))

    def _at_items(self, kind: TypeNode, value: list[object], path: tuple[str, ...]) -> None:
        seen: set[str] = set()
        for position, item in enumerate(value):
            why = _why_not_told_apart(kind, item)
            if why:
                keys = " ".join(f'"{key}"' for key in kind.keys)
                self.faults.append(MergingFault(shown(path), why, keys, position=position))
                continue
            step = item_step(kind, item)
            if self._unlike and step in seen:
                self.faults.append(MergingFault(shown(path), "repeated", shown((step,))))
            seen.add(step)
            self.at(kind.element or FREE, item, (*path, step))


def _why_not_told_apart(kind: TypeNode, item: object) -> str:
    if item is None:
        return f"null in {kind.merging}"
    if kind.merging == "set":
        return ""
    if not isinstance(item, dict):
        return "no object"
    return "" if any(key in item or key in kind.key_defaults for key in kind.keys) else "no key"
