"""Convert typed objects to JSON without default values, so that the field manager does not own unset fields."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from typing import Any, cast

import msgspec

from deltaloop.api.pydantic_models import fields_of_model, is_model_class


def set_fields(value: object) -> Any:
    """Return a typed object as decoded JSON, without fields that have default values."""
    return _plain(value, with_defaults=False)


def with_defaults(value: object) -> Any:
    """Return a typed object as decoded JSON, with the defaults that a server applies, except null."""
    return _plain(value, with_defaults=True)


def _plain(value: object, *, with_defaults: bool) -> Any:
    if isinstance(value, msgspec.Struct) or hasattr(type(value), "__dataclass_fields__"):
        return {
            name: _plain(each, with_defaults=with_defaults)
            for name, each, is_default in _fields(value)
            if not is_default or (with_defaults and each is not None and each is not msgspec.UNSET)
        }
    if is_model_class(type(value)):
        dumped = fields_of_model(value, with_defaults=with_defaults)
        return _without_nulls(dumped) if with_defaults else dumped
    if isinstance(value, Mapping):
        fields = cast("Mapping[object, object]", value)
        return {str(name): _plain(each, with_defaults=with_defaults) for name, each in fields.items()}
    if isinstance(value, set | frozenset):
        return sorted(_plain(each, with_defaults=with_defaults) for each in cast("set[object]", value))
    if isinstance(value, list | tuple):
        return [_plain(each, with_defaults=with_defaults) for each in cast("list[object]", value)]
    if isinstance(value, enum.Enum):
        return value.value
    return msgspec.to_builtins(value, str_keys=True)


def _without_nulls(value: Any) -> Any:
    """Return the JSON of a model without null fields, which are missing by default."""
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        return {name: _without_nulls(each) for name, each in fields.items() if each is not None}
    return [_without_nulls(each) for each in cast("list[Any]", value)] if isinstance(value, list) else value


def _fields(value: Any) -> Iterator[tuple[str, object, bool]]:
    """Yield the JSON name and the value of each field, and whether the value is the default."""
    if isinstance(value, msgspec.Struct):
        for field in msgspec.structs.fields(value):
            each = getattr(value, field.name)
            absent = msgspec.NODEFAULT
            yield (
                field.encode_name,
                each,
                each is msgspec.UNSET or _is(each, field.default, field.default_factory, absent),
            )
        return
    import dataclasses

    for known in dataclasses.fields(value):
        each = getattr(value, known.name)
        is_default = _is(each, known.default, known.default_factory, dataclasses.MISSING)
        yield known.name, each, each is msgspec.UNSET or is_default


def _is(value: object, default: object, factory: Any, absent: object) -> bool:
    if factory is not absent:
        default = factory()
    return default is not absent and type(value) is type(default) and bool(value == default)
