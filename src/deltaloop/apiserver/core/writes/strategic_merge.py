"""Strategic merge patch: a merge patch that can merge lists by key.

Objects merge field by field, null removes a field, and other values replace. Lists with a ``patch_key`` merge item by
item. Directives in the patch change this:

    $patch: replace                       in an object: replace it by the rest of the patch; as an item of a merged
                                          list: replace the list by the other items
    $patch: delete                        in an object: empty it; in an item: remove the items with its key
    $retainKeys: [a, b]                   remove all other fields of the object before the merge
    $setElementOrder/list: [...]          set the order of the items after the merge
    $deleteFromPrimitiveList/list: [...]  remove values from a list of scalars

In a merged list, the items of the patch have the order of the patch (or of ``$setElementOrder``), and the other items
keep their order. When both sequences are combined, an existing item precedes the next patch item only if it preceded it
in the original list. Added fields are not merged, and their nulls and directives are dropped.

Source: apimachinery pkg/util/strategicpatch/patch.go; enhancement "preserve order in strategic merge patch".
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable
from typing import Any, Final, cast

import msgspec

from deltaloop.api.json_values import items, mapping
from deltaloop.schemas.types import TypeNode

_PATCH: Final = "$patch"
_RETAIN_KEYS: Final = "$retainKeys"
_ORDER: Final = "$setElementOrder/"
_DELETE: Final = "$deleteFromPrimitiveList/"
_encode: Final = msgspec.json.Encoder(order="sorted").encode


class StrategicMergeError(ValueError):
    """Strategic merge patch that cannot be applied; ``code`` is the HTTP status of the real server."""

    def __init__(self, message: str, *, code: int = 400) -> None:
        super().__init__(message)
        self.code = code


def strategic_merge(current: dict[str, object], patch: dict[str, object], node: TypeNode) -> dict[str, object]:
    """Apply a strategic merge patch; the result can share parts with the unchanged arguments."""
    return _merge_object(current, patch, node)


def _merge_object(current: dict[str, object], patch: dict[str, object], node: TypeNode) -> dict[str, object]:
    if _PATCH in patch:
        return _whole_object(patch)
    result = _retained(current, patch)
    ordered = {name.removeprefix(_ORDER) for name in patch if name.startswith(_ORDER)}
    for name, value in patch.items():
        if name.startswith("$") or name in ordered:
            continue
        if value is None:
            result.pop(name, None)
        else:
            result[name] = _merge_value(result.get(name), value, node.below(name))
    for name in ordered:
        _merge_ordered(result, patch, name, node.below(name))
    for directive, values in patch.items():
        if directive.startswith(_DELETE):
            _take_out(result, directive, values)
    return result


def _merge_value(current: object, value: object, node: TypeNode) -> object:
    if isinstance(current, dict) and isinstance(value, dict) and not node.replaced:
        return _merge_object(cast("dict[str, object]", current), cast("dict[str, object]", value), node)
    if isinstance(current, list) and isinstance(value, list) and node.patch_key is not None:
        return _merge_list(cast("list[object]", current), cast("list[object]", value), node)
    return _added(cast("object", value))


def _whole_object(patch: dict[str, object]) -> dict[str, object]:
    directive = patch[_PATCH]
    if directive == "replace":
        return {name: _added(value) for name, value in patch.items() if name != _PATCH}
    if directive == "delete":
        return {}
    raise StrategicMergeError(f"unknown patch type: {_shown(directive)}", code=500)


def _retained(current: dict[str, object], patch: dict[str, object]) -> dict[str, object]:
    if _RETAIN_KEYS not in patch:
        return dict(current)
    names = patch[_RETAIN_KEYS]
    if not isinstance(names, list):
        raise _bad_format(_RETAIN_KEYS)
    kept = {name for name in cast("list[object]", names) if isinstance(name, str)}
    if any(value is not None and not name.startswith("$") and name not in kept for name, value in patch.items()):
        raise _bad_format(_RETAIN_KEYS)
    return {name: value for name, value in current.items() if name in kept}


def _take_out(result: dict[str, object], directive: str, values: object) -> None:
    if not isinstance(values, list):
        raise _bad_format(_DELETE.rstrip("/"))
    name = directive.removeprefix(_DELETE)
    current = result.get(name)
    if isinstance(current, list):
        gone = {_token(value) for value in cast("list[object]", values)}
        result[name] = [item for item in cast("list[object]", current) if _token(item) not in gone]


def _merge_ordered(result: dict[str, object], patch: dict[str, object], name: str, node: TypeNode) -> None:
    order = _list_or_none(patch[_ORDER + name])
    if order is None:
        raise _bad_format(_ORDER.rstrip("/"))
    current, changes = _list_or_none(result.get(name)), _list_or_none(patch.get(name))
    if changes is None:
        if name in patch:
            result.pop(name, None)
            return
        if current is None:
            return
    _check_order(changes or [], order, node)
    merged = current or [] if changes is None else items(_merge_value(current, changes, node))
    result[name] = _arranged(merged, order, current or [], node.patch_key or "")


def _list_or_none(value: object) -> list[object] | None:
    if value is not None and not isinstance(value, list):
        raise _bad_format(_ORDER.rstrip("/"))
    return cast("list[object] | None", value)


def _check_order(changes: list[object], order: list[object], node: TypeNode) -> None:
    """Reject changes that ``$setElementOrder`` does not contain in the same order."""
    if not order:
        return
    key = node.patch_key or ""
    remaining = iter([_identity(item, key) for item in order])
    for identity in [_identity(item, key) for item in changes if not _has_directive(item)]:
        if identity not in remaining:
            raise StrategicMergeError("the order in the patch list doesn't match the $setElementOrder list", code=500)


def _merge_list(current: list[object], changes: list[object], node: TypeNode) -> list[object]:
    _check_items([*current, *changes])
    if not any(isinstance(item, dict) for item in (*current, *changes)):
        return _arranged(_distinct([*current, *changes]), changes, current, "")
    key = node.patch_key or ""
    if not key:
        raise StrategicMergeError("cannot merge lists of objects without a merge key", code=500)
    if any(_directive(item) == "replace" for item in changes):
        return [_added(item) for item in changes if not _has_directive(item)]
    gone = {_deleted(mapping(item), key) for item in changes if _has_directive(item)}
    left = [old for old in current if _token_of(old, key) not in gone]
    plain = [item for item in changes if not _has_directive(item)]
    merged = list(left)
    places = {_token_of(old, key): place for place, old in reversed([*enumerate(left)])}
    for item in plain:
        identity = _identity(item, key)
        position = places.get(identity)
        if position is None:
            places[identity] = len(merged)
            merged.append(_added(item))
        else:
            merged[position] = _merge_object(mapping(merged[position]), mapping(item), node)
    return _arranged(merged, plain, left, key)


def _deleted(item: dict[str, object], key: str) -> Hashable:
    """Return the identity of the items that a directive removes from a list."""
    directive = item[_PATCH]
    if directive == "merge":
        raise StrategicMergeError("merging lists cannot yet be specified in the patch", code=500)
    if directive != "delete":
        raise StrategicMergeError(f"unknown patch type: {_shown(directive)}", code=500)
    return _identity(item, key)


def _arranged(merged: list[object], named: list[object], before: list[object], key: str) -> list[object]:
    """Sort a merged list: ``named`` has the order of its items, and ``before`` the order of the others."""
    order = _places((item for item in named if not _has_directive(item)), key)
    places = _places(before, key)
    chosen: deque[tuple[Hashable, Any]] = deque()
    others: deque[tuple[Hashable, Any]] = deque()
    for item in merged:
        identity = _identity(item, key)
        (chosen if identity in order else others).append((identity, item))
    chosen = deque(sorted(chosen, key=lambda entry: order[entry[0]]))
    result: list[object] = []
    while others and chosen:
        other = places.get(others[0][0], len(before))
        patched = places.get(chosen[0][0], len(before))
        goes_first = patched < len(before) and other < patched
        result.append((others if goes_first else chosen).popleft()[1])
    return [*result, *(item for _, item in chosen), *(item for _, item in others)]


def _places(values: Iterable[Any], key: str) -> dict[Hashable, int]:
    result: dict[Hashable, int] = {}
    for place, value in enumerate(values):
        result.setdefault(_identity(value, key), place)
    return result


def _added(value: object) -> object:
    """Return an added value without nulls in objects and without directives."""
    if isinstance(value, dict):
        fields = cast("dict[str, object]", value)
        if fields.get(_PATCH) == "delete":
            return {}
        return {
            name: _added(item)
            for name, item in fields.items()
            if item is not None and name not in (_PATCH, _RETAIN_KEYS) and not name.startswith((_ORDER, _DELETE))
        }
    if isinstance(value, list):
        return [_added(item) for item in cast("list[object]", value) if not _has_directive(item)]
    return value


def _check_items(values: list[object]) -> None:
    if any(isinstance(item, list) for item in values):
        raise StrategicMergeError("lists of lists are not supported", code=422)
    if len({isinstance(item, dict) for item in values}) > 1:
        raise StrategicMergeError("list element types are not identical", code=500)


def _directive(item: object) -> object:
    return cast("dict[str, object]", item).get(_PATCH) if isinstance(item, dict) else None


def _has_directive(item: object) -> bool:
    return isinstance(item, dict) and _PATCH in item


def _identity(item: object, key: str) -> Hashable:
    """Return the identity of an item: the value of its merge key, or the value of a scalar."""
    if not isinstance(item, dict):
        return _token(item)
    fields = cast("dict[str, object]", item)
    if not key or key not in fields:
        raise StrategicMergeError(
            f"an item of the list does not contain the declared merge key: {key or '-'}", code=500
        )
    return _token(fields[key])


def _token_of(item: object, key: str) -> Hashable:
    return _token(cast("dict[str, object]", item).get(key) if isinstance(item, dict) else None)


def _token(value: object) -> Hashable:
    if isinstance(value, dict | list):
        return "json", _encode(value)
    return isinstance(value, bool), value


def _distinct(values: list[object]) -> list[object]:
    return [*{_token(value): value for value in reversed(values)}.values()][::-1]


def _bad_format(directive: str) -> StrategicMergeError:
    return StrategicMergeError(f"invalid patch format of {directive}")


def _shown(directive: object) -> str:
    return directive if isinstance(directive, str) else type(directive).__name__
