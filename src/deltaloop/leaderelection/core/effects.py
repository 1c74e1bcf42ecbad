"""Effects of an election, and the facts that it reports."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from deltaloop._internal.pacing import Wait
from deltaloop.leaderelection.core.record import LeaderElectionRecord


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
