"""Conversion of mutation results to plain data; object types must match their path (``Object.spec`` for ``spec``).

Source: apiserver pkg/cel/mutation/dynamic/objects.go, pkg/admission/plugin/policy/mutating/patch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Final, cast

from deltaloop.api.json_values import is_mapping, items, mapping, text, value_type
from deltaloop.apiserver.core.apply.field_set import shown
from deltaloop.cel.json_values import as_json, plain_json
from deltaloop.cel.kubernetes.mutations import JSON_PATCH
from deltaloop.cel.types import Type, runtime_type, type_name
from deltaloop.cel.values import LIST_KINDS, Duration, ObjectValue, OptionalValue, Timestamp, Uint, kind_of
from deltaloop.schemas.types import TypeNode

_LISTS: Final = ("keyed", "set")
# Go writes whole doubles below this value without an exponent.
_WHOLE: Final = 1e21
_MOST_SAFE: Final = 2**53 - 1
_UNFIT: Final = "JSONPath valueExpression evaluated to a type that could not marshal to JSON: "
# Go type names of CEL library types: as the value of an expression, and inside an object.
_GO_TYPES: Final = {
    "net.IP": ("IP", "netip.Addr"),
    "net.CIDR": ("CIDR", "netip.Prefix"),
    "kubernetes.Quantity": ("Quantity", "*resource.Quantity"),
    "kubernetes.URL": ("URL", "*url.URL"),
    "kubernetes.Semver": ("Semver", "semver.Version"),
    "kubernetes.NamedFormat": ("Format", "cel.Format"),
}
_NOT_IN_OBJECTS: Final[Mapping[type[object], str]] = {
    Timestamp: "time.Time",
    Duration: "time.Duration",
    type(None): "structpb.NullValue",
}
_KEYS: Final[Mapping[type[object], str]] = {
    bool: "type conversion error from bool to 'string'",
    int: "unsupported type conversion from 'int' to string",
    Uint: "unsupported type conversion from 'uint' to string",
}


class WrongValueError(Exception):
    """Result that is not a valid mutation; the message is the real server's."""


class NoNumberError(Exception):
    """Number that JSON cannot represent; the message is the real server's."""


def applied_fields(value: object) -> dict[str, object]:
    """Return the fields to apply, or raise WrongValueError or NoNumberError."""
    _check(value)
    return mapping(as_json(value, _applied, _key))


def patch_operations(value: object) -> list[dict[str, object]]:
    """Return the patch operations, or raise WrongValueError if a value is not plain data."""
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
            _check(operation["value"])
            fields["value"] = _in_patch(operation["value"])
        found.append(fields)
    return found


def _applied(value: object, path: str) -> object:
    """Convert a value to apply, or reject values with a special Go type."""
    kind = kind_of(value)
    if kind is float:
        number = cast("float", value)
        if not math.isfinite(number):
            raise NoNumberError(f"json: unsupported value: {_go_number(number)}")
        return _whole(number)
    if kind in (str, int, bool):
        return value
    if kind is OptionalValue:
        return None
    if isinstance(value, Type):
        return type_name(value)
    why = "is null" if value is None else f"a value of type {type_name(runtime_type(value))} cannot be applied"
    raise WrongValueError(f"error applying patch: failed to convert patch object to typed object: {path}: {why}")


def _in_patch(value: object) -> object:
    """Convert the value of an operation; integers beyond the double range become strings, except in objects."""
    if isinstance(value, ObjectValue):
        if value.type_name == JSON_PATCH.name:
            raise WrongValueError(f"{_UNFIT}cannot convert to native type: *structpb.Value")
        return as_json(value, _in_object, _key)
    if kind_of(value) is dict:
        return {_key(name, _KEYS): _in_patch(inner) for name, inner in mapping(value).items()}
    if kind_of(value) in LIST_KINDS:
        return [_in_patch(inner) for inner in items(value)]
    if isinstance(value, OptionalValue):
        if not value.present:
            raise WrongValueError(f"{_UNFIT}optional.none() dereference")
        return _in_patch(value.value)
    if kind_of(value) in (int, Uint) and not -_MOST_SAFE <= cast("int", value) <= _MOST_SAFE:
        return str(int(cast("int", value)))
    if isinstance(value, Type):
        raise WrongValueError(f"{_UNFIT}type conversion not supported for 'type'")
    return _number_or_text(value, _no_form)


def _in_object(value: object, path: str) -> object:  # noqa: ARG001
    kind = kind_of(value)
    if kind in (int, Uint):
        return _whole(float(cast("int", value)))
    if kind is OptionalValue:
        return None
    if isinstance(value, Type):
        return type_name(value)
    if kind in _NOT_IN_OBJECTS:
        raise WrongValueError(f"{_UNFIT}proto: invalid type: {_NOT_IN_OBJECTS[kind]}")
    return _number_or_text(value, lambda name: f"proto: invalid type: {_GO_TYPES.get(name, (name, name))[1]}")


def _number_or_text(value: object, no_form: Callable[[str], str]) -> object:
    if value is None:
        return None
    if kind_of(value) is float:
        number = cast("float", value)
        if not math.isfinite(number):
            words = (
                "json: error calling MarshalJSON for type *structpb.Value: proto: google.protobuf.Value.number_value"
            )
            raise WrongValueError(f"{_UNFIT}{words}: invalid {_go_number(number)} value")
        return _whole(number)
    found = plain_json(value)
    if found is None:
        raise WrongValueError(_UNFIT + no_form(type_name(runtime_type(value))))
    return found


def _no_form(name: str) -> str:
    return f"type conversion error from '{_GO_TYPES.get(name, (name, name))[0]}' to '*structpb.Value'"


def _whole(number: float) -> int | float:
    return int(number) if number.is_integer() and abs(number) < _WHOLE else number


def _go_number(number: float) -> str:
    return "NaN" if math.isnan(number) else "+Inf" if number > 0 else "-Inf"


def _key(name: object, words: Mapping[type[object], str] | None = None) -> str:
    if not isinstance(name, str):
        told = (words or {}).get(kind_of(name), "")
        raise WrongValueError(f"{_UNFIT}{told}" if told else "the keys of the changed object must be texts")
    return name


def _check(value: object) -> None:
    if isinstance(value, ObjectValue) and (wrong := "\n".join(_type_faults(value, value.type_name))):
        raise WrongValueError(f"type mismatch: {wrong}")


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
    """Yield the paths where a value would replace a whole list or object instead of merging."""
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
