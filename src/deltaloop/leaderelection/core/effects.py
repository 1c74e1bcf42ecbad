"""What an election asks its driver to do, and what it tells it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from deltaloop._internal.pacing import Wait
from deltaloop.leaderelection.core.record import LeaderElectionRecord


@dataclass(frozen=True, slots=True)
class Read:
    """Read the lock, within ``timeout`` seconds; feed ``observed`` or ``failed``."""

    timeout: float


@dataclass(frozen=True, slots=True)
class Create:
    """Create the lock with ``record``; feed ``wrote``, ``conflicted`` (another candidate did) or ``failed``."""

    record: LeaderElectionRecord
    timeout: float


@dataclass(frozen=True, slots=True)
class Update:
    """Write ``record`` if the lock still has ``version``; feed ``wrote``, ``conflicted`` (it has not) or ``failed``."""

    record: LeaderElectionRecord
    version: str
    timeout: float


@dataclass(frozen=True, slots=True)
class StepDown:
    """Leadership has ended by itself; stop the work, and then call ``release``."""

    because: LossReason


@dataclass(frozen=True, slots=True)
class Left:
    """The candidate has left; ``join`` starts again."""

    outcome: ReleaseOutcome


Request: TypeAlias = Read | Create | Update
Effect: TypeAlias = Request | Wait | StepDown | Left


@dataclass(frozen=True, slots=True)
class BecameLeader:
    """The lock was won.

    Attributes:
        token: The fencing token that the winning write gave; it grows from leader to leader.
        transitions: How often leadership changed hands, this time included.
    """

    token: str
    transitions: int


@dataclass(frozen=True, slots=True)
class NewLeader:
    """The lock names another leader than before; the own identity counts, too."""

    identity: str


Fact: TypeAlias = BecameLeader | NewLeader


class LossReason(StrEnum):
    """Why leadership ended by itself."""

    RENEW_DEADLINE = "renew deadline"
    TAKEN = "taken by another holder"
    GONE = "lock deleted or cleared"
    WEDGED = "the work's event loop does not answer"


class ReleaseOutcome(StrEnum):
    """What became of the lock when the candidate left."""

    RELEASED = "released"
    NOT_HELD = "not held"
    KEPT = "kept until it expires"
