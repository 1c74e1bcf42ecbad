"""Codec interface for the objects of a resource.

Built-in kinds use ``builtin.codec`` and custom resources use ``crds.codec``.

Source: apimachinery pkg/runtime (``Codec``); apiextensions-apiserver pkg/apiserver/customresource_handler.go
(``schemaCoercingDecoder``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, Protocol, TypeAlias

from deltaloop.apiserver.core.external_answers import ExternalAnswers
from deltaloop.apiserver.core.webhook_calls import Called, WebhookCall

AsSent: TypeAlias = Literal["whole", "patched", "applied"]
"""Origin of a sent object. ``patched`` means that it is the current object with a patch."""


class ConversionError(Exception):
    """Failed conversion to another version; the message is the real server's."""


class UndefinedVersionError(ConversionError):
    """Conversion to a version that the CRD does not define any more."""

    def __init__(self, api_version: str) -> None:
        super().__init__(f"request to convert CR to an invalid group/version: {api_version}")


class WebhookConversion(Protocol):
    @property
    def oldest(self) -> str:
        """API version of stored objects that do not specify a version."""
        ...

    def complete(self, stored: dict[str, object]) -> dict[str, object]: ...

    def review(self, objects: Iterable[dict[str, object]], api_version: str) -> WebhookCall:
        """Return the call that converts objects to a version, or raise ConversionError for an unknown version."""
        ...

    def answered(
        self, objects: Sequence[dict[str, object]], api_version: str, call: WebhookCall, called: Called
    ) -> list[dict[str, object] | ConversionError]:
        """Return the converted object or an error for each object."""
        ...

    def ask(self, answers: ExternalAnswers, obj: dict[str, object], api_version: str) -> dict[str, object]:
        """Convert an object during a write.

        Raises QuestionError if the webhook must be called first, and ConversionError.
        """
        ...


class Codec(Protocol):
    """Encoding and decoding of a resource's objects, which are modified in place."""

    @property
    def says_kind(self) -> bool:
        """Whether objects must specify their kind and version instead of using those of the URL."""
        ...

    @property
    def serves_as_stored(self) -> bool:
        """Whether ``load`` never changes an object."""
        ...

    @property
    def webhook(self) -> WebhookConversion | None: ...

    def asking(self, answers: ExternalAnswers | None) -> Codec:
        """Return the codec for one write, which can call the conversion webhook."""
        ...

    def check_kind(self, fields: dict[str, object]) -> None:
        """Reject an object of an unreadable kind with UnreadableObjectError, before any other check."""
        ...

    def check_made_kind(self, fields: dict[str, object]) -> None:
        """Reject an object whose kind was changed by admission. The error is usually a 500, like on the real server."""
        ...

    def is_read(self, fields: dict[str, object]) -> bool:
        """Return whether an object is decoded at all, so that unknown fields can be reported."""
        ...

    def read(self, fields: dict[str, object], as_sent: AsSent) -> Mapping[str, str]:
        """Read a sent object and set defaults; return the reasons for dropped metadata fields by name."""
        ...

    def drop_unknown(self, fields: dict[str, object], body: bytes, as_sent: AsSent, *, told: bool) -> Sequence[str]:
        """Drop unknown fields and, if ``told``, return a message for each unknown and duplicate field."""
        ...

    def in_version(self, fields: dict[str, object], api_version: str) -> dict[str, object]:
        """Return an object as the webhook converts it."""
        ...

    def settle(self, fields: dict[str, object]) -> None:
        """Normalize values for storage, or raise BadRequestError if that is impossible."""
        ...

    def stored(self, fields: dict[str, object]) -> dict[str, object]:
        """Return a served object in its stored form; raises QuestionError to call the webhook, and ApiError."""
        ...

    def load(self, fields: dict[str, object]) -> dict[str, object] | None:
        """Return a stored object in its served form, or None if only its version differs; raises like ``stored``."""
        ...
