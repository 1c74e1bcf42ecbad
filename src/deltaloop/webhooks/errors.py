"""Errors of webhooks."""

from __future__ import annotations

from typing import final

from deltaloop._internal.root_error import DeltaloopError
from deltaloop.api.errors import InvalidArgumentError


@final
class InvalidWebhookError(InvalidArgumentError):
    """A webhook is declared in a way that cannot work.

    Attributes:
        webhook: Name of the webhook or of its function.
        problem: Problem without the name. It contains no data of objects.
    """

    def __init__(self, webhook: str, problem: str, *, option: str = "") -> None:
        super().__init__(f"webhook {webhook!r}: {problem}")
        self.argument = option
        self.webhook = webhook
        self.problem = problem


@final
class InvalidReviewResultError(DeltaloopError):
    """The function of a webhook returned an invalid result, so the failure policy decides about the request.

    Attributes:
        webhook: Name of the webhook.
        problem: Problem without the name. It contains no data of objects.
        where: File and line of the function. Empty if the traceback shows them.
    """

    def __init__(self, webhook: str, problem: str, *, detail: str = "", where: str = "") -> None:
        super().__init__(f"webhook {webhook!r}: {problem}{detail}")
        self.webhook = webhook
        self.problem = problem
        self.where = where


@final
class CachesNotFilledError(DeltaloopError):
    """A webhook read a cache that has not synced yet, because the program has just started."""


@final
class WebhookServerError(DeltaloopError):
    """The webhook server cannot start.

    Attributes:
        host: Address to listen on.
        port: Port to listen on.
    """

    def __init__(self, message: str, *, host: str, port: int) -> None:
        super().__init__(message)
        self.host = host
        self.port = port


@final
class StorageVersionChangedError(DeltaloopError):
    """The storage version of a definition changed during a migration, which must be started again.

    Attributes:
        definition: Name of the definition.
        was: Version in which the objects were written.
        now: Current storage version.
    """

    def __init__(self, definition: str, *, was: str, now: str) -> None:
        super().__init__(
            f"the storage version of CustomResourceDefinition {definition} changed from {was} to {now}, so"
            " status.storedVersions is unchanged. Run the migration again."
        )
        self.definition = definition
        self.was = was
        self.now = now
