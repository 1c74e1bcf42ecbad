"""What the expression of a mutation gives, as plain data: fields to apply, or the operations of a patch.

What is in an object has to be of the type that is named by the way to it: in ``spec`` of an ``Object`` is an
``Object.spec``, and so is each item of a list there.

Source: apiserver pkg/cel/mutation/dynamic/objects.go, pkg/admission/plugin/policy/mutating/patch.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Final, cast

from deltaloop.apiserver.core.apply.field_set import shown
from deltaloop.cel.libraries.instants import duration_text, timestamp_text
from deltaloop.cel.types import runtime_type
from deltaloop.cel.values import LIST_KINDS, Duration, ObjectValue, OptionalValue, Timestamp, Uint, kind_of
from deltaloop.schemas.json_values import is_mapping, items, mapping, text, value_type
from deltaloop.schemas.types import TypeNode

_LISTS: Final = ("keyed", "set")
_WHOLE: Final = 2.0**53


class WrongValueError(Exception):
    """The value of an expression is no mutation; the message is the real server's."""


def applied_fields(value: object) -> dict[str, object]:
    """Return the fields of an object that an expression gave.

    Raises:
        WrongValueError: If there is an object in it whose type is another part's, or a null.
    """
    fields = mapping(_checked(value))
    if null := next(_nulls(fields, ""), None):
        raise WrongValueError(f"error applying patch: failed to convert patch object to typed object: {null}: is null")
    return fields


def patch_operations(value: object) -> list[dict[str, object]]:
    """Return the operations of a patch that an expression gave.

    Raises:
        WrongValueError: If one has a value that is no data.
    """
    found: list[dict[str, object]] = []
    for operation in map(mapping, items(value)):
        for name in ("op", "path", "from"):
            if not isinstance(operation.get(name, ""), str):
                kind = runtime_type(operation[name])
                raise WrongValueError(f"unexpected type {kind} for JSONPatchType '{name}' field")
        fields: dict[str, object] = {name: text(operation.get(name)) for name in ("op", "path")}
        if operation.get("from"):
            fields["from"] = operation["from"]
        if "value" in operation:
            fields["value"] = _checked(operation["value"])
        found.append(fields)
    return found


def _nulls(value: object, path: str) -> Iterator[str]:
    if value is None:
        yield path
    for name, inner in mapping(value).items():
        yield from _nulls(inner, f"{path}.{name}")
    for position, inner in enumerate(items(value)):
        yield from _nulls(inner, f"{path}[{position}]")


def _data(value: object) -> object:
    """Return a value as JSON has it."""
    kind = kind_of(value)
    if kind in (dict, ObjectValue):
        return {_key(name): _data(inner) for name, inner in mapping(value).items()}
    if kind in LIST_KINDS:
        return [_data(inner) for inner in items(value)]
    if isinstance(value, OptionalValue):
        return _data(value.value) if value.present else None
    if isinstance(value, Timestamp):
        return timestamp_text(value)
    if isinstance(value, Duration):
        return duration_text(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, float) and value.is_integer() and abs(value) < _WHOLE:
        return int(value)
    if kind is Uint:
        return int(cast("Uint", value))
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise WrongValueError(f"{runtime_type(value)} has no form in JSON")


def _key(name: object) -> str:
    if not isinstance(name, str):
        raise WrongValueError("the keys of what is to be changed have to be texts")
    return name


def _checked(value: object) -> object:
    if isinstance(value, ObjectValue) and (wrong := "\n".join(_type_faults(value, value.type_name))):
        raise WrongValueError(f"type mismatch: {wrong}")
    return _data(value)


def _type_faults(value: object, path: str) -> Iterator[str]:
    if isinstance(value, ObjectValue):
        if value.type_name != path:
            yield (
                f'unexpected type name "{value.type_name}", expected "{path}", which matches field name path from root '
                "Object type"
            )
        for name, inner in value.items():
            yield from _type_faults(inner, f"{path}.{name}")
        return
    for inner in (*mapping(value).values(), *items(value)):
        yield from _type_faults(inner, path)


def atomic_parts(kind: TypeNode, value: object, path: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield where a value to be applied would replace a whole list or object instead of merging with it."""
    if is_mapping(value):
        if kind.merging == "scalar":
            yield shown(path)
        for name, inner in value.items():
            below = kind.merge_fields.get(name)
            if below is not None:
                yield from atomic_parts(below, inner, (*path, f"f:{name}"))
    elif value_type(value) == "array":
        if kind.merging not in _LISTS:
            yield shown(path)
        for position, inner in enumerate(items(value)):
            if kind.element is not None:
                yield from atomic_parts(kind.element, inner, (*path, f"i:{position}"))
