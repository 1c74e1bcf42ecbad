"""Fill in absent required fields, so that one old object does not fail the conversion of a list.

An absent field gets the zero value of its type, like in Go, or None if the type allows it.
"""

from __future__ import annotations

import enum
from types import UnionType
from typing import Annotated, Any, Final, Literal, Union, cast, final, get_args, get_origin

import msgspec

from deltaloop.api.json_values import copied, items, mapping
from deltaloop.webhooks.core.mismatches import ListItem, Mismatch, Step, bare, class_fields, mismatches

_NO_ZERO: Final = object()
_DEEPEST: Final = 32
_SCALARS: Final[dict[Any, object]] = {str: "", int: 0, float: 0.0, bool: False, bytes: "", Any: None, object: None}
_CONTAINERS: Final[dict[Any, type]] = {list: list, tuple: list, set: list, frozenset: list, dict: dict}
# Compare names, because core modules do not import datetime.
_TIMES: Final = {"datetime": "0001-01-01T00:00:00Z", "date": "0001-01-01"}

Path = tuple[Step, ...]


@final
class FilledObject(msgspec.Struct, frozen=True):
    """Object whose absent required fields are filled in; ``choices`` are the paths of absent choices."""

    fields: dict[str, Any]
    found: list[Mismatch]
    choices: list[Path]


def with_zero_values(cls: Any, fields: dict[str, Any]) -> FilledObject:
    """Fill in the absent required fields of a copy of an object."""
    filled = FilledObject(copied(fields), mismatches(cls, fields), [])
    for each in filled.found:
        zero = _zero(each.hint, each.path, filled.choices) if each.absent else _NO_ZERO
        if zero is not _NO_ZERO:
            *above, last = each.path
            target: Any = filled.fields
            for step in above:
                target = items(target)[step.index] if isinstance(step, ListItem) else mapping(target)[step]
            target[last] = zero
    return filled


def unset_choices(obj: Any, paths: list[Path]) -> None:
    """Replace the placeholders of absent choices in a typed object with ``UNSET``."""
    for *above, last in paths:
        target = obj
        for step in above:
            target = target[step.index] if isinstance(step, ListItem) else _read(target, step)
        if isinstance(target, dict):
            target.pop(last, None)  # pyright: ignore[reportUnknownMemberType] - of any type
        elif isinstance(target, msgspec.Struct):
            msgspec.structs.force_setattr(target, _attribute(target, last), msgspec.UNSET)
        else:
            object.__setattr__(target, _attribute(target, last), msgspec.UNSET)


def _read(target: Any, step: str) -> Any:
    found = mapping(target)  # empty for a typed object
    return found[step] if step in found else getattr(target, _attribute(target, step))


def _attribute(target: object, step: Step) -> str:
    fields = class_fields(type(target)) or ()
    return next((field.attribute for field in fields if field.name == step), str(step))


def _zero(hint: Any, path: Path, choices: list[Path]) -> Any:
    kind, _ = bare(hint)
    if len(path) > _DEEPEST:
        return _NO_ZERO
    if kind is type(None) or _allows_none(hint):
        return None
    if kind in _SCALARS:
        return _SCALARS[kind]
    if get_origin(kind) is Literal or (isinstance(kind, type) and issubclass(kind, enum.Enum)):
        choices.append(path)
        return get_args(kind)[0] if get_origin(kind) is Literal else next(iter(kind)).value
    fields = class_fields(kind)
    if fields is not None:
        made = {field.name: _zero(field.hint, (*path, field.name), choices) for field in fields if field.required}
        return _NO_ZERO if any(each is _NO_ZERO for each in made.values()) else made
    container = _CONTAINERS.get(get_origin(kind) or kind)
    if container is not None:
        return container()
    if get_origin(kind) in (Union, UnionType):  # for an int-or-string, the number
        members = (_zero(each, path, choices) for each in get_args(kind))
        return next((each for each in members if each is not _NO_ZERO), _NO_ZERO)
    return _TIMES.get(getattr(cast("object", kind), "__name__", ""), _NO_ZERO)


def _allows_none(hint: Any) -> bool:
    if get_origin(hint) is Annotated:
        return _allows_none(get_args(hint)[0])
    return get_origin(hint) in (Union, UnionType) and type(None) in get_args(hint)
