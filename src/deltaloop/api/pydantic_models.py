"""Support for pydantic models as classes of objects, without importing pydantic."""

from __future__ import annotations

from typing import Any

import msgspec


def is_model_class(cls: object) -> bool:
    return isinstance(cls, type) and hasattr(cls, "__pydantic_validator__") and hasattr(cls, "model_validate")


def model_of(cls: type, value: object) -> Any:
    """Convert decoded JSON to a model (``dec_hook`` of msgspec's decoders), or return it unchanged for other classes.

    Raises ValueError with the location, but no values.
    """
    if not is_model_class(cls):
        return value
    model: Any = cls
    try:
        return model.model_validate(value)
    except ValueError as error:
        raise ValueError(_without_values(error)) from None


def _without_values(error: Any) -> str:
    """Return the first error in the format of msgspec."""
    if not hasattr(error, "errors"):
        return "the value is not valid"
    first = error.errors(include_input=False, include_url=False, include_context=False)[0]
    # Messages of custom validators may contain the value.
    words = "a validator rejects the value" if first["type"] in ("value_error", "assertion_error") else first["msg"]
    place = ".".join(map(str, first["loc"]))
    return f"{words} - at `$.{place}`" if place else words


def fields_of_model(model: Any, *, with_defaults: bool) -> Any:
    """Return a model as decoded JSON, with its aliases as names, optionally with default values."""
    return model.model_dump(mode="json", by_alias=True, exclude_defaults=not with_defaults, round_trip=True)


class InModels:
    """Mixin for Structs that are fields of pydantic models."""

    __slots__ = ()

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: object, _handler: object) -> Any:
        """Return a schema that reads and writes the Struct with msgspec."""
        from pydantic_core import core_schema

        def read(value: object) -> Any:
            return value if isinstance(value, cls) else msgspec.convert(value, cls)

        def write(value: object) -> Any:
            return msgspec.to_builtins(value)

        writing = core_schema.plain_serializer_function_ser_schema(write)
        return core_schema.no_info_plain_validator_function(read, serialization=writing)
