"""The exception of this room."""

from __future__ import annotations

from typing import final

from deltaloop.errors import DeltaloopError


@final
class BackgroundLoopError(DeltaloopError, RuntimeError):
    """The background loop cannot be used: it is closed, not started, in another process, or the caller runs on it.

    The message says which, and what to do.
    """
