"""Decide when one candidate reads and writes the lock, and when it leads.

Candidates share one record. Each write has a precondition on the version, so one of two concurrent writes fails.
Another candidate takes over after it has seen no change for a whole lease duration.

    IDLE ──join──▶ CONTENDING ──won──▶ LEADING ──deadline, or lock lost──▶ LOST
      ▲                │                  │                                 │
      └── DONE ◀── RELEASING ◀────────────┴──────────── release ────────────┘

Five rules together prevent two leaders at the same time.

1. Leadership counts from the START of the last successful write. The server stored the write later, and other
   candidates observed it even later. The response does not show when the write happened.
2. Leadership ends ``renew_deadline`` after that start, regardless of the network (``guard_until``).
3. Other candidates wait for ``lease_duration`` from the moment when THEY observed the last change, on their own clocks.
   They never use the times in the record, which come from another clock. Every new version counts as a change.
4. ``lease_duration > renew_deadline``. Their ratio is the tolerated difference between the rates of two clocks.
5. A takeover specifies the version that the candidate has just read, so a concurrent renewal makes it fail.

The recorded lease duration applies, rounded up, because candidates can have different configurations.

A leader renews with the version of its last write (fast path) and reads the lock only after an error. The timeout of a
request is at most half the renew deadline, so one hanging connection cannot use it up, and at most the remaining time.

``now`` is in seconds on the caller's monotonic clock, which must run during suspend. ``wall`` is only written into the
record.

Source: client-go tools/leaderelection/leaderelection.go (``tryAcquireOrRenew``, ``renew``, ``release``). Differences
(see docs/reference/differences.md): leadership counts from the start of the write, a leader that sees another holder
stops immediately, and a new version alone counts as a change.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import Final, TypeAlias, final

from deltaloop._internal.option_types import check_types
from deltaloop._internal.pacing import Wait, jitter
from deltaloop.api.errors import InvalidArgumentError
from deltaloop.api.times import WallTime
from deltaloop.leaderelection.core.record import LARGEST_NUMBER, LeaderElectionRecord, LockState, whole_seconds

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
    """Check that the loop of the work responds, so that a blocked loop does not keep the lease.

    ::

        idle ──interval after the last response──▶ waiting ──response──▶ idle
                                                     └──deadline──▶ silent (final)
    """

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


_LONG_LEASE: Final = 3600.0


class ElectionPhase(Enum):
    IDLE = "idle"
    CONTENDING = "contending"
    LEADING = "leading"
    LOST = "lost"
    RELEASING = "releasing"


class _Step(Enum):
    READ = "read"
    CREATE = "create"
    UPDATE = "update"


@final
class Election:
    """Election of one candidate.

    It has at most one pending request. It is not thread-safe, except for reading ``guard_until``.
    """

    def __init__(self, identity: str, timing: ElectionTiming | None = None) -> None:
        """Create a candidate that has not joined.

        Raises:
            InvalidArgumentError: If the identity is empty, because an empty holder means that there is no leader.
        """
        if not identity:
            raise InvalidArgumentError("the identity of a candidate is empty; give one that no other candidate has")
        self.identity = identity
        self.timing: ElectionTiming = timing if timing is not None else ElectionTiming()
        self.phase: ElectionPhase = ElectionPhase.IDLE
        self.guard_until: float = -math.inf
        """Time until which the leader may write, on the caller's clock. -inf if not leading. Threads read it."""
        self.slow_paths: int = 0
        self._observed: LockState | None = None
        self._observed_at = -math.inf
        self._version_is_current = False
        self._reported = ""
        self._renewed_at = -math.inf
        self._next_at = -math.inf
        self._attempt_at = -math.inf
        self._step: _Step | None = None
        self._pending: Request | None = None
        self._pending_at = -math.inf
        self._fast = False
        self._write_unknown_at: float | None = None
        self._loss: LossReason | None = None
        self._release_until = -math.inf
        self._outcome = ReleaseOutcome.NOT_HELD

    # State

    @property
    def leader(self) -> str:
        """Last observed leader, or an empty string without a leader or before the first read."""
        return self._observed.record.holder_identity if self._observed is not None else ""

    @property
    def long_lease(self) -> float:
        """Lease duration in seconds of another candidate if it is suspiciously long, otherwise 0.

        Anyone who can write the Lease can block all other candidates for up to 68 years, because the recorded duration
        applies, as in client-go. So it causes a warning.
        """
        record = self._observed.record if self._observed is not None else None
        if record is None or record.holder_identity in ("", self.identity):
            return 0.0
        seconds = float(_stored(record.lease_duration_seconds))
        return seconds if seconds > max(_LONG_LEASE, 10 * self.timing.lease_duration) else 0.0

    @property
    def renewed_at(self) -> float:
        """Start of the last successful write as the leader, or -inf before the first write."""
        return self._renewed_at

    def is_leading(self, now: float) -> bool:
        """Return whether this candidate may act as the leader."""
        return now < self.guard_until

    # Commands of the caller

    def join(self, now: float) -> None:
        """Start to contend, at the earliest one retry period after the last attempt began."""
        if self.phase is not ElectionPhase.IDLE:
            raise RuntimeError(f"join() while {self.phase.value}; release() comes first")
        self.phase = ElectionPhase.CONTENDING
        self._step = None
        self._next_at = max(now, self._attempt_at + self.timing.retry_period)

    def release(self, now: float, *, give_up: bool = True) -> None:
        """Stop leading, and release the lock if this candidate may hold it and ``give_up``; otherwise the lock expires.

        A pending request is dropped. If it was a write, the candidate reads the lock before it releases it. Releasing
        ends after the renew deadline, or earlier if the lease has expired.
        """
        if self._pending is not None:
            self._forget_request(now)
        holds = self._observed is not None and self._observed.record.holder_identity == self.identity
        until = self._release_until_at(now)
        self.guard_until = -math.inf
        self._loss = None
        self.phase = ElectionPhase.RELEASING
        self._release_until = until
        if not holds and self._write_unknown_at is None:
            self._outcome, self._step = ReleaseOutcome.NOT_HELD, None
        elif not give_up:
            self._outcome, self._step = ReleaseOutcome.KEPT, None
        else:
            self._outcome = ReleaseOutcome.KEPT
            self._step = _Step.UPDATE if holds and self._version_is_current else _Step.READ

    def leave(self, now: float) -> None:
        """Leave immediately without a request. A lock that this candidate holds expires."""
        self.release(now, give_up=False)
        self._become_idle()

    def step_down_if_due(self, now: float) -> LossReason | None:
        """End leadership if its deadline has passed. Return the reason for the loss, or None."""
        if self.phase is ElectionPhase.LEADING and now >= self.guard_until:
            self._lose(LossReason.RENEW_DEADLINE)
        return self._loss

    def loss_due(self, now: float) -> LossReason | None:
        """Return the reason for the loss of leadership, or None. It changes no state and is thread-safe."""
        if self.phase is ElectionPhase.LEADING and now >= self.guard_until:
            return LossReason.RENEW_DEADLINE
        return self._loss

    def lose(self, because: LossReason, now: float) -> LossReason:
        """End leadership immediately for a reason that only the caller knows, and return the reason of the loss."""
        due = self.step_down_if_due(now)
        if due is not None:
            return due
        if self.phase is not ElectionPhase.LEADING:
            raise RuntimeError(f"lose() while {self.phase.value}")
        if self._pending is not None:
            self._forget_request(now)
        self._lose(because)
        return because

    @property
    def attempt_is_over(self) -> bool:
        """Whether a contender is waiting for its next attempt."""
        return self.phase is ElectionPhase.CONTENDING and self._pending is None and self._step is None

    # Effects

    def ask(self, now: float, *, wall: WallTime) -> Effect:
        """Return the next effect. The caller must report the result of a request before the next call."""
        if self._pending is not None:
            raise RuntimeError("ask() while a request is out")
        if self.phase is ElectionPhase.IDLE:
            return Left(self._outcome)
        loss = self.step_down_if_due(now)
        if loss is not None:
            return StepDown(loss)
        if self.phase is ElectionPhase.RELEASING:
            if self._step is None or now >= self._release_until:
                self._become_idle()
                return Left(self._outcome)
        elif self._step is None:
            if now < self._next_at:
                until = self._next_at
                return Wait(min(until, self.guard_until) if self.phase is ElectionPhase.LEADING else until)
            self._begin_attempt(now)
        assert self._step is not None
        return self._request(self._step, now, wall)

    def _begin_attempt(self, now: float) -> None:
        self._attempt_at = now
        self._fast = self.phase is ElectionPhase.LEADING and self._version_is_current
        self._step = _Step.UPDATE if self._fast else _Step.READ

    def _request(self, step: _Step, now: float, wall: WallTime) -> Request:
        request: Request
        timeout = self._timeout(now)
        if step is _Step.READ:
            request = Read(timeout)
        elif step is _Step.CREATE:
            request = Create(self._own_record(wall), timeout)
        else:
            assert self._observed is not None
            request = Update(self._own_record(wall), self._observed.version, timeout)
        self._pending, self._pending_at, self._step = request, now, None
        return request

    def _timeout(self, now: float) -> float:
        most = self.timing.renew_deadline / 2
        if self.phase is ElectionPhase.LEADING:
            return min(most, self.guard_until - now)
        if self.phase is ElectionPhase.RELEASING:
            return min(most, self._release_until - now)
        return most

    def _own_record(self, wall: WallTime) -> LeaderElectionRecord:
        old = self._observed.record if self._observed is not None else None
        transitions = old.leader_transitions if old is not None else 0
        if self.phase is ElectionPhase.RELEASING:
            return LeaderElectionRecord(
                lease_duration_seconds=1, acquire_time=wall, renew_time=wall, leader_transitions=_stored(transitions)
            )
        acquire_time: WallTime | None = wall
        if old is not None and old.holder_identity == self.identity:
            acquire_time = old.acquire_time or wall
        elif old is not None:
            transitions += 1
        return LeaderElectionRecord(
            holder_identity=self.identity,
            lease_duration_seconds=whole_seconds(self.timing.lease_duration),
            acquire_time=acquire_time,
            renew_time=wall,
            leader_transitions=_stored(transitions),
        )

    # Results

    def observed(self, state: LockState | None, now: float, *, random: float) -> tuple[Fact, ...]:
        """Process the response to a ``Read``. None means that the lock does not exist."""
        self._take(Read)
        self._write_unknown_at = None
        if state != self._observed:
            self._observed, self._observed_at = state, now
        self._version_is_current = state is not None
        holder = self.leader
        if self.phase is ElectionPhase.CONTENDING:
            if holder == self.identity:
                self._write_unknown_at = now  # by a write without a response, or by an earlier process
            self._step = self._step_after_read(now)
            if self._step is None:
                self._retry_contending(now, random)
        elif self.phase is ElectionPhase.LEADING:
            if holder == self.identity:
                self._step = _Step.UPDATE
            else:
                self._lose(LossReason.TAKEN if holder else LossReason.GONE)
        elif holder == self.identity:
            self._step = _Step.UPDATE
        else:
            self._outcome = ReleaseOutcome.NOT_HELD
        return self._report(holder)

    def _step_after_read(self, now: float) -> _Step | None:
        if self._observed is None:
            return _Step.CREATE
        holder = self._observed.record.holder_identity
        if not holder or holder == self.identity or now >= self._expires_at():
            return _Step.UPDATE
        return None

    def _expires_at(self) -> float:
        assert self._observed is not None
        recorded = _stored(self._observed.record.lease_duration_seconds)
        return self._observed_at + (recorded if recorded > 0 else self.timing.lease_duration)

    def wrote(self, version: str, now: float, *, random: float, token: str = "") -> tuple[Fact, ...]:
        """Process a successful write with its ``resourceVersion`` and, if different, fencing token."""
        del random  # renewals have no jitter, but the four result methods share a signature
        request = self._take(Create, Update)
        assert not isinstance(request, Read)
        self._write_unknown_at = None
        self._observed, self._observed_at = LockState(request.record, version, token), now
        self._version_is_current = True
        if self.phase is ElectionPhase.RELEASING:
            self._outcome = ReleaseOutcome.RELEASED
            self._reported = ""
            return ()
        if self.phase is ElectionPhase.LEADING:
            if self.step_down_if_due(now) is None:
                self._extend(now)
            return ()
        self._next_at = now
        if not self._extend(now):
            # The response came too late to start leading, but this candidate holds the lock. The next attempt can start
            # immediately, and a release must release the lock.
            self._write_unknown_at = self._pending_at
            return ()
        self.phase = ElectionPhase.LEADING
        return BecameLeader(token or version, request.record.leader_transitions), *self._report(self.identity)

    def _extend(self, now: float) -> bool:
        # Leadership counts from the sending of the request, because the server may have stored the write at any time
        # before its response.
        until = self._pending_at + self.timing.renew_deadline
        if now >= until:
            return False
        self._renewed_at = self._pending_at
        self.guard_until = until
        self._next_at = max(now, self._pending_at + self.timing.retry_period)
        return True

    def conflicted(self, now: float, *, random: float) -> tuple[Fact, ...]:
        """Process the rejection of a ``Create`` or ``Update`` because the lock changed or does not exist."""
        self._take(Create, Update)
        self._version_is_current = False
        if self.phase is ElectionPhase.RELEASING:
            self._step = _Step.READ
        else:
            self._attempt_failed(now, random)
        return ()

    def failed(self, now: float, *, random: float) -> tuple[Fact, ...]:
        """Process a request without a usable response. A write may nevertheless have succeeded."""
        self._forget_request(now)
        if self.phase is not ElectionPhase.RELEASING:
            self._attempt_failed(now, random)
        return ()

    def _forget_request(self, now: float) -> None:
        request = self._take(Read, Create, Update)
        if not isinstance(request, Read):
            self._version_is_current = False
            self._write_unknown_at = now

    def _attempt_failed(self, now: float, random: float) -> None:
        if self.phase is ElectionPhase.CONTENDING:
            self._retry_contending(now, random)
        elif self._fast:
            self._fast = False
            self.slow_paths += 1
            self._step = _Step.READ
        else:
            self._next_at = max(now, self._attempt_at + self.timing.retry_period)

    # Helpers

    def _become_idle(self) -> None:
        self.phase = ElectionPhase.IDLE
        self._write_unknown_at = None

    def _retry_contending(self, now: float, random: float) -> None:
        self._next_at = now + jitter(self.timing.retry_period, JITTER_FACTOR, random=random)

    def _release_until_at(self, now: float) -> float:
        since = [at for at in (self._renewed_at, self._write_unknown_at) if at is not None]
        expires_at = max(since) + whole_seconds(self.timing.lease_duration)
        return min(now + self.timing.renew_deadline, expires_at)

    def _lose(self, because: LossReason) -> None:
        self.phase = ElectionPhase.LOST
        self.guard_until = -math.inf
        self._loss = because
        self._step = None

    def _take(self, *allowed: type[Request]) -> Request:
        if self._pending is None or not isinstance(self._pending, allowed):
            raise RuntimeError(f"an answer that was not asked for, while {self.phase.value}")
        request, self._pending = self._pending, None
        return request

    def _report(self, holder: str) -> tuple[Fact, ...]:
        if holder == self._reported:
            return ()
        self._reported = holder
        return (NewLeader(holder),) if holder else ()

    def __repr__(self) -> str:
        return f"<Election {self.identity} {self.phase.value}, leader {self.leader or '-'}>"


def _stored(number: int) -> int:
    """Limit a number to the range of all locks, because servers reject others and no candidate could lead."""
    return min(max(number, 0), LARGEST_NUMBER)
