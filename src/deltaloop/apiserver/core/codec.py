"""How the objects of a resource are read and written: as one of Go's types, or by a schema.

Built-in kinds have one implementation (``builtin.codec``), custom resources another (``crds.codec``); what the server
serves carries its own.

Source: apimachinery pkg/runtime (``Codec``); apiextensions-apiserver pkg/apiserver/customresource_handler.go
(``schemaCoercingDecoder``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, Protocol, TypeAlias

from deltaloop.apiserver.core.external_answers import ExternalAnswers
from deltaloop.apiserver.core.webhook_calls import Called, WebhookCall

AsSent: TypeAlias = Literal["whole", "patched", "applied"]
"""How an object came about that was sent; ``patched`` is from the present one."""


class ConversionError(Exception):
    """An object could not be converted to another version; the message is the real server's."""


class UndefinedVersionError(ConversionError):
    """An object was to be converted to a version that its definition does not have any more."""

    def __init__(self, api_version: str) -> None:
        """Name the version."""
        super().__init__(f"request to convert CR to an invalid group/version: {api_version}")


class WebhookConversion(Protocol):
    """How a webhook converts the objects of a resource to other versions; ``crds.conversion_webhook`` is it."""

    @property
    def oldest(self) -> str:
        """The API version in which objects of the store are that do not say it."""
        ...

    def complete(self, stored: dict[str, object]) -> dict[str, object]:
        """Return an object of the store as its own version has it, with its kind."""
        ...

    def review(self, objects: Iterable[dict[str, object]], api_version: str) -> WebhookCall:
        """Return the call that asks for objects of one version in another one.

        Raises:
            ConversionError: If one of them is no version of the resource.
        """
        ...

    def answered(
        self, objects: Sequence[dict[str, object]], api_version: str, call: WebhookCall, called: Called
    ) -> list[dict[str, object] | ConversionError]:
        """Return what has been made of each object, or why that cannot be taken.

        Raises:
            ConversionError: If there is no answer, or none that is about these objects.
        """
        ...

    def ask(self, answers: ExternalAnswers, obj: dict[str, object], api_version: str) -> dict[str, object]:
        """Return an object in a version, for one write.

        Raises:
            QuestionError: If the webhook has not been asked yet.
            ConversionError: If it cannot be converted.
        """
        ...


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

    @property
    def webhook(self) -> WebhookConversion | None:
        """The webhook that converts the objects to other versions, None if there is none."""
        ...

    def asking(self, answers: ExternalAnswers | None) -> Codec:
        """Return the codec for one write, which may ask a webhook to convert what it reads and stores.

        Without that, an object stays in its version.
        """
        ...

    def check_kind(self, fields: dict[str, object]) -> None:
        """Refuse an object that cannot be read for its kind; this comes before whatever else may be wrong with it.

        Raises:
            UnreadableObjectError: If it says that it is something else, or nothing where it has to.
        """
        ...

    def check_made_kind(self, fields: dict[str, object]) -> None:
        """Refuse an object that admission has made another kind.

        Raises:
            ApiError: Mostly 500, as the real server answers.
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

    def in_version(self, fields: dict[str, object], api_version: str) -> dict[str, object]:
        """Return an object as a webhook converts it to an API version, for one write; as it is if none is asked.

        Raises:
            QuestionError: If the webhook is to be asked first.
            ConversionError: If it cannot be converted.
        """
        ...

    def settle(self, fields: dict[str, object]) -> None:
        """Write what an object holds in the form that is stored.

        Raises:
            BadRequestError: If there is no such form.
        """
        ...

    def stored(self, fields: dict[str, object]) -> dict[str, object]:
        """Return a served object in the form that is stored; one that says its version, and no kind, keeps it there.

        Raises:
            QuestionError: If a webhook is to be asked first.
            ApiError: If it cannot be converted.
        """
        ...

    def load(self, fields: dict[str, object]) -> dict[str, object] | None:
        """Return a stored object in the form that is served, None if that is the same but for its version.

        Raises:
            QuestionError: If a webhook is to be asked first.
            ApiError: If it cannot be converted.
        """
        ...
