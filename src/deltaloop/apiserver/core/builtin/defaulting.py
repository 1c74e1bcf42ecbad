"""Defaults of built-in kinds: what the server writes into an object where its author wrote nothing.

An object is walked by its type, once for each write. At each struct:

    1. fields that nobody set get what the table says (``fill``), or what follows from other fields
       (``defaulting_rules``)
    2. fields that Go always writes get its zero (``zeros``): null, "", 0, or an empty struct
    3. fields that Go never writes when they are zero are left out (``omit_zero``)
    4. quantities are written in their canonical form

Fields of features that are off by default are dropped before all that. Types below which there is nothing to do are
not walked, so ConfigMaps and the like cost nothing.

Source: the defaulting functions of Kubernetes pkg/apis; encoding/json.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final, Literal, TypeAlias, cast

from deltaloop.apiserver.core.builtin.defaulting_rules import DISABLED, OBJECT_RULES, RULES
from deltaloop.apiserver.core.builtin.tables import FieldType, builtin_tables, kind_types
from deltaloop.schemas.quantity import canonical_quantity

Fields = dict[str, Any]
_Holds: TypeAlias = Literal["struct", "list", "map"]

_LEFT_ALONE: Final = ("meta.v1.ObjectMeta",)


@dataclass(slots=True)
class _Plan:
    """What is to be done in a struct."""

    fill: list[tuple[str, Any, bool]] = field(default_factory=list[tuple[str, Any, bool]])
    zeros: list[tuple[str, Any]] = field(default_factory=list[tuple[str, Any]])
    rule: Callable[[Fields], None] | None = None
    quantities: list[str] = field(default_factory=list[str])
    omitted: tuple[str, ...] = ()
    disabled: tuple[str, ...] = ()
    below: list[tuple[str, _Holds, _Plan]] = field(default_factory=list[tuple[str, _Holds, "_Plan"]])


def complete_object(api_version: str, kind: str, fields: Fields) -> None:
    """Write the defaults and zeros of a built-in kind into an object, in place; of metadata only labels are touched."""
    plan = _plan_of(api_version, kind)
    rule = OBJECT_RULES.get((api_version, kind))
    if rule is not None:
        rule(fields)
    if plan is not None:
        _complete(plan, fields)
    for name in struct_fields(api_version, kind):
        fields.setdefault(name, {})


def empty_object(api_version: str, kind: str) -> Mapping[str, Any]:
    """Return what Go writes for an object of a built-in kind in which nothing is set, without metadata."""
    return _empty_of(api_version, kind)


@cache
def struct_fields(api_version: str, kind: str) -> tuple[str, ...]:
    """Return which of ``spec`` and ``status`` every object of a built-in kind has, be they empty."""
    name = kind_types().get((api_version, kind))
    fields = builtin_tables().types[name].fields if name is not None else {}
    shapes = ((field, fields.get(field)) for field in ("spec", "status"))
    return tuple(field for field, shape in shapes if isinstance(shape, str) and shape.startswith("#"))


def initial_status(api_version: str, kind: str) -> Fields | None:
    """Return the status of a new object of a built-in kind; None if the kind has none, or its objects need none."""
    found = _initial_status_of(api_version, kind)
    return copy.deepcopy(found) if found is not None else None


@cache
def _initial_status_of(api_version: str, kind: str) -> Fields | None:
    if "status" not in _empty_of(api_version, kind):
        return None
    fields: Fields = {"metadata": {}, "status": {}}
    complete_object(api_version, kind, fields)
    return cast("Fields", fields["status"])


def without_zeros(api_version: str, kind: str, fields: Fields) -> Fields:
    """Return an object without what an empty one has, too: nobody has set that, so nobody owns it."""
    empty = _empty_of(api_version, kind)
    return _without(fields, empty) if any(name in fields for name in empty) else fields


def _without(fields: Fields, empty: Mapping[str, Any]) -> Fields:
    result: Fields = {}
    for name, value in fields.items():
        if name in empty:
            zero = empty[name]
            if value == zero:
                continue
            if isinstance(value, dict) and isinstance(zero, dict):
                result[name] = _without(cast("Fields", value), cast("Fields", zero))
                continue
        result[name] = value
    return result


@cache
def _empty_of(api_version: str, kind: str) -> Mapping[str, Any]:
    name = kind_types().get((api_version, kind))
    if name is None or name in _LEFT_ALONE:
        return {}
    zeros = builtin_tables().types[name].zeros
    return {zero: _deep_zero(name, zero) for zero in zeros if zero != "metadata"}


def _deep_zero(name: str, zero: str) -> Any:
    struct = builtin_tables().types[name]
    shape = _inner(struct.fields[zero])
    if struct.zeros[zero] != {} or not isinstance(shape, str) or not shape.startswith("#"):
        return struct.zeros[zero]
    below = shape[1:]
    return {inner: _deep_zero(below, inner) for inner in builtin_tables().types[below].zeros}


@cache
def _plan_of(api_version: str, kind: str) -> _Plan | None:
    name = kind_types().get((api_version, kind))
    if name is None or name in _LEFT_ALONE:
        return None
    plan = _build(name, {})
    if plan is not None:
        plan.zeros = [entry for entry in plan.zeros if entry[0] != "metadata"]
    return plan


def _build(name: str, made: dict[str, _Plan | None]) -> _Plan | None:
    """Return the plan of a struct, None if there is nothing to do in it."""
    if name in made:
        return made[name]
    if name in _LEFT_ALONE:
        return None
    struct = builtin_tables().types[name]
    plan = _Plan(rule=RULES.get(name), disabled=DISABLED.get(name, ()))
    made[name] = plan  # for a struct that holds itself
    plan.fill = [(entry, value, entry in struct.fill_zero) for entry, value in struct.fill.items()]
    plan.zeros = list(struct.zeros.items())
    plan.omitted = tuple(entry for entry in struct.omit_zero if entry in struct.fields)
    for entry, shape in struct.fields.items():
        found = _held(shape)
        if found is None:
            continue
        holds, inner = found
        if inner == "quantity":
            plan.quantities.append(entry)
        elif inner.startswith("#"):
            below = _build(inner[1:], made)
            if below is not None:
                plan.below.append((entry, holds, below))
    if not (plan.fill or plan.zeros or plan.omitted or plan.disabled or plan.rule or plan.quantities or plan.below):
        made[name] = None
    return made[name]


def _held(shape: FieldType) -> tuple[_Holds, str] | None:
    """Return what a field holds, and of which type; lists of lists and maps of lists are nowhere in the API."""
    shape = _inner(shape)
    if isinstance(shape, str):
        return "struct", shape
    element = _inner(shape.item if shape.item is not None else shape.value or "")
    if not isinstance(element, str):
        return None
    return ("list" if shape.item is not None else "map"), element


def _inner(shape: FieldType) -> FieldType:
    while not isinstance(shape, str) and shape.of is not None:
        shape = shape.of
    return shape


def _complete(plan: _Plan, fields: Fields) -> None:
    for name in plan.disabled:
        fields.pop(name, None)
    for name, value, over_zero in plan.fill:
        present = fields.get(name)
        if present is None or (over_zero and _is_zero(present)):
            fields[name] = copy.deepcopy(value)
    if plan.rule is not None:
        plan.rule(fields)
    for name, value in plan.zeros:
        if name not in fields:
            fields[name] = copy.copy(value)
    for name in plan.omitted:
        if name in fields and (_is_zero(fields[name]) or fields[name] is False):
            del fields[name]
    for name in plan.quantities:
        if name in fields:
            _canonical(fields, name)
    for name, holds, below in plan.below:
        if name in fields:
            _complete_below(below, holds, fields[name])


def _complete_below(plan: _Plan, holds: _Holds, value: object) -> None:
    held: Iterable[object] = ()
    if holds == "struct":
        held = (value,)
    elif isinstance(value, list):
        held = cast("list[object]", value)
    elif isinstance(value, dict):
        held = cast("dict[str, object]", value).values()
    for member in held:
        if isinstance(member, dict):
            _complete(plan, cast("Fields", member))


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
