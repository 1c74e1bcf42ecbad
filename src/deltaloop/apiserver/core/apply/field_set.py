"""Field sets in the format of ``managedFields`` (FieldsV1), so that they need no decoding or encoding.

A set is a tree of dicts. Each key is a step of a path:

    f:name            field of an object or key of a map
    k:{"name":"a"}    list item with these keys
    v:"x"             item of a set list
    .                 the path to this dict is in the set

An empty dict also means that its path is in the set: ``{"f:spec": {"f:size": {}}}`` contains ``.spec.size`` but not
``.spec``. At the top level, an empty dict is the empty set.

Source: structured-merge-diff fieldpath/set.go, serialize.go, element.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, TypeAlias, cast

import msgspec

from deltaloop.api.json_values import escape_html
from deltaloop.apiserver.core.crds.codec import stored_number
from deltaloop.schemas.nesting import decode_json

FieldSet: TypeAlias = dict[str, Any]

SELF: Final = "."
LEAF: Final[FieldSet] = {}
_HERE: Final[FieldSet] = {SELF: LEAF}
_KINDS: Final = {"f": 0, "k": 1, "v": 2, "i": 3}
_encode: Final = msgspec.json.Encoder(order="deterministic").encode


def field_step(name: str) -> str:
    return "f:" + name


def key_step(keys: dict[str, Any]) -> str:
    """Return the step to a list item. Keys have the form of stored numbers: 1.0 becomes 1."""
    for name, value in keys.items():
        if type(value) is float:
            keys[name] = stored_number(value)
    return "k:" + escape_html(_encode(keys).decode())


def value_step(value: Any) -> str:
    return "v:" + escape_html(_encode(stored_number(value) if type(value) is float else value).decode())


def union(left: FieldSet, right: FieldSet) -> FieldSet:
    if not left:
        return right
    if not right or right is left:
        return left
    return _combined(left, right, both=True, left_only=True, right_only=True)


def difference(left: FieldSet, right: FieldSet) -> FieldSet:
    """Return the paths in ``left`` that are not in ``right``. Paths below a removed path stay."""
    if not left or not right:
        return left
    return _combined(left, right, both=False, left_only=True, right_only=False)


def intersection(left: FieldSet, right: FieldSet) -> FieldSet:
    return _combined(left, right, both=True, left_only=False, right_only=False)


def _combined(left: FieldSet, right: FieldSet, *, both: bool, left_only: bool, right_only: bool) -> FieldSet:
    """Return the paths in both sets, only in ``left``, and only in ``right``, as selected."""
    result: FieldSet = {}
    for step, below in left.items():
        if step not in right:
            if left_only:
                result[step] = below
            continue
        other = right[step]
        if below is other or not (below or other):
            if both:
                result[step] = below
        else:
            combined = _combined(below or _HERE, other or _HERE, both=both, left_only=left_only, right_only=right_only)
            if combined:
                result[step] = _normal(combined)
    if right_only:
        result.update((step, below) for step, below in right.items() if step not in left)
    return result


def _normal(below: FieldSet) -> FieldSet:
    """Normalize a subtree with only its own path to a leaf."""
    return LEAF if len(below) == 1 and SELF in below else below


def difference_below(left: FieldSet, right: FieldSet) -> FieldSet:
    """Return the paths in ``left`` that are neither in ``right`` nor below a path in ``right``."""
    result: FieldSet = {}
    for step, below in left.items():
        other = right.get(step)
        if other is None:
            result[step] = below
        elif other and SELF not in other:
            kept = difference_below(below, other)
            if kept or not below:
                result[step] = _normal(kept)
    return result


def has(fields: FieldSet, path: tuple[str, ...]) -> bool:
    for step in path:
        if step not in fields:
            return False
        fields = fields[step]
    return ends_here(fields)


def ends_here(below: FieldSet | None) -> bool:
    """Return whether the path to ``below`` is in the set. None means that the step is missing."""
    return below is not None and (not below or SELF in below)


def paths(fields: FieldSet, prefix: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield every path in upstream's order: at each level first the paths that end there, then deeper paths."""
    steps = sorted((step for step in fields if step != SELF), key=_order)
    for step in steps:
        if ends_here(fields[step]):
            yield (*prefix, step)
    for step in steps:
        yield from paths(fields[step], (*prefix, step))


def _order(step: str) -> tuple[int, str]:
    return _KINDS.get(step[:1], 9), step


def shown(path: tuple[str, ...]) -> str:
    """Format a path for people, for example ``.spec.list[name="a"].v``."""
    return "".join(map(_shown_step, path))


def _shown_step(step: str) -> str:
    kind, _, rest = step.partition(":")
    if kind == "f":
        return f".{rest}"
    if kind == "i":
        return f"[{rest}]"
    value = msgspec.json.decode(rest)
    if kind == "v":
        return f"[={_shown_value(value)}]"
    return "[" + ",".join(f"{name}={_shown_value(value[name])}" for name in sorted(value)) + "]"


def _shown_value(value: Any) -> str:
    return _encode(value).decode()


def is_field_set(value: object) -> bool:
    if not isinstance(value, dict):
        return False
    return all(_is_step(step) and is_field_set(below) for step, below in cast("FieldSet", value).items())


def _is_step(step: object) -> bool:
    if not isinstance(step, str):
        return False
    if step == SELF:
        return True
    kind, colon, rest = step.partition(":")
    if not colon or kind not in _KINDS:
        return False
    if kind == "f":
        return True
    if kind == "i":
        return rest.isdigit()
    try:
        value = decode_json(rest)
    except msgspec.DecodeError:
        return False
    return kind == "v" or isinstance(value, dict)
