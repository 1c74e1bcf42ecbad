"""Effects of an election, and the facts that it reports.

    idle ──interval after the last response──▶ waiting ──response──▶ idle
                                                 └──deadline──▶ silent (final)

Without this check, a thread that renews the lease for a blocked loop would keep all other candidates from leading.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeAlias, final

from deltaloop._internal.option_types import check_types
from deltaloop._internal.pacing import Wait
from deltaloop.api.errors import InvalidArgumentError
from deltaloop.leaderelection.core.record import LARGEST_NUMBER, LeaderElectionRecord

JITTER_FACTOR: Final = 1.2


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectionTiming:
    """Durations of an election in seconds.

    The defaults are those of the Kubernetes components.

    Attributes:
        lease_duration: Time that other candidates wait after the last change that they observed before they take over.
        renew_deadline: Time for which a leader leads without a successful renewal.
        retry_period: Time between two attempts. Candidates add a random delay of up to 1.2 times this value.
    """

    lease_duration: float = 15.0
    renew_deadline: float = 10.0
    retry_period: float = 2.0

    def __post_init__(self) -> None:
        """Reject durations that permit two leaders or leave no time to renew."""
        check_types(self)
        for name in ("lease_duration", "renew_deadline", "retry_period"):
            value: float = getattr(self, name)
            if not (value > 0 and math.isfinite(value)):
                raise InvalidArgumentError(f"{name} is {value!r}; a finite number of seconds greater than 0 is needed")
        if self.lease_duration > LARGEST_NUMBER:
            raise InvalidArgumentError(
                f"lease_duration must be at most {LARGEST_NUMBER} s, the limit of a Lease, got {self.lease_duration:g}"
            )
        if not self.lease_duration > self.renew_deadline:
            raise InvalidArgumentError(
                f"lease_duration ({self.lease_duration:g} s) must be greater than renew_deadline "
                f"({self.renew_deadline:g} s): a leader has to stop before others may take over"
            )
        if not self.renew_deadline > JITTER_FACTOR * self.retry_period:
            raise InvalidArgumentError(
                f"renew_deadline ({self.renew_deadline:g} s) must be greater than {JITTER_FACTOR:g} times retry_period "
                f"({self.retry_period:g} s): a leader has to get a second try"
            )


@dataclass(frozen=True, slots=True)
class Read:
    """Read the lock within ``timeout`` seconds, then call ``observed`` or ``failed``."""

    timeout: float


@dataclass(frozen=True, slots=True)
class Create:
    """Create the lock, then call ``wrote``, ``conflicted`` (it exists already) or ``failed``."""

    record: LeaderElectionRecord
    timeout: float


@dataclass(frozen=True, slots=True)
class Update:
    """Write the record if the lock has ``version``, then call ``wrote``, ``conflicted`` (it changed) or ``failed``."""

    record: LeaderElectionRecord
    version: str
    timeout: float


@dataclass(frozen=True, slots=True)
class StepDown:
    """Stop the work because leadership is lost, then call ``release``."""

    because: LossReason


@dataclass(frozen=True, slots=True)
class Left:
    """The candidate has left. ``join`` starts again."""

    outcome: ReleaseOutcome


Request: TypeAlias = Read | Create | Update
Effect: TypeAlias = Request | Wait | StepDown | Left


@dataclass(frozen=True, slots=True)
class BecameLeader:
    """The candidate won the lock, with a fencing token that increases from leader to leader."""

    token: str
    transitions: int


@dataclass(frozen=True, slots=True)
class NewLeader:
    """The lock names a new leader, which can be this candidate."""

    identity: str


Fact: TypeAlias = BecameLeader | NewLeader


class LossReason(StrEnum):
    """Reason for a loss of leadership."""

    RENEW_DEADLINE = "renew deadline"
    TAKEN = "taken by another holder"
    GONE = "lock deleted or cleared"
    WEDGED = "the work's event loop does not answer"


class ReleaseOutcome(StrEnum):
    """State of the lock after the candidate left."""

    RELEASED = "released"
    NOT_HELD = "not held"
    KEPT = "kept until it expires"


@dataclass(frozen=True, slots=True)
class Beat:
    """Send a heartbeat, and call ``answered`` when the loop responds."""


@dataclass(frozen=True, slots=True)
class Silent:
    """The loop did not respond before the deadline."""

    seconds: float


HeartbeatEffect: TypeAlias = Beat | Silent | Wait


@final
class Heartbeat:
    def __init__(self, now: float, *, interval: float, deadline: float) -> None:
        """Start the heartbeat; ``interval`` is in seconds after a response, and ``deadline`` after a heartbeat."""
        self._interval = interval
        self._deadline = deadline
        self._next_at = now
        self._asked_at: float | None = None
        self._silent: Silent | None = None

    def ask(self, now: float) -> HeartbeatEffect:
        if self._silent is not None:
            return self._silent
        if self._asked_at is not None:
            silence = now - self._asked_at
            if silence >= self._deadline:
                self._silent = Silent(silence)
                return self._silent
            return Wait(self._asked_at + self._deadline)
        if now < self._next_at:
            return Wait(self._next_at)
        self._asked_at = now
        return Beat()

    def answered(self, now: float) -> None:
        """Process a response. Responses after the deadline are ignored."""
        if self._asked_at is None or now - self._asked_at >= self._deadline:
            return
        self._asked_at = None
        self._next_at = now + self._interval
