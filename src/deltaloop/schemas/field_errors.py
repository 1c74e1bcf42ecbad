"""Errors of an object's fields, with the API's reason and message.

Source: apimachinery pkg/util/validation/field/errors.go.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from deltaloop.schemas.types import TypeNode

_encode: Final = msgspec.json.Encoder(order="sorted").encode


class SchemaError(msgspec.Struct, frozen=True):
    """Error of one field; it is ``tolerated`` if it already existed in an unchanged part."""

    field: str
    reason: str
    text: str
    tolerated: bool = False

    def __str__(self) -> str:
        return f"{self.field}: {self.text}"


class DecodingFault(msgspec.Struct, frozen=True):
    """Value that cannot be decoded as its type, without its data. The response adds the message."""

    path: str
    struct: str
    wanted: TypeNode
    found: str
    number: float | None = None
    why: str = ""


class DecodingFaultError(Exception):
    def __init__(self, fault: DecodingFault) -> None:
        super().__init__()
        self.fault = fault


class MergingFault(msgspec.Struct, frozen=True):
    """Value that cannot be merged by its type, without its data. The response adds the message."""

    path: str
    why: str
    wanted: str = ""
    found: str = ""
    position: int = 0


def required(field: str, text: str = "") -> SchemaError:
    return SchemaError(field, "FieldValueRequired", f"Required value: {text}" if text else "Required value")


def shown(value: object) -> str:
    return _encode(value).decode()


def invalid_value(field: str, value: object, text: str) -> SchemaError:
    """Return an error for an invalid value, which the message contains as JSON."""
    return invalid_text(field, shown(value), text)


def invalid_text(field: str, value: str, text: str) -> SchemaError:
    """Return an error for an invalid value in the format of Go's ``%#v``."""
    return SchemaError(field, "FieldValueInvalid", f"Invalid value: {value}: {text}")


def duplicate(field: str, value: object) -> SchemaError:
    return duplicate_text(field, shown(value))


def duplicate_text(field: str, value: str) -> SchemaError:
    """Return an error for a duplicate value in the format of Go's ``%#v``."""
    return SchemaError(field, "FieldValueDuplicate", f"Duplicate value: {value}")


def missing(field: str, value: object) -> SchemaError:
    return SchemaError(field, "FieldValueNotFound", f"Not found: {shown(value)}")


def forbidden_field(field: str, text: str) -> SchemaError:
    return SchemaError(field, "FieldValueForbidden", f"Forbidden: {text}")


def internal(field: str, text: str) -> SchemaError:
    return SchemaError(field, "InternalError", f"Internal error: {text}")


def too_long(field: str, most: int, unit: str = "byte") -> SchemaError:
    text = f"Too long: may not be more than {most} {unit}{'' if most == 1 else 's'}"
    return SchemaError(field, "FieldValueTooLong", text)


def too_many(field: str, found: int, most: int) -> SchemaError:
    text = f"Too many: {found}: must have at most {most} item{'' if most == 1 else 's'}"
    return SchemaError(field, "FieldValueTooMany", text)


def not_supported(field: str, value: str, supported: Iterable[str]) -> SchemaError:
    listed = ", ".join(f'"{item}"' for item in supported)
    return SchemaError(field, "FieldValueNotSupported", f'Unsupported value: "{value}": supported values: {listed}')
