"""What is wrong with a field of an object: where, which of the API's field errors it is, and the text that follows.

Source: apimachinery pkg/util/validation/field/errors.go.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from deltaloop.schemas.types import TypeNode


class SchemaError(msgspec.Struct, frozen=True):
    """One field that is wrong.

    Attributes:
        field: Where.
        reason: Which of the API's field errors it is.
        text: What follows the field's name.
        tolerated: Whether it was so before, in a part that has not changed: the writer is only warned.
    """

    field: str
    reason: str
    text: str
    tolerated: bool = False

    def __str__(self) -> str:
        return f"{self.field}: {self.text}"


class DecodingFault(msgspec.Struct, frozen=True):
    """A value that cannot be read as what it is to be; the words are put on it where it is answered.

    Attributes:
        path: Where it is, from the beginning, without the places of items; "" for the whole.
        struct: The struct in which it is a field.
        wanted: The type that it is to be of.
        found: What it is, in the words of JSON schema, as ``value_type`` says it; never the data.
        number: The number, where another one is wanted: Go repeats it.
        why: What the value's own reader says against it; "" if it is of a wrong type.
    """

    path: str
    struct: str
    wanted: TypeNode
    found: str
    number: float | None = None
    why: str = ""


class MergingFault(msgspec.Struct, frozen=True):
    """A value that cannot be merged as its type says; the words are put on it where it is answered.

    Attributes:
        path: Where it is, as people read it.
        why: What is wrong: ``type``, ``undeclared``, ``repeated``, or with an item ``null in keyed``, ``null in set``,
            ``no object``, ``no key``.
        wanted: The type that it is to be of, or the keys that are wanted or repeated.
        found: What it is, in the words of JSON schema; never the data.
        position: Of the item.
    """

    path: str
    why: str
    wanted: str = ""
    found: str = ""
    position: int = 0


def required(field: str, text: str = "") -> SchemaError:
    """A field that has to be there is not."""
    return SchemaError(field, "FieldValueRequired", f"Required value: {text}" if text else "Required value")


def invalid_value(field: str, shown: str, text: str) -> SchemaError:
    """A field has a value that it cannot have; ``shown`` is the value as Go's ``%#v`` prints it."""
    return SchemaError(field, "FieldValueInvalid", f"Invalid value: {shown}: {text}")


def duplicate(field: str, shown: str) -> SchemaError:
    """A value is there twice and may be there once."""
    return SchemaError(field, "FieldValueDuplicate", f"Duplicate value: {shown}")


def missing(field: str, shown: str) -> SchemaError:
    """A field refers to something that is not there."""
    return SchemaError(field, "FieldValueNotFound", f"Not found: {shown}")


def forbidden_field(field: str, text: str) -> SchemaError:
    """A field may not be set or changed."""
    return SchemaError(field, "FieldValueForbidden", f"Forbidden: {text}")


def internal(field: str, text: str) -> SchemaError:
    """Something went wrong in the server while a field was looked at."""
    return SchemaError(field, "InternalError", f"Internal error: {text}")


def too_long(field: str, most: int, unit: str = "byte") -> SchemaError:
    """A text is too long; ``unit`` is what its length is counted in."""
    text = f"Too long: may not be more than {most} {unit}{'' if most == 1 else 's'}"
    return SchemaError(field, "FieldValueTooLong", text)


def too_many(field: str, found: int, most: int) -> SchemaError:
    """A list or an object has more items than it may have."""
    text = f"Too many: {found}: must have at most {most} item{'' if most == 1 else 's'}"
    return SchemaError(field, "FieldValueTooMany", text)


def not_supported(field: str, value: str, supported: Iterable[str]) -> SchemaError:
    """A field has none of the values that it can have."""
    listed = ", ".join(f'"{item}"' for item in supported)
    return SchemaError(field, "FieldValueNotSupported", f'Unsupported value: "{value}": supported values: {listed}')
