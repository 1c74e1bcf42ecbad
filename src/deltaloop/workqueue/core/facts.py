"""Facts that the state machines return to their drivers, which turn them into logs and metrics."""

from __future__ import annotations

from enum import Enum
from typing import Final, TypeAlias, final

import msgspec


@final
class AddOutcome(Enum):
    QUEUED = "queued"
    """The item joined the queue."""
    MERGED = "merged"
    """The item was already waiting for a run, and the triggers were merged."""
    POSTPONED = "postponed"
    """The item is being processed, and joins the queue afterwards."""
    DELAYED = "delayed"
    IGNORED = "ignored"
    PARKED = "parked"
    """The item failed permanently and became a dead letter."""


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


@final
class RunOutcome(Enum):
    FINISHED = "finished"
    RETRIED = "retried"
    """The run failed and will be retried."""
    REPEATED = "repeated"
    """The run requested a later run."""
    PUT_BACK = "put back"
    """The run was interrupted. The item is queued again, without counting a failure."""
    UNHANDLED = "unhandled"
    """The run failed, and this type of queue has no retries: the caller must handle the error."""
    GIVEN_UP = "given up"
    """The item needs another run, but the queue is shut down."""
    PARKED = "parked"
    """The run failed permanently, and the item became a dead letter."""
    OVER = "over"


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
        return self.error is not None and self.fate in (RunOutcome.RETRIED, RunOutcome.GIVEN_UP, RunOutcome.PARKED)


FINISHED: Final = Finished(fate=RunOutcome.FINISHED)
