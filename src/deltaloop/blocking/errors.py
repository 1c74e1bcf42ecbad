"""The exceptions of this room.

DeltaloopError
├── BackgroundLoopError    the loop is closed, not started, in another process, or the caller runs on it
└── HandlerStillRunningError  closing or removing has waited long enough for a handler that does not return
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import final

from deltaloop._internal.root_error import DeltaloopError


@final
class BackgroundLoopError(DeltaloopError, RuntimeError):
    """The background loop cannot be used: it is closed, not started, in another process, or the caller runs on it.

    The message says which, and what to do.
    """


@final
class HandlerStillRunningError(DeltaloopError, TimeoutError):
    """Handlers that were told nothing more have not returned in time; their threads go on until they do.

    Attributes:
        handlers: Names of the handlers that still run.
    """

    def __init__(self, handlers: Iterable[str], *, waited: float) -> None:
        """Name the handlers."""
        self.handlers: tuple[str, ...] = tuple(handlers)
        super().__init__(
            f"still running after {waited:g} s: {', '.join(self.handlers)}; a handler that blocks needs a time limit"
        )
