"""What is raised for webhooks that cannot work."""

from __future__ import annotations

from typing import final

from deltaloop._internal.root_error import DeltaloopError
from deltaloop.api.errors import InvalidArgumentError


@final
class InvalidWebhookError(InvalidArgumentError):
    """A webhook is declared in a way that cannot work; the message names it and says what to change.

    Attributes:
        webhook: Its name, or that of its function.
        problem: What is wrong, without the name; it has nothing of objects.
    """

    def __init__(self, webhook: str, problem: str) -> None:
        """Keep which one."""
        super().__init__(f"webhook {webhook!r}: {problem}")
        self.webhook = webhook
        self.problem = problem


@final
class InvalidReviewResultError(DeltaloopError):
    """The function of a webhook returned something that means nothing; the request is left to the failure policy.

    Attributes:
        webhook: Its name.
        problem: What is wrong, without the name; it has nothing of objects.
        where: File and line of the function; empty if that says nothing more than the traceback.
    """

    def __init__(self, webhook: str, problem: str, *, detail: str = "", where: str = "") -> None:
        """Keep whose it is.

        Args:
            webhook: Its name.
            problem: What is wrong, without anything that may be of an object.
            detail: What else the text says.
            where: File and line of the function.
        """
        super().__init__(f"webhook {webhook!r}: {problem}{detail}")
        self.webhook = webhook
        self.problem = problem
        self.where = where


@final
class CachesNotFilledError(DeltaloopError):
    """A webhook asked for objects of a kind whose cache has not been filled yet: the program has just started."""


@final
class WebhookServerError(DeltaloopError):
    """Webhooks cannot be served; the message says where, and what to do.

    Attributes:
        host: Address that was to be listened on.
        port: Its port.
    """

    def __init__(self, message: str, *, host: str, port: int) -> None:
        """Keep where."""
        super().__init__(message)
        self.host = host
        self.port = port


@final
class StorageVersionChangedError(DeltaloopError):
    """While objects were written again in one version, their definition began to store another; begin again.

    Attributes:
        definition: Name of the definition.
        was: The version that they were written in.
        now: The version that it stores now.
    """

    def __init__(self, definition: str, *, was: str, now: str) -> None:
        """Keep what has changed."""
        super().__init__(
            f"CustomResourceDefinition {definition} stores {now} now, and its objects were being written as {was};"
            " nothing was taken out of status.storedVersions: begin again"
        )
        self.definition = definition
        self.was = was
        self.now = now
