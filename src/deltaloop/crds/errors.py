"""Errors of kinds that are declared in a wrong way."""

from __future__ import annotations

from deltaloop.api.errors import InvalidArgumentError


class InvalidKindError(InvalidArgumentError):
    """A class cannot be a kind of custom resources.

    Attributes:
        cls: Name of the class, which can be nested in the kind's class.
        field: Name of the field, or "" for the whole class.
        argument: Option of ``custom_resource`` if it is invalid, otherwise the class or its field.
    """

    def __init__(self, cls: str, field: str, what: str, *, option: str = "") -> None:
        super().__init__(f"{cls}.{field}: {what}" if field else f"{cls}: {what}")
        self.argument = option or (f"{cls}.{field}" if field else cls)
        self.cls = cls
        self.field = field
