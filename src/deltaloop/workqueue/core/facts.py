"""Facts that the state machines return to their drivers, which turn them into logs and metrics."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias, final

import msgspec

AddOutcome: TypeAlias = "Literal['queued', 'merged', 'postponed', 'delayed', 'ignored', 'parked']"


@final
class Added(msgspec.Struct, frozen=True):
    """An item needs a run that it did not need before."""


@final
class Started(msgspec.Struct, frozen=True):
    """A worker took an item, ``latency`` seconds after the first add of this run."""

    latency: float


@final
class Done(msgspec.Struct, frozen=True):
    """A run ended after ``duration`` seconds."""

    duration: float


@final
class Retried(msgspec.Struct, frozen=True):
    """A delayed add was requested. client-go counts it as a retry."""


Fact: TypeAlias = "Added | Started | Done | Retried"


@final
class Succeeded(msgspec.Struct, frozen=True):
    """The run succeeded."""


@final
class Failed(msgspec.Struct, frozen=True):
    """The run raised an ordinary exception."""

    error: Exception


@final
class Interrupted(msgspec.Struct, frozen=True):
    """The run was stopped from outside, which is not a failure; ``delay`` is in seconds until it is queued again."""

    delay: float = 0.0


@final
class Again(msgspec.Struct, frozen=True):
    """The run succeeded and requests another run after ``delay`` seconds."""

    delay: float
    trigger: object | None = None
    keep_triggers: bool = True


Ending: TypeAlias = Succeeded | Failed | Interrupted | Again
SUCCEEDED: Final = Succeeded()
INTERRUPTED: Final = Interrupted()


def ending_of(error: BaseException | None, again: Again | None) -> Ending:
    """Return how a run ended: cancellations and interrupts are not failures, and ``again`` needs success."""
    if error is None:
        return SUCCEEDED if again is None else again
    return Failed(error) if isinstance(error, Exception) else Interrupted()


RunOutcome: TypeAlias = (
    "Literal['finished', 'retried', 'repeated', 'put back', 'unhandled', 'given up', 'parked', 'over']"
)


@final
class Finished(msgspec.Struct, frozen=True, kw_only=True):
    """End of a run.

    Attributes:
        delay: Seconds until the next run, if known.
        error: Ordinary exception of the body, or None.
        limiter_error: Exception of a broken rate limiter, or None. The item then waits for a fixed time.
    """

    fate: RunOutcome
    delay: float = 0.0
    error: Exception | None = None
    limiter_error: Exception | None = None

    @property
    def suppressed(self) -> bool:
        """Whether the queue handled the error, so that the worker continues."""
        return self.error is not None and self.fate in ("retried", "given up", "parked")


FINISHED: Final = Finished(fate="finished")
