"""Decide what happens to an object that does not fit the class of a webhook.

- CREATE, CONNECT: any mismatch rejects the request.
- UPDATE of the object or a subresource: a mismatch rejects the request if the change touches it.
- UPDATE of an object that is being deleted, and DELETE: allowed, the function is not called.
- Conversion: absent fields get zero values, other mismatches fail.

A change does not touch a mismatch if the value equals the value in the old object, like in the ratcheting of CEL rules.
Items of a list are matched by the map keys that the class declares with ``list_map_keys``.

Source: apiextensions-apiserver pkg/apiserver/schema/cel (ratcheting), common.CorrelatedObject.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from types import UnionType
from typing import (
    Annotated,
    Any,
    Final,
    TypeAlias,
    Union,
    cast,
    final,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

import msgspec

from deltaloop.api.json_comparing import same_json
from deltaloop.api.json_values import items, mapping, text
from deltaloop.api.pydantic_models import is_model_class, model_of
from deltaloop.api.resource import DECODE_ERRORS, without_data
from deltaloop.webhooks.core.admission_review import ReviewOperation

_MAP_KEYS: Final = "x-kubernetes-list-map-keys"
_MISSING: Final = object()
_MOST: Final = 1000
_SHOWN_STEP: Final = 100


class ListItem(msgspec.Struct, frozen=True):
    """Step of a path into a list: the index, and the map keys of the item if the class declares them."""

    index: int
    keys: tuple[str, ...] = ()


Step: TypeAlias = str | ListItem


@final
class Mismatch(msgspec.Struct, frozen=True):
    """Value of an object that does not fit its class. The problem contains no data of the object."""

    path: tuple[Step, ...]
    problem: str
    absent: bool = False
    hint: Any = None

    @property
    def field(self) -> str:
        """Path in Kubernetes' notation, for example ``spec.ports[0].name``."""
        shown = ""
        for step in self.path:
            if isinstance(step, ListItem):
                shown += f"[{step.index}]"
            elif step.isidentifier() and len(step) <= _SHOWN_STEP:
                shown += f".{step}" if shown else step
            else:
                shown += f"[{step[:_SHOWN_STEP]!r}]"
        return shown

    def __str__(self) -> str:
        return f"{self.field}: {self.problem}" if self.path else self.problem


class ClassField(msgspec.Struct, frozen=True):
    """Field of a class: its names in JSON and in Python, its annotation, and whether it is required."""

    name: str
    attribute: str
    hint: Any
    required: bool


@final
class MismatchDecision(msgspec.Struct, frozen=True):
    """Decision about a request. ``rejecting`` None allows the request without a call of the function."""

    first: Mismatch
    rejecting: Mismatch | None


def decide_mismatch(
    operation: ReviewOperation, cls: Any, new: object, old: object, *, subresource: str = "", problem: str = ""
) -> MismatchDecision:
    """Decide about a request; ``problem`` describes an object that cannot be read at all, and ``cls`` can be None."""
    judged = old if operation == "DELETE" else new
    found = ([] if cls is None else mismatches(cls, judged)) or [Mismatch((), problem)]
    first = found[0]
    if operation == "DELETE":
        return MismatchDecision(first, None)
    if operation != "UPDATE":
        return MismatchDecision(first, first)
    if text(mapping(mapping(old).get("metadata")).get("deletionTimestamp")):
        return MismatchDecision(first, None)
    skipped = {"metadata"}
    if subresource and not first.path and cls is not None and any(not each.path for each in mismatches(cls, old)):
        skipped.add(subresource)
    touched = (each for each in found if not _unchanged(each, new, old, skipped))
    return MismatchDecision(first, next(touched, None))


def mismatches(cls: Any, value: object) -> list[Mismatch]:
    """Return the mismatches of a decoded object in the field order of its class, at most 1000."""
    return [each for each, _ in zip(_walk(cls, value, ()), range(_MOST), strict=False)]


def class_fields(hint: Any) -> list[ClassField] | None:
    """Return the fields of a Struct, dataclass, TypedDict or pydantic model. None for other types."""
    cls: Any = get_origin(hint) or hint
    if not isinstance(cls, type):
        return None
    if issubclass(cls, msgspec.Struct):
        known = msgspec.structs.fields(hint)
        return [ClassField(each.encode_name, each.name, each.type, each.required) for each in known]
    model: Any = cast("object", cls)
    if is_model_class(model):
        return [
            ClassField(str(info.validation_alias or name), name, info.annotation, bool(info.is_required()))
            for name, info in model.model_fields.items()
        ]
    if is_typeddict(model):
        required: frozenset[str] = getattr(model, "__required_keys__")  # noqa: B009 - types have no such attribute
        return [_dict_field(name, each, name in required) for name, each in _hints(cls).items()]
    if dataclasses.is_dataclass(model):
        hints = _hints(cls)
        return [
            ClassField(
                each.name,
                each.name,
                hints[each.name],
                each.default is dataclasses.MISSING and each.default_factory is dataclasses.MISSING,
            )
            for each in dataclasses.fields(model)
            if each.init
        ]
    return None


def bare(hint: Any) -> tuple[Any, tuple[str, ...]]:
    """Return a type without annotations and ``None``, and the map keys that list annotations declare."""
    keys: tuple[str, ...] = ()
    while True:
        origin = get_origin(hint)
        if origin is Annotated:
            hint, *notes = get_args(hint)
            for note in notes:
                extra: object = getattr(note, "extra_json_schema", None)
                keys = tuple(text(key) for key in items(mapping(extra).get(_MAP_KEYS))) or keys
        elif origin in (Union, UnionType):
            members = [each for each in get_args(hint) if each is not type(None) and each is not msgspec.UnsetType]
            if len(members) != 1:
                return hint, keys
            hint = members[0]
        else:
            return hint, keys


# -- finding


def _walk(hint: Any, value: object, path: tuple[Step, ...]) -> Iterator[Mismatch]:
    problem = _problem(hint, value)
    if not problem:
        return
    inner = _inside(hint, value, path)
    first = next(inner, None)
    if first is None:
        yield Mismatch(path, problem)
        return
    yield first
    yield from inner


def _problem(hint: Any, value: object) -> str:
    try:
        msgspec.json.decode(msgspec.json.encode(value), type=hint, dec_hook=model_of)
    except DECODE_ERRORS as error:
        return without_data(error).partition(" - at `$")[0]
    return ""


def _inside(hint: Any, value: object, path: tuple[Step, ...]) -> Iterator[Mismatch]:
    kind, keys = bare(hint)
    if get_origin(kind) in (Union, UnionType):
        for member in get_args(kind):
            if isinstance(value, dict) and class_fields(bare(member)[0]) is not None:
                yield from _inside(member, cast("object", value), path)
    elif is_model_class(kind):
        yield from _inside_model(kind, value, path)
    elif isinstance(value, dict):
        yield from _inside_object(kind, cast("dict[str, object]", value), path)
    elif isinstance(value, list):
        arguments = get_args(kind)
        if get_origin(kind) is tuple and arguments[1:] != (...,):
            return
        for index, item in enumerate(cast("list[object]", value)) if arguments else ():
            yield from _walk(arguments[0], item, (*path, ListItem(index, keys)))


def _inside_object(kind: Any, value: dict[str, object], path: tuple[Step, ...]) -> Iterator[Mismatch]:
    fields = class_fields(kind)
    if fields is None:
        arguments = get_args(kind)
        for name, item in value.items() if len(arguments) == 2 else ():
            yield from _walk(arguments[1], item, (*path, name))
        return
    for field in fields:
        if field.name in value:
            yield from _walk(field.hint, value[field.name], (*path, field.name))
        elif field.required:
            yield Mismatch((*path, field.name), "the required field is missing", absent=True, hint=field.hint)
    config = getattr(get_origin(kind) or kind, "__struct_config__", None)
    if getattr(config, "forbid_unknown_fields", False):
        known = {field.name for field in fields}
        for name in value:
            if name not in known:
                yield Mismatch((*path, name), "the class does not have this field")


def _inside_model(cls: Any, value: object, path: tuple[Step, ...]) -> Iterator[Mismatch]:
    """Yield pydantic's errors below a model. Errors of a validator for the whole model belong to the value itself."""
    try:
        cls.model_validate(value)
    except ValueError as error:
        found: Any = error
        for each in found.errors(include_input=False, include_url=False, include_context=False):
            absent = each["type"] == "missing"
            steps, hint = _steps_of(cls, value, each["loc"], absent=absent)
            # The message of a custom validator may contain its input.
            own = each["type"] in ("value_error", "assertion_error")
            problem = "a validator rejects it" if own else each["msg"]
            if steps:
                yield Mismatch((*path, *steps), problem, absent=absent, hint=hint)


def _steps_of(cls: Any, value: object, location: Sequence[object], *, absent: bool) -> tuple[tuple[Step, ...], Any]:
    """Convert a pydantic location to a path without union member names, and return the annotation there."""
    steps: list[Step] = []
    hint: Any = cls
    for place, each in enumerate(location):
        kind, keys = bare(hint)
        last = absent and place == len(location) - 1
        if isinstance(value, dict) and (each in value or last):
            known = {field.name: field.hint for field in class_fields(kind) or ()}
            hint = known.get(str(each), (get_args(kind) or (None,))[-1])
            value = cast("dict[object, object]", value).get(each)
            steps.append(str(each))
        elif isinstance(value, list) and isinstance(each, int) and each < len(cast("list[object]", value)):
            hint = (get_args(kind) or (None,))[0]
            value = cast("list[object]", value)[each]
            steps.append(ListItem(each, keys))
    return tuple(steps), hint


def _dict_field(name: str, hint: Any, required: bool) -> ClassField:
    """Return a field of a TypedDict. ``__required_keys__`` ignores qualifiers in string annotations."""
    while (qualifier := getattr(get_origin(hint), "_name", "")) in ("Required", "NotRequired", "ReadOnly"):
        hint = get_args(hint)[0]
        required = required if qualifier == "ReadOnly" else qualifier == "Required"
    return ClassField(name, name, hint, required)


def _hints(cls: Any) -> dict[str, Any]:
    return get_type_hints(cls, include_extras=True)


# -- ratcheting


def _unchanged(mismatch: Mismatch, new: object, old: object, skipped: AbstractSet[str]) -> bool:
    """Return whether a change does not touch a mismatch. If it concerns the whole object, some fields are ignored."""
    if not mismatch.path:
        return same_json(_without(new, skipped), _without(old, skipped))
    *above, last = mismatch.path
    for step in above:
        if same_json(new, old):
            return True
        new, old = _below(new, step), _old_below(new, old, step)
    if mismatch.absent:
        return isinstance(old, dict) and last not in old
    was = _old_below(new, old, last)
    return was is not _MISSING and same_json(_below(new, last), was)


def _without(obj: object, skipped: AbstractSet[str]) -> dict[str, object]:
    return {name: value for name, value in mapping(obj).items() if name not in skipped}


def _below(value: object, step: Step) -> object:
    if isinstance(step, ListItem):
        listed = items(value)
        return listed[step.index] if step.index < len(listed) else _MISSING
    return mapping(value).get(step, _MISSING)


def _old_below(new: object, old: object, step: Step) -> object:
    if not isinstance(step, ListItem):
        return mapping(old).get(step, _MISSING)
    item, listed = _below(new, step), items(old)
    if step.keys and isinstance(item, dict):
        wanted = _identity(cast("dict[str, object]", item), step.keys)
        return next((each for each in listed if same_json(_identity(mapping(each), step.keys), wanted)), _MISSING)
    equal = next((each for each in listed if same_json(each, item)), _MISSING)
    return equal if equal is not _MISSING else _below(old, step)


def _identity(item: Mapping[str, object], keys: Sequence[str]) -> list[object]:
    return [item.get(key) for key in keys]
