"""Compare, merge and prune objects along their type, and list their fields.

Null is a value, like upstream. ``ABSENT`` is a missing value.

Source: structured-merge-diff typed/compare.go, merge.go, remove.go, tofieldset.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, cast

import msgspec

from deltaloop.api.json_values import is_list, is_mapping, items, mapping, type_of
from deltaloop.apiserver.core.apply.field_set import LEAF, SELF, FieldSet, ends_here, key_step, union, value_step
from deltaloop.schemas.types import FREE, TypeNode

ABSENT: Final = object()
_SCALAR: Final = TypeNode(merging="scalar")
_encode: Final = msgspec.json.Encoder(order="deterministic").encode


@dataclass(frozen=True, slots=True)
class Comparison:
    added: FieldSet
    modified: FieldSet
    removed: FieldSet

    @property
    def all(self) -> FieldSet:
        return union(union(self.modified, self.added), self.removed)

    @property
    def same(self) -> bool:
        return not (self.added or self.modified or self.removed)


def settled(kind: TypeNode, value: object) -> TypeNode:
    """Return the type for a value: a free value merges like a map if it is an object, and is atomic otherwise."""
    if kind.merging == "free":
        return _FREE_MAP if type(value) is dict else _SCALAR
    return kind


_FREE_MAP: Final = TypeNode(form="object", merging="map", element=FREE)


def item_step(kind: TypeNode, item: object) -> str:
    if kind.merging == "set":
        return value_step(item)
    fields, keys = mapping(item), dict[str, object]()
    for name in kind.keys:
        if name in fields:
            keys[name] = fields[name]
        elif name in kind.key_defaults:
            keys[name] = kind.key_defaults[name]
    return key_step(keys)


def equal(left: object, right: object) -> bool:
    """Return whether two JSON values are equal; true is not equal to 1."""
    if type(left) is type(right):
        if is_mapping(left) and is_mapping(right):
            return len(left) == len(right) and all(
                name in right and equal(value, right[name]) for name, value in left.items()
            )
        if is_list(left) and is_list(right):
            return len(left) == len(right) and all(map(equal, left, right))
        return bool(left == right)
    return bool(left == right) and not isinstance(left, bool) and not isinstance(right, bool)


def additions(kind: TypeNode, zero: Mapping[str, object], new: dict[str, object]) -> FieldSet:
    """Return the fields of a new object that differ from its type's zero value, which its creator owns."""
    result: FieldSet = {}
    fields, element = kind.merge_fields, kind.element or FREE
    for name, value in new.items():
        below = fields.get(name, element)
        if not value and name in zero and equal(zero[name], value):
            continue
        if below.merging == "scalar" or not value:
            result["f:" + name] = LEAF
        elif name in zero and below.merging == "map" and is_mapping(value):
            result["f:" + name] = additions(below, mapping(zero[name]), value)
        else:
            result["f:" + name] = everything(below, value)
            if name in zero and below.merging in ("keyed", "set"):
                result["f:" + name].pop(SELF, None)
    return result


def compare(kind: TypeNode, old: object, new: object) -> Comparison:
    found = _compare(kind, old, new)
    return Comparison(*found) if found is not None else Comparison({}, {}, {})


_Found = tuple[FieldSet, FieldSet, FieldSet]


def _compare(kind: TypeNode, old: object, new: object) -> _Found | None:
    """Compare two existing values; return None if they are equal."""
    if old is new:
        return None
    if kind.merging == "free":
        if type(old) not in _DICT or type(new) not in _DICT:
            return None if equal(old, new) else (_inside(new), {SELF: LEAF}, _inside(old))
        kind = _FREE_MAP
    if not old and not new:
        return None if equal(old, new) else _CHANGED
    if kind.merging == "map" and type(old) in _DICT and type(new) in _DICT:
        return _compare_maps(kind, mapping(old), mapping(new))
    if kind.merging in ("keyed", "set") and type(old) in _LIST and type(new) in _LIST:
        return _compare_lists(kind, items(old), items(new))
    return None if equal(old, new) else _CHANGED


_CHANGED: Final[_Found] = ({}, {}, {})
_DICT: Final = (dict, type(None))
_LIST: Final = (list, type(None))


def _compare_maps(kind: TypeNode, old: dict[str, object], new: dict[str, object]) -> _Found | None:
    sets: _Found = ({}, {}, {})
    fields, element = kind.merge_fields, kind.element or FREE
    for name, value in new.items():
        previous = old.get(name, ABSENT)
        if previous is ABSENT:
            below = fields.get(name, element)
            sets[0]["f:" + name] = LEAF if below.merging == "scalar" else everything(below, value)
        elif type(value) is str and type(previous) is str:
            if value != previous:
                sets[1]["f:" + name] = LEAF
        elif not _identical(previous, value):
            found = _compare(fields.get(name, element), previous, value)
            if found is not None:
                _note(sets, "f:" + name, found)
    for name, value in old.items():
        if name not in new:
            sets[2]["f:" + name] = everything(fields.get(name, element), value)
    return sets if any(sets) else None


def _compare_lists(kind: TypeNode, old: list[object], new: list[object]) -> _Found | None:
    sets: _Found = ({}, {}, {})
    element = kind.element or FREE
    before, after = _by_step(kind, old), _by_step(kind, new)
    for step, values in after.items():
        others = before.get(step, [])
        if len(values) > 1 or len(others) > 1:
            _compare_repeated(sets, element, step, others, values)
        elif not others:
            sets[0][step] = everything(element, values[0])
        elif not _identical(others[0], values[0]):
            found = _compare(element, others[0], values[0])
            if found is not None:
                _note(sets, step, found)
    for step, values in before.items():
        if step not in after:
            sets[2][step] = everything(element, values[0]) if len(values) == 1 else LEAF
    return sets if any(sets) else None


def _compare_repeated(sets: _Found, element: TypeNode, step: str, old: list[object], new: list[object]) -> None:
    """Compare items with duplicates, which together count as one atomic value."""
    if len(old) > 1 and len(new) > 1:
        if not equal(old, new):
            sets[1][step] = LEAF
    elif len(old) > 1:
        sets[0][step] = everything(element, new[0])
        sets[2][step] = LEAF
    else:
        sets[0][step] = LEAF
        if old:
            sets[2][step] = everything(element, old[0])


def _identical(left: object, right: object) -> bool:
    """Return True if two values are certainly equal; False requires a full comparison."""
    # ``==`` is fast but treats 1 and true as equal, so compare the bytes as well.
    return left is right or (left == right and (type(left) is str or _encode(left) == _encode(right)))


def _inside(value: object) -> FieldSet:
    """Return the fields inside of a free value, without the value itself."""
    return {step: below for step, below in everything(FREE, value).items() if step != SELF}


def _note(sets: _Found, step: str, found: _Found) -> None:
    if found is _CHANGED:
        sets[1][step] = LEAF
        return
    for target, part in zip(sets, found, strict=True):
        if part:
            target[step] = LEAF if part.keys() == {SELF} else part


def _by_step(kind: TypeNode, value: list[object]) -> dict[str, list[object]]:
    """Group the items of a list by their steps, because several can have the same step."""
    found: dict[str, list[object]] = {}
    for item in value:
        found.setdefault(item_step(kind, item), []).append(item)
    return found


def everything(kind: TypeNode, value: object) -> FieldSet:
    kind = settled(kind, value)
    if not value or kind.merging == "scalar":
        return LEAF
    if kind.merging == "map":
        if not is_mapping(value):
            return LEAF
        result: FieldSet = {SELF: LEAF}
        fields, element = kind.merge_fields, kind.element or FREE
        for name, inner in value.items():
            below = fields.get(name, element)
            ends = below.merging == "scalar" or type(inner) is str
            result["f:" + name] = LEAF if ends else everything(below, inner)
        return result
    if not is_list(value):
        return LEAF
    result = {SELF: LEAF}
    for item in value:
        step = item_step(kind, item)
        result[step] = LEAF if step in result else everything(kind.element or FREE, item)
    return result


def fields_of(kind: TypeNode, value: object) -> FieldSet:
    return _fields_of(kind, value) or {}


def _fields_of(kind: TypeNode, value: object) -> FieldSet | None:
    """Return the subtree below a field, {} if only the field itself is owned, or None if the field is not owned."""
    kind = settled(kind, value)
    if kind.merging == "scalar":
        return LEAF
    result: FieldSet = {}
    if kind.merging == "map" and is_mapping(value):
        fields, element = kind.merge_fields, kind.element or FREE
        for name, inner in value.items():
            declared = fields[name] if name in fields else None  # noqa: SIM401 - avoids a call
            node = declared or element
            ends = node.merging == "scalar" or (node.merging == "free" and type_of(inner) is not dict)
            below = LEAF if ends else _fields_of(node, inner)
            if inner is None or inner == {}:
                below = LEAF
            elif declared is None and below:
                below = {SELF: LEAF, **below}
            elif declared is None:
                below = LEAF
            if below is not None:
                result["f:" + name] = below
    elif is_list(value):
        for item in value:
            step = item_step(kind, item)
            below = None if step in result else _fields_of(kind.element or FREE, item)
            result[step] = {SELF: LEAF, **below} if below else LEAF
    return result or None


def with_declared(kind: TypeNode, fields: FieldSet) -> FieldSet:
    """Add the declared parents of a set's fields to the set, like upstream's ``EnsureNamedFieldsAreMembers``."""
    result: FieldSet = {}
    for step, below in fields.items():
        declared = kind.merge_fields.get(step[2:]) if step[:2] == "f:" else None
        inner = with_declared(declared or kind.element or FREE, below) if below else LEAF
        result[step] = {SELF: LEAF, **inner} if declared is not None and inner else inner
    return result


def merge(kind: TypeNode, live: object, applied: object) -> object:
    """Merge an applied value into a live value; the result can share parts with both."""
    if applied is ABSENT:
        return live
    if live is ABSENT:
        return applied
    if applied is None and live and is_mapping(live) and kind.merging != "scalar":
        return live
    kind = settled(kind, applied)
    if not live and not applied:
        return applied
    if kind.merging == "map" and is_mapping(live) and is_mapping(applied):
        result = dict(live)
        element = kind.element or FREE
        for name, inner in applied.items():
            if type(inner) is not str:
                inner = merge(kind.merge_fields.get(name, element), result.get(name, ABSENT), inner)  # noqa: PLW2901
            result[name] = inner
        return result
    if kind.merging in ("keyed", "set") and isinstance(live, list) and isinstance(applied, list | None):
        return _merge_list(kind, cast("list[object]", live), cast("list[object]", applied or []))
    return applied


def _merge_list(kind: TypeNode, live: list[object], applied: list[object]) -> list[object]:
    """Merge two lists in the order of the applied list; other items keep their position in between."""
    element = kind.element or FREE
    new = {item_step(kind, item): item for item in applied}
    old: dict[str, list[object]] = {}
    for item in live:
        old.setdefault(item_step(kind, item), []).append(item)
    left, right = list(old), list(new)
    shared = [step for step in right if step in old]
    result: list[object] = []
    at_left = at_right = 0
    while at_left < len(left) or at_right < len(right):
        if at_left < len(left):
            step = left[at_left]
            if step not in new:
                result += old[step]
                at_left += 1
                continue
            if at_right < len(right) and shared and step != shared[0] and step != right[at_right]:
                # Both lists contain the item, but another item is next in the applied order.
                at_left += 1
                continue
        if at_right >= len(right):
            at_left += 1
            continue
        step = right[at_right]
        result.append(merge(element, old[step][0] if step in old else ABSENT, new[step]))
        at_right += 1
        if shared and shared[0] == step:
            shared.pop(0)
        if at_left < len(left) and left[at_left] == step:
            at_left += 1
    return result


def remove(kind: TypeNode, value: object, gone: FieldSet) -> object:
    """Return the value without the fields of a set. A container that becomes empty is replaced by null."""
    kind = settled(kind, value)
    if not value or not gone:
        return value
    if kind.merging == "map" and is_mapping(value):
        element = kind.element or FREE
        kept: dict[str, object] = {}
        for name, inner in value.items():
            below = gone.get("f:" + name)
            if not ends_here(below):
                kept[name] = remove(kind.merge_fields.get(name, element), inner, below) if below else inner
        return kept or None
    if kind.merging in ("keyed", "set") and is_list(value):
        left: list[object] = []
        for item in value:
            below = gone.get(item_step(kind, item))
            if not ends_here(below):
                left.append(remove(kind.element or FREE, item, below) if below else item)
        return left or None
    return value
