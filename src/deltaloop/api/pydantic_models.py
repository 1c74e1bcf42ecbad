"""Models of pydantic as classes of objects: read, written and told apart. Only who has models has pydantic, too.

A model reads and writes the names that its aliases say. What is computed is not written.
"""

from __future__ import annotations

from typing import Any

import msgspec


def is_model_class(cls: object) -> bool:
    """Tell whether something is a class of models."""
    return isinstance(cls, type) and hasattr(cls, "__pydantic_validator__") and hasattr(cls, "model_validate")


def model_of(cls: type, value: object) -> Any:
    """Make a model of what was read: the hook of msgspec's decoders for classes that it does not know.

    Of another class, such as ``object``, the value is taken as it is: the decoder refuses it where it is none of it, as
    it does without a hook.

    Raises:
        ValueError: If it does not fit; the message has the place, and nothing of the value.
    """
    if not is_model_class(cls):
        return value
    model: Any = cls
    try:
        return model.model_validate(value)
    except ValueError as error:
        raise ValueError(_without_values(error)) from None


def _without_values(error: Any) -> str:
    """Return the first thing that is wrong in the form of msgspec's errors."""
    if not hasattr(error, "errors"):
        return "it does not fit"
    first = error.errors(include_input=False, include_url=False, include_context=False)[0]
    # What a validator of the model's own says may repeat what it was given.
    words = "a validator refuses it" if first["type"] in ("value_error", "assertion_error") else first["msg"]
    place = ".".join(map(str, first["loc"]))
    return f"{words} - at `$.{place}`" if place else words


def fields_of_model(model: Any, *, with_defaults: bool) -> Any:
    """Return a model as JSON has it, by the names of its aliases.

    Args:
        model: The model.
        with_defaults: Whether fields that are as they are by default are there, too.
    """
    return model.model_dump(mode="json", by_alias=True, exclude_defaults=not with_defaults, round_trip=True)


class InModels:
    """Lets a Struct be a field of a model."""

    __slots__ = ()

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: object, _handler: object) -> Any:
        """Return how pydantic reads and writes it: as msgspec does."""
        from pydantic_core import core_schema

        def read(value: object) -> Any:
            return value if isinstance(value, cls) else msgspec.convert(value, cls)

        def write(value: object) -> Any:
            return msgspec.to_builtins(value)

        writing = core_schema.plain_serializer_function_ser_schema(write)
        return core_schema.no_info_plain_validator_function(read, serialization=writing)
