"""How the objects of a resource are read and written: as one of Go's types, or by a schema.

Built-in kinds have one implementation (``builtin.codec``), custom resources another (``crds.codec``); what the server
serves carries its own.

Source: apimachinery pkg/runtime (``Codec``); apiextensions-apiserver pkg/apiserver/customresource_handler.go
(``schemaCoercingDecoder``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, Protocol, TypeAlias

AsSent: TypeAlias = Literal["whole", "patched", "applied"]
"""How an object came about that was sent; ``patched`` is from the present one."""


class Codec(Protocol):
    """Reads and writes the objects of one resource; every object is changed in place."""

    @property
    def says_kind(self) -> bool:
        """Whether an object has to say its kind and version; otherwise it is taken for what the URL says."""
        ...

    @property
    def serves_as_stored(self) -> bool:
        """Whether ``load`` never has anything to do."""
        ...

    def check_kind(self, fields: dict[str, object]) -> None:
        """Refuse an object that cannot be read for its kind; this comes before whatever else may be wrong with it.

        Raises:
            UnreadableObjectError: If it says that it is something else, or nothing where it has to.
        """
        ...

    def is_read(self, fields: dict[str, object]) -> bool:
        """Tell whether an object is read at all, so that fields that it should not have can be told."""
        ...

    def read(self, fields: dict[str, object], as_sent: AsSent) -> Mapping[str, str]:
        """Read an object as it was sent, with its defaults; return why fields of metadata were dropped, by name.

        Raises:
            UnreadableObjectError: If it cannot be read.
            InternalServerError: If what was applied is of another type.
        """
        ...

    def drop_unknown(self, fields: dict[str, object], body: bytes, as_sent: AsSent, *, told: bool) -> Sequence[str]:
        """Drop fields that the type does not have, and return a sentence for each, and for each that comes twice.

        Args:
            fields: The object as it was sent, decoded.
            body: Its JSON, or something else if it was not JSON; empty if it was not sent itself.
            as_sent: How it came about.
            told: Whether the sentences are asked for.
        """
        ...

    def settle(self, fields: dict[str, object]) -> None:
        """Write what an object holds in the form that is stored.

        Raises:
            BadRequestError: If there is no such form.
        """
        ...

    def stored(self, fields: dict[str, object]) -> dict[str, object]:
        """Return a served object in the form that is stored."""
        ...

    def load(self, fields: dict[str, object]) -> dict[str, object] | None:
        """Return a stored object in the form that is served, None if that is the same."""
        ...
