"""What is raised for a class that cannot be a kind."""

from __future__ import annotations

from deltaloop.api.errors import InvalidArgumentError


class InvalidKindError(InvalidArgumentError):
    """A class cannot be a kind of custom resources; its author has to change it.

    Raised where the class is decorated, or where definitions are put together.

    Attributes:
        cls: Name of the class that is wrong, which may be one inside the kind's own.
        field: Name of its field; "" if the class as a whole is wrong.
    """

    def __init__(self, cls: str, field: str, what: str) -> None:
        """Keep the place, and say what is wrong there."""
        super().__init__(f"{cls}.{field}: {what}" if field else f"{cls}: {what}")
        self.cls = cls
        self.field = field
