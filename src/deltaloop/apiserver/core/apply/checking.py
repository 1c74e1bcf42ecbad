"""Check the types of an applied object as far as merging requires.

Source: structured-merge-diff typed/validate.go, typed/helpers.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, final

from deltaloop.api.json_values import is_list, is_mapping, value_type
from deltaloop.apiserver.core.apply.field_set import shown
from deltaloop.apiserver.core.apply.walking import item_step, settled
from deltaloop.schemas.field_errors import MergingFault
from deltaloop.schemas.types import FREE, TypeNode

_NUMBERS: Final = (int, float)
_FITTING: Final[Mapping[str, tuple[type, ...]]] = {
    "string": (str,),
    "integer": _NUMBERS,
    "number": _NUMBERS,
    "boolean": (bool,),
    "scalar": (str, bool, *_NUMBERS),
    "list": (list,),
    "map": (dict,),
    "": (str, bool, *_NUMBERS, list, dict),
}
_ENDS: Final = ("scalar", "free")  # kinds in which a plain value has no children
_PLAIN: Final = (str, bool, *_NUMBERS)


def merging_faults(kind: TypeNode, value: object, *, unlike: bool = True) -> list[MergingFault]:
    """Return the type errors of an object; ``unlike`` makes duplicates in keyed lists and sets errors."""
    look = _Look(unlike)
    look.at(kind, value, ())
    return look.faults


@final
class _Look:
    """Type check of an object. It runs for every write, so valid objects must be fast."""

    def __init__(self, unlike: bool) -> None:
        self.faults: list[MergingFault] = []
        self._unlike = unlike

    def at(self, kind: TypeNode, value: object, path: tuple[str, ...]) -> None:
        if value is None:
            return
        merging = kind.merging
        if merging == "free":
            kind = settled(kind, value)
            merging = kind.merging
        wanted = kind.accepts if merging == "scalar" else "map" if merging == "map" else "list"
        if type(value) not in _FITTING[wanted]:
            self.faults.append(MergingFault(shown(path), "type", wanted, value_type(value)))
        elif wanted == "map" and is_mapping(value) and (merging == "map" or kind.merge_fields or kind.element):
            declared, element = kind.merge_fields, kind.element
            for name, inner in value.items():
                below = declared[name] if name in declared else element  # noqa: SIM401 - avoids a call
                if below is None:
                    self.faults.append(MergingFault(shown((*path, f"f:{name}")), "undeclared"))
                elif not (below.merging in _ENDS and type(inner) in _PLAIN and type(inner) in _FITTING[below.accepts]):
                    self.at(below, inner, (*path, f"f:{name}"))
        elif wanted == "list" and is_list(value):
            if merging != "scalar":
                self._at_items(kind, value, path)
            elif kind.element:
                for position, item in enumerate(value):
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
