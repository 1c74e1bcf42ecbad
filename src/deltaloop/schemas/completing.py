"""Write the server's defaults into objects of built-in kinds, and prune unknown fields of custom resources.

Source: the defaulting functions of Kubernetes pkg/apis; encoding/json; sigs.k8s.io/json, strict decoding;
apiextensions-apiserver pkg/apiserver/schema/pruning.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final, cast

from deltaloop.api.json_values import copied, is_list, is_mapping, type_of
from deltaloop.schemas.quantity import canonical_quantity
from deltaloop.schemas.types import NOTHING, Completion, TypeNode

Fields = dict[str, Any]
_CONTAINERS: Final = (dict, list)


def complete_object(node: TypeNode, fields: Fields) -> None:
    """Write the defaults and zero values of a built-in kind into an object, except for its metadata."""
    if node.completion is not None:
        _complete(node.completion, fields, root=True)
    for name in struct_fields(node):
        fields.setdefault(name, {})


def struct_fields(node: TypeNode) -> tuple[str, ...]:
    """Return which of ``spec`` and ``status`` every object of a built-in kind has, even if they are empty."""
    return tuple(name for name in ("spec", "status") if name in node.fields and node.fields[name].name)


def initial_status(node: TypeNode) -> Fields | None:
    """Return the status of a new object of a built-in kind, or None if it has none."""
    found = _initial_status_of(node)
    return copied(found) if found is not None else None


@cache
def _initial_status_of(node: TypeNode) -> Fields | None:
    if "status" not in empty_object(node):
        return None
    fields: Fields = {"metadata": {}, "status": {}}
    complete_object(node, fields)
    return cast("Fields", fields["status"])


def without_zeros(node: TypeNode, fields: Fields) -> Fields:
    """Return an object without the fields of an empty object, which have no owner because no client has set them."""
    empty = empty_object(node)
    return _without(fields, empty) if any(name in fields for name in empty) else fields


def _without(fields: Fields, empty: Mapping[str, object]) -> Fields:
    result: Fields = {}
    for name, value in fields.items():
        if name in empty:
            zero = empty[name]
            if value == zero:
                continue
            if is_mapping(value) and is_mapping(zero):
                result[name] = _without(value, zero)
                continue
        result[name] = value
    return result


@cache
def empty_object(node: TypeNode) -> Mapping[str, object]:
    """Return Go's JSON for an empty object of a built-in kind, without metadata."""
    zeros = node.completion.zeros if node.completion is not None else {}
    return {name: _deep_zero(node, name) for name in zeros if name != "metadata"}


def _deep_zero(node: TypeNode, name: str) -> object:
    zero = node.completion.zeros[name] if node.completion is not None else None
    below = node.fields[name]
    if zero != {} or not below.name:
        return zero
    return {inner: _deep_zero(below, inner) for inner in (below.completion.zeros if below.completion else ())}


def _complete(plan: Completion, fields: Fields, *, root: bool = False) -> None:
    for name, value, over_zero in plan.fill:
        if name not in fields or fields[name] is None or (over_zero and _is_zero(fields[name])):
            fields[name] = copied(value)
    if plan.rule is not None:
        plan.rule(fields)
    for name in plan.zeros:
        if name not in fields and not (root and name == "metadata"):
            fields[name] = copied(plan.zeros[name])
    for name in plan.omitted:
        if name in fields and fields[name] in ("", 0):  # which False equals
            del fields[name]
    for name in plan.quantities:
        if name in fields:
            _canonical(fields, name)
    for name in plan.below:
        if name in fields and type(fields[name]) in _CONTAINERS:
            _complete_below(plan.below[name], fields[name])


def _complete_below(node: TypeNode, value: Any) -> None:
    """Complete a struct, or the structs in a list or a map. The API has no nested lists or maps of lists."""
    struct = node.items or node.other or node
    plan = struct.completion
    if plan is None:
        return
    is_one = type_of(value) is dict and (struct is node or node.form == "schema")
    for member in (value,) if is_one else value if type_of(value) is list else value.values():
        if type_of(member) is dict:
            _complete(plan, member)


def _is_zero(value: object) -> bool:
    return value == "" or (value == 0 and not isinstance(value, bool))


def _canonical(fields: Fields, name: str, *, of_resource: bool = False) -> None:
    value = fields[name]
    if isinstance(value, dict):
        # Maps of quantities are lists of resources.
        held = cast("Fields", value)
        for key in held:
            _canonical(held, key, of_resource=True)
    elif isinstance(value, str):
        fields[name] = canonical_quantity(value, of_resource=of_resource)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        fields[name] = canonical_quantity(str(value), of_resource=of_resource)


_IDENTITY: Final = ("apiVersion", "kind", "metadata")


def prune(node: TypeNode, fields: dict[str, object], path: str = "") -> list[str]:
    """Drop unknown fields from an object in place, and return their sorted paths below ``path``."""
    whole = not node.name
    if is_tidy(node, fields, whole=whole, nulls=True):
        return []
    return sorted(_unknown(node, fields, path, remove=True, whole=whole))


def unknown_fields(node: TypeNode, fields: dict[str, object]) -> list[str]:
    """Return the sorted paths of the fields that ``prune`` would drop."""
    return sorted(_unknown(node, fields, "", remove=False, whole=not node.name))


def prune_value(node: TypeNode, value: object) -> list[str]:
    """Drop unknown fields from a part of an object in place, such as a default, and return their paths."""
    return _unknown(node, value, "", remove=True, whole=False)


def is_tidy(node: TypeNode, value: Any, *, whole: bool, nulls: bool, kept: bool = False) -> bool:
    """Return quickly that a value has no unknown fields, and no nulls unless ``nulls``. False is uncertain.

    ``kept`` applies to items of a list that keeps unknown fields.
    """
    kept = kept or node.open
    if type_of(value) is dict:
        fields, other = node.fields, node.other
        if kept and not fields and other is None:
            return True
        whole = whole or node.embedded
        for name, inner in value.items():
            child = fields[name] if name in fields else other  # noqa: SIM401 - avoids a call
            if child is None:
                if not (kept or (whole and name in _IDENTITY)):
                    return False
            elif inner is None and not nulls:
                return False
            elif (
                type(inner) not in _CONTAINERS
                or not inner
                or (whole and name in _IDENTITY and (nulls or not child.fields))
            ):
                continue
            elif not is_tidy(child, inner, whole=False, nulls=nulls):
                return False
    elif not (node.items is None and kept) and type_of(value) is list:
        below = node.items or NOTHING
        for item in value:
            if type(item) in _CONTAINERS and item and not is_tidy(below, item, whole=False, nulls=nulls, kept=kept):
                return False
    return True


def _unknown(node: TypeNode, value: object, path: str, *, remove: bool, whole: bool, kept: bool = False) -> list[str]:
    found: list[str] = []
    kept = kept or node.open
    if is_mapping(value):
        fields = value
        whole = whole or node.embedded
        for name in list(fields):
            if whole and name in _IDENTITY:
                continue
            child = node.fields.get(name) or node.other
            if child is not None:
                if type(fields[name]) in _CONTAINERS:
                    below = f"{path}.{name}" if path else name
                    found += _unknown(child, fields[name], below, remove=remove, whole=False)
            elif not kept:
                found.append(f"{path}.{name}" if path else name)
                if remove:
                    del fields[name]
    elif is_list(value) and not (node.items is None and kept):
        item_node = node.items or NOTHING
        for position, item in enumerate(value):
            if type(item) in _CONTAINERS:
                found += _unknown(item_node, item, f"{path}[{position}]", remove=remove, whole=False, kept=kept)
    return found
