"""Fields of pydantic models in the form of msgspec's; validators cannot be converted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import UnionType
from typing import Annotated, Any, Final, Union, cast, get_args, get_origin

from msgspec import NODEFAULT, Meta, inspect

from deltaloop.crds.errors import InvalidKindError

# The classes of annotated-types have one attribute, which has the name of the pydantic field.
_LIMITS: Final = ("gt", "ge", "lt", "le", "multiple_of", "min_length", "max_length", "pattern")


def model_fields(cls: Any) -> list[inspect.Field]:
    """Return the fields of a model, or raise InvalidKindError."""
    if getattr(cls, "__pydantic_root_model__", False):
        what = "must have fields, got a root model. Use the type of its value."
        raise InvalidKindError(cls.__name__, "", what)
    return [_field(cls, name, info) for name, info in cls.model_fields.items()]


def keeps_all(cls: Any) -> bool:
    return bool(cls.model_config.get("extra") == "allow")


def _field(cls: Any, name: str, info: Any) -> inspect.Field:
    written = info.serialization_alias or name
    if (info.validation_alias or name) != written:
        what = f"must have one alias, got {info.validation_alias!r} for reading and {written!r} for writing."
        raise InvalidKindError(cls.__name__, name, what)
    try:
        kind = inspect.type_info(_annotated(info.annotation, info.metadata, info.description))
    except (TypeError, ValueError) as error:
        raise InvalidKindError(cls.__name__, name, f"{error}. Use a type with a structural schema.") from None
    default: Any = NODEFAULT if info.is_required() or info.default_factory is not None else info.default
    factory: Any = NODEFAULT if info.default_factory is None else _Factory(info)
    required = bool(info.is_required())
    return inspect.Field(name, written, kind, required=required, default=default, default_factory=factory)


class _Factory:
    def __init__(self, info: Any) -> None:
        self._info = info

    def __call__(self) -> Any:
        return self._info.get_default(call_default_factory=True, validated_data={})


def _annotated(hint: Any, said: Iterable[object], description: str | None = None) -> Any:
    notes = [note for each in said for note in _notes(each)]
    if description:
        notes.append(Meta(description=description))
    members = [part for part in get_args(hint) if part is not type(None)]
    if get_origin(hint) in (Union, UnionType) and len(members) == 1:  # annotations belong to the inner value
        return _noted(_inner(members[0]), notes) | None
    return _noted(_inner(hint), notes)


def _noted(bare: Any, notes: Iterable[Meta]) -> Any:
    for note in notes:
        bare = Annotated[bare, note]
    return bare


def _inner(hint: Any) -> Any:
    origin: Any = get_origin(hint)
    parts: tuple[Any, ...] = get_args(hint)
    if origin is Annotated:
        return _annotated(parts[0], parts[1:])
    if origin in (Union, UnionType):
        return Union[tuple(_inner(part) for part in parts)]  # noqa: UP007 - of parts that are not known here
    if origin in (list, set, frozenset, dict):
        return cast("Any", origin)[tuple(_inner(part) for part in parts)]
    if hint is bytes:
        raise TypeError("Use str with the format 'byte', because pydantic writes bytes as text.")
    return hint


def _notes(said: object) -> Iterator[Meta]:
    if isinstance(said, Meta):
        yield said
        return
    inner = getattr(said, "metadata", None)  # a Field inside a type
    if isinstance(inner, list):
        for each in cast("list[object]", inner):
            yield from _notes(each)
    description = getattr(said, "description", None)
    if isinstance(description, str):
        yield Meta(description=description)
    for name in _LIMITS:
        limit = getattr(said, name, None)
        if limit is not None and not callable(limit):
            yield Meta(**{name: limit})
