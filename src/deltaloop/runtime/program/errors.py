"""Errors of a program's start and end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, final

from deltaloop._internal.root_error import DeltaloopError
from deltaloop._internal.tracebacks import error_text


@final
class LifespanError(DeltaloopError):
    """A lifespan failed to begin or to end.

    The program ends. ``__cause__`` is the exception of the lifespan.

    Attributes:
        lifespan: Name of the function that ``@dl.lifespan`` decorates.
        phase: ``begin`` or ``end``.
    """

    def __init__(self, lifespan: str, phase: Literal["begin", "end"], error: Exception) -> None:
        super().__init__(f"lifespan {lifespan} failed to {phase}: {error_text(error)}")
        self.lifespan = lifespan
        self.phase = phase


@final
class ShutdownTimeoutError(DeltaloopError):
    """Reconciles did not end in time after they were told to stop; exit the program without them.

    A thread, or a coroutine that suppresses its cancellation, can still run. For this reason the lock was not released.

    Attributes:
        keys: Keys of the reconciles, as ``controller: key``.
    """

    def __init__(self, keys: Sequence[str]) -> None:
        super().__init__(f"{len(keys)} reconcile(s) did not end in time and were abandoned: {', '.join(keys)}")
        self.keys: tuple[str, ...] = tuple(keys)


@final
class HealthServerError(DeltaloopError):
    """The health or metrics server cannot listen; the message names the address and a remedy.

    Attributes:
        host: Address of the server.
        port: Port of the server.
    """

    def __init__(self, message: str, *, host: str, port: int) -> None:
        super().__init__(message)
        self.host = host
        self.port = port
