"""What the cores tell: facts for metrics, how a run ended, and what came of it.

Cores neither log nor call the hooks for metrics; they return these, and the drivers turn them into logs and hook calls.
"""

from __future__ import annotations

from enum import Enum
from typing import Final, TypeAlias, final

import msgspec


@final
class AddOutcome(Enum):
    """What an add did."""

    QUEUED = "queued"
    """The item stands in line now."""
    MERGED = "merged"
    """The item was waiting for a run already; only its triggers grew."""
    POSTPONED = "postponed"
    """The item is being processed; it joins the line when that run is done."""
    DELAYED = "delayed"
    """The item waits for its time."""
    IGNORED = "ignored"
    """The queue is shut down."""
    PARKED = "parked"
    """The item failed for good; it is among the dead letters."""


@final
class Added(msgspec.Struct, frozen=True):
    """An item needs a run that did not need one before."""


@final
class Started(msgspec.Struct, frozen=True):
    """A worker took an item, ``latency`` seconds after the first add that this run serves."""

    latency: float


@final
class Done(msgspec.Struct, frozen=True):
    """A run ended after ``duration`` seconds."""

    duration: float


@final
class Retried(msgspec.Struct, frozen=True):
    """A delayed add was asked for (client-go counts each of them as a retry)."""


Fact: TypeAlias = Added | Started | Done | Retried


@final
class Succeeded(msgspec.Struct, frozen=True):
    """The run did what it had to do."""


@final
class Failed(msgspec.Struct, frozen=True):
    """The run raised an ordinary exception."""

    error: Exception


@final
class Interrupted(msgspec.Struct, frozen=True):
    """The run was stopped from outside (cancellation, interrupt, exit) and says nothing about the item.

    Attributes:
        delay: Seconds until the item goes back in line; only a queue that can delay items has a delay.
    """

    delay: float = 0.0


@final
class Again(msgspec.Struct, frozen=True):
    """The run went well and asks for another one after ``delay`` seconds."""

    delay: float
    trigger: object | None = None
    keep_triggers: bool = True


Ending: TypeAlias = Succeeded | Failed | Interrupted | Again
SUCCEEDED: Final = Succeeded()


def ending_of(error: BaseException | None, again: Again | None) -> Ending:
    """Say how a run ended, from what its body raised and what it asked for.

    Args:
        error: What the body raised. asyncio's ``CancelledError``, ``KeyboardInterrupt``, ``SystemExit`` and groups that
            hold one of them are no ``Exception``: they interrupt the run.
        again: The later run that the body asked for; counts only if the body raised nothing.
    """
    if error is None:
        return SUCCEEDED if again is None else again
    return Failed(error) if isinstance(error, Exception) else Interrupted()


@final
class RunOutcome(Enum):
    """What came of an item when its run had ended."""

    FINISHED = "finished"
    """Nothing is left to do for this run."""
    RETRIED = "retried"
    """It failed and will run again."""
    REPEATED = "repeated"
    """It asked for a later run and will have it."""
    PUT_BACK = "put back"
    """It was interrupted and stands in line again, uncounted."""
    UNHANDLED = "unhandled"
    """It failed, and this kind of queue has no rule when to try again: the error is the caller's."""
    GIVEN_UP = "given up"
    """It should run again, but the queue is shut down."""
    PARKED = "parked"
    """It failed for good, and is among the dead letters."""
    OVER = "over"
    """The run had ended before."""


@final
class Finished(msgspec.Struct, frozen=True, kw_only=True):
    """The end of a run.

    Attributes:
        fate: Whether the item is finished, retried, parked and so on.
        delay: Seconds until its next run may start, where that is known.
        error: What the body raised, if it was an ordinary exception.
        limiter_error: What a broken rate limiter raised; the item then waits a fixed time.
    """

    fate: RunOutcome
    delay: float = 0.0
    error: Exception | None = None
    limiter_error: Exception | None = None

    @property
    def suppressed(self) -> bool:
        """Whether the queue has taken care of the error, so that the worker goes on."""
        return self.error is not None and self.fate in (RunOutcome.RETRIED, RunOutcome.GIVEN_UP, RunOutcome.PARKED)


FINISHED: Final = Finished(fate=RunOutcome.FINISHED)
