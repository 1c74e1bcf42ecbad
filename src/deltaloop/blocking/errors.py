"""Exceptions of the blocking API."""

from __future__ import annotations

from collections.abc import Iterable
from typing import final

from deltaloop._internal.root_error import DeltaloopError


@final
class BackgroundLoopError(DeltaloopError, RuntimeError):
    """The background loop is closed, not started or in another process, or the caller runs on it.

    The message contains the cause and a fix.
    """


@final
class HandlerStillRunningError(DeltaloopError, TimeoutError):
    """Handlers did not return within the timeout.

    Their threads continue until the handlers return.

    Attributes:
        handlers: Names of the running handlers.
    """

    def __init__(self, handlers: Iterable[str], *, waited: float) -> None:
        self.handlers: tuple[str, ...] = tuple(handlers)
        super().__init__(
            f"still running after {waited:g} s: {', '.join(self.handlers)}. Add a timeout to handlers that block."
        )
