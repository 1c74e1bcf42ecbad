"""Whether an applied object fits its type, as far as merging needs it; the messages are upstream's.

Source: structured-merge-diff typed/validate.go, typed/helpers.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, cast

from deltaloop.apiserver.core.writes.apply.field_set import shown
from deltaloop.apiserver.core.writes.apply.walking import item_step, settled
from deltaloop.schemas.json_values import mapping, value_type
from deltaloop.schemas.types import FREE, TypeNode

_NAMES: Final = {
    "string": "string",
    "boolean": "bool",
    "integer": "int64",
    "number": "float64",
    "object": "map[string]interface {}",
    "array": "[]interface {}",
}
_NUMBERS: Final = ("integer", "number")
_FITTING: Final[Mapping[str, tuple[str, ...]]] = {
    "string": ("string",),
    "integer": _NUMBERS,
    "number": _NUMBERS,
    "boolean": ("boolean",),
    "scalar": ("string", "boolean", *_NUMBERS),
    "list": ("array",),
    "map": ("object",),
    "": tuple(_NAMES),
}
# By the form of the list, and whether the item is null.
_WRONG_ITEMS: Final = {
    ("keyed", True): "associative list with keys may not have a null element",
    ("keyed", False): "associative list with keys may not have non-map elements",
    ("set", True): "associative list without keys has an element that's an explicit null",
}
_WANTED: Final = {
    "string": "string",
    "integer": "numeric (int or float)",
    "number": "numeric (int or float)",
    "scalar": "any scalar",
}


def type_errors(kind: TypeNode, value: object, *, unlike: bool = True) -> str:
    """Return what is wrong with an object, as one text; "" if nothing is.

    Args:
        kind: Its type.
        value: The object.
        unlike: Whether the items of keyed lists and of sets must be unlike each other, as they are in what is applied.
    """
    errors = list(_errors(kind, value, (), unlike=unlike))
    if len(errors) < 2:
        return "".join(errors)
    return "\n  ".join(["errors:", *errors])


def _errors(kind: TypeNode, value: object, path: tuple[str, ...], *, unlike: bool) -> Iterator[str]:
    kind = settled(kind, value)
    if value is None:
        return
    if kind.merging == "scalar":
        if value_type(value) not in _FITTING[kind.accepts]:
            yield f"{shown(path)}: expected {_WANTED.get(kind.accepts, kind.accepts)}, got {_described(value)}"
        elif kind.accepts == "map" and (kind.merge_fields or kind.element):
            yield from _field_errors(kind, mapping(value), path, unlike=unlike)
        elif kind.accepts == "list" and kind.element:
            for position, item in enumerate(cast("list[object]", value)):
                yield from _errors(kind.element, item, (*path, f"i:{position}"), unlike=unlike)
        return
    if kind.merging == "map":
        if isinstance(value, dict):
            yield from _field_errors(kind, cast("dict[str, object]", value), path, unlike=unlike)
        else:
            yield f"{shown(path)}: expected map, got {_described(value)}"
        return
    if not isinstance(value, list):
        yield f"{shown(path)}: expected list, got {_described(value)}"
        return
    yield from _item_errors(kind, cast("list[object]", value), path, unlike=unlike)


def _field_errors(kind: TypeNode, value: dict[str, object], path: tuple[str, ...], *, unlike: bool) -> Iterator[str]:
    for name, inner in value.items():
        below = kind.merge_fields.get(name, kind.element)
        where = (*path, f"f:{name}")
        if below is None:
            yield f"{shown(where)}: field not declared in schema"
        else:
            yield from _errors(below, inner, where, unlike=unlike)


def _item_errors(kind: TypeNode, value: list[object], path: tuple[str, ...], *, unlike: bool) -> Iterator[str]:
    seen: set[str] = set()
    for position, item in enumerate(value):
        if item is None or (kind.merging == "keyed" and value_type(item) != "object"):
            what = _WRONG_ITEMS[kind.merging, item is None]
            yield f"{shown(path)}: element {position}: {what}"
            continue
        if kind.merging == "keyed" and (missing := _missing_key(kind, mapping(item))):
            yield f"{shown(path)}: element {position}: associative list with keys has an element that {missing}"
            continue
        step = item_step(kind, item)
        if unlike and step in seen:
            yield f"{shown(path)}: duplicate entries for key {shown((step,))}"
        seen.add(step)
        yield from _errors(kind.element or FREE, item, (*path, step), unlike=unlike)


def _missing_key(kind: TypeNode, item: dict[str, object]) -> str:
    """Say what an item of a keyed list lacks to be told from others; "" if it has one of the keys."""
    if any(name in item or name in kind.key_defaults for name in kind.keys):
        return ""
    names = " ".join(f'"{name}"' for name in kind.keys)
    return f"omits all key fields [{names}] (and doesn't have default values for any key fields)"


def _described(value: object) -> str:
    return _NAMES.get(value_type(value), "value")
